"""Limit the writes of a command: announce, watch, and stop before exceeding the limit.

The wear of an SSD and the bill of a cloud depend on bytes, but a job that runs for a time writes as
fast as the device can."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING

from iopstui.format import duration, size
from iopstui.model.block.device import BlockDevice
from iopstui.model.samples import FioStatus

if TYPE_CHECKING:
    from iopstui.fio.write_bound import WriteBound
    from iopstui.preflight.prepared_job import PreparedJob

STOP_TIME_S = 0.5
"""Seconds for which fio may go on writing at the highest rate seen after it was told to end: its
writes are checked every tenth of a second, and its jobs finish I/Os in flight."""
CHECK_EVERY_S = 0.25
EXAMPLE = 1_000_000_000
"""An example of a rate in bytes/s, for a job limited only by time."""


class WriteBudget:
    """A limit on writes. ``most`` is in bytes, over all runs of a session (``None``: no limit).
    ``used`` counts written bytes, scratch files included. ``exceeded``: a run was ended or refused
    because of it. ``rate`` is the bytes per second of the session's last run that wrote (``None``:
    no such run)."""

    def __init__(self, most: int | None = None, announce: bool = False) -> None:
        self.most = most
        self.announce = announce
        self.used = 0
        self.exceeded = False
        self.rate: float | None = None
        self._largest_run = 0
        self._own_bytes = 0
        self._run_bytes = 0
        """Bytes of this run and of the run beside it."""
        self._rate_start: tuple[float, int] | None = None
        self._rate = 0.0
        self._bound: WriteBound | None = None

    def forecast(self, job: PreparedJob, layout: int, devices: Mapping[str, BlockDevice]) -> str:
        """How much the next run may write, in words. The run is ended if it writes more than its
        own options allow."""
        from iopstui.fio.write_bound import write_bound

        self._bound = write_bound(
            job.text, job.facts.sections, lambda at: _existing_size(job, at, devices)
        )
        if job.layout_text is not None and job.layout_bytes is None:
            return "Writes: only the job's own files, before it starts. The jobs only read."
        from iopstui.fio.write_bound import run_seconds

        bound = self._bound.total if self._bound is not None else None
        return max_writes_text(
            layout, not job.read_only, run_seconds(job.text), self.most, bound, self.rate
        )

    def exceeded_count(self, written: int) -> str:
        """Why the run has to end: fio has ``written`` more than announced; "" if it may go on."""
        if self._bound is None or written <= self._bound.total:
            return ""
        return (
            f"stopped after writing {size(written)}: its size=, loops= and rate= allow at most "
            f"{size(self._bound.total)}"
        )

    def refusal(self, layout_bytes: int, running: int = 0) -> str:
        """Return why the next run may not start, "" if it may: its scratch files, or as many bytes
        as an earlier run wrote, would exceed the budget. ``running``: bytes written so far by a run
        that has not ended."""
        if self.most is None:
            return ""
        remaining = self.most - self.used - running
        if layout_bytes > remaining:
            self.exceeded = True
            return (
                f"the run was not started: its new files need {size(layout_bytes)}, but only "
                f"{size(max(0, remaining))} of the write budget of {size(self.most)} is left"
            )
        if self._largest_run > remaining:
            self.exceeded = True
            return (
                "the next run was not started: earlier runs wrote up to "
                f"{size(self._largest_run)}, but only {size(max(0, remaining))} of the write "
                f"budget of {size(self.most)} is left"
            )
        return ""

    def check(self, now_s: float, written: int, beside: int = 0) -> str:
        """Why the run has to end now, after ``written`` bytes; "" if it may go on. ``beside``:
        bytes written so far by the next run, which is about to replace this one."""
        if self.most is None:
            return ""
        self._own_bytes = max(self._own_bytes, written)
        self._run_bytes = max(self._run_bytes, self._own_bytes + beside)
        if self._rate_start is None:
            self._rate_start = now_s, self._run_bytes
        # over a shorter time a burst would distort the rate
        elif now_s - self._rate_start[0] >= CHECK_EVERY_S:
            rate = (self._run_bytes - self._rate_start[1]) / (now_s - self._rate_start[0])
            self._rate = max(self._rate, rate)
            self._rate_start = now_s, self._run_bytes
        if (
            not self._run_bytes
            or self.used + self._run_bytes + self._rate * STOP_TIME_S < self.most
        ):
            return ""
        # the rate of a short job does not matter if its own options end it before the limit
        bound = self._bound
        if bound is not None and bound.total and self._ends_before(bound):
            return ""
        self.exceeded = True
        why = (
            "continuing could exceed"
            if self.used + self._run_bytes < self.most
            else "it has reached"
        )
        return (
            f"ended after {size(self.used + self._run_bytes)} written: {why} the write budget of "
            f"{size(self.most)} (--write-budget)"
        )

    def _ends_before(self, bound: WriteBound) -> bool:
        """Whether the run's own options end it before the limit, or exactly at it; the file
        system's own writes count."""
        remaining = (self.most or 0) - self.used
        return max(self._run_bytes, bound.total) < remaining or (
            bound.nominal <= remaining and self._run_bytes <= bound.total
        )

    def end(self, written: int, layout: bool = False, rate: float | None = None) -> None:
        """Record that the run is over and how many bytes it wrote, at ``rate`` per second;
        ``layout``: these bytes were written to lay out files."""
        self.rate = self.rate if layout or not rate else rate
        self._own_bytes = max(self._own_bytes, written)
        self.used += self._own_bytes
        self._largest_run = self._largest_run if layout else max(self._largest_run, self._own_bytes)
        self._own_bytes = self._run_bytes = 0
        self._rate_start = None

    def end_beside(self, written: int) -> None:
        """Record bytes written for the next run while another one runs."""
        self.used += written


