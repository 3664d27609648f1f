"""CPUs: load, interrupts, softirqs, and the job's share of them."""
