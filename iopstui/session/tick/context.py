"""Shared parts of a live session: its target, clock, current run and viewer, and iopstui's own
CPU time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iopstui import events
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.own_threads import Clock
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import median
from iopstui.recording.writer import RecordingBuffer
from iopstui.session.tick.outcomes import OutcomeTracker
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.session.fio.fio_run import FioRun


@dataclass(frozen=True, slots=True)
class Viewer:
    """How a session is watched. ``idle_frames`` False: there are frames only while a job runs.
    True: there are frames without a job as well, and scratch files are kept until the session ends
    for runs that need the same ones. ``short_first_interval``: the first frame covers a shorter
    interval, for a user who waits at a screen. ``keep_s``: how many of the last seconds are kept
    for a later recording. ``on_screen``: while no job runs, the probe counts latencies if that is
    possible and cheap, and who uses the disks is read each second. ``judge_every``: while no job
    runs, answers and findings are computed once for this many samples together."""

    idle_frames: bool = True
    short_first_interval: bool = True
    keep_s: float = 0.0
    on_screen: bool = False
    judge_every: int = 1

    @property
    def renews_answers(self) -> bool:
        """Whether a user sees the figures of each second beside the answer."""
        return self.on_screen and self.short_first_interval


NOBODY = Viewer(idle_frames=False)
"""Nobody watches: follow the runs only, not the time between them."""


@dataclass(slots=True)
class CurrentRun:
    """The current run. ``step`` numbers the runs of a session from 1 (0: none yet); ``fio`` is the
    running one, ``None`` between two runs. Only ``Runs`` changes this; sampling reads it at every
    tick."""

    step: int = 0
    fio: FioRun | None = None


CPU_LIMIT = 5.0
"""Limit in percent of one CPU. The live screen takes about 2 with a job; a lower limit would warn
in every run."""
SKEW_LIMIT_MS = 50.0
FRAMES = 10
WARN_AGAIN_S = 120.0


class OverheadMonitor:
    """Fed with every frame; yields a warning when the median of the last ``FRAMES`` of a run
    exceeds a limit: own CPU time in percent of one CPU, or the distance between fio's and the
    kernel's reading in milliseconds."""

    def __init__(self, interval_s: float = 1.0) -> None:
        self._interval_s = interval_s
        self._cpu: deque[float] = deque(maxlen=FRAMES)
        self._skew: deque[float] = deque(maxlen=FRAMES)
        self._step = 0
        self._warned_at: dict[str, float] = {}

    def feed(self, frame: Frame) -> Iterator[str]:
        """The warnings that follow from this frame."""
        if frame.step != self._step:
            self._step = frame.step
            self._cpu.clear()
            self._skew.clear()
        if frame.fio is None:
            return
        if frame.own_cpu is not None:
            self._cpu.append(frame.own_cpu)
        if frame.skew_ms is not None:
            self._skew.append(abs(frame.skew_ms))
        cpu = _median(self._cpu)
        if cpu > CPU_LIMIT and self._is_due("cpu", frame.t):
            yield (
                f"iopstui uses {cpu:.1f} % of a CPU: --interval {2 * self._interval_s:g} slows the "
                "job less"
            )
        skew = _median(self._skew)
        if skew > SKEW_LIMIT_MS and self._is_due("skew", frame.t):
            yield (
                f"Kernel counters are read {skew:.0f} ms apart from fio's figures, so the two "
                "sides do not show exactly the same interval (CPUs too busy)."
            )

    def _is_due(self, kind: str, t: float) -> bool:
        warned_at = self._warned_at.get(kind)
        if warned_at is not None and t - warned_at < WARN_AGAIN_S:
            return False
        self._warned_at[kind] = t
        return True


class GuardTime:
    """CPU time of iopstui's helper processes, the guards of successive fio runs, in seconds, as one
    count that only grows."""

    def __init__(self) -> None:
        self._ended_s = 0.0
        self._current_s = 0.0

    def total(self, busy_s: float | None) -> float:
        """The total CPU time, including that of the current guard (``None``: there is none)."""
        if busy_s is None or busy_s < self._current_s:
            self._ended_s += self._current_s
            self._current_s = 0.0
        self._current_s = busy_s or 0.0
        return self._ended_s + self._current_s


def _median(values: deque[float]) -> float:
    return median(values) if len(values) == FRAMES else 0.0


Sink = Callable[[events.Event], None]


class Context:
    """The ``target``, all ``devices`` of the machine, the clock, and the destination of events:
    first the recording, then the sink. Events are kept until a sink is named."""

    def __init__(
        self,
        target: Target,
        devices: Mapping[str, BlockDevice],
        roots: Roots,
        clock: Clock,
        recording: RecordingBuffer,
        outcomes: OutcomeTracker,
    ) -> None:
        self.target = target
        self.roots = roots
        self.clock = clock
        self.recording = recording
        self.outcomes = outcomes
        self.devices = devices
        """All block devices by kernel name, as they were when last looked at."""
        self._origin_ns = clock.monotonic_ns()
        self._unsent: list[events.Event] = []
        self._sink: Sink = self._unsent.append
        self._more_sinks: list[Sink] = []
        self._emit_lock = threading.Lock()

    def listen(self, sink: Sink) -> None:
        """Send every event to ``sink``, first those that were kept for it. From any thread."""
        with self._emit_lock:
            for event in self._unsent:
                sink(event)
            self._unsent, self._sink = [], sink

    def add_sink(self, sink: Sink) -> None:
        """Send every event to this sink, too, from now on."""
        with self._emit_lock:
            self._more_sinks.append(sink)

    def now(self) -> float:
        """Seconds since the session's first sample."""
        return (self.clock.monotonic_ns() - self._origin_ns) / 1e9

    def count_from(self, origin_ns: int) -> None:
        """Set the time of the first sample (CLOCK_MONOTONIC) as second 0, as for the frames."""
        self._origin_ns = origin_ns

    def refresh_devices(self) -> None:
        """Read the devices again: a tunable was changed."""
        self.devices = read_devices(self.roots)

    def emit(self, event: events.Event) -> None:
        """Record the event and send it to the sink; then do the same with the events that follow
        from it."""
        for outgoing in (event, *self.outcomes.feed(event)):
            self.recording.event(outgoing)
            self.emit_unrecorded(outgoing)

    def note(self, event: events.Event) -> None:
        """Record the event without sending it: the caller does that."""
        self.recording.event(event)
        for _ in self.outcomes.feed(event):
            pass

    def emit_unrecorded(self, event: events.Event) -> None:
        """Send the event to the sink without recording it."""
        with self._emit_lock:
            self._sink(event)
            for sink in self._more_sinks:
                sink(event)

    def notice(self, level: str, text: str) -> None:
        """``level`` is "info", "warning" or "error"."""
        self.emit(events.Notice(self.now(), level, printable(text)))

    def warn(self, text: str) -> None:
        """Emit a notice of level "warning"; nothing for ""."""
        if text:
            self.notice("warning", text)

    def device(self, name: str) -> BlockDevice:
        """A device by its kernel name. An unknown name gives a disk without details."""
        device = self.devices.get(name)
        return device or BlockDevice(name, f"/dev/{name}", 0, 0, "disk", None)

    def disks(self) -> list[BlockDevice]:
        """The target's device and the devices below it."""
        return [self.device(name) for name in self.target.tree]
