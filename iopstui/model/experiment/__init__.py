"""Sweeps and comparisons as data: plans, points, curves, intervals, expectations."""
