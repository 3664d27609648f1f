"""Lessons as text."""
