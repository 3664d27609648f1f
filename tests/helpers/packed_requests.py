"""Captured requests as the kernel's programs pack them (features/capture/model/workload.py)."""

from __future__ import annotations

from iopstui.features.capture.model.workload import KIND_AT, LOW_BITS, MAX_SECTORS, PID_AT


def pack_shape(pid: int, kind: int, sectors: int, flags: int = 0) -> int:
    """The packed word with a request's length and flags."""
    return pid << PID_AT | kind << KIND_AT | flags | min(sectors, MAX_SECTORS)


def pack_value(pid: int, kind: int, value: int) -> int:
    """The packed word with a depth or a region."""
    return pid << PID_AT | kind << KIND_AT | min(value, LOW_BITS)
