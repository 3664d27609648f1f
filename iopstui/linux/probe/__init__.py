"""The probe: the block layer's tracepoints, counted in the kernel by bpftrace."""
