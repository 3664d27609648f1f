"""Run a measurement over time: runs, sampling, events. No drawing."""
