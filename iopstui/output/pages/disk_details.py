"""One disk in detail as text: the health of a SATA or SAS disk, the zones of a zoned one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from iopstui import format as units
from iopstui.linux.devices.smart import Attribute, DiskHealth
from iopstui.linux.devices.zones import Zones
from iopstui.tables import Column, head_line, row_line

_COLUMNS = (
    Column("number", "ID", 3),
    Column("name", "ATTRIBUTE", 26, lambda name: name or units.MISSING, left=True),
    Column("value", "VALUE", 5), Column("worst", "WORST", 5), Column("limit", "LIMIT", 5),
)  # fmt: skip


def health_text(health: DiskHealth, width: int = 80) -> str:
    """A line on the whole disk, then its attributes; sentences are wrapped at ``width``."""
    if health.problem:
        return _wrapped(f"Health: {health.problem}", width)
    lines = _wrapped(f"Health (SMART): {', '.join(_words(health))}", width)
    if health.attributes:
        rows = [f"{head_line(_COLUMNS)}  RAW", *map(_attribute, health.attributes)]
        lines += "".join(row[: max(width, 1)].rstrip() + "\n" for row in rows)
    return lines


def _wrapped(text: str, width: int) -> str:
    return "".join(f"{line}\n" for line in textwrap.wrap(text, width, subsequent_indent="  "))


def _words(health: DiskHealth) -> Iterator[str]:
    states = {True: "passed", False: "FAILED: replace the disk", None: "no verdict"}
    yield states[health.passed]
    yield f"{units.or_dash(health.degrees)} °C"
    if health.hours is not None:
        yield f"{health.hours:,} h powered on"
    if health.grown_defects is not None:
        grown = f"{health.grown_defects:,}" if health.grown_defects else "none"
        yield f"grown defects {grown}"
    if health.uncorrected is not None:
        counts = ", ".join(f"{kind} {count:,}" for kind, count in health.uncorrected.items())
        yield f"uncorrected errors: {counts}"
    failing = sum(attribute.failed == "now" for attribute in health.attributes)
    if failing:
        yield f"{failing} of its attributes below their limit now"


def _attribute(attribute: Attribute) -> str:
    failed = f"  failed: {attribute.failed}" if attribute.failed else ""
    return f"{row_line(_COLUMNS, attribute)}  {attribute.raw or units.MISSING}{failed}"


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
    return "".join(_wrapped(line, width) for line in lines)
