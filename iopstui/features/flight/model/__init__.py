"""Names of files, times that people write, and minutes: no I/O, no clock."""
