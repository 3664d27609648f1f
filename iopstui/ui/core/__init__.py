"""Foundations of the screen: the terminal, its keys, the pace of painting."""
