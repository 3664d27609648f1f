"""The screens of sweeps and comparisons."""
