"""Its commands, one file each."""
