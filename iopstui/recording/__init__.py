"""Recordings: format, writing, reading, replay."""
