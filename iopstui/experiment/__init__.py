"""Sweeps and comparisons carried out."""
