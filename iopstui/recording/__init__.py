"""Recordings: their format, writing, reading, playing again."""
