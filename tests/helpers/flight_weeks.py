"""Flight recordings of days and weeks of similar disks: a file for each hour, thinned."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from iopstui import events
from iopstui.features.flight.directory import Name
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target, TargetPath, combine_targets
from iopstui.model.figures.disk import DiskRates
from iopstui.model.samples import CpuTimes, DiskCounters, KernelSample, RawSample
from iopstui.recording.writer import Recorder, RecordingBuffer

HOUR_S = 3600
Growths = Mapping[str, DiskRates]
_COUNTED = ("reads", "", "read_bytes", "read_ms", "writes", "", "write_bytes", "write_ms",
            "in_flight", "io_ms", "weighted_ms")  # fmt: skip


class WeeksWriter:
    """Writes what disks did between samples, as a flight recorder does that has thinned its samples
    to one in ``every_s`` seconds. ``began_s`` is the time since the epoch."""

    def __init__(
        self, place: Path, devices: Sequence[BlockDevice], began_s: float, every_s: int,
    ) -> None:  # fmt: skip
        self._place, self._devices, self._every_s = place, list(devices), every_s
        self._wall_s, self._monotonic_s = began_s, 1000.0
        self.totals = {device.name: [0.0] * len(_COUNTED) for device in devices}
        places = [TargetPath(DEVICE, one.path, one.name, (one.name,)) for one in devices]
        self._target: Target = combine_targets(places)
        self._buffer: RecordingBuffer | None = None
        self._recorder: Recorder | None = None
        self._hour, self._seq = -1, 0

    def write(self, seconds: float, growths: Growths) -> None:
        """Write the next sample, ``seconds`` later; the disks did ``growths`` meanwhile."""
        self._wall_s += seconds
        self._monotonic_s += seconds
        for name, rates in growths.items():
            counts = self.totals[name]
            for place, part in enumerate(_COUNTED):
                value = float(getattr(rates, part) or 0) if part else 0.0
                counts[place] = value if part == "in_flight" else counts[place] + value
        self._sample()
        if int(self._wall_s // HOUR_S) != self._hour:
            # both files have the sample from which the next ones are subtracted
            self.close()
            self._open()
            self._sample()

    def _open(self) -> None:
        self._hour = int(self._wall_s // HOUR_S)
        name = Name(int(self._wall_s), every_s=self._every_s)
        self._recorder = Recorder(self._place / str(name))
        self._recorder.is_listed = False
        devices = {device.name: device for device in self._devices}
        self._buffer = RecordingBuffer(
            self._target, lambda: devices, float(self._every_s), True, recorder=self._recorder
        )

    def _sample(self) -> None:
        if self._buffer is None:
            return
        disks = {}
        for number, (name, counts) in enumerate(self.totals.items()):
            whole = [int(count) for count in counts]
            whole[2] //= 512
            whole[6] //= 512
            disks[name] = DiskCounters(name, 259, number, *whole)
        now_ns, wall_ms = int(1e9 * self._monotonic_s), 1e3 * self._wall_s
        cpu = CpuTimes(0, 0, 0, int(100 * self._monotonic_s), 0, 0, 0, 0)
        kernel = KernelSample(now_ns, wall_ms, 1000, disks, {0: cpu}, {}, {}, None)
        self._buffer.sample(RawSample(self._seq, now_ns, wall_ms, kernel, None, False, 0))
        self._seq += 1

    def emit(self, event: events.Event) -> None:
        """Record an event."""
        if self._buffer is not None:
            self._buffer.event(event)

    def close(self) -> None:
        """End the file; its modification time is that of its last sample."""
        if self._buffer is None or self._recorder is None:
            return
        self._buffer.close(events.SessionEnded(self._monotonic_s, 0))
        assert not self._recorder.problem, self._recorder.problem
        os.utime(self._recorder.path, (self._wall_s, self._wall_s))
        self._buffer = None


def together(seconds: Iterable[Growths]) -> Growths:
    """The increases of several samples added up; the requests in flight are those of the last
    sample."""
    total: dict[str, DiskRates] = {}
    for growths in seconds:
        for name, rates in growths.items():
            before = total.get(name)
            total[name] = rates if before is None else DiskRates(
                before.seconds + rates.seconds,
                *((getattr(before, part) or 0) + (getattr(rates, part) or 0) for part in PARTS),
                rates.in_flight,
            )  # fmt: skip
    return total


PARTS = ("reads", "writes", "discards", "flushes", "read_bytes", "write_bytes", "discard_bytes",
         "read_merges", "write_merges", "discard_merges", "read_ms", "write_ms", "discard_ms",
         "flush_ms", "weighted_ms", "io_ms")  # fmt: skip
