"""What happens over time: runs, sampling, events. No drawing."""
