"""Preflight: everything that is checked before the first change."""
