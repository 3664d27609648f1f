"""The flight recorder: it records all disks to a ring of files, one per hour, and can look back in
them."""
