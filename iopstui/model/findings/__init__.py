"""Findings: what rules conclude from the evidence of some seconds, in sentences with numbers."""
