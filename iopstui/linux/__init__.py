"""Readers of the kernel: parse_x(text) is pure, read_x(roots) reads."""
