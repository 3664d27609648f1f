"""The screens and keys of sweeps and comparisons."""
