"""The terminal or browser below Textual: drivers, input and output."""
