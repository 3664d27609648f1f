"""A finished fio run in fio's own figures, and whether the frames add up to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iopstui.model.fio_interval import FioInterval, completions
from iopstui.model.samples import DIRECTIONS, MIXED, DirectionStatus, FioStatus, JobStatus


def fio_summary(status: FioStatus) -> dict[str, Any]:
    """fio's final figures, as plain data, from its last document.

    ``rows`` has one entry for every row of fio's report (a job, or a group with
    group_reporting), its ``directions`` exactly as fio states them: ``iops``, ``bw_bytes``
    (bytes/s), ``io_bytes``, ``total_ios`` (submissions), ``runtime_ms``, ``clat_mean_ns``,
    ``lat_mean_ns``, ``percentiles`` ({"p99": ns}, of ``percentiles_of``), ``lat_max_ns``; and
    ``completed``, the completions that frames count. Unknown is ``None``.
    ``sums`` adds the rows of each of fio's groups, which run at the same time; ``total`` all
    rows, with rates only where there is one group (stages of a stonewalled job follow one
    another, so the sum of their rates would be no rate at all).
    """
    rows = [_row(index, job) for index, job in enumerate(status.jobs)]
    groups = sorted({job.group for job in status.jobs})
    total = _sums(rows)
    if len(groups) > 1:
        total = {name: {**sums, "iops": None, "bw_bytes": None} for name, sums in total.items()}
    return {
        "fio_version": status.version,
        "timestamp_ms": status.timestamp_ms,
        "rows": rows,
        "sums": [
            {"group": group, "directions": _sums(row for row in rows if row["group"] == group)}
            for group in groups
        ],
        "total": total,
    }


def _row(index: int, job: JobStatus) -> dict[str, Any]:
    return {
        "index": index,
        "name": job.name,
        "group": job.group,
        "error": job.error,
        "directions": {
            name: _figures(job, job.directions[name])
            for name in DIRECTIONS
            if name in job.directions and _used(job.directions[name])
        },
    }


def _used(direction: DirectionStatus) -> bool:
    return bool(direction.issued or direction.io_bytes)


def _figures(job: JobStatus, direction: DirectionStatus) -> dict[str, Any]:
    sampled = bool(direction.completed)
    clat, lat = direction.clat, direction.lat
    return {
        "iops": direction.iops,
        "bw_bytes": direction.bw_bytes,
        "io_bytes": direction.io_bytes,
        "total_ios": direction.issued,
        "completed": completions(job, direction),
        "runtime_ms": direction.runtime_ms,
        "clat_mean_ns": clat.mean_ns if clat and clat.count else None,
        "lat_mean_ns": lat.mean_ns if lat and lat.count else None,
        "percentiles": dict(direction.percentiles) if sampled else {},
        "percentiles_of": direction.bins_of,
        "lat_max_ns": direction.lat_max_ns if sampled else None,
    }


def _sums(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    sums: dict[str, dict[str, Any]] = {}
    for row in rows:
        for name, figures in row["directions"].items():
            total = sums.setdefault(name, {"rows": 0, "runtime_ms": 0})
            total["rows"] += 1
            for key in ("iops", "bw_bytes", "io_bytes", "total_ios", "completed"):
                total[key] = total.get(key, 0) + figures[key]
            total["runtime_ms"] = max(total["runtime_ms"], figures["runtime_ms"])
    return {name: sums[name] for name in DIRECTIONS if name in sums}


def without_bins(document: Mapping[str, Any]) -> dict[str, Any]:
    """fio's JSON report without its histograms, which are most of it."""
    return {name: _lean(value) for name, value in document.items()}


def _lean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _lean(part) for name, part in value.items() if name != "bins"}
    return [_lean(part) for part in value] if isinstance(value, list) else value


class FramesTotal:
    """Adds up the frames of one fio run, row by row, to be held against fio's final count.

    What a row did before its counters began again (a ramp) is dropped, as fio drops it.
    """

    def __init__(self) -> None:
        self.frames = 0
        self._ios: dict[int, int] = {}
        self._bytes: dict[int, int] = {}

    def add(self, interval: FioInterval | None) -> None:
        """Count one frame's fio interval (``None``: a frame without one)."""
        if interval is None:
            return
        self.frames += 1
        for job in interval.jobs:
            for total, grown in ((self._ios, job.ios), (self._bytes, job.bytes)):
                total[job.index] = grown + (0 if job.reset else total.get(job.index, 0))

    @property
    def ios(self) -> int:
        """Completed I/Os of all rows."""
        return sum(self._ios.values())

    @property
    def bytes(self) -> int:
        """Completed bytes of all rows."""
        return sum(self._bytes.values())

    def difference(self, summary: Mapping[str, Any]) -> tuple[int, int]:
        """I/Os and bytes that the frames have more (less: negative) than ``fio_summary``."""
        ios, size = expected(summary)
        return self.ios - ios, self.bytes - size


def expected(summary: Mapping[str, Any]) -> tuple[int, int]:
    """Completed I/Os and bytes of all rows by ``fio_summary``. A row that has both directions
    and ``mixed`` (unified_rw_reporting=both) has its I/Os in there twice; they count once."""
    ios = size = 0
    for row in summary["rows"]:
        names = [name for name in row["directions"] if name != MIXED] or [MIXED]
        for name in names:
            figures = row["directions"].get(name, {})
            ios += figures.get("completed", 0)
            size += figures.get("io_bytes", 0)
    return ios, size
