"""Shared parts of a live session: its target, its clock, and the destination of events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from iopstui import events
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.process.clock import Clock
from iopstui.linux.roots import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.recording.writer import RecordingBuffer
from iopstui.session.tick.outcomes import OutcomeTracker
from iopstui.text import printable

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
        """Send every event to ``sink``, those kept for it first. From any thread."""
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
        """Record the event and send it to the sink, then the outcomes that follow from it."""
        for outgoing in (event, *self.outcomes.feed(event)):
            self.recording.event(outgoing)
            self.emit_unrecorded(outgoing)

    def note(self, event: events.Event) -> None:
        """Record the event; the caller sends it to the sink."""
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
        """Emit a notice of level "warning"; none for ""."""
        if text:
            self.notice("warning", text)

    def device(self, name: str) -> BlockDevice:
        """A device by its kernel name. For an unknown name: a disk without details."""
        device = self.devices.get(name)
        return device or BlockDevice(name, f"/dev/{name}", 0, 0, "disk", None)

    def disks(self) -> list[BlockDevice]:
        """The target's device and those below it."""
        return [self.device(name) for name in self.target.tree]