def _existing_size(job: PreparedJob, path: str, devices: Mapping[str, BlockDevice]) -> int | None:
    """The size in bytes of a file that the job opens, ``None`` if it has yet to be made."""
    if path in job.file_sizes:
        return job.file_sizes[path]
    try:
        info = os.stat(os.path.join(job.cwd, path))
    except OSError:
        return None
    if not stat.S_ISBLK(info.st_mode):
        return info.st_size
    number = os.major(info.st_rdev), os.minor(info.st_rdev)
    return next(
        (device.size for device in devices.values() if (device.major, device.minor) == number), None
    )


def bytes_written(status: FioStatus | None) -> int:
    """Bytes written so far according to fio."""
    if status is None:
        return 0
    return sum(job.directions["write"].io_bytes for job in status.jobs if "write" in job.directions)


def written_per_s(status: FioStatus | None) -> float | None:
    """Bytes per second that the jobs wrote; ``None`` if they wrote nothing."""
    jobs = status.jobs if status is not None else ()
    writes = [job.directions["write"] for job in jobs if "write" in job.directions]
    seconds = max((part.runtime_ms for part in writes), default=0) / 1000
    return bytes_written(status) / seconds if seconds and bytes_written(status) else None


def _written_text(seconds: float, rate: float | None) -> str:
    """How much will be written at a known rate: "about 12.1 GiB at the last run's 41.4 MiB/s";
    without a known rate, an example."""
    if rate is None:
        return f"as much as the disk takes; 1 GB/s would be {size(round(seconds * EXAMPLE))}"
    return f"about {size(round(seconds * rate))} at the last run's {size(round(rate))}/s"


def max_writes_text(
    scratch: int, writes: bool, seconds: float | None, most: int | None, bound: int | None = None,
    rate: float | None = None,
) -> str:  # fmt: skip
    """How much will be written at most, in words: ``scratch`` bytes of scratch files, and the
    writes of jobs in ``seconds`` (``None``: not known), at most ``bound`` bytes (``None``: only
    time limits them). ``rate``: bytes/s that such a job wrote before (``None``: not known)."""
    files = f"{size(scratch)} of scratch files" if scratch else ""
    first = f"{files}, then " if files else ""
    if not writes:
        return f"writes at most: {files + ', the jobs only read' if files else 'nothing'}"
    if bound is not None and (most is None or bound + scratch <= most):
        return f"writes at most: {first}{size(bound)} (the job's own limit)"
    if most is not None:
        with_files = f", with {files}" if files else ""
        return f"writes at most: {size(most)} (--write-budget){with_files}"
    if seconds is None:
        return f"writes: {first}at full speed, no limit set (--write-budget 200g sets one)"
    return (
        f"writes: {first}for {duration(seconds)} at full speed ({_written_text(seconds, rate)}), "
        "no limit set (--write-budget 200g sets one)"
    )


def short_budget_text(
    scratch: int, writes: bool, seconds: float | None, most: int | None, bound: int | None = None,
    rate: float | None = None,
) -> str:  # fmt: skip
    """Return the budget in a few words, without options of the command line."""
    if not writes:
        return f"reads only, after writing {size(scratch)}" if scratch else "reads only"
    if bound is not None and (most is None or bound + scratch <= most):
        return f"writes up to {size(bound + scratch)}"
    if most is not None:
        return f"writes up to {size(most)}"
    if seconds is None:
        return "writes without a limit"
    return f"writes for {duration(seconds)}, no limit set ({_written_text(seconds, rate)})"
