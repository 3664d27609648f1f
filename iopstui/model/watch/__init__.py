"""Watching disks without a job: triggers, and what a watch comes to."""
