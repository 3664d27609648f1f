"""Adding up hosts: a host's second, the sums of a second, totals and final figures."""
