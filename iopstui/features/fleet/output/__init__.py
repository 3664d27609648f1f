"""Totals of many hosts as a table, JSON lines or CSV."""
