"""The kernel part of a capture: iopstui's own BPF programs record each request to a disk."""
