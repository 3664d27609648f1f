"""Zones of a zoned block device as text."""

from __future__ import annotations

import textwrap

from iopstui import format as units
from iopstui.linux.devices.zones import Zones


def zones_text(zones: Zones, width: int = 80) -> str:
    """Size, limits and conditions of the zones, wrapped at ``width`` columns."""
    limits = [
        f"{most} {name}"
        for name, most in (("open", zones.most_open), ("active", zones.most_active))
        if most is not None
    ]
    most = f"; at most {', '.join(limits)}" if limits else ""
    capacity = ""
    if zones.capacity is not None and zones.capacity != zones.size:
        capacity = f" of which {units.size(zones.capacity)} can be written"
    count = units.MISSING if zones.count is None else f"{zones.count:,}"
    lines = [f"Zones: {count} of {units.size(zones.size)}{capacity}, {zones.model}{most}"]
    if zones.conditions:
        lines.append("Now: " + ", ".join(f"{n:,} {name}" for name, n in zones.conditions.items()))
    if zones.problem:
        lines.append(zones.problem)
    wrapped = (textwrap.wrap(line, width, subsequent_indent="  ") for line in lines)
    return "".join(f"{line}\n" for wrapped_line in wrapped for line in wrapped_line)
