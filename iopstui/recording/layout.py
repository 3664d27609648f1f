"""The file format of a recording: its records and how it is divided into chunks.

The file begins with the line ``iopstui recording 1``. Chunks follow, each with a head that has its
kind, time, length and the CRC-32 of its payload. So a file that is cut off loses at most its last
chunk, and a reader can skip what it does not need:

===== ============================================================================== kind payload
===== ============================================================================== ``H``
``Header``: once, first ``K`` one raw sample; a new zlib stream begins (seek here) ``S`` one raw
sample, the same stream continued (flushed, so it can be read at once) ``E`` anything else:
``[class, value]``, compressed for itself =====
==============================================================================

Payloads are JSON; dataclasses are arrays whose fields ``Header.layouts`` names (coding.py). A
sample is ``[shown, RawSample]``: one that is not shown is only there for the differences of the
next. Times are seconds since the recording's first sample."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from iopstui import events
from iopstui.model.answer.answer import Answer
from iopstui.model.answer.use import BlockedTask, DiskUse, DiskUser, LimitUse, RingWaiter
from iopstui.model.block.device import BlockDevice, Hctx, IrqVector, Kernel, Mount, QueueLimits
from iopstui.model.block.target import DeviceLinks, Target, TargetPath
from iopstui.model.block.topology import Binding, Topology
from iopstui.model.block.tunable import TunableRequest
from iopstui.model.experiment.baseline import BaselineFigure, Spread
from iopstui.model.experiment.expectation import Expectation, Outcome
from iopstui.model.experiment.plan import Axis, Plan, Setting, Variant
from iopstui.model.experiment.point import LittlesLaw, Point
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.slow.stalls import Stall
from iopstui.model.samples import (
    CpuTimes,
    DirectionStatus,
    DiskCounters,
    DriveReading,
    Exemplar,
    FioStatus,
    JobStatus,
    JobThread,
    KernelSample,
    LatencySum,
    ProbeSample,
    RawSample,
    TaskCounts,
)
from iopstui.recording.coding import layouts
from iopstui.recording.records import DiskPeak, Peaks, RecordedUse
from iopstui.recording.records import JobRun as JobRun
from iopstui.recording.records import RecordedDevices as RecordedDevices
from iopstui.recording.records import RecordingEnd as RecordingEnd

SCHEMA = 1
NAME = b"iopstui recording "
MAGIC = NAME + b"%d\n" % SCHEMA
HEAD = struct.Struct(">cdII")
HEADER, KEY, SAMPLE, EVENT = b"H", b"K", b"S", b"E"
KEY_EVERY = 60
MAX_CHUNK_BYTES = 64 << 20
# limit for the memory of all events together; a day of events takes some MiB
MAX_EVENTS = 160 << 20


@dataclass(frozen=True, slots=True)
class Header:
    """The first record: the machine and session that all following numbers are from. ``started_ms``
    is the wall clock (ms since the epoch) at time 0; ``kernel`` the kernel's release;
    ``idle_frames`` as in LiveSession; ``topology`` the machine's CPUs; ``own_files`` whether the
    jobs named their files themselves (``None``: an older recording, which does not say)."""

    iopstui: str
    host: str
    kernel: str
    machine: str
    started_ms: float
    target: Target
    interval_s: float = 1.0
    idle_frames: bool = True
    knobs: tuple[TunableRequest, ...] = ()
    topology: Topology = field(default_factory=Topology)
    own_files: bool | None = None


# Recordings contain these names: keep them, even if a class is renamed.
EVENT_KINDS: dict[str, type] = {
    "StepStarted": events.StepStarted,
    "Planned": events.RunPlanned,
    "Armed": events.RunReady,
    "Executed": events.FioExecuted,
    "Progress": events.LayoutProgress,
    "Mark": events.Mark,
    "Notice": events.Notice,
    "TunableChanged": events.TunableChanged,
    "Found": events.FindingReported,
    "Ceased": events.FindingEnded,
    "Answer": events.AnswerGiven,
    "StallFound": events.StallFound,
    "Judged": events.ExpectationChecked,
    "SteadyState": events.SteadyState,
    "ExperimentStarted": events.ExperimentStarted,
    "PointStarted": events.PointStarted,
    "PointFinished": events.PointFinished,
    "PointFailed": events.PointFailed,
    "ExperimentFinished": events.ExperimentFinished,
    "StepFinished": events.StepFinished,
    "Ended": events.SessionEnded,
    "JobRun": JobRun,
    "Devices": RecordedDevices,
    "Use": RecordedUse,
    "Peaks": Peaks,
    "Stopped": RecordingEnd,
}
_PARTS: dict[str, type] = {
    "Header": Header,
    "Target": Target,
    "DeviceLinks": DeviceLinks,
    "Place": TargetPath,
    "KnobRequest": TunableRequest,
    "Topology": Topology,
    "RawSample": RawSample,
    "KernelSample": KernelSample,
    "DiskCounters": DiskCounters,
    "CpuTimes": CpuTimes,
    "FioStatus": FioStatus,
    "JobStatus": JobStatus,
    "DirectionStatus": DirectionStatus,
    "LatencySum": LatencySum,
    "JobThread": JobThread,
    "ProbeSample": ProbeSample,
    "TaskCounts": TaskCounts,
    "Exemplar": Exemplar,
    "DriveReading": DriveReading,
    "Finding": Finding,
    "AnswerText": Answer,
    "Stall": Stall,
    "Plan": Plan,
    "Axis": Axis,
    "Variant": Variant,
    "Setting": Setting,
    "Point": Point,
    "Little": LittlesLaw,
    "Outcome": Outcome,
    "Expectation": Expectation,
    "Base": BaselineFigure,
    "Spread": Spread,
    "Binding": Binding,
    "BlockDevice": BlockDevice,
    "Kernel": Kernel,
    "QueueLimits": QueueLimits,
    "Hctx": Hctx,
    "IrqVector": IrqVector,
    "Mount": Mount,
    "DiskUse": DiskUse,
    "DiskUser": DiskUser,
    "BlockedTask": BlockedTask,
    "RingWaiter": RingWaiter,
    "LimitUse": LimitUse,
    "DiskPeak": DiskPeak,
}
NAMES: dict[type, str] = {kind: name for name, kind in {**_PARTS, **EVENT_KINDS}.items()}


@cache
def all_layouts() -> dict[str, list[str]]:
    """The fields of everything in a recording. Computed when the first recording begins, not at the
    start of every command, because reading the type hints takes 5 ms."""
    return layouts((Header, RawSample, *EVENT_KINDS.values()), NAMES)


def pack(value: Any) -> bytes:
    """A value as the JSON of a payload."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def sample_stream(level: int) -> Any:
    """The compressor of the samples from one key to the next. They are mostly numbers, which
    this strategy makes a twelfth smaller."""
    return zlib.compressobj(level, strategy=zlib.Z_FILTERED)


def head(kind: bytes, t: float, payload: bytes) -> bytes:
    return HEAD.pack(kind, t, len(payload), checksum(kind, t, payload))


def checksum(kind: bytes, t: float, payload: bytes) -> int:
    """CRC-32 over a chunk, without the field of the CRC itself."""
    return zlib.crc32(payload, zlib.crc32(struct.pack(">cdI", kind, t, len(payload))))
