"""Processes, CPUs, limits and private directories."""
