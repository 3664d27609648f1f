"""File systems that are not on a disk of this machine: what the kernel knows of them."""
