"""Evidence for the rules: the frames, devices, the shape of the job, and which seconds count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DeviceLinks
from iopstui.model.findings.conditions import Conditions, DeviceState
from iopstui.model.findings.siblings import OddDisk
from iopstui.model.metrics.frame import APPROX_BW, APPROX_IOPS, FINAL, PARTIAL, RAMP, RESET, Frame
from iopstui.model.samples import DriveReading

if TYPE_CHECKING:
    from iopstui.model.volumes.promised import PromisedFigures


ENOUGH_SECONDS = 3
LONG_ENOUGH = 10
MAX_GAP_SHARE = 1.0
"""Frames belong together if the time between them that was not measured is at most this part of the
measured time."""
BLOCKED = "D"
"""State of a process that waits in the kernel (proc(5))."""
SYNCHRONOUS = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})
NO_CONDITIONS = Conditions()


@dataclass(frozen=True, slots=True)
class JobShape:
    """Shape of the running job: ``jobs`` in all, each with up to ``iodepth`` I/Os. ``iodepth``,
    ``engine`` and ``direct`` are ``None`` where the sections differ. ``in_flight`` is the sum over
    all jobs, a synchronous one counting 1 (``None``: jobs × iodepth). ``paced``: the job holds
    itself back (rate, rate_iops, thinktime). ``polls``: it polls for completions, so its CPU is
    always busy. ``offloads``: separate threads of fio submit for the jobs (io_submit_mode=offload),
    so that a synchronous engine has a depth as well. ``syncs``: it calls fsync or the like, which
    writes more than it counts. ``block_size`` is its smallest I/O in bytes (``None``: unknown),
    ``sync_interval`` the smallest number of writes after which it syncs (``None``: not after
    writes), ``writes`` whether it may write, ``alignment``: all its I/Os begin at multiples of this
    number of bytes (``None``: unknown). ``pace`` are the options by which all sections hold
    themselves back ("rate_iops=500"; "" if one has none)."""

    jobs: int = 1
    iodepth: int | None = 1
    engine: str | None = None
    direct: bool | None = None
    in_flight: int | None = None
    paced: bool = False
    polls: bool = False
    syncs: bool = False
    block_size: int | None = None
    writes: bool = False
    alignment: int | None = None
    offloads: bool = False
    sync_interval: int | None = None
    pace: str = ""

    @property
    def depth(self) -> int:
        """I/Os in flight at most: N of Little's law."""
        return self.in_flight or self.jobs * (self.iodepth or 1)


NO_SHAPE = JobShape()


@dataclass(frozen=True, slots=True)
class SteadyRun:
    """An earlier run of this session that differs only in depth or block size: its shape and its
    steady figures. ``spread`` is the standard deviation of its seconds' IOPS over their mean."""

    shape: JobShape
    iops: float
    lat_ns: float
    bytes_s: float = 0.0
    spread: float | None = None


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence for the rules. ``frames`` are those of the running job (without a job: the last
    ones), oldest first; ``idle_frames`` those right before it; ``online`` the CPUs that can be
    used. ``devices`` are those that the job works on, ``tree`` these and all below them, ``links``
    what lies directly below each; ``uncounted_targets`` are targets of the job that are on no block
    device. ``conditions`` were read last, ``start_conditions`` at the run's beginning. ``volume``
    is what was bought, if the user says so. ``drives`` are the last readings of NVMe drives.
    ``idle_rings`` names programs that sleep in io_uring and are the only source of I/O pressure.
    ``odd_disk`` is slow for its load, as its siblings show."""

    frames: Sequence[Frame]
    idle_frames: Sequence[Frame] = ()
    devices: Sequence[BlockDevice] = ()
    shape: JobShape = JobShape()
    online: tuple[int, ...] = ()
    earlier_runs: Sequence[SteadyRun] = ()
    uncounted_targets: tuple[str, ...] = ()
    conditions: Conditions = NO_CONDITIONS
    start_conditions: Conditions = NO_CONDITIONS
    tree: Sequence[BlockDevice] = ()
    links: Sequence[DeviceLinks] = ()
    volume: PromisedFigures | None = None
    drives: Mapping[str, DriveReading] = field(default_factory=dict)
    idle_rings: tuple[str, ...] = ()
    odd_disk: OddDisk | None = None

    def device(self, name: str) -> BlockDevice | None:
        """The device of this name, among the job's devices and those below."""
        return next((one for one in (*self.tree, *self.devices) if one.name == name), None)

    @cached_property
    def measured(self) -> list[Frame]:
        """Frames whose figures cover a whole interval."""
        return measured_frames(self.frames)

    @cached_property
    def newest_measured(self) -> list[Frame]:
        """The newest measured frames that belong together; nearly every rule uses them."""
        return _close_together(self.measured, ENOUGH_SECONDS)


def measured_frames(frames: Iterable[Frame]) -> list[Frame]:
    """Frames whose figures stand for a whole interval. On a busy machine fio's and the kernel's
    figures may cover clearly different seconds (APART); such counts are not compared."""
    unfit = {RAMP, PARTIAL, RESET, APPROX_IOPS, APPROX_BW}
    return [f.whole for f in frames if f.fio is not None and f.fio.seconds and not unfit & f.flags]


def recent_job_frames(evidence: Evidence, count: int = ENOUGH_SECONDS) -> list[Frame]:
    """The last ``count`` measured frames; empty if there are fewer, or if they are so far apart
    that most of the time between them was not measured."""
    if count == ENOUGH_SECONDS:
        return evidence.newest_measured
    return _close_together(evidence.measured, count)


def _close_together(measured: list[Frame], count: int) -> list[Frame]:
    frames = measured[-count:]
    if len(frames) < count:
        return []
    gap_s = frames[-1].t - frame_start_s(frames[0]) - sum(map(_frame_length_s, frames))
    return frames if gap_s <= MAX_GAP_SHARE * sum(map(_frame_length_s, frames)) else []


def _frame_length_s(frame: Frame) -> float:
    """The longer of a frame's two intervals in seconds."""
    return max(frame.seconds or 0.0, (frame.fio.seconds or 0.0) if frame.fio else 0.0)


def frame_start_s(frame: Frame) -> float:
    """The second of the session at which the longer of a frame's two intervals began."""
    return max(0.0, frame.t - _frame_length_s(frame))


def recent_frames(evidence: Evidence, count: int = ENOUGH_SECONDS) -> list[Frame]:
    """The last ``count`` frames with figures of the kernel: of the job if one runs, else of all
    frames. Empty if there are fewer."""
    running = any(f.fio is not None for f in evidence.frames)
    if running:
        return recent_job_frames(evidence, count)
    frames = [
        f for f in evidence.frames if f.seconds and not {FINAL, PARTIAL} & f.flags and f.step == 0
    ]
    return frames[-count:] if len(frames) >= count else []


def newest_frames_while(evidence: Evidence, condition: Callable[[Frame], bool]) -> list[Frame]:
    """The newest frames of the running job, oldest first, as far back as ``condition`` holds."""
    newest: list[Frame] = []
    for frame in reversed([frame for frame in evidence.frames if frame.seconds and frame.step]):
        if not condition(frame):
            break
        newest.insert(0, frame)
    return newest


def device_state(device: BlockDevice, evidence: Evidence) -> DeviceState:
    return evidence.conditions.devices.get(device.name, DeviceState())
