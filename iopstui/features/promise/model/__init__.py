"""Test the promised figures of a volume: what to measure, and how to judge the result."""
