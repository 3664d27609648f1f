"""The capture in the kernel: iopstui's own BPF programs note each request to a disk."""
