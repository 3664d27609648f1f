"""A simulated session for the flight recorder: a fake clock, and a disk with a given load."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import recordings as made

from iopstui import events
from iopstui.features.flight.directory import Ring
from iopstui.features.flight.recorder import FlightRecorder
from iopstui.linux.kernel_files import Roots
from iopstui.linux.own_threads import Clock
from iopstui.model.answer.judge import AnswerTracker
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.findings.evidence import NO_CONDITIONS
from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.samples import CpuTimes, DiskCounters, KernelSample, RawSample
from iopstui.recording.writer import MAX_WAITING, Recorder, RecordingBuffer

START_S = 1_790_474_400
"""2026-09-27 02:00:00 UTC."""
TARGET = Target(DEVICE, "/dev/vda", "vda", ("vda",))


class FakeClock(Clock):
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.ns, self.wall_s = 1_000_000_000_000, float(START_S)

    def monotonic_ns(self) -> int:
        return self.ns

    def wall_ms(self) -> float:
        return 1000 * self.wall_s

    def go(self, seconds: float) -> None:
        self.ns += int(seconds * 1e9)
        self.wall_s += seconds


@dataclass(frozen=True)
class Load:
    """A disk's load in one second: requests, milliseconds of each, percent busy, and requests in
    flight at the end of the second."""

    reads: int = 0
    writes: int = 0
    ms: float = 0.0
    busy: float = 0.0
    in_flight: int = 0


@dataclass
class SimulatedSession:
    """The parts of a session that a flight recorder needs."""

    clock: FakeClock
    disk_use: DiskUse | None = None
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.target = TARGET
        self.recording = RecordingBuffer(TARGET, lambda: {"vda": made.VDA}, 1.0, True)
        self._sinks: list[Any] = []
        self._at_end: list[Callable[[], object]] = []
        self._builder = FrameBuilder(opened=("vda",))
        self._answers = AnswerTracker(TARGET)
        self._counts = [0] * 17
        self._waited_us = 0
        self.ipi_every = 1
        """One in this many samples has the interrupts between CPUs."""
        self._seq = 0
        self.t = 0.0

    def record_with(self, recorder: Recorder) -> None:
        self.recording.start(recorder)

    def add_record(self, record: object) -> None:
        self.recording.add(record)

    def add_sink(self, sink: Any) -> None:
        self._sinks.append(sink)

    def second(self, load: Load = Load(), seconds: float = 1.0) -> None:
        """One more sample, ``seconds`` later, with this load."""
        if self._seq:
            self.clock.go(seconds)
            self._count(load)
        disk = DiskCounters("vda", 254, 0, *self._counts)
        ticks = int(self.clock.ns / 1e7)
        kernel = KernelSample(
            self.clock.ns, self.clock.wall_ms(), 1000, {"vda": disk},
            {0: CpuTimes(0, 0, 0, ticks, 0, 0, 0, 0)}, {}, {},
            None if self._seq % self.ipi_every else {0: self._seq},
            more={"pressure": {"some": self._waited_us, "full": 0}},
        )  # fmt: skip
        raw = RawSample(self._seq, self.clock.ns, self.clock.wall_ms(), kernel, None, False, 0,
                        min(1.0, seconds))  # fmt: skip
        self._seq += 1
        self.recording.sample(raw)
        self.said += self.recording.problems()
        frame = self._builder.feed(raw)
        self.t = frame.t
        if self.disk_use is not None:
            self._answers.note_use(self.disk_use)
        answer = self._answers.feed(frame, {"vda": made.VDA}, NO_CONDITIONS, ())
        self.emit(events.FrameReady(frame.t, frame))
        if answer is not None:
            self.emit(events.AnswerGiven(frame.t, answer))

    def at_end(self, call: Callable[[], object]) -> None:
        self._at_end.append(call)

    def end(self) -> None:
        """End the session like a live one."""
        for call in self._at_end:
            call()
        self.recording.close(events.SessionEnded(self.t, 0))

    def emit(self, event: events.Event) -> None:
        self.recording.event(event)
        for sink in self._sinks:
            sink(event)

    def _count(self, load: Load) -> None:
        c = self._counts
        c[0] += load.reads
        c[2] += 8 * load.reads
        c[3] += int(load.ms * load.reads)
        c[4] += load.writes
        c[6] += 8 * load.writes
        c[7] += int(load.ms * load.writes)
        c[8] = load.in_flight
        self._waited_us += int(9000 * load.busy) if load.busy > 50 else 0
        c[9] += int(10 * load.busy)
        c[10] += int(load.ms * (load.reads + load.writes))


class Flight:
    """A recorder on a simulated session; after each step its thread has done all its work."""

    def __init__(
        self, place: Path, keep_s: float = 7 * 86400, size: int = 1 << 30,
        after_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.clock = FakeClock()
        self.clock.go(after_s)
        self.session = SimulatedSession(self.clock)
        self.said: list[str] = []
        self.ring = Ring(place, keep_s, size)
        nothing = Roots(place / "nothing")
        self.recorder = FlightRecorder(self.ring, self.said.append, self.clock, nothing)
        self.recorder.attach(self.session)  # type: ignore[arg-type]

    def run(self, count: int, load: Load = Load(), seconds: float = 1.0) -> None:
        """``count`` samples with this load."""
        for _ in range(count):
            self.session.second(load, seconds)
            self.settle()
            file = self.recorder._file
            if file is not None and file.waiting > MAX_WAITING // 2:
                self.drain()  # on a busy machine the file would be given up as too slow

    def settle(self) -> None:
        done = threading.Event()
        self.recorder._jobs.put(done.set)
        done.wait()
        if self.recorder._thinner is not None:
            self.recorder._thinner.join()

    def end(self) -> None:
        """End the session, then the recorder."""
        self.session.end()
        self.recorder.close()

    def drain(self) -> None:
        """Wait until everything queued is written, or could not be written."""
        file = self.recorder._file
        if file is not None and file._thread is not None:
            file._queue.put([])  # taken when everything before it is written
            while file.waiting and not file.problem:
                self.settle()
