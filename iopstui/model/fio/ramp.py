"""fio's ramp time: seconds at the start of a run that fio excludes from its totals.

At its end fio resets a row's counters; it takes latencies only from then on."""

from __future__ import annotations

import re

from iopstui.model.fio.counts import active, longest_runtime
from iopstui.model.samples import JobStatus

# fio 3.42 checks only once a second whether the ramp is over
RAMP_LATE_S = 1.25
TOLERANCE_S = 0.05

_DURATION = re.compile(r"(\d{1,15}(?:\.\d+)?)\s*(us|usec|ms|msec|s|m|h|d)?")
_SECONDS = {
    None: 1.0, "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3,
    "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0,
}  # fmt: skip


def was_reset(
    now: JobStatus, old: JobStatus, clock_s: float = 0.0, ramp_over: bool = False
) -> bool:
    """True if fio reset this row's counters in between, as it does at the end of the ramp.
    ``clock_s`` is the time between the two; ``ramp_over``: the ramp was over before."""
    if now.job_start is not None and old.job_start and now.job_start != old.job_start:
        return True
    if now.has_ramp and not ramp_over:
        if longest_runtime(now) < longest_runtime(old):
            return True
        if now.measures_latency and in_ramp(old) and not in_ramp(now):
            return True
        if now.job_start is None and not now.measures_latency and _has_outgrown(now, old, clock_s):
            return True
    for name, before in old.directions.items():
        after = now.directions.get(name)
        if after is None or after.issued < before.issued or after.io_bytes < before.io_bytes:
            return True
    return False


def _has_outgrown(now: JobStatus, old: JobStatus, clock_s: float) -> bool:
    """True if the counters were reset and have already exceeded their old values: the whole runtime
    lies within ``clock_s``, and the ramp ended where it begins."""
    before, after = longest_runtime(old) / 1000, longest_runtime(now) / 1000
    if before < 2 * TOLERANCE_S or before > ramp_s(now) + RAMP_LATE_S:
        return False
    return after <= clock_s + TOLERANCE_S and before + clock_s - after > 0.9 * ramp_s(now)


def in_ramp(job: JobStatus) -> bool:
    """True while fio warms up: bytes are counted, latencies are not. A job without latencies does
    not show it (``Ramps`` follows those)."""
    if not job.has_ramp or not job.measures_latency:
        return False
    moved = any(d.io_bytes for d in job.directions.values())
    return moved and not any(d.completed for d in job.directions.values())


def ramp_s(job: JobStatus) -> float:
    """The ramp that the job asks for, in seconds."""
    return duration_s(job.options.get("ramp_time", "0")) or 0.0


class Ramps:
    """Tells which rows are in their ramp. A row without latencies is in its ramp until its counters
    are reset, which fio does up to a second late (3.42) or has done before the row was first
    seen."""

    def __init__(self) -> None:
        self._finished_rows: set[int] = set()
        self._seen_rows: set[int] = set()

    @property
    def state(self) -> tuple[object, ...]:
        """Return its complete state."""
        return sorted(self._finished_rows), sorted(self._seen_rows)

    def is_over(self, index: int, job: JobStatus) -> bool:
        """Whether this row's ramp was over when it was last seen, as ``job``."""
        return index in self._finished_rows or any(d.completed for d in job.directions.values())

    def feed(self, index: int, job: JobStatus, reset: bool, interval_s: float, first: bool) -> bool:
        """Whether row ``index`` is still in its ramp. ``reset``: its counters were reset since it
        was last seen; ``first``: nothing of the run was seen before, not even that it waited."""
        if not active(job):
            return False
        if not job.has_ramp or job.measures_latency:
            return in_ramp(job)
        runtime, ramp = longest_runtime(job) / 1000, ramp_s(job)
        if index in self._seen_rows:
            ramp_over = reset
        else:
            ramp_over = runtime <= interval_s - ramp + TOLERANCE_S
            # the next row may begin in the middle of a run; elapsed is rounded up
            ramp_over |= first and (job.elapsed_s or 0) - 1 - runtime > 0.75 * ramp
        self._seen_rows.add(index)
        if ramp_over or runtime > ramp + 2 * RAMP_LATE_S:
            self._finished_rows.add(index)
        return index not in self._finished_rows


def duration_s(text: str) -> float | None:
    """A fio duration ("30", "90s", "2m", "500ms", fio(1) "time") in seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    return float(match[1]) * _SECONDS[match[2]] if match else None
