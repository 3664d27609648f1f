"""The slowest requests of a recording, as a table."""

from __future__ import annotations

from iopstui import format as units
from iopstui.features.reports.report_data import ReportData
from iopstui.model.figures.figure import by_name
from iopstui.model.metrics.probe import SLOW_REQUEST, SlowRequest
from iopstui.model.metrics.slow.common_properties import common_properties
from iopstui.model.metrics.slow.slow_ios import slow_ios
from iopstui.tables import Column
from iopstui.text import printable

TITLE = "Slowest requests"
NOTE = (
    "From allocation to completion: tried until the driver last sent it back, plugged until "
    "inserted into the scheduler or queue, queued until issued to the driver, then in the device. "
    "Process: who sent it."
)


_ROWS = by_name(SLOW_REQUEST)
COLUMNS = (
    Column("t", "time", form=units.clock), _ROWS["disk"].column(form=printable),
    *(_ROWS[name].column() for name in ("direction", "rwbs", "sector", "offset", "size")),
    Column("exemplar", "process",
           form=lambda each: f"{printable(each.comm) or units.MISSING} ({each.pid})"),
    _ROWS["cgroup"].column(form=lambda name: printable(name) or units.MISSING),
    Column("exemplar", "CPUs", form=lambda each: f"{each.cpu} → {each.cpu_done}"),
    *(_ROWS[name].column() for name in ("total", "tried", "plugged", "queued", "device")),
)  # fmt: skip
LEFT = 4
COMMON = (
    "What the slowest of the whole recording have in common beyond chance (not necessarily the "
    "cause):"
)


def claims(data: ReportData) -> list[str]:
    """What the slowest of the whole recording have in common, compared with random ones of it."""
    return [f"{printable(claim.text)}." for claim in common_properties(data.slowest.selection())]


def rows(data: ReportData) -> list[SlowRequest]:
    """All by direction, the slowest first."""
    return [SlowRequest(request, t) for t, request in data.slowest.all()]


IOS_TITLE = "Slowest I/Os"
IOS_COLUMNS = (
    Column("run", "run"), Column("io/direction", "direction"),
    Column("io/latency_ns", "clat", form=units.latency),
    Column("io/size", "size", form=units.size), Column("io/offset", "offset", form=units.size),
    Column("io/job", "job"), Column("io/t", "s into the job", form="{:.3f}".format),
)  # fmt: skip
IOS_NOTE = "From fio's own log of each I/O: the job's side alone, nothing is known of the kernel's."
IOS_COMMON = "What they have in common beyond chance (not necessarily the cause):"


def io_rows(data: ReportData) -> list[dict[str, object]]:
    """The slowest I/Os of each run."""
    return [{"run": run.step, "io": io} for run in data.runs for io in slow_ios(run.slowest_ios)]


def io_claims(data: ReportData) -> list[str]:
    """What those of each run have in common."""
    several = len(data.runs) > 1
    return [
        f"{f'run {run.step}: ' if several else ''}{printable(claim)}."
        for run in data.runs for claim in run.slowest_ios.get("in_common", ())
    ]  # fmt: skip
