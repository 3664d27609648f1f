"""The machine around its disks: CPUs, caches, load, and what can falsify a measurement."""
