"""Code shared by the commands fleet, merge and agent."""
