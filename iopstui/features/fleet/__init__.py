"""Measure on many hosts: launch an agent on each, start them together and add up their seconds."""
