"""Watching disks without a job: triggers and totals."""
