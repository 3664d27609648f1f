"""Who uses the disks, and what processes wait for."""
