"""Control groups by their I/O: names made from their paths, and rates from their counters."""
