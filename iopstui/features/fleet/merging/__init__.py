"""Adding hosts up: a host's second, the sums of a second, totals and finals."""
