"""Decide what may be written, note what must be undone, and undo it."""
