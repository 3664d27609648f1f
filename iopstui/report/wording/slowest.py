"""The slowest requests of a recording, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui import format as units
from iopstui.model.metrics.in_common import in_common
from iopstui.model.samples import Exemplar
from iopstui.report.story import Story
from iopstui.text import printable

TITLE = "Slowest requests"
NOTE = (
    "From allocation to completion: tried until the driver last sent it back, plugged until "
    "inserted into the scheduler or queue, queued until issued to the driver, then in the device. "
    "Process: who sent it."
)
HEAD = (
    "time", "disk", "direction", "rwbs", "sector", "offset", "size", "process", "cgroup", "CPUs",
    "total", "tried", "plugged", "queued", "device",
)  # fmt: skip
LEFT = 4
COMMON = (
    "What the slowest of the whole recording have in common beyond chance (not necessarily the "
    "cause):"
)


def claims(story: Story) -> list[str]:
    """What the slowest of the whole recording have in common, compared with random ones of it."""
    return [f"{printable(one.text)}." for one in in_common(story.slowest.compared())]


def rows(story: Story) -> Iterator[tuple[str, ...]]:
    """A row for each, by direction, the slowest first."""
    for t, one in story.slowest.all():
        yield (units.clock(t), printable(one.disk), one.kind, one.flags, *_cells(one))


def _cells(one: Exemplar) -> tuple[str, ...]:
    process = f"{printable(one.comm) or units.MISSING} ({one.pid})"
    group = printable(one.group) or units.MISSING
    sector = units.MISSING if one.sector is None else str(one.sector)
    return (
        sector, units.size(one.offset), units.size(one.size), process, group,
        f"{one.cpu} → {one.cpu_done}",
        *(units.latency(ns) for ns in (one.total_ns, one.tried_ns, one.plugged_ns, one.queued_ns,
                                      one.device_ns)),
    )  # fmt: skip
