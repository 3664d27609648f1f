"""Measured rates beside the limits of a bought volume (`report --against`)."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui import format as units
from iopstui.model.metrics.run_history import RunRow
from iopstui.model.volumes.promised import INSTANCE_BW, VOLUME_BW, Limit, PromisedFigures
from iopstui.model.volumes.volume import READ, WRITE
from iopstui.report.report_data import ReportData
from iopstui.text import printable

Row = tuple[str, ...]
HEAD = ("run", "what was changed", "I/O size", "limit", "promised", "measured", "share")
NOTE = (
    "Limits apply to I/Os of this size. A share below 100 % does not show that the volume is slow: "
    "the queue may have been too shallow. To test that: iopstui promise"
)


def title(promised: PromisedFigures) -> str:
    """The section's heading."""
    size = f", {promised.size_gib:,.4g} GiB" if promised.size_gib else ""
    instance = f", on {promised.instance.id}" if promised.instance is not None else ""
    return printable(f"Promised by {promised.volume.id}{size}{instance}")


def rows(data: ReportData, promised: PromisedFigures) -> Iterator[Row]:
    """A row for each run and limit, the tightest limit first; runs without I/O have none."""
    writes = {run.step: _writes(data, run.step) for run in data.runs}
    for run in data.rows:
        if not run.iops or not run.bw:
            continue
        size = max(1, round(run.bw / run.iops))
        direction = WRITE if writes.get(run.step) else READ
        base = promised.limits(direction, size)
        for limit in base:
            yield _row(run, size, limit)
        for limit in promised.limits(direction, size, burst=True):
            if limit not in base:
                yield _row(run, size, limit, burst=True)


def _row(run: RunRow, size: int, limit: Limit, burst: bool = False) -> Row:
    of_bytes = limit.name in (VOLUME_BW, INSTANCE_BW)

    def shown(rate: float) -> str:
        return f"{rate * size / 1e6:,.4g} MB/s" if of_bytes else f"{rate:,.0f} IOPS"

    measured = run.iops or 0.0
    return (
        str(run.step), printable(run.what), units.size(size),
        limit.name + (" (burst)" if burst else ""), shown(limit.rate), shown(measured),
        f"{100 * measured / limit.rate:.0f} %",
    )  # fmt: skip


def _writes(data: ReportData, step: int) -> bool:
    """Whether a run wrote more I/Os than it read."""
    run = next(run for run in data.runs if run.step == step)
    counts = {name: sum(bins.values()) for name, bins in run.bins.items()}
    return counts.get("write", 0) > counts.get("read", 0)
