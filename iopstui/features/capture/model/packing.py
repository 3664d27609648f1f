"""How a captured request is packed into words of 64 bits, so that equal ones can be counted
together. The kernel's programs pack them (features/capture/kernel/programs.py), counting.py unpacks
them."""

from __future__ import annotations

READ, WRITE, DISCARD, FLUSH = range(4)
KINDS = ("read", "write", "discard", "flush")

SECTOR_BYTES = 512
REGION_SECTORS_BITS = 11
"""A region is 1 MiB of a disk."""

# each of the three: process << 32 | kind << 30 | what is counted
PID_AT, KIND_AT = 32, 30
LOW_BITS = (1 << KIND_AT) - 1
METADATA = 1 << 30
"""Added to the process of a request for the file system's metadata: the application did not ask for
this I/O. Linux has no such process numbers (PID_MAX_LIMIT)."""
METADATA_PROCESS = "file system metadata"
"""The name of these requests, whoever sent them."""
# a request's shape: flags, then its length in sectors
SEQUENTIAL, FUA, SYNC = 1 << 29, 1 << 28, 1 << 27
SECTORS_BITS = 27
MAX_SECTORS = (1 << SECTORS_BITS) - 1
