"""A fleet in the role of a session of the screen: its totals are frames, its runs are runs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from iopstui.events import (
    RUN,
    Event,
    ExperimentFinished,
    ExperimentStarted,
    FrameReady,
    Mark,
    Notice,
    RunAddedUp,
    StepFinished,
    StepStarted,
    TunableChanged,
)
from iopstui.experiment.setup import length_text
from iopstui.features.fleet.fleet_events import (
    FleetEvent,
    FleetMessage,
    FleetRunFinished,
    FleetRuns,
    FleetRunStarted,
    HostRow,
    ReplayRestarted,
)
from iopstui.features.fleet.fleet_state import DONE, FAILED, STOPPED, natural_key
from iopstui.features.fleet.host_sweep import SWEEP_EVENTS, SweepEvent, job_seconds, sweep_exit_code
from iopstui.features.fleet.hosts.host_tunables import HostTunableResult, merged_tunables
from iopstui.features.fleet.merging.combined_frame import (
    ALL_DEVICES,
    direction_interval,
    frame_of_second,
)
from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.merging.row_events import event_of
from iopstui.format import counted
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.block.topology import Topology
from iopstui.model.experiment.host_sweep import SweptPoint
from iopstui.model.experiment.plan import Plan, expand_plan
from iopstui.model.fio.rows import duration_s
from iopstui.safety.tunables import TunableState
from iopstui.text import printable

NO_TUNABLES = "use K to change tunables of the hosts' disks (it asks first)"


class FleetController:
    """A fleet as a session. ``runs`` reports in its own thread. Fleet events are queued in
    ``events`` until the screen fetches them; events of a session go to the sink. ``title``
    describes the hosts."""

    disk_use = None

    def __init__(self, runs: FleetRuns, title: str, job: str | None) -> None:
        self.runs = runs
        self.title = title
        self._all = self.target = Target(DEVICE, title, ALL_DEVICES, (ALL_DEVICES,))
        self.host = ""
        """The host whose dashboard is shown; "" for the fleet's."""
        self.devices: Mapping[str, BlockDevice] = {}
        self.events: deque[FleetEvent] = deque()
        self.bind = False
        self.job = job
        self.overrides: dict[str, str] = {}
        self.last: FleetRunFinished | None = None
        self.sweeping = False
        """Whether a sweep runs, or was ordered."""
        self._codes: list[int] = []
        self.on_jump: Callable[[], None] = lambda: None
        self.watching = False
        """Whether the hosts are only watched, without a job."""
        self._sink: Callable[[Event], None] = lambda event: None
        self._origin_s: float | None = None
        self._t = 0.0
        self._step = 0
        self._run_start_s: float | None = None
        self._runtime: int | None = None
        self._has_title = False
        self._cpu_times: tuple[float, float] | None = None

    @property
    def running(self) -> bool:
        return self.runs.running

    # -- called by the screen

    def show(self, host: str = "", target: Target | None = None) -> None:
        """Show the figures of ``host``, or of all hosts together."""
        self.host, self.target = host, target or self._all

    def start(self, sink: Callable[[Event], None]) -> None:
        """Start. ``sink`` is called in the thread of the runs."""
        self._sink = sink
        self.runs.start(self._take_event)

    def run_job(self, job: str, overrides: Mapping[str, str], *, mark: str = "") -> None:
        """Run a job on all hosts; a current run is stopped first."""
        self.job, self.overrides, self.sweeping = job, dict(overrides), False
        if mark:
            self.runs.mark(mark)
        self.runs.run(job, overrides)

    def sweep(self, plan: Plan) -> None:
        """Run the points of a plan in turn; a current run is stopped first."""
        self.job, self.sweeping, self._codes = plan.jobs[0], True, []
        self.runs.sweep(plan)

    def stop_job(self) -> None:
        """Stop all hosts, which also ends a sweep."""
        self.runs.stop()

    def mark(self, text: str) -> None:
        """Put a mark on the charts and in the recording."""
        self.runs.mark(text)
        self._sink(Mark(self._elapsed(), text))

    def set_tunable(self, name: str, value: str) -> None:
        """Refuse, because a change must be confirmed first (keys.py)."""
        self._sink(Notice(self._elapsed(), "warning", NO_TUNABLES))

    def knobs(self) -> Sequence[TunableState]:
        """The tunables of all hosts' disks, as the hosts report them."""
        tunables = self.runs.settings.by_host
        return merged_tunables({host: tunables[host] for host in sorted(tunables, key=natural_key)})

    def topology(self) -> Topology:
        """Empty, because hosts may have different topologies."""
        return Topology()

    def close(self) -> None:
        """Stop all hosts and wait for them."""
        self.runs.close()

    # -- called in the thread of the runs

    def _elapsed(self) -> float:
        if self.runs.live and self._origin_s is not None:
            self._t = max(self._t, time.time() - self._origin_s)
        return self._t

    def _take_event(self, event: FleetEvent) -> None:
        self.events.append(event)
        match event:
            case HostRow() if not self._has_title and event.row["event"] == "step_started":
                self._step_started(event_of(event.row, ()))
            case MergedInterval():
                self._merged_interval(event)
            case FleetMessage():
                self._sink(Notice(self._elapsed(), event.level, event.text))
            case HostTunableResult():
                self._tunable_result(event)
            case FleetRunStarted():
                self._run_started(event)
            case FleetRunFinished():
                self._run_finished(event)
            case event if isinstance(event, SWEEP_EVENTS):
                self._sweep_event(event)
            case ReplayRestarted():
                self._step, self._has_title, self._run_start_s = 0, False, None
                self._origin_s, self._t = None, 0.0
                self.on_jump()

    def _tunable_result(self, result: HostTunableResult) -> None:
        t = self._elapsed()
        for host, disk, old, new in result.changes:
            self._sink(TunableChanged(t, f"{host} {disk}", result.name, old, new))
        if result.changes:
            self._sink(Mark(t, result.mark))
        self._sink(Notice(t, "warning" if result.failed else "info", result.text))

    def _run_started(self, run: FleetRunStarted) -> None:
        if self._origin_s is None:
            self._origin_s = run.wall_s
        self._t = max(self._t, run.wall_s - self._origin_s)
        self.job = run.job or self.job
        self.watching = run.watching and not run.between_runs
        self._step = 0 if run.watching else run.number
        self._has_title, self._run_start_s, self._runtime = run.watching, None, None
        if run.between_runs:
            return
        hosts = counted(len(run.hosts), "host")
        action = "watches" if run.watching else f"run {run.number} starts on"
        message = f"{hosts} watched" if run.watching else f"{action} {hosts}"
        self._sink(Notice(self._t, "info", message))

    def _step_started(self, event: Event | None) -> None:
        """Show the run of the first host as the run of all hosts."""
        if isinstance(event, StepStarted) and event.phase == RUN:
            self._has_title = True
            runtime_s = duration_s(event.options.get("runtime", ""))
            self._runtime = round(runtime_s) if runtime_s else None
            self._sink(replace(event, t=self._elapsed(), step=self._step, command=(),
                               job=printable(self.job or event.job)))  # fmt: skip

    def _merged_interval(self, second: MergedInterval) -> None:
        if not second.counted and not second.missing:
            return
        begin_s = second.wall_ms / 1000
        if self._origin_s is None:
            self._origin_s = begin_s
        self._run_start_s = begin_s if self._run_start_s is None else self._run_start_s
        t = begin_s + second.interval_s - self._origin_s
        if t <= 0:
            return
        self._t = max(self._t, t)
        elapsed = round(begin_s + second.interval_s - self._run_start_s)
        eta = None if self._runtime is None else max(0, self._runtime - elapsed)
        frame = frame_of_second(second, t, self._step, self._own_cpu(), (elapsed, eta))
        self._sink(FrameReady(t, frame))

    def _own_cpu(self) -> float | None:
        """The CPU use of this process since the last call, in percent of a CPU."""
        current, previous = (time.monotonic(), time.process_time()), self._cpu_times
        self._cpu_times = current
        if previous is None or current[0] <= previous[0]:
            return None
        return 100 * (current[1] - previous[1]) / (current[0] - previous[0])

    def _run_finished(self, run: FleetRunFinished) -> None:
        if run.between_runs:
            return
        self.last = run
        self._codes.append(run.code)
        t, failed = self._elapsed(), run.state == FAILED
        error = run.messages[0] if failed and run.messages else ""
        # the result is sent last, because the screen shows the newest message
        for text in run.messages[1:] if failed else run.messages:
            self._sink(Notice(t, "info", text))
        if self._step and run.sums is not None and run.sums.total is not None:
            self._sink(RunAddedUp(t, self._step, direction_interval(run.sums.total)))
        if self._step or failed:
            self._sink(StepFinished(t, self._step, run.code, error, run.state == STOPPED))
        self._step = 0

    def _sweep_event(self, event: SweepEvent) -> None:
        """Pass the event on, with this session's time."""
        if isinstance(event, ExperimentStarted):
            self.sweeping, self._codes = self.runs.live, []
        elif isinstance(event, ExperimentFinished):
            self.sweeping = False
            # the sweep's result replaces the result of its last point
            self.last = FleetRunFinished(DONE, sweep_exit_code(self._codes, screen=True))
        self._sink(replace(event, t=self._elapsed()))


