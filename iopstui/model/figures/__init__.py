"""Figures of every subject: declared once, each in a row."""
