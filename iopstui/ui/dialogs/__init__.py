"""Screens that ask or list something, and close again."""
