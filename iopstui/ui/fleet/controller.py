"""A fleet as a session of the screen: its totals are frames, its runs are runs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from iopstui.events import (
    Event,
    FrameReady,
    Mark,
    Notice,
    StepFinished,
    StepStarted,
    TunableChanged,
)
from iopstui.fleet.fleet_events import (
    FleetEvent,
    FleetMessage,
    FleetRunFinished,
    FleetRunStarted,
    HostRow,
    HostSecond,
    HostSeconds,
    ReplayRestarted,
)
from iopstui.fleet.fleet_state import DONE, FAILED, STOPPED, natural_key
from iopstui.fleet.hosts.host_tunables import (
    HostTunableChange,
    HostTunableResult,
    HostTunables,
    merged_tunables,
)
from iopstui.fleet.merging.combined_frame import ALL_DEVICES, frame_of_second
from iopstui.fleet.merging.merger import MergedSecond
from iopstui.fleet.scaling_curve import ScalingCurve
from iopstui.format import counted
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.block.topology import Topology
from iopstui.safety.tunable_states import TunableState
from iopstui.text import printable
from iopstui.ui.fleet.question import some_of, some_reasons

Object = dict[str, Any]
NO_TUNABLES = "use K to change tunables of the hosts' disks (it asks first)"


class FleetRuns(Protocol):
    """Runs of the hosts, current and past (fleet/session.py, fleet/replay.py)."""

    live: bool

    @property
    def hosts(self) -> Sequence[str]:
        """All names, in the order in which a sweep takes them."""
        ...

    @property
    def settings(self) -> HostTunables:
        """The tunables of the hosts' disks."""
        ...

    def ask_settings(self) -> bool:
        """Have the hosts say what tunables they have; False if none is connected."""
        ...

    def change_tunable(self, turn: HostTunableChange) -> None:
        """Have hosts change a tunable."""
        ...

    @property
    def frames(self) -> Mapping[str, Object]:
        """The newest of each host; of those that follow only a host's in detail are told."""
        ...

    def start(self, tell: Callable[[FleetEvent], None]) -> None:
        """Begin to tell."""
        ...

    @property
    def running(self) -> bool:
        """While a run goes on."""
        ...

    def run(self, job: str, options: Mapping[str, str]) -> None:
        """Run on all hosts."""
        ...

    def sweep(self, counts: Sequence[int], job: str, options: Mapping[str, str]) -> None:
        """Run on the first so many hosts for each of these."""
        ...

    def stop(self) -> None:
        """Stop all hosts."""
        ...

    def mark(self, text: str) -> None:
        """Keep a mark."""
        ...

    def detail(self, name: str, wanted: bool) -> None:
        """Ask a host for all of its figures."""
        ...

    def close(self) -> None:
        """End all of it."""
        ...


