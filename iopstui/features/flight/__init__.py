"""The flight recorder: a ring of hour files of all disks, and going back in it."""
