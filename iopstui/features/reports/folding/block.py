"""Sums of consecutive frames of a recording.

A report is made of blocks and the events between them. Several processes can make the blocks of one
recording at the same time (parallel.py); the blocks are the same as if one process makes all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from iopstui.features.reports.folding import series
from iopstui.features.reports.folding.heat import Heat
from iopstui.features.reports.folding.run import Run
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.mark_intervals import middle_of_frame
from iopstui.model.metrics.run_figures import RunFigures
from iopstui.model.metrics.slow.slow_requests import SlowestTotal
from iopstui.model.metrics.waits import MeanWaits
from iopstui.recording import layout as form


class Block:
    """Adds up frames, in order. ``header`` and ``duration`` are the recording's.

    ``runs`` are in the order in which they were first seen, ``without_job`` has the figures of
    other frames; ``first`` is the earliest middle of a frame. ``idle_waits`` says where I/Os waited
    while no job ran, ``slowest`` has the slowest requests.
    """

    def __init__(self, header: form.Header, duration: float) -> None:
        self._interval_s = header.interval_s
        self._tree: Sequence[str] = header.target.tree
        self.series = series.empty(self._tree)
        self.idle_waits = MeanWaits()
        self.slowest = SlowestTotal()
        self.heat = Heat(duration)
        self.runs: dict[int, Run] = {}
        self.without_job = RunFigures()
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
        if not step or fio is None:
            self.without_job.add(frame)
        series.append(self.series, self._interval_s, series.values_of(frame))
        if fio is not None:
            self.heat.add(frame.t, fio.seconds or 0.0, fio.total.bins)

    @property
    def figures(self) -> Sequence[RunFigures]:
        """Figures of all frames."""
        return [*(run.measured for run in self.runs.values()), self.without_job]
