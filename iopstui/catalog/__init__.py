"""The files of what providers promise, and which of it this machine seems to have."""
