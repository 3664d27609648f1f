"""Control groups by their I/O: names of their paths, and rates from their counters."""
