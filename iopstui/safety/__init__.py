"""What may be written, what must be undone, and undoing it."""
