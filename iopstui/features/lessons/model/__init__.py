"""Lessons as data, and the language of lesson files."""
