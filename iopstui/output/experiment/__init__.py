"""Sweeps and comparisons as tables, JSON lines and CSV."""
