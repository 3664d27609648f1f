"""The slowest requests of a recording, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui import format as units
from iopstui.model.metrics.slow.common_properties import common_properties
from iopstui.model.metrics.slow.slow_ios import slow_ios
from iopstui.model.samples import Exemplar
from iopstui.report.report_data import ReportData
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


def claims(data: ReportData) -> list[str]:
    """What the slowest of the whole recording have in common, compared with random ones of it."""
    return [f"{printable(claim.text)}." for claim in common_properties(data.slowest.selection())]


def rows(data: ReportData) -> Iterator[tuple[str, ...]]:
    """A row for each, by direction, the slowest first."""
    for t, request in data.slowest.all():
        yield (
            units.clock(t),
            printable(request.disk),
            request.kind,
            request.flags,
            *_cells(request),
        )


def _cells(request: Exemplar) -> tuple[str, ...]:
    process = f"{printable(request.comm) or units.MISSING} ({request.pid})"
    group = printable(request.group) or units.MISSING
    sector = units.MISSING if request.sector is None else str(request.sector)
    return (
        sector, units.size(request.offset), units.size(request.size), process, group,
        f"{request.cpu} → {request.cpu_done}",
        *(units.latency(ns) for ns in (request.total_ns, request.tried_ns, request.plugged_ns,
                                      request.queued_ns, request.device_ns)),
    )  # fmt: skip


IOS_TITLE = "Slowest I/Os"
IOS_HEAD = ("run", "direction", "clat", "size", "offset", "job", "s into the job")
IOS_NOTE = "From fio's own log of each I/O: the job's side alone, nothing is known of the kernel's."
IOS_COMMON = "What they have in common beyond chance (not necessarily the cause):"


def io_rows(data: ReportData) -> Iterator[tuple[str, ...]]:
    """A row for each of the slowest I/Os of each run."""
    for run in data.runs:
        for io in slow_ios(run.slowest_ios):
            yield (
                str(run.step), io.direction, units.latency(io.latency_ns), units.size(io.size),
                units.size(io.offset), str(io.job), f"{io.t:.3f}",
            )  # fmt: skip


def io_claims(data: ReportData) -> list[str]:
    """What those of each run have in common."""
    several = len(data.runs) > 1
    return [
        f"{f'run {run.step}: ' if several else ''}{printable(claim)}."
        for run in data.runs for claim in run.slowest_ios.get("in_common", ())
    ]  # fmt: skip
