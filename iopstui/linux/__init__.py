"""Readers of the kernel's files: parse_x(text) is pure, read_x(roots) reads."""
