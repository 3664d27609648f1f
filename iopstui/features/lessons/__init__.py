"""Guided experiments: predict, run, see, explain."""
