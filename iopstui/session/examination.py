"""Look at disks for some seconds, without a job: counters, who uses them, what waits.

Writes nothing. Loads BPF programs only where that is allowed, and only to count latencies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iopstui.linux.counters.sampler import KernelSampler
from iopstui.linux.devices.usage.mounts import distinct_file_systems
from iopstui.linux.kernel_files import Roots
from iopstui.linux.own_threads import Clock
from iopstui.model.answer.judge import Seen, hour_text
from iopstui.model.answer.situation import Usual
from iopstui.model.answer.use import DiskUse, mean_use
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.figures.disk import mean_ms
from iopstui.model.findings.conditions import Conditions, with_ended
from iopstui.model.findings.diagnosis import diagnose
from iopstui.model.findings.evidence import Evidence
from iopstui.model.findings.siblings import SiblingWatch
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.samples import DriveReading, RawSample
from iopstui.session.tick.readers import (
    FIRST_AT_S,
    ConditionsReader,
    DriveReader,
    HourBaseline,
    UseWatch,
    with_arrays,
)

if TYPE_CHECKING:
    from iopstui.linux.probe.bpf_probe import BpfProbe

INTERVAL_S = 1.0
MAX_PROBED_IOPS = 100_000
"""At more I/Os per second, the BPF programs would cost more than their percentile is worth."""


@dataclass
class Examination:
    """Looks at disks without a job: ``seconds`` yields after each second; ``seen`` is everything
    seen so far. ``no_probe`` says why single requests are not measured; "" if they are."""

    target: Target
    devices: Mapping[str, BlockDevice]
    roots: Roots
    frames: list[Frame] = field(default_factory=list)
    uses: list[DiskUse] = field(default_factory=list)
    no_probe: str = ""
    probe: bool = True

    def seconds(self, count: int, meanwhile: Callable[[float], None]) -> Iterator[int]:
        """Measure for ``count`` seconds. ``meanwhile`` is called with the monotonic time until
        which to wait."""
        target, clock = self.target, Clock()
        sampler = KernelSampler(
            self.roots, target.tree, (), shares=distinct_file_systems(target.shares, self.roots)
        )
        builder = FrameBuilder(opened=target.opened, links=target.links)
        # these calls may hang on a disk that does not answer
        users, conditions = UseWatch(self.roots, eager=True), ConditionsReader(self.roots)
        drives = DriveReader(self.roots)
        self._hours = HourBaseline(self.roots)
        self._hours.ask(FIRST_AT_S, clock.wall_ms() / 1e3, self.devices)
        probe = self._probe(clock)
        try:
            start = time.monotonic()
            for number in range(count + 1):
                raw = RawSample(
                    number, clock.monotonic_ns(), clock.wall_ms(), sampler.sample(), None, False,
                    0, INTERVAL_S, probe=probe.take() if probe is not None else None,
                )  # fmt: skip
                frame = builder.feed(raw)
                use = users.take()
                users.ask(frame.t, self.devices, tasks=True)
                self.note_conditions(conditions.take())
                self._siblings.feed(frame, self._tree, self._conditions)
                conditions.ask(frame.t, self.devices, with_arrays(target.tree, self.devices))
                if number:
                    self._drives.update(drives.take())
                    drives.start_if_due(frame.t, self.devices, self._answering(frame))
                    self.frames.append(frame)
                    self.uses += [use] if use is not None else []
                    probe = self._without_costly_probe(probe, frame)
                    yield number
                if number < count:
                    meanwhile(start + (number + 1) * INTERVAL_S)
        finally:
            sampler.close()
            users.close()
            conditions.close()
            drives.close()
            if probe is not None:
                probe.close()

    def note_conditions(self, read: Conditions | None) -> None:
        """Note newly read conditions; their error counters are compared with the first
        reading's."""
        self._conditions = with_ended(read, self._conditions) if read else self._conditions
        self._first_conditions = self._first_conditions or read

    _conditions: Conditions = field(default_factory=Conditions)
    _first_conditions: Conditions | None = None
    _hours: HourBaseline | None = None
    _siblings: SiblingWatch = field(default_factory=SiblingWatch)
    _drives: dict[str, DriveReading] = field(default_factory=dict)

    def _answering(self, frame: Frame) -> list[str]:
        """The disks that may be asked for their SMART data: a command to one that completes nothing
        would hang, too, and this process with it."""
        return [name for name, rates in frame.disks.items() if rates.ios or not rates.in_flight]

    @property
    def _tree(self) -> list[BlockDevice]:
        return [self.devices[name] for name in self.target.tree if name in self.devices]

    @property
    def seen(self) -> Seen:
        """Everything seen so far."""
        names = self.target.devices_below
        devices = [self.devices[name] for name in names if name in self.devices]
        evidence = Evidence(
            self.frames, devices=devices, conditions=self._conditions,
            start_conditions=self._first_conditions or self._conditions, tree=self._tree,
            links=self.target.links, odd_disk=self._siblings.odd, drives=dict(self._drives),
        )  # fmt: skip
        return Seen(
            self.target,
            self.frames,
            self.devices,
            self._conditions,
            mean_use(self.uses),
            diagnose(evidence) if self.frames else (),
            self._usual,
        )

    def _usual(self, name: str) -> Usual | None:
        seconds = (mean_ms(frame.disks[name]) for frame in self.frames if name in frame.disks)
        medians = self._hours.medians if self._hours is not None else {}
        text = hour_text(max(filter(None, seconds), default=0.0), medians.get(name))
        return Usual(text, 0.0) if text else None

    def _without_costly_probe(self, probe: BpfProbe | None, frame: Frame) -> BpfProbe | None:
        """End the probe on a disk with so many I/Os that counting would slow it down."""
        if probe is None or sum(one.ios_s or 0.0 for one in frame.disks.values()) < MAX_PROBED_IOPS:
            return probe
        probe.close()
        self.no_probe = "percentiles: not measured above 100,000 I/Os per second"
        return None

    def _probe(self, clock: Clock) -> BpfProbe | None:
        if not self.target.tree:
            return None
        if not self.probe:
            self.no_probe = "percentiles of single requests: --no-probe"
            return None
        if os.geteuid():
            self.no_probe = "percentiles of single requests: only root may load the kernel probe"
            return None
        from iopstui.linux.probe.bpf_probe import BpfProbe, ProbeUnusable
        from iopstui.linux.probe.regions import regions

        followed = [
            region
            for region in regions(self.target.tree, self.devices, self.roots)
            if not region.bios
        ]
        if not followed:
            self.no_probe = "percentiles: no device below has requests of its own"
            return None
        try:
            return BpfProbe(followed, 1, clock, self.roots)
        except ProbeUnusable as error:
            self.no_probe = f"percentiles of single requests: {error}"
            return None
