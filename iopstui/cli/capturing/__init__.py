"""What `iopstui capture` does: captures, writes jobs, compares."""
