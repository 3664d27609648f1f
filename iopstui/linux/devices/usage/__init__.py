"""What uses a device or file: mounts, overlays, open files, and kernel servers."""
