"""Processes, CPUs and private directories: what the kernel grants us and where we run."""
