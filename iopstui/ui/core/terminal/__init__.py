"""The terminal or browser beneath Textual: drivers, input and output."""
