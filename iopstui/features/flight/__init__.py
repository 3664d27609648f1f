"""The flight recorder: keeps a ring of files, one an hour, on all disks, and goes back in them."""
