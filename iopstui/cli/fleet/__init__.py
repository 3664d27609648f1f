"""What the commands of many hosts share: fleet, merge and agent."""
