"""`iopstui limit`: the highest open-loop rate at which a job keeps a bound on its latency."""
