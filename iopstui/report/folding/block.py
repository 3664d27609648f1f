"""Sums of consecutive frames of a recording.

A report is made of blocks and the events between them. Several processes can make the blocks of one
recording at the same time (parallel.py); the blocks are the same as if one process makes all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from iopstui.model.fio.interval import FioInterval
from iopstui.model.metrics.cpus.cpu_frames import busy_of
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.mark_intervals import middle_of_frame
from iopstui.model.metrics.run_figures import RunFigures
from iopstui.model.metrics.slow.slow_requests import SlowestTotal
from iopstui.model.metrics.waits import MeanWaits
from iopstui.recording import layout as form
from iopstui.report.folding import series
from iopstui.report.folding.heat import Heat
from iopstui.report.folding.run import Run


class Block:
    """Adds up frames, in order. ``header`` and ``duration`` are the recording's.

    ``runs`` and ``figures`` are by run, in the order in which these were first seen; ``first`` is
    the earliest middle of a frame. ``idle_waits`` says where I/Os waited while no job ran,
    ``slowest`` has the slowest requests.
    """

    def __init__(self, header: form.Header, duration: float) -> None:
        self._interval_s = header.interval_s
        self._tree: Sequence[str] = header.target.tree
        self.series = series.empty(self._tree)
        self.idle_waits = MeanWaits()
        self.slowest = SlowestTotal()
        self.heat = Heat(duration)
        self.runs: dict[int, Run] = {}
        self.measured = RunFigures()
        self.first = inf

    def add(self, frame: Frame) -> None:
        """Add an interval."""
        fio, step = frame.fio, frame.step
        if step:
            run = self.runs.get(step)
            if run is None:
                run = self.runs[step] = Run(step)
            run.add(frame, self._tree)
        else:
            self.idle_waits.add(frame.waits, frame.seconds)
        self.slowest.add(frame)
        self.first = min(self.first, middle_of_frame(frame))
        self.measured.add(frame)
        self._line(frame, fio)
        if fio is not None:
            self.heat.add(frame.t, fio.seconds or 0.0, fio.total.bins)

    def _line(self, frame: Frame, fio: FioInterval | None) -> None:
        disk, busy = frame.total, busy_of(frame.cpus)
        iops, bw = frame.drawn
        job = [v for v in (fio.usr_cpu, fio.sys_cpu) if v is not None] if fio else []
        seconds = frame.seconds or (fio.seconds if fio else None) or 0.0
        percentiles = fio.total.percentiles if fio else {}
        # in the order of SERIES
        series.append(
            self.series, self._interval_s, frame.t, seconds,
            iops, disk.ios_s if disk else None,
            percentiles.get("p50"), percentiles.get("p99"), percentiles.get("p99.9"),
            disk.aqu_sz if disk else None,
            sum(busy) / len(busy) if busy else None, max(busy, default=None),
            sum(job) if job else None,
            fio.total.clat_ns if fio else None, bw,
            *series.wait_values(frame.waits, self._tree),
        )  # fmt: skip
