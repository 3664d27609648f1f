"""Parts of a recording besides samples and events. Kept apart from ``layout``, which imports all
record classes, because most sessions never write a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.topology import Binding
from iopstui.model.samples import Exemplar


@dataclass(frozen=True, slots=True)
class JobRun:
    """The job of a step: as requested (``job`` with ``overrides``, ``size``, ``bind`` and the run's
    ``knobs``), and as passed to fio (the job file's ``text``, and the ``files`` that it opens;
    bytes that are not UTF-8 become surrogates). ``binding`` says which of its jobs ran on which
    CPU, if they were bound. ``further`` are further options of the command that repeats it."""

    step: int
    job: str
    overrides: Mapping[str, str]
    size: str | None
    bind: bool
    text: str
    files: tuple[str, ...] = ()
    knobs: tuple[tuple[str, str], ...] = ()
    binding: Binding | None = None
    further: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedDevices:
    """The target's device and the devices beneath it, valid from ``t`` on (serial numbers are left
    out)."""

    devices: tuple[BlockDevice, ...]


@dataclass(frozen=True, slots=True)
class RecordingEnd:
    """The recording was stopped properly, so it is complete."""

    t: float


@dataclass(frozen=True, slots=True)
class RecordedUse:
    """Who used the disks, read at ``t``. ``groups`` has (reads, writes, bytes read, bytes written)
    per second of each cgroup that did I/O."""

    t: float
    use: DiskUse
    groups: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DiskPeak:
    """A disk's highest value of each figure in a single second: requests and bytes per second,
    requests in flight, percent busy (None: not counted), the mean milliseconds of a second's
    requests. The second that took longest ended ``ms_ago_s`` before the record's time."""

    ios_s: float
    bytes_s: float
    in_flight: float
    busy: float | None = None
    ms: float | None = None
    ms_ago_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Peaks:
    """In the ``seconds`` before ``t``: the peaks of each disk that did I/O, and the slowest
    requests that the probe kept, slowest first."""

    t: float
    seconds: float
    disks: Mapping[str, DiskPeak]
    slowest: tuple[Exemplar, ...] = ()
