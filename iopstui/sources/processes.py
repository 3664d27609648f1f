"""Which process made something: its number alone means nothing once it is gone (proc(5))."""

from __future__ import annotations


def start_time(pid: int) -> int | None:
    """When a process began, in clock ticks since boot (starttime); None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
