"""A fio run of a recording, as the report shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iopstui import events
from iopstui.model import histogram
from iopstui.model.fio.jobfile import CapturedRow, captured_rows
from iopstui.model.histogram import BinsTotal
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.nvme import RunDrives
from iopstui.model.metrics.probe import ProbeTotal
from iopstui.model.metrics.run_figures import RunEnergy, RunFigures
from iopstui.model.metrics.shares import RunShare
from iopstui.model.metrics.summary import FramesTotal
from iopstui.model.samples import DIRECTIONS
from iopstui.recording import layout as form

_SHOWN_PERCENTILES = (50.0, 99.0, 99.9, 99.99)


def _in_order() -> BinsTotal:
    return BinsTotal(in_order=True)


@dataclass
class Run:
    """A fio run: its job, fio's final figures, and the sums of the frames.

    ``bins_by_direction`` has all latencies of each direction; ``total_bins`` has those of all I/Os,
    each counted once. ``is_partial``: the recording began or ended within the run, so the frames
    cannot add up to fio's count. ``point`` is the label of the experiment's point, "" outside of
    one. ``device`` is the sum over the target's devices, ``devices`` has each of them and the
    devices beneath. ``note`` replaces the check of the sums if there is nothing to check;
    ``contradicted`` has the directions for which a result of fio states an impossible rate."""

    step: int
    started: events.StepStarted | None = None
    job_run: form.JobRun | None = None
    finished: events.StepFinished | None = None
    total: FramesTotal = field(default_factory=FramesTotal)
    probe: ProbeTotal = field(default_factory=ProbeTotal)
    measured: RunFigures = field(default_factory=RunFigures)
    drives: RunDrives = field(default_factory=RunDrives)
    energy: RunEnergy = field(default_factory=RunEnergy)
    share: RunShare = field(default_factory=RunShare)
    bins_by_direction: dict[str, BinsTotal] = field(default_factory=dict)
    total_bins: BinsTotal = field(default_factory=_in_order)
    max_ns: int | None = None
    bins_of: str = "clat"
    is_partial: bool = False
    begin: float | None = None
    end: float = 0.0
    outcomes: list[events.ExpectationChecked] = field(default_factory=list)
    point: str = ""
    steady_state: events.SteadyState | None = None
    note: str = ""
    contradicted: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.started.job if self.started else f"run {self.step}"

    @property
    def bins(self) -> dict[str, dict[int, int]]:
        """A histogram of all latencies (ns) for each direction."""
        return {name: total.bins for name, total in self.bins_by_direction.items()}

    @property
    def all_bins(self) -> dict[int, int]:
        """A histogram of all latencies (ns), in which each I/O is counted once."""
        return self.total_bins.bins

    @property
    def captured(self) -> list[CapturedRow]:
        """The captured workload, if `iopstui capture` wrote the job."""
        if self.job_run is None or self.finished is None:
            return []
        return captured_rows(self.job_run.text, self.finished.summary)

    @property
    def title(self) -> str:
        return self.started.title if self.started else ""

    @property
    def seconds(self) -> float:
        """The length of the measurement."""
        return self.end - self.begin if self.begin is not None else 0.0

    def add(self, frame: Frame, tree: Sequence[str]) -> None:
        """Add a frame of this run. ``tree``: the target's devices and those beneath them."""
        self.drives.add(frame.nvme)
        fio = frame.fio
        self.share.add(frame.share, reported=fio is not None)
        if fio is None:
            return
        if self.begin is None:
            self.begin = max(0.0, frame.t - (fio.seconds or 0.0))
        self.end = frame.t
        self.total.add_frame(frame)
        self.probe.add(frame.probe, frame.opened)
        self.measured.add(frame, tree)
        self.energy.add(frame)
        self.bins_of = fio.total.bins_of
        for name, part in fio.directions.items():
            self.add_bins(name, part.bins)
        self.total_bins.add(fio.total.bins)
        if fio.total.max_ns is not None:
            self.max_ns = max(self.max_ns or 0, fio.total.max_ns)

    def join(self, later: Run) -> None:
        self.drives.join(later.drives)
        self.share.join(later.share)
        if not later.total.frames:
            return
        self.begin = later.begin if self.begin is None else self.begin
        self.end = later.end
        self.total.join(later.total)
        self.probe.join(later.probe)
        self.measured.join(later.measured)
        self.energy.join(later.energy)
        self.bins_of = later.bins_of
        for name, bins in later.bins.items():
            self.add_bins(name, bins)
        self.total_bins.add(later.all_bins)
        if later.max_ns is not None:
            self.max_ns = max(self.max_ns or 0, later.max_ns)

    def add_bins(self, name: str, bins: Mapping[int, int]) -> None:
        """Add latencies of one direction."""
        total = self.bins_by_direction.get(name)
        if total is None:
            total = self.bins_by_direction[name] = _in_order()
        total.add(bins)

    def latencies(self) -> dict[str, int | None]:
        """The percentiles p50 ... p99.99 and the maximum over all I/Os of the run, in ns, from the
        frames' histograms."""
        values = histogram.percentiles(self.all_bins, _SHOWN_PERCENTILES)
        return {
            **{histogram.percentile_name(p): values.get(p) for p in _SHOWN_PERCENTILES},
            "max": self.max_ns,
        }

    @property
    def summary(self) -> Mapping[str, Any]:
        """fio's final figures (fio_summary); empty if the run's end was not recorded."""
        return self.finished.summary if self.finished else {}

    @property
    def slowest_ios(self) -> Mapping[str, Any]:
        """The slowest I/Os by fio's own log; empty without a log."""
        slowest: Mapping[str, Any] = self.summary.get("slowest_ios") or {}
        return slowest

    def figures(self) -> dict[str, dict[str, Any]]:
        """fio's final figures by direction, over all rows; empty if the run's end was not
        recorded."""
        total = self.summary.get("total", {})
        return {name: total[name] for name in DIRECTIONS if name in total}
