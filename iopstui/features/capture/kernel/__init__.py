"""The capture: each request of a disk, noted in the kernel by BPF programs of iopstui's own."""
