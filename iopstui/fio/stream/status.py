"""Parse a fio document into a ``FioStatus``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any

from iopstui.model.fio.jobfile import Section
from iopstui.model.fio.rows import Row, changing_option, duration_s, flag, rows_of, syncs_in_between
from iopstui.model.samples import DIRECTIONS, DirectionStatus, FioStatus, JobStatus, LatencySum
from iopstui.model.sizes import fixed_block_size, fixed_block_sizes

ETA_UNKNOWN_FROM = 0x7FFFFFFF


def parse_status(data: Mapping[str, Any], sections: Sequence[Section] = ()) -> FioStatus | None:
    """A decoded document as ``FioStatus``; ``None`` if it is not a fio status at all. ``sections``
    are the sections of the job file, with their variables expanded: in the document, a row that
    sums several sections has only the last one's options."""
    try:
        return _status(data, sections)
    except RecursionError:  # nested more deeply than any document of fio
        return None


def _status(data: Mapping[str, Any], sections: Sequence[Section]) -> FioStatus | None:
    rows = data.get("jobs")
    if not isinstance(rows, list):
        return None
    timestamp = _int(data.get("timestamp_ms")) or 1000 * _int(data.get("timestamp"))
    common = _options(data.get("global options"))
    job_rows = [row for row in rows if isinstance(row, dict)]
    section_rows = rows_of(sections, len(job_rows)) or (None,) * len(job_rows)
    return FioStatus(
        version=str(data.get("fio version", "")),
        timestamp_ms=timestamp,
        jobs=tuple(
            _job(row, common, section_row)
            for row, section_row in zip(job_rows, section_rows, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class _RowOptions:
    """The options that apply to a row, or to the sections that it sums."""

    options: dict[str, str]
    block_size: int | None
    block_sizes: Mapping[str, int]
    has_ramp: bool
    timed: tuple[bool, ...]
    in_flight: int | None
    members: int | None
    changing: str
    syncs: bool


def _row_options(options: dict[str, str], section_row: Row | None, counts: bool) -> _RowOptions:
    jobs = [section.options for section in section_row.sections] if section_row else [options]
    sizes = {fixed_block_size(job) for job in jobs}
    block_size = next(iter(sizes)) if len(sizes) == 1 else None
    return _RowOptions(
        options=options,
        block_size=block_size,
        block_sizes={} if block_size else _sizes_by_direction(jobs),
        has_ramp=any(duration_s(job.get("ramp_time", "0")) for job in jobs),
        timed=tuple(_measures_latency(job, counts) for job in jobs),
        in_flight=section_row.in_flight if section_row else None,
        members=section_row.members if section_row else None,
        changing=changing_option(jobs),
        syncs=any(map(syncs_in_between, jobs)),
    )


def _sizes_by_direction(jobs: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """The size of all I/Os of all ``jobs`` by direction, for directions in which they have one
    size."""
    sizes: dict[str, set[int | None]] = {}
    for job in jobs:
        fixed = fixed_block_sizes(job)
        if not fixed:
            return {}
        for name, size in fixed.items():
            sizes.setdefault(name, set()).add(size)
    return {
        name: size
        for name, found in sizes.items()
        if len(found) == 1 and (size := next(iter(found))) is not None
    }


def _job(row: Mapping[str, Any], common: Mapping[str, str], section_row: Row | None) -> JobStatus:
    options = {**common, **_options(row.get("job options"))}
    row_options = _row_options(options, section_row, _has_counts(row))
    directions = {
        name: _direction(row[name]) for name in DIRECTIONS if isinstance(row.get(name), dict)
    }
    longest = max([d.runtime_ms for d in directions.values()], default=0)
    return JobStatus(
        name=str(row.get("jobname") or ""),
        group=_int(row.get("groupid")),
        error=_int(row.get("error")),
        elapsed_s=_int(row["elapsed"]) if "elapsed" in row else None,
        eta_s=_eta(row, row_options.options),
        job_start=_int(row["job_start"]) if "job_start" in row else None,
        job_runtime_ms=_int(row.get("job_runtime")) or longest,
        usr_cpu=_float(row.get("usr_cpu")),
        sys_cpu=_float(row.get("sys_cpu")),
        ctx=_int(row.get("ctx")),
        iodepth_level=_percentages(row.get("iodepth_level")),
        directions=directions,
        options=row_options.options,
        block_size=row_options.block_size,
        has_ramp=row_options.has_ramp,
        measures_latency=any(row_options.timed),
        times_all=all(row_options.timed),
        in_flight=row_options.in_flight,
        members=row_options.members,
        changing=row_options.changing,
        failed=_int(row["total_err"]) if "total_err" in row else None,
        block_sizes=row_options.block_sizes,
        sync=_sync(row, row_options.syncs),
    )


def _sync(row: Mapping[str, Any], expected: bool) -> DirectionStatus | None:
    """The syncs of a row; ``expected``: its jobs sync, though perhaps not yet. They are counted by
    their latency samples, because fio's total is 0 with a ramp_time (up to 3.42), and 1 for an
    end_fsync, which is not timed (3.16)."""
    syncs = row.get("sync")
    latencies = syncs.get("lat_ns") if isinstance(syncs, dict) else None
    if not isinstance(syncs, dict) or not isinstance(latencies, dict):
        return None
    seen = expected or latencies.get("N") or latencies.get("max")
    if not seen:
        return None
    return _direction({"total_ios": syncs.get("total_ios"), "clat_ns": latencies})


def _direction(row: Mapping[str, Any]) -> DirectionStatus:
    bins, bins_of = _bins(row)
    bin_total = sum(bins.values()) if bins else None
    sums = {
        name: _latency_sum(row.get(f"{name}_ns"), bin_total) for name in ("slat", "clat", "lat")
    }
    counts = [s.count for name, s in sums.items() if s is not None and name != "slat"]
    source = row.get(f"{bins_of}_ns")
    source = source if isinstance(source, dict) else {}
    return DirectionStatus(
        issued=_int(row.get("total_ios")),
        completed=max(counts) if counts else bin_total,
        io_bytes=_int(row["io_bytes"]) if "io_bytes" in row else 1024 * _int(row.get("io_kbytes")),
        runtime_ms=_int(row.get("runtime")),
        slat=sums["slat"],
        clat=sums["clat"],
        lat=sums["lat"],
        bins=bins,
        bins_of=bins_of,
        iops=_rate(row.get("iops"), row.get("total_ios"), row),
        bw_bytes=_rate(row.get("bw_bytes"), row.get("io_bytes"), row)
        if "bw_bytes" in row or "bw" not in row
        else 1024 * _float(row["bw"]),
        percentiles=_percentile_list(source),
        lat_max_ns=_int(source.get("max")),
    )


def _rate(stated: object, count: object, row: Mapping[str, Any]) -> float:
    """A rate as fio states it; if fio states no number (nan, in a file), the count divided by fio's
    run time."""
    if type(stated) is float and isfinite(stated):
        return stated
    if type(stated) is int or _float(stated):
        return _float(stated)
    return 1000 * _int(count) / (_int(row.get("runtime")) or 1)


def _bins(row: Mapping[str, Any]) -> tuple[dict[int, int] | None, str]:
    """The histogram and its kind: clat if there is one, else lat (without both, the histogram is
    ``None`` and the kind is that of fio's percentiles)."""
    for kind in ("clat", "lat"):
        block = row.get(f"{kind}_ns")
        raw = block.get("bins") if isinstance(block, dict) else None
        if isinstance(raw, dict) and raw:
            return _counts(raw), kind
    blocks = (row.get("clat_ns"), row.get("lat_ns"))
    clat, lat = (block.get("percentile") if isinstance(block, dict) else None for block in blocks)
    return None, "lat" if lat and not clat else "clat"


def _counts(raw: Mapping[Any, Any]) -> dict[int, int]:
    counts = raw.values()
    # all of fio's counts are positive integers, so they are checked together
    try:
        if type(sum(counts)) is int and min(counts) > 0:
            return dict(zip(map(int, raw), counts, strict=True))
    except (ValueError, TypeError):
        pass
    bins = {_int(key): _int(count) for key, count in raw.items()}
    return {key: count for key, count in bins.items() if count > 0}


def _latency_sum(block: object, bin_total: int | None) -> LatencySum | None:
    """fio's mean with its N. Before 3.19 fio gives no N, and the I/Os in the bins are counted
    instead."""
    if not isinstance(block, dict):
        return None
    count = _int(block["N"]) if "N" in block else bin_total
    # it is nan in a result that was read from a file
    if count is None or block.get("mean", 0.0) is None:
        return None
    mean = _float(block.get("mean"))
    if count > 0 and mean == 0.0 and not _int(block.get("max")):
        return None
    return LatencySum(mean, count)


def _percentile_list(block: Mapping[str, Any]) -> Mapping[str, int]:
    raw = block.get("percentile")
    pairs = raw.items() if isinstance(raw, dict) else ()
    return {name: _int(value) for key, value in pairs if (name := _percentile_name(key))}


@lru_cache(256)
def _percentile_name(key: object) -> str:
    percent = _float(key)
    return f"p{percent:g}" if 0 < percent <= 100 else ""


def _measures_latency(options: Mapping[str, str], says_counts: bool) -> bool:
    """Whether completions have a latency sample that the document counts. fio before 3.19 counts
    samples only in its single histogram, which is of clat, or with lat_percentiles (3.16) of
    lat."""
    if flag(options, "gtod_reduce"):
        return False
    # the submitting threads keep their samples until they end
    if options.get("io_submit_mode", "").strip() == "offload":
        return False
    if not flag(options, "disable_clat"):
        return True
    return not flag(options, "disable_lat") and (says_counts or flag(options, "lat_percentiles"))


def _has_counts(row: Mapping[str, Any]) -> bool:
    """Whether the means come with an N (fio 3.19)."""
    blocks = (row[name].get("lat_ns") for name in DIRECTIONS if isinstance(row.get(name), dict))
    return any(isinstance(block, dict) and "N" in block for block in blocks)


def _eta(row: Mapping[str, Any], options: Mapping[str, str]) -> int | None:
    """The seconds left as fio states them; ``None`` for its placeholders (2**31-1 and absurd
    values)."""
    eta = _int(row.get("eta"), -1)
    if eta < 0 or eta >= ETA_UNKNOWN_FROM:
        return None
    planned = duration_s(options.get("runtime", "")) or 0.0
    ramp = duration_s(options.get("ramp_time", "")) or 0.0
    if planned and "stonewall" not in options and eta > 10 * (planned + ramp) + 60:
        return None
    return eta


def _options(raw: object) -> dict[str, str]:
    if not isinstance(raw, dict):
        return {}
    return {str(key): str(value) for key, value in raw.items()}


def _percentages(raw: object) -> dict[str, float]:
    if not isinstance(raw, dict):
        return {}
    return {str(key): _float(value) for key, value in raw.items()}


def _int(value: object, default: int = 0) -> int:
    # nearly all of fio's numbers are integers already
    if type(value) is int:
        return value
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        return default


def _float(value: object) -> float:
    if type(value) is float and isfinite(value):
        return value
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if number == number and abs(number) != float("inf") else 0.0
