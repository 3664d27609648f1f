"""The figures of every subject, each declared once, as a row."""
