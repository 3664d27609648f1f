"""Running sweeps and comparisons."""