# Sweeps that are started on a fleet's screen.


MAX_NAMES = 4


@dataclass(frozen=True, slots=True)
class PreparedSweep:
    """A sweep that has passed its checks."""

    plan: Plan
    lines: tuple[str, ...]
    resume_note: str = ""
    loss_note: str = ""


class FleetExperiments:
    """Runs sweeps of ``fleet``, one at a time. Each point takes ``seconds``."""

    def __init__(self, fleet: FleetController, seconds: float | None) -> None:
        self.seconds = seconds
        self._fleet = fleet

    @property
    def hosts(self) -> int:
        return len(self._fleet.runs.hosts)

    def preview(self, plan: Plan) -> PreparedSweep:
        """Describe a plan. Raises UsageError for a job that does not exist."""
        seconds = [job_seconds(plan.jobs[0], SweptPoint(plan, step).options)
                   for step in expand_plan(plan)]  # fmt: skip
        known = [second for second in seconds if second is not None]
        plan = replace(plan, measure=max(known) if len(known) == len(seconds) else 0.0)
        most = max(SweptPoint(plan, step).hosts or self.hosts for step in expand_plan(plan))
        lines = [
            length_text(plan),
            "Runs: one after another, each with all checks of a run on every host",
            f"Hosts: {_names(self._fleet.runs.hosts[:most])}, in this order",
        ]
        return PreparedSweep(plan, tuple(lines))

    def start(
        self, ready: PreparedSweep, sink: Callable[[Event], None], t: float, anew: bool
    ) -> FleetExperiments:
        self._fleet.sweep(ready.plan)
        return self

    @property
    def active(self) -> bool:
        return self._fleet.sweeping

    def feed(self, event: Event) -> None:
        """Do nothing, because the fleet itself counts its events."""

    def stop(self) -> None:
        self._fleet.stop_job()

    def wait(self, seconds: float) -> None:
        """Do nothing, because a sweep ends together with the fleet."""

    def variants(self) -> tuple[str, str]:
        """Nothing, because a fleet makes no comparisons."""
        return "", ""


def _names(hosts: Sequence[str]) -> str:
    shown = ", ".join(hosts[:MAX_NAMES])
    more = f" ... {hosts[-1]}" if len(hosts) > MAX_NAMES else ""
    return printable(f"{shown}{more} ({counted(len(hosts), 'host')})")
