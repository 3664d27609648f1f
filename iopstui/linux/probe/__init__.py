"""The probe: BPF programs at the block layer's tracepoints that count in the kernel."""
