"""Measured rates beside the limits of a bought volume (`report --against`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iopstui import format as units
from iopstui.features.reports.folding.run import Run
from iopstui.features.reports.report_data import ReportData
from iopstui.model.samples import MIXED
from iopstui.model.volumes.promised import INSTANCE_BW, VOLUME_BW, Limit, PromisedFigures
from iopstui.model.volumes.volume import READ, WRITE
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
    for run in _measured(data):
        if not run.iops or not run.bw:
            continue
        size = max(1, round(run.bw / run.iops))
        direction = WRITE if run.writes else READ
        base = promised.limits(direction, size)
        for limit in base:
            yield _row(run, size, limit)
        for limit in promised.limits(direction, size, burst=True):
            if limit not in base:
                yield _row(run, size, limit, burst=True)


def closest(data: ReportData, promised: PromisedFigures) -> str:
    """The limit that a run came closest to."""
    found = [*rows(data, promised)]
    if not found:
        return why_no_rows(data)
    step, _, size, limit, rate, measured, share = max(found, key=lambda row: int(row[-1][:-2]))
    volume = printable(promised.volume.id)
    return f"Run {step} did {measured} of {size}, {share} of the {limit} of {volume} ({rate})."


def why_no_rows(data: ReportData) -> str:
    """Why there is nothing to compare."""
    missing = {
        name
        for run in _measured(data)
        for name, value in (("IOPS", run.iops), ("bandwidth", run.bw))
        if value is None
    }
    if not missing:
        return "No run did any I/O."
    return f"No comparison: the file has no usable {' and '.join(sorted(missing))} of the run."


@dataclass(frozen=True, slots=True)
class _Measured:
    """A run's rates (``None``: unknown), and whether it wrote more I/Os than it read."""

    step: int
    what: str
    iops: float | None
    bw: float | None
    writes: bool


def _measured(data: ReportData) -> Iterator[_Measured]:
    """The rates of a recording's seconds; of a result of fio those that it states."""
    if not data.foreign:
        writes = {run.step: _writes(run) for run in data.runs}
        for row in data.rows:
            yield _Measured(row.step, row.what, row.iops, row.bw, writes.get(row.step, False))
        return
    for run in data.runs:
        figures = {name: part for name, part in run.figures().items() if name != MIXED}
        parts = list((figures or run.figures()).values())
        reads, writes_ = (figures.get(name, {}).get("iops") or 0.0 for name in (READ, WRITE))
        iops, bw = (
            None if run.contradicted else _sum([part[name] for part in parts])
            for name in ("iops", "bw_bytes")
        )
        yield _Measured(run.step, run.name, iops, bw, writes_ > reads)


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _row(run: _Measured, size: int, limit: Limit, burst: bool = False) -> Row:
    of_bytes = limit.name in (VOLUME_BW, INSTANCE_BW)

    def shown(rate: float) -> str:
        return f"{rate * size / 1e6:,.4g} MB/s" if of_bytes else f"{rate:,.0f} IOPS"

    measured = run.iops or 0.0
    return (
        str(run.step), printable(run.what), units.size(size),
        limit.name + (" (burst)" if burst else ""), shown(limit.rate), shown(measured),
        f"{100 * measured / limit.rate:.0f} %",
    )  # fmt: skip


def _writes(run: Run) -> bool:
    """Whether a run wrote more I/Os than it read."""
    counts = {name: sum(bins.values()) for name, bins in run.bins.items()}
    return counts.get("write", 0) > counts.get("read", 0)
