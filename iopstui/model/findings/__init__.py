"""Findings: sentences with their numbers, from the evidence of some seconds."""
