"""What programs need of a disk, and whether it gives that."""
