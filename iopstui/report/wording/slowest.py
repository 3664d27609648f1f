"""The slowest requests of a recording, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui import format as units
from iopstui.model.metrics.slow.in_common import in_common
from iopstui.model.metrics.slow.slow_ios import slow_ios
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


IOS_TITLE = "Slowest I/Os"
IOS_HEAD = ("run", "direction", "clat", "size", "offset", "job", "s into the job")
IOS_NOTE = "From fio's own log of each I/O: the job's side alone, nothing is known of the kernel's."
IOS_COMMON = "What they have in common beyond chance (not necessarily the cause):"


def io_rows(story: Story) -> Iterator[tuple[str, ...]]:
    """A row for each of the slowest I/Os of each run."""
    for run in story.runs:
        for one in slow_ios(run.slowest_ios):
            yield (
                str(run.step), one.direction, units.latency(one.latency_ns), units.size(one.size),
                units.size(one.offset), str(one.job), f"{one.t:.3f}",
            )  # fmt: skip


def io_claims(story: Story) -> list[str]:
    """What those of each run have in common."""
    several = len(story.runs) > 1
    return [
        f"{f'run {run.step}: ' if several else ''}{printable(claim)}."
        for run in story.runs for claim in run.slowest_ios.get("in_common", ())
    ]  # fmt: skip
