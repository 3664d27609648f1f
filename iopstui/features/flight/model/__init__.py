"""File names, times that people write, and bad times: no I/O, no clock."""
