"""Judge whether a disk is good enough for a program that writes a log."""
