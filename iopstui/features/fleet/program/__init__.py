"""Code shared by the commands for many hosts: fleet, merge and agent."""
