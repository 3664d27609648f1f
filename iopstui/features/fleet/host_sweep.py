"""Run a sweep of a fleet: its points one after another, with the same events as other
experiments."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, EXIT_VERDICT, IopstuiError
from iopstui.events import (
    ExperimentFinished,
    ExperimentStarted,
    PointFailed,
    PointFinished,
    PointStarted,
)
from iopstui.experiment.runner import OVERHEAD_S, PlanEvent, PlanEvents, settings_of
from iopstui.features.fleet.merging.merger import Merger
from iopstui.features.fleet.merging.sums import DirectionSum
from iopstui.fio.job_text import read_job
from iopstui.fio.library import find_job
from iopstui.fio.write_bound import run_seconds
from iopstui.format import counted
from iopstui.model.experiment.host_sweep import HostPoint, SweptPoint
from iopstui.model.experiment.plan import HOSTS, Plan, PlannedPoint
from iopstui.model.experiment.point import littles_law
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.model.figures.figure import DEVICE, TOTAL
from iopstui.model.fio.jobfile import other_blocks, with_overrides
from iopstui.model.rates import median

SweepEvent = PlanEvent
SWEEP_EVENTS = (
    ExperimentStarted, PointStarted, PointFinished, PointFailed, ExperimentFinished,
)  # fmt: skip
INTERNAL_ERROR = "an internal error of iopstui"


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The outcome of a run: its exit code, its messages and printed text, its point if it belongs
    to a sweep and counts, and whether to stop the sweep."""

    code: int
    messages: tuple[str, ...] = ()
    exit_lines: tuple[str, ...] = ()
    point: HostPoint | None = None
    ends_sweep: bool = False


def job_seconds(job: str, options: Mapping[str, str]) -> float | None:
    """How long a job runs by its own options; ``None`` if it is not limited by time. Raises
    UsageError for a job that does not exist."""
    return run_seconds(with_overrides(read_job(find_job(job)), options), writers=False)


def swept_options(point: SweptPoint, seed: int) -> dict[str, str]:
    """The options of a point's run, which reads other random blocks than the runs before it: see
    jobfile.other_blocks. ``seed`` is the one of the sweep."""
    text = with_overrides(read_job(find_job(point.step.job)), point.options)
    return {**other_blocks(text, seed + point.step.index), **point.options}


def host_point(hosts: int, planned: int, merger: Merger, met: bool | None = None) -> HostPoint:
    """The figures of a finished run on ``hosts`` of the ``planned`` hosts. ``met``: whether its
    expectations were met."""
    sums = merger.run_sums()
    total, iops_by_host, seconds = sums.total or DirectionSum(), {}, 0.0
    for name, host in sorted(merger.hosts.items()):
        if host.frames:
            own = host.run_sums().total
            iops_by_host[name] = own.iops if own is not None else 0.0
            seconds = max(seconds, host.run_s)
    kind = "lat" if total.latency("lat").n else "clat"
    ranks, device = total.main.percentiles, sums.device.part(TOTAL)
    in_device = device.latency(DEVICE).percentiles if device is not None else {}
    few = f"only {hosts} of {counted(planned, 'host')} took part"
    return HostPoint(
        seconds, total.ios, total.iops, total.bw,
        read_iops=sums.fio["read"].iops if "read" in sums.fio else None,
        write_iops=sums.fio["write"].iops if "write" in sums.fio else None,
        latency_ns=total.latency(kind).mean, latency_of=kind, bins_of=total.main_kind,
        p50_ns=ranks.get("p50"), p99_ns=ranks.get("p99"), p999_ns=ranks.get("p99.9"),
        max_ns=total.main.highest,
        device_p50_ns=in_device.get("p50"), device_p99_ns=in_device.get("p99"),
        disturbed=(few,) if hosts < planned else (),
        hosts=hosts, iops_by_host=iops_by_host, met=met,
    )  # fmt: skip


class SweepEvents(PlanEvents):
    """Makes the events of a sweep from the results of its points."""

    def __init__(
        self, plan: Plan, emit: Callable[[SweepEvent], None], t: Callable[[], float] = lambda: 0.0
    ) -> None:
        super().__init__(plan, emit, t)
        self._began: float | None = None
        self._lengths: list[float] = []
        # a host's IOPS at the first point of a curve, by the point's other settings
        self._first_shares: dict[tuple[tuple[str, str], ...], float] = {}
        self.start()

    def begin(self, step: PlannedPoint) -> None:
        now_s, measure = self.t(), self.plan.measure
        if self._began is not None and now_s > self._began:
            self._lengths.append(now_s - self._began)
        self._began = now_s
        each_s = median(self._lengths) if self._lengths else measure and measure + OVERHEAD_S
        self.begin_point(step, (len(self.steps) - step.index) * each_s)

    def finish(self, step: PlannedPoint, point: HostPoint) -> None:
        others = tuple(setting for setting in settings_of(step) if setting[0] != HOSTS)
        share = self._first_shares.setdefault(others, point.iops_host)
        point = replace(point, linear=point.iops_host / share if share else None)
        self.finish_point(step, point, littles_law(point, None, paced=False))


class HostSweep:
    """Runs the points of ``plan``, each with ``run_point``, until ``is_stopped`` returns True.
    ``codes`` are the exit codes of the points so far."""

    def __init__(
        self,
        plan: Plan,
        run_point: Callable[[PlannedPoint], RunVerdict],
        emit: Callable[[SweepEvent], None],
        is_stopped: Callable[[], bool],
    ) -> None:
        began = time.monotonic()
        self.codes: list[int] = []
        self._run_point, self._is_stopped = run_point, is_stopped
        self._events = SweepEvents(plan, emit, lambda: time.monotonic() - began)

    def run(self) -> None:
        """Run all points. If one can't be run, the earlier results are kept. Raises what
        ``run_point`` raises."""
        error, is_stopped = INTERNAL_ERROR, False
        try:
            while (step := self._events.next()) is not None:
                verdict = self._run_step(step)
                is_stopped = self._is_stopped()
                if is_stopped or verdict.ends_sweep:
                    error = "" if is_stopped else next(iter(verdict.messages), INTERNAL_ERROR)
                    return
            error = ""
        except IopstuiError as raised:
            is_stopped = self._is_stopped()
            error = "" if is_stopped else raised.message
            raise
        finally:
            self._events.end(error, stopped=is_stopped)

    def _run_step(self, step: PlannedPoint) -> RunVerdict:
        self._events.begin(step)
        verdict = self._run_point(step)
        self.codes.append(verdict.code)
        if verdict.point is not None:
            self._events.finish(step, verdict.point)
        elif not self._is_stopped():
            self._events.fail_point(step, next(iter(verdict.messages), INTERNAL_ERROR))
        return verdict


def sweep_exit_code(codes: Sequence[int], screen: bool = False) -> int:
    """The exit code of a sweep, from those of its points; a point that could not run decides. On a
    ``screen``, stopping does not count as an interruption."""
    known = (EXIT_OK, EXIT_JOB_FAILED, EXIT_VERDICT, EXIT_INTERRUPTED)
    other = next((code for code in codes if code not in known), None)
    if other is not None:
        return other
    failed, interrupted = codes.count(EXIT_JOB_FAILED), EXIT_INTERRUPTED in codes and not screen
    checks = (Check("every point", EXIT_VERDICT not in codes),)
    return Verdict(checks, interrupted, failed).exit_code
