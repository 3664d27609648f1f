"""Convert a document of fio to the form of today's fio on one machine, and tell whether two are of
one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iopstui.model.fio.rows import flag
from iopstui.model.samples import DIRECTIONS, FioStatus

ALL_CLIENTS = "All clients"
ROUNDING_S = 1.5
"""Tolerance for a start computed from fio's run time, which is rounded up to whole seconds."""
_KIB = 1024
_LATENCIES = ("slat", "clat", "lat")
_NUMBERS = ("min", "max", "mean", "stddev")
Document = Mapping[str, Any]


# -- clients


def newest_of_clients(data: Document) -> Document:
    """Convert a document of ``fio --client`` to that of a single fio: the newest rows of each
    client and job (with --status-interval older ones come first), without the sum of all."""
    rows = data.get("client_stats")
    if data.get("jobs") or not isinstance(rows, list):
        return data
    client_rows = [row for row in rows if isinstance(row, Mapping)]
    labels = client_labels(client_rows)
    several = len(set(labels.values())) > 1
    newest: dict[tuple[object, ...], list[Document]] = {}
    for number, row in enumerate(client_rows):
        if row.get("jobname") != ALL_CLIENTS:
            key = labels.get(number, ""), row.get("jobname"), row.get("groupid")
            newest.setdefault(key, []).append(
                {**row, "jobname": f"{key[0]}: {row.get('jobname')}"} if several else row
            )
    jobs = [row for of_job in newest.values() for row in of_job[-_clones(data, of_job[-1]) :]]
    return {**data, "jobs": jobs}


def client_labels(rows: object) -> dict[int, str]:
    """The client of each row, by the row's number: its host, with the port if one host has several
    servers. Rows without a client are left out."""
    clients = {
        number: (str(row["hostname"]), row.get("port"))
        for number, row in enumerate(rows if isinstance(rows, Sequence) else ())
        if isinstance(row, Mapping) and row.get("hostname")
    }
    hosts = [host for host, _ in set(clients.values())]
    return {
        number: f"{host}:{port}" if hosts.count(host) > 1 else host
        for number, (host, port) in clients.items()
    }


def _clones(data: Document, row: Document) -> int:
    """The number of rows that a job has in one report."""
    options: dict[str, str] = {}
    for part in (data.get("global options"), row.get("job options")):
        if isinstance(part, Mapping):
            options |= {str(key): str(value) for key, value in part.items()}
    numjobs = options.get("numjobs", "1")
    is_one = flag(options, "group_reporting") or not numjobs.isdecimal()
    return 1 if is_one else max(1, int(numjobs[:6]))


# -- fio 2


def without_older_units(data: Document) -> Document:
    """A document of fio 2, converted from KiB and microseconds to bytes and nanoseconds."""
    rows = data.get("jobs")
    if not str(data.get("fio version", "")).startswith("fio-2") or not isinstance(rows, list):
        return data
    return {**data, "jobs": [_row_in_new_units(row) for row in rows]}


def _row_in_new_units(row: Any) -> Any:
    if not isinstance(row, Mapping):
        return row
    directions = {
        name: _direction_in_new_units(row[name])
        for name in DIRECTIONS
        if isinstance(row.get(name), Mapping)
    }
    return {**row, **directions}


def _direction_in_new_units(figures: Document) -> Document:
    changed = dict(figures)
    # 2.99, the last version of fio 2, already had the units of fio 3
    if "io_kbytes" not in figures and _is_number(figures.get("io_bytes")):
        changed["io_bytes"] = figures["io_bytes"] * _KIB
    for name in _LATENCIES:
        block = changed.pop(name, None)
        if isinstance(block, Mapping) and f"{name}_ns" not in figures:
            changed[f"{name}_ns"] = _in_ns(block)
    return changed


def _in_ns(block: Document) -> Document:
    changed = {name: 1000 * block[name] for name in _NUMBERS if _is_number(block.get(name))}
    percentiles = block.get("percentile")
    if isinstance(percentiles, Mapping):
        changed["percentile"] = {
            rank: 1000 * value for rank, value in percentiles.items() if _is_number(value)
        }
    return {**block, **changed}


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


# -- runs


def continues(before: FioStatus, status: FioStatus) -> bool:
    """Whether two successive documents are of one run of fio: they have the same jobs, fio began at
    the same time, and no count has decreased."""
    if _identity(before) != _identity(status):
        return False
    begins = _started_s(before), _started_s(status)
    # fio restarts its counts after the layout of its files
    laid_out = not _ios(before) and not any(job.error for job in before.jobs)
    if begins[0] is not None and begins[1] is not None and not laid_out:
        rounding = 0 if before.timestamp_ms % 1000 and status.timestamp_ms % 1000 else 1
        if abs(begins[1] - begins[0]) > ROUNDING_S + rounding:
            return False
    if any(job.has_ramp for job in status.jobs):
        return True
    if not laid_out and _differ_since(before, status):
        return False
    return not (_ios(status) < _ios(before) and _runtime(status) <= _runtime(before))


def _differ_since(before: FioStatus, status: FioStatus) -> bool:
    """Whether a job began at another time, or its longest latency has become shorter: the second
    document is then of another machine that ran the same job at the same time."""
    for old, new in zip(before.jobs, status.jobs, strict=True):
        if old.job_start and new.job_start and old.job_start != new.job_start:
            return True
        for name, part in old.directions.items():
            now = new.directions.get(name)
            if now is not None and now.issued and (now.lat_max_ns or 0) < (part.lat_max_ns or 0):
                return True
    return False


def _identity(status: FioStatus) -> list[tuple[str, int, Mapping[str, str]]]:
    return [(job.name, job.group, job.options) for job in status.jobs]


def _started_s(status: FioStatus) -> float | None:
    elapsed = [job.elapsed_s for job in status.jobs if job.elapsed_s is not None]
    if not elapsed or not status.timestamp_ms:
        return None
    return status.timestamp_ms / 1000 - max(elapsed)


def _ios(status: FioStatus) -> int:
    return sum(d.issued for job in status.jobs for d in job.directions.values())


def _runtime(status: FioStatus) -> int:
    return max((d.runtime_ms for job in status.jobs for d in job.directions.values()), default=0)