class FleetController:
    """``runs`` tells in its own thread; what the hosts' rows need is kept in ``told`` until the
    screen takes it, the rest goes on as events. ``title`` says which hosts these are, ``runtime_s``
    how long the job's newest run was to take, if that was said."""

    def __init__(self, runs: FleetRuns, title: str, job: str | None) -> None:
        self.runs = runs
        self.title = title
        self.target = Target(DEVICE, title, ALL_DEVICES, (ALL_DEVICES,))
        self.devices: Mapping[str, BlockDevice] = {}
        self.told: deque[FleetEvent] = deque()
        self.bind = False
        self.job = job
        self.overrides: dict[str, str] = {}
        self.last: FleetRunFinished | None = None
        self.runtime_s: int | None = None
        self.on_jump: Callable[[], None] = lambda: None
        self._watching = False
        # the hosts' of each second that is not over
        self._utils: dict[int, list[float]] = {}
        self._sink: Callable[[Event], None] = lambda event: None
        self._origin_s: float | None = None
        self._t = 0.0
        self._step = 0
        self._begun_s: float | None = None
        self._runtime: int | None = None
        self._titled = False
        self._cpu: tuple[float, float] | None = None

    @property
    def running(self) -> bool:
        """True from a run's start to its end."""
        return self.runs.running

    @property
    def watching(self) -> bool:
        """Whether it runs without a job."""
        return self._watching

    # -- from the screen

    def start(self, sink: Callable[[Event], None]) -> None:
        """``sink`` is called in the thread of the runs."""
        self._sink = sink
        self.runs.start(self._take_event)

    def run_job(self, job: str, overrides: Mapping[str, str]) -> None:
        """Run on all hosts; what runs is stopped first."""
        self.job, self.overrides = job, dict(overrides)
        self.runs.run(job, overrides)

    def sweep(self, counts: Sequence[int], job: str, overrides: Mapping[str, str]) -> None:
        """Run on so many hosts, one run after another; what runs is stopped first."""
        self.job, self.overrides = job, dict(overrides)
        self.runs.sweep(counts, job, overrides)

    def stop_job(self) -> None:
        """Stop all hosts; it ends a sweep, too."""
        self.runs.stop()

    def mark(self, text: str) -> None:
        """Mark on the charts, and in the recording."""
        self.runs.mark(text)
        self._sink(Mark(self._elapsed(), text))

    def set_tunable(self, name: str, value: str) -> None:
        """Refuse: a change needs a question first (part.py)."""
        self._sink(Notice(self._elapsed(), "warning", NO_TUNABLES))

    def knobs(self) -> Sequence[TunableState]:
        """Tunables of all hosts' disks, as the hosts report them."""
        known = self.runs.settings.known
        return merged_tunables({host: known[host] for host in sorted(known, key=natural_key)})

    def topology(self) -> Topology:
        """The machines' are not alike."""
        return Topology()

    def close(self) -> None:
        """Stop all hosts and wait for it."""
        self.runs.close()

    # -- in the thread of the runs

    def _elapsed(self) -> float:
        if self.runs.live and self._origin_s is not None:
            self._t = max(self._t, time.time() - self._origin_s)
        return self._t

    def _take_event(self, told: FleetEvent) -> None:
        self.told.append(told)
        match told:
            case HostSecond():
                self._host_second(told)
            case HostSeconds():
                utils = self._utils
                for _, number, complete, *_, util in told.of:
                    if complete and util is not None:
                        utils.setdefault(number, []).append(util)
            case HostRow():
                if not self._titled and told.row["event"] == "step_started":
                    self._row(told)
            case MergedSecond():
                self._second(told)
            case FleetMessage():
                self._sink(Notice(self._elapsed(), told.level, told.text))
            case HostTunableResult():
                self._tunable_result(told)
            case FleetRunStarted():
                self._begun(told)
            case FleetRunFinished():
                self._run_finished(told)
            case ScalingCurve():
                self._curve(told)
            case ReplayRestarted():
                self._step, self._titled, self._begun_s = 0, False, None
                self._origin_s, self._t = None, 0.0
                self.on_jump()

    def _host_second(self, told: HostSecond) -> None:
        if told.complete and told.util is not None:
            self._utils.setdefault(told.number, []).append(told.util)

    def _tunable_result(self, told: HostTunableResult) -> None:
        t = self._elapsed()
        for host, disk, before, now in told.changes:
            self._sink(TunableChanged(t, f"{host} {disk}", told.name, before, now))
        hosts = told.hosts
        befores = "/".join(dict.fromkeys(before for *_, before, _ in told.changes))
        nows = "/".join(dict.fromkeys(now for *_, now in told.changes))
        if hosts:
            self._sink(Mark(t, f"{told.name} {befores} → {nows}"))
        words = f"{told.name} is {nows} on {some_of(hosts)}" if hosts else ""
        if told.failed:
            not_on = f"{told.name} is not changed on {some_reasons(told.failed)}"
            words = f"{words}; {not_on}" if words else not_on
        self._sink(Notice(t, "warning" if told.failed else "info", words))

    def _begun(self, told: FleetRunStarted) -> None:
        if self._origin_s is None:
            self._origin_s = told.wall_s
        self._t = max(self._t, told.wall_s - self._origin_s)
        self.job = told.job or self.job
        self._watching = told.watching and not told.between
        self._step = 0 if told.watching else told.number
        self._titled, self._begun_s, self._runtime = told.watching, None, None
        if told.between:
            return
        hosts = counted(len(told.hosts), "host")
        does = "watches" if told.watching else f"run {told.number} starts on"
        words = f"{hosts} watched" if told.watching else f"{does} {hosts}"
        self._sink(Notice(self._t, "info", words))

    def _row(self, told: HostRow) -> None:
        row = told.row
        if row.get("phase") == "run":
            self._titled = True
            options = row.get("options")
            known = (
                {str(k): str(v) for k, v in options.items()} if isinstance(options, dict) else {}
            )
            runtime = known.get("runtime", "").removesuffix("s")
            self._runtime = int(runtime) if runtime.isdigit() else None
            self.runtime_s = self._runtime or self.runtime_s
            self._sink(StepStarted(
                self._elapsed(), self._step, printable(self.job or str(row.get("job") or "")),
                printable(str(row.get("title") or "")), (), bool(row.get("read_only")), "run",
                printable(str(row.get("fio_version") or "")), known,
            ))  # fmt: skip

    def _second(self, told: MergedSecond) -> None:
        if not told.counted and not told.missing:
            return
        begin_s = told.wall_ms / 1000
        if self._origin_s is None:
            self._origin_s = begin_s
        self._begun_s = begin_s if self._begun_s is None else self._begun_s
        t = begin_s + told.interval_s - self._origin_s
        if t <= 0:
            return
        self._t = max(self._t, t)
        elapsed = round(begin_s + told.interval_s - self._begun_s)
        eta = None if self._runtime is None else max(0, self._runtime - elapsed)
        frame = frame_of_second(
            told, t, self._step, self._util(told.number), self._own_cpu(), (elapsed, eta)
        )
        self._sink(FrameReady(t, frame))

    def _util(self, number: int) -> float | None:
        """The mean of the hosts'."""
        found = self._utils.pop(number, [])
        for late in [one for one in self._utils if one < number]:
            del self._utils[late]
        return sum(found) / len(found) if found else None

    def _own_cpu(self) -> float | None:
        """CPU use of this process since the last call, percent of a CPU."""
        now, before = (time.monotonic(), time.process_time()), self._cpu
        self._cpu = now
        if before is None or now[0] <= before[0]:
            return None
        return 100 * (now[1] - before[1]) / (now[0] - before[0])

    def _run_finished(self, told: FleetRunFinished) -> None:
        if told.between:
            return
        self.last = told
        t, failed = self._elapsed(), told.how == FAILED
        error = told.said[0] if failed and told.said else ""
        # what came of the run is said last, because that is what stands there then
        for text in told.said[1:] if failed else told.said:
            self._sink(Notice(t, "info", text))
        if self._step or failed:
            self._sink(StepFinished(t, self._step, told.code, error, told.how == STOPPED))
        self._step = 0

    def _curve(self, told: ScalingCurve) -> None:
        t = self._elapsed()
        if told.at is not None:
            words = f"sweep over hosts: point {told.at + 1} of {len(told.counts)}"
            self._sink(Notice(t, "info", words))
            return
        # of its points the last one is what was said; leaving is about all of them
        self.last = FleetRunFinished(DONE, told.code, words=told.words)
        if told.points:
            for text in told.scaling().sentences():
                self._sink(Notice(t, "info", text))
        ended = f", {told.ended}" if told.why else ""
        points = f"{len(told.points)} of {counted(len(told.counts), 'point')} measured"
        self._sink(Notice(t, "info", f"sweep over hosts finished: {points}{ended}"))
