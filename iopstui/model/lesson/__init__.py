"""A lesson as data, and the language its files are written in."""
