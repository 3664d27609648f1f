"""Testing what was promised of a volume: what to measure, and what it shows."""
