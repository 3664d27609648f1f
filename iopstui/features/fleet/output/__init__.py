"""Totals of many hosts: table, JSON lines, CSV."""
