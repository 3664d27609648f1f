"""`iopstui limit`: find the highest open-loop rate at which a job's latency stays within a
bound."""
