"""The terminal or browser below Textual: its drivers, what is read from it and written to it."""
