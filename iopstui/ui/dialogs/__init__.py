"""Screens that ask a question or list something, and then close."""
