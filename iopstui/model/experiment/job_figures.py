"""Figures of one job of a run: "seq-read:iops", from fio's final report.

fio's rows have no unique names. Rows with the same name (clones without group_reporting) count
together: rates are added if they ran at the same time, else taken over the total time of all. A job
that waits for others (stonewall) is judged by its own time."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from iopstui.errors import UsageError
from iopstui.model.fio.interval_time import span_of_parts
from iopstui.model.fio.jobfile import Section
from iopstui.model.metrics.fields import BY_ID, Field
from iopstui.model.metrics.summary import rates_together, split_directions
from iopstui.model.samples import DIRECTIONS

JOBS = "jobs"
_RATES = {"iops": "iops", "bw": "bw_bytes"}
_LATENCIES = ("mean", "max", "p50", "p90", "p95", "p99", "p99.9", "p99.99")
EXAMPLE_NAMES = ("iops", "bw", "read.iops", "write.bw", "read.clat.mean", "read.clat.p99",
                 "sync.p99")  # fmt: skip


def is_job_figure(path: Sequence[str]) -> bool:
    return len(path) > 3 and tuple(path[:2]) == ("fio", JOBS)


def job_field(option: str, job: str, name: str) -> Field:
    """The field of a job's figure. UsageError if fio's report has no such figure for a job."""
    parts = tuple(name.removeprefix("fio.").split("."))
    parts = parts if len(parts) > 1 else ("total", *parts)
    rate = len(parts) == 2 and parts[1] in _RATES
    latency = len(parts) == 3 and parts[1] == "clat" and parts[2] in _LATENCIES
    sync = len(parts) == 2 and parts[0] == "sync" and parts[1] in _LATENCIES
    known = parts[0] in (*DIRECTIONS, "total")
    if not sync and not (known and (rate or (latency and parts[0] != "total"))):
        matches = difflib.get_close_matches(name.lower(), EXAMPLE_NAMES, n=2, cutoff=0.5)
        raise UsageError(
            f"{option}: fio's report has no {name!r} for a single job.",
            (f"Did you mean {job}:{f' or {job}:'.join(matches)}? " if matches else "")
            + f"Available: {', '.join(EXAMPLE_NAMES)}. Without a job's name: all of "
            "`iopstui fields`",
        )
    field = BY_ID[".".join(("fio", *parts))]
    return replace(field, path=("fio", JOBS, job, *parts))


def sections_of_job(path: Sequence[str], jobs: Sequence[Section]) -> list[Section]:
    """The sections of a job file that form the job in a figure's path."""
    return [job for job in jobs if job.options.get("name", job.name) == path[2]]


def why_no_such_job(path: Sequence[str], jobs: Sequence[Section]) -> str | None:
    """Why a job file lacks the job in a figure's path, in words; ``None`` if the file has it."""
    if sections_of_job(path, jobs):
        return None
    names = [job.options.get("name", job.name) for job in jobs]
    matches = difflib.get_close_matches(path[2], names, n=1, cutoff=0.4)
    available = matches[0] if matches else ", ".join(dict.fromkeys(names))
    return f"the job file has no job {path[2]!r}, only {available}"


def job_figures(summary: Mapping[str, Any]) -> dict[tuple[str, ...], float]:
    """The figures of all jobs in a ``fio_summary``, by path."""
    figures: dict[tuple[str, ...], float] = {}
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in summary["rows"]:
        rows.setdefault(str(row["name"]), []).append(row)
    for name, several in rows.items():
        path = ("fio", JOBS, name)
        parts: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
        for row in several:
            split = split_directions(row["directions"])
            for direction, part in row["directions"].items():
                for way in (direction, "total") if direction in split else (direction,):
                    parts.setdefault(way, []).append((row, part))
        for way, of_way in parts.items():
            # older recordings don't say when a row began
            time = span_of_parts([(row["group"], row.get("begin_ms", 0.0), part["runtime_ms"])
                                  for row, part in of_way])  # fmt: skip
            rates = rates_together([part for _, part in of_way], time)
            figures |= {(*path, way, figure): rate for figure, key in _RATES.items()
                        if (rate := rates[key]) is not None}  # fmt: skip
        if len(several) == 1:
            figures |= _latencies(path, several[0]["directions"])
            figures |= _sync_latencies(path, several[0].get("sync"))
    return figures


def _sync_latencies(
    path: tuple[str, ...], sync: Mapping[str, Any] | None
) -> dict[tuple[str, ...], float]:
    if sync is None:
        return {}
    values = {**sync["percentiles"], "mean": sync["clat_mean_ns"], "max": sync["lat_max_ns"]}
    return {(*path, "sync", name): float(value) for name, value in values.items()
            if value is not None and name in _LATENCIES}  # fmt: skip


def _latencies(
    path: tuple[str, ...], directions: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, ...], float]:
    figures = {}
    for direction, part in directions.items():
        values = {"mean": part["clat_mean_ns"]}
        if part["percentiles_of"] == "clat":
            values |= {**part["percentiles"], "max": part["lat_max_ns"]}
        for name, value in values.items():
            if value is not None and name in _LATENCIES:
                place = (*path, direction, "clat", name)
                figures[place] = float(value)
    return figures
