"""Conditions of a measurement: limits, health and settings of devices and CPUs that no rate shows.
``None`` and empty mean that the kernel doesn't say. Counters only grow: the difference between two
readings counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from iopstui.model.cgroups import GroupRates

POOL_FULL, POOL_UNREADABLE = "out_of_data_space", "unreadable"
"""States of a thin pool: it has no room for data; only root may read which state it is in."""

READ_IOPS, WRITE_IOPS = "riops", "wiops"
READ_BYTES, WRITE_BYTES = "rbps", "wbps"


@dataclass(frozen=True, slots=True)
class IoLimit:
    """A limit on a disk of this process's cgroup or one above it. ``group`` is the cgroup's path
    below the hierarchy, ``file`` where the limit is set (io.max, blkio.throttle.read_iops_device);
    ``kind`` is riops, wiops (I/Os per second), rbps or wbps (bytes per second).

    Sources: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/blkio-controller.rst."""

    group: str
    file: str
    kind: str
    value: int


@dataclass(frozen=True, slots=True)
class Temperature:
    """Temperature of an NVMe or SATA disk, in degrees Celsius
    (Documentation/hwmon/sysfs-interface.rst): ``limit`` is where the disk warns (and may slow
    down)."""

    current: float
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A PCIe link: speeds in GT/s, widths in lanes (Documentation/ABI/testing/sysfs-bus-pci)."""

    speed: float
    max_speed: float
    width: int
    max_width: int


@dataclass(frozen=True, slots=True)
class Array:
    """An md array (Documentation/admin-guide/md.rst). ``action`` is idle, resync, recover, check,
    repair or reshape; ``degraded`` how many members are missing; ``members`` how many a complete
    array has; ``chunk`` the bytes of a chunk on one member (``None``: it has none). ``ended`` is an
    action that was under way at an earlier reading of the same seconds."""

    action: str
    degraded: int
    members: int | None = None
    chunk: int | None = None
    ended: str = ""

    @property
    def syncs_or_did(self) -> bool:
        """Whether md did so in at least some of the seconds."""
        return self.is_syncing or bool(self.ended)

    @property
    def is_syncing(self) -> bool:
        """Whether md reads and writes the members by itself."""
        return self.action not in ("idle", "frozen", "none", "")


@dataclass(frozen=True, slots=True)
class FileSystemErrors:
    """Errors that ext4 on the device ``name`` noted in its superblock since it was last checked,
    and how many seconds ago the last error was."""

    name: str
    count: int
    age_s: float


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Static facts of a block device. ``queue_depth`` is how many requests a SCSI disk takes at
    once (device/queue_depth). ``limits`` are those of cgroups; ``iocost_wait_us`` is how long
    iocost has made this group wait so far (io.stat, cost.wait), ``has_iocost`` whether iocost
    controls the disk (io.cost.qos), ``passes_iocost`` whether it exempts this group. ``errors``
    (device/ioerr_cnt) and ``timeouts`` (device/iotmo_cnt) are SCSI's counters. ``lost_paths`` names
    a multipath device's paths that are not usable, with their state. ``alignment_offset`` is the
    disk's or partition's, in bytes, 0 if aligned. ``suspended``: a device-mapper device is
    suspended (dm/suspended). ``pool``: why a thin pool can't be written (POOL_FULL, "ro",
    "Fail"), or POOL_UNREADABLE for what may be a pool, else "". ``offline``: the state of a SCSI
    disk on which each I/O fails ("offline", "transport-offline"), else "". ``detached``: a loop
    device has lost its file. ``file_system`` has the last error of a file system on the device or
    on a partition of it. ``nvme`` has the counters of a namespace, its paths and its controllers,
    by object (model/metrics/nvme.py)."""

    queue_depth: int | None = None
    limits: tuple[IoLimit, ...] = ()
    iocost_wait_us: int | None = None
    has_iocost: bool = False
    passes_iocost: bool = False
    temperature: Temperature | None = None
    link: Link | None = None
    errors: int | None = None
    timeouts: int | None = None
    array: Array | None = None
    lost_paths: tuple[tuple[str, str], ...] = ()
    paths: int = 0
    alignment_offset: int | None = None
    suspended: bool = False
    pool: str = ""
    offline: str = ""
    detached: bool = False
    nvme: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    file_system: FileSystemErrors | None = None


@dataclass(frozen=True, slots=True)
class CpuState:
    """State of a CPU: its cpufreq ``governor``, its frequencies in kHz (scaling_cur_freq,
    cpuinfo_max_freq), and how many µs it takes to leave the deepest enabled C-state."""

    governor: str | None = None
    khz: int | None = None
    max_khz: int | None = None
    wake_us: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessLoad:
    """Bytes per second that a process other than iopstui and its fio reads and writes, over all
    disks (/proc/PID/io). ``group`` is the unit, container or pod that it is in, "" where that is
    not known. ``reads_on`` are the devices that all its files open for reading are on, and the
    devices below; ``writes_on`` is the same for writing (``None``: its files can't be seen)."""

    pid: int
    comm: str
    read_bytes_s: float
    write_bytes_s: float
    group: str = ""
    reads_on: frozenset[str] | None = None
    writes_on: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class LoggedErrors:
    """Errors of a device in the kernel's log since reading it began: their number, the time of the
    last one (the session's clock), and its text."""

    count: int
    t: float
    last: str


@dataclass(frozen=True, slots=True)
class Conditions:
    """Everything at one moment; ``t`` in seconds of the session's clock. ``devices`` by name: those
    that jobs work on and what is below them. ``nodes``: CPU -> NUMA node, as far as known.
    ``processes`` are other programs that do I/O, the busiest first, ``groups`` the cgroups that do,
    ``logged`` errors in the kernel's log, by device; ``None``: not read. ``cpu_limit`` is the file
    with the CPU limit that has stopped iopstui since the last reading ("": none, or not known)."""

    t: float = 0.0
    devices: Mapping[str, DeviceState] = field(default_factory=dict)
    cpus: Mapping[int, CpuState] = field(default_factory=dict)
    nodes: Mapping[int, int] = field(default_factory=dict)
    processes: tuple[ProcessLoad, ...] | None = None
    groups: tuple[GroupRates, ...] | None = None
    logged: Mapping[str, LoggedErrors] | None = None
    cpu_limit: str = ""

    @property
    def cpu_limit_text(self) -> str:
        """The file in brackets, for the end of a sentence: " (FILE)"; "" if it is not known."""
        return f" ({self.cpu_limit})" if self.cpu_limit else ""


def with_ended(read: Conditions, before: Conditions, always: bool = True) -> Conditions:
    """``read``, in which each md array also has the check or resync of the reading ``before``: the
    figures are of its seconds, too. ``always``: also one that had ended by then."""
    states = dict(read.devices)
    for name, state in before.devices.items():
        now = states[name].array if name in states else None
        if now is None or state.array is None:
            continue
        action = state.array.action if state.array.is_syncing else state.array.ended * always
        states[name] = replace(states[name], array=replace(now, ended=action))
    return replace(read, devices=states)
