"""The machine around its disks: CPUs, caches, load, and conditions that distort a measurement."""
