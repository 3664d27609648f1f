"""Health of a SATA or SAS disk as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from iopstui import format as units
from iopstui.linux.devices.health.smart import Attribute, DiskHealth

_WIDTHS = (3, 26, 5, 5, 5)


def health_text(health: DiskHealth, width: int = 80) -> str:
    """A line on the whole disk, then its attributes; sentences are wrapped at ``width``."""
    if health.problem:
        return _wrapped(f"Health: {health.problem}", width)
    lines = _wrapped(f"Health (SMART): {', '.join(_words(health))}", width)
    if health.attributes:
        rows = [_row(("ID", "ATTRIBUTE", "VALUE", "WORST", "LIMIT"), "RAW")]
        rows += [_attribute(attribute) for attribute in health.attributes]
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
    cells = (
        attribute.number,
        attribute.name or units.MISSING,
        attribute.value,
        attribute.worst,
        attribute.limit,
    )
    failed = f"  failed: {attribute.failed}" if attribute.failed else ""
    return _row(tuple(units.or_dash(cell) if cell is None else str(cell) for cell in cells),
                (attribute.raw or units.MISSING) + failed)  # fmt: skip


def _row(cells: tuple[str, ...], raw: str) -> str:
    number, name, *counts = cells
    title = f"{number:>{_WIDTHS[0]}} {units.cut(name, _WIDTHS[1]):{_WIDTHS[1]}}"
    right = " ".join(f"{count:>{size}}" for count, size in zip(counts, _WIDTHS[2:], strict=True))
    return f"{title} {right}  {raw}"
