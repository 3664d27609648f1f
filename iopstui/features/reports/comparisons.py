"""Compare a measurement with other recordings, or with a bought volume (`report --against`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iopstui import format as units
from iopstui.features.reports.report_data import ReportData
from iopstui.features.reports.run import Run
from iopstui.model.experiment.plan import variant_letter
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.summary import whole_rate
from iopstui.model.volumes.promised import INSTANCE_BW, VOLUME_BW, Limit, PromisedFigures
from iopstui.model.volumes.volume import READ, WRITE
from iopstui.tables import Table
from iopstui.text import printable

NO_PROOF = (
    "Single runs cannot prove a difference: it may be chance or drift. iopstui compare "
    "repeats both settings in turn and tests the difference."
)


def subject(reports: Sequence[ReportData]) -> str:
    """The reports in words: "Two recordings"; if there are results of fio, "Two results"."""
    noun = "results" if any(data.foreign for data in reports) else "recordings"
    numerals = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
    return f"{numerals[len(reports)] if len(reports) < len(numerals) else len(reports)} {noun}"


def alignment_note(reports: Sequence[ReportData], shared: bool) -> str:
    """A note on the time axes of several recordings; "" if they share one and each begins with its
    recording."""
    text = "Charts start at the beginning of each recording's longest run." if any(
        data.origin_t for data in reports) else ""  # fmt: skip
    if shared:
        return text
    return f"{text} Their lengths differ a lot, so each has its own time axis."


def comparison(reports: Sequence[ReportData]) -> Table:
    """The figures of each recording's longest run, side by side, and by how much they differ from
    the first. No rows if one recording is an experiment, because a single run does not represent
    it."""
    names = [variant_letter(number) for number in range(len(reports))]
    head = ("", *names, *(f"{name} against A" for name in names[1:]))
    if any(data.experiments for data in reports):
        return Table(head, [])
    longest = [data.longest for data in reports]
    empty = [""] * (len(reports) - 1)
    rows: list[tuple[str, ...]] = [
        ("recording", *(printable(data.path.name) for data in reports), *empty),
        ("job", *(printable(run.title) if run else units.MISSING for run in longest), *empty),
        ("measured for", *(f"{run.seconds:.1f} s" if run else "" for run in longest), *empty),
    ]
    values = [figures(run) if run else {} for run in longest]
    for name, unit in COMPARED.items():
        cells = [value.get(name) for value in values]
        more = (_difference(cells[0], cell) for cell in cells[1:])
        rows.append((name, *(unit(value) for value in cells), *more))
    return Table(head, rows)


def _final_total(run: Run, name: str) -> float | None:
    """fio's own final figure for a whole run, all directions together, as elsewhere in the report.
    It may cover more seconds than the frames."""
    if run.finished is None or run.is_partial:
        return None
    return whole_rate(run.finished.summary, name)


def is_untimed(run: Run) -> bool:
    """Whether fio counted I/Os but states no run time."""
    return bool(run.summary.get("total")) and run.summary.get("all", {}).get("runtime_ms") == 0


def figures(run: Run) -> dict[str, float | None]:
    """The figures of a run: IOPS and bandwidth are fio's final ones, the others come from all
    frames of the run."""
    seconds, latencies = run.seconds, run.latencies()
    latencies = latencies if run.all_bins else _stated_latencies(run)
    device = run.measured.device
    iops, bandwidth = _final_total(run, "iops"), _final_total(run, "bw_bytes")
    if (iops is None or bandwidth is None) and run.total.frames and not is_untimed(run):
        iops = run.total.ios / seconds if seconds else None
        bandwidth = run.total.bytes / seconds if seconds else None
    return {
        "fio IOPS": iops,
        "fio MiB/s": bandwidth,
        **{name: latencies.get(name) for name in ("p50", "p99", "p99.9", "max")},
        "device IO/s": device.mean(DiskRates.ios_s),
        DiskRates.aqu_sz.name: device.mean(DiskRates.aqu_sz),
        "util %": device.mean(DiskRates.util),
    }


def _stated_latencies(run: Run) -> dict[str, int | None]:
    """fio's own percentiles; only if there is a single row with one direction, because only then do
    they cover all I/Os."""
    summary: Mapping[str, Any] = run.finished.summary if run.finished else {}
    rows = summary.get("rows", ())
    parts = [part for row in rows for part in row["directions"].values()]
    if len(parts) != 1:
        return {}
    return {**parts[0]["percentiles"], "max": parts[0]["lat_max_ns"]}


COMPARED: dict[str, Callable[[float | None], str]] = {
    "fio IOPS": units.number, "fio MiB/s": units.mib, "p50": units.latency, "p99": units.latency,
    "p99.9": units.latency, "max": units.latency, "device IO/s": units.number,
    DiskRates.aqu_sz.name: units.number, "util %": units.percent,
}  # fmt: skip


def _difference(a: float | None = None, b: float | None = None) -> str:
    if a is None or b is None or not a:
        return units.MISSING
    return f"{100 * (b - a) / a:+.1f} %"


Row = tuple[str, ...]
PROMISED_HEAD = ("run", "what was changed", "I/O size", "limit", "promised", "measured", "share")
PROMISED_NOTE = (
    "Limits apply to I/Os of this size. A share below 100 % does not show that the volume is slow: "
    "the queue may have been too shallow. To test that: iopstui promise"
)


def promised_title(promised: PromisedFigures) -> str:
    size = f", {promised.size_gib:,.4g} GiB" if promised.size_gib else ""
    instance = f", on {promised.instance.id}" if promised.instance is not None else ""
    return printable(f"Promised by {promised.volume.id}{size}{instance}")


def promised_rows(data: ReportData, promised: PromisedFigures) -> Iterator[Row]:
    """A row for each run and limit, the tightest limit first. Runs without I/O have no rows."""
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


def closest_limit(data: ReportData, promised: PromisedFigures) -> str:
    """The limit that a run came nearest to."""
    found = [*promised_rows(data, promised)]
    if not found:
        return why_nothing_promised(data)
    step, _, size, limit, rate, measured, share = max(found, key=lambda row: int(row[-1][:-2]))
    volume = printable(promised.volume.id)
    return f"Run {step} did {measured} of {size}, {share} of the {limit} of {volume} ({rate})."


def why_nothing_promised(data: ReportData) -> str:
    """Why there is nothing to compare with the volume."""
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
    """The rates of a run (``None``: unknown), and whether it wrote more than it read."""

    step: int
    what: str
    iops: float | None
    bw: float | None
    writes: bool


def _measured(data: ReportData) -> Iterator[_Measured]:
    """The rates in a recording's seconds, or the rates that a result of fio states."""
    if not data.foreign:
        writes = {run.step: _writes(run) for run in data.runs}
        for row in data.rows:
            yield _Measured(row.step, row.what, row.iops, row.bw, writes.get(row.step, False))
        return
    for run in data.runs:
        figures = run.figures()
        reads, writes_ = (figures.get(name, {}).get("iops") or 0.0 for name in (READ, WRITE))
        iops, bw = (
            None if run.contradicted else whole_rate(run.summary, name)
            for name in ("iops", "bw_bytes")
        )
        yield _Measured(run.step, run.name, iops, bw, writes_ > reads)


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
