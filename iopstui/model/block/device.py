"""Block devices as the kernel describes them, and a watch for removed ones. ``None`` means that the
kernel does not report a value.

fio counts I/Os that a removed disk refuses as done: its IOPS climb, its bytes stand still, and it
ends with exit code 0."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from iopstui.model.samples import FioStatus, RawSample

# Properties of the kernel that decide how requests are completed.


@dataclass(frozen=True, slots=True)
class Kernel:
    """Properties of the running kernel. ``version`` is (major, minor), ``None`` if unknown;
    ``threaded_irqs`` is True if interrupt handlers are threads (threadirqs, PREEMPT_RT)."""

    version: tuple[int, int] | None = None
    threaded_irqs: bool = False


UNKNOWN_KERNEL = Kernel()


def parse_version(release: str) -> tuple[int, int] | None:
    """Parse a kernel's version: "6.12.117-amd64" -> (6, 12)."""
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", release)
    return (int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class Hctx:
    """A blk-mq hardware queue (/sys/block/X/mq/N; Documentation/block/blk-mq.rst)."""

    index: int
    cpus: tuple[int, ...]
    nr_tags: int | None
    nr_reserved_tags: int | None


@dataclass(frozen=True, slots=True)
class IrqVector:
    """An interrupt of a device. ``hctx`` is the queue it serves; ``None`` if that is unknown, or if
    the interrupt serves no queue (configuration, admin) or all queues (``shared``)."""

    irq: int
    name: str
    hctx: int | None
    shared: bool = False
    effective_cpus: tuple[int, ...] = ()
    node: int | None = None


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Values of /sys/block/X/queue (Documentation/ABI/stable/sysfs-block). Sizes are in bytes,
    except where the name says kb."""

    scheduler: str | None
    schedulers: tuple[str, ...]
    rq_affinity: int | None
    nr_requests: int | None
    nomerges: int | None
    rotational: bool | None
    write_cache: str | None
    logical_block_size: int | None
    physical_block_size: int | None
    max_sectors_kb: int | None
    read_ahead_kb: int | None
    wbt_lat_usec: int | None
    iostats: bool | None
    discard_max_bytes: int | None
    zoned: str | None


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount of a device. ``elsewhere``: only another mount namespace has it. ``journals_data``:
    all data is written to the journal first (data=journal)."""

    mountpoint: str
    fstype: str
    elsewhere: bool = False
    journals_data: bool = False


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """A block device: a disk, a partition or a virtual one. ``name`` is the kernel's name (sysfs
    spelling with ``!`` turned into ``/``), ``path`` its node under /dev. ``kind`` is one of "nvme",
    "virtio-blk", "scsi", "loop", "dm", "md", "null_blk", "zram", "ram", "nbd", "xen", "mmc",
    "partition" or "disk". ``transport`` is e.g. "nvme", "virtio", "sata", "sas", "usb", "iscsi".
    ``size`` is in bytes. ``slaves`` are the devices below it, ``holders`` the devices on top of it;
    ``disk`` is a partition's whole disk. ``backing_file`` is a loop device's file. ``numa_node`` is
    ``None`` when unknown. ``dm_name`` is a device-mapper device's own name (/dev/mapper/NAME);
    ``layer`` says in words what a stacked device is ("LVM", "dm-crypt", "dm-multipath", "raid1"). A
    hidden multipath path has no device number: ``major`` and ``minor`` are -1. A partition has the
    queue, hctxs, irqs and diskseq of its disk. ``kernel`` describes the running kernel.
    ``firmware`` is the firmware revision of a SCSI or NVMe disk."""

    name: str
    path: str
    major: int
    minor: int
    kind: str
    size: int | None
    model: str | None = None
    serial: str | None = None
    transport: str | None = None
    read_only: bool = False
    removable: bool = False
    hidden: bool = False
    diskseq: int | None = None
    disk: str | None = None
    start: int | None = None
    partitions: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    slaves: tuple[str, ...] = ()
    backing_file: str | None = None
    queue: QueueLimits | None = None
    hctxs: tuple[Hctx, ...] = ()
    irqs: tuple[IrqVector, ...] = ()
    mounts: tuple[Mount, ...] = ()
    swap: bool = False
    numa_node: int | None = None
    driver: str | None = None
    notes: tuple[str, ...] = field(default=())
    dm_name: str | None = None
    layer: str | None = None
    kernel: Kernel = UNKNOWN_KERNEL
    firmware: str | None = None


MANY_IOS = 100


class DeviceWatch:
    """Watches the devices of one run, given by their kernel names, for removal."""

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = tuple(devices)
        self._seen: set[str] = set()
        self._before: tuple[int, int, int, int] | None = None
        self._empty = 0

    def follow(self, earlier: DeviceWatch) -> None:
        """Continue the watch of the run that this one replaces: devices that were present in that
        run count as missing if they are gone."""
        self._seen |= earlier._seen

    def feed(self, raw: RawSample) -> str:
        """Return why the rest of this run is worthless, in one sentence; "" while all is well."""
        return self._vanished(raw) or self._moves_nothing(raw.fio)

    def _vanished(self, raw: RawSample) -> str:
        if raw.kernel is None:
            return ""
        missing = [name for name in self._devices if name in self._seen - raw.kernel.disks.keys()]
        self._seen |= raw.kernel.disks.keys()
        if not missing:
            return ""
        plural = "have disappeared from the kernel" if len(missing) > 1 else (
            "has disappeared from the kernel")  # fmt: skip
        return f"{', '.join(missing)} {plural}"

    def _moves_nothing(self, fio: FioStatus | None) -> str:
        """Return a sentence if fio completes I/Os without moving a byte, else "". If fio only
        submits I/Os, this must go on for two intervals: a device that stalls also accepts
        submissions, but only until its queues are full."""
        if fio is None:
            return ""
        before, self._before = self._before, _fio_counts(fio)
        if before is None:
            return ""
        issued, completed, moved, failed = (
            now - earlier for now, earlier in zip(self._before, before, strict=True)
        )
        # failed I/Os after which fio continues are reported by a finding, and the errors may stop
        issued, completed = issued - failed, completed - failed
        empty = moved == 0 and max(issued, completed) >= MANY_IOS
        self._empty = self._empty + 1 if empty else 0
        if not empty or (completed < MANY_IOS and self._empty < 2):
            return ""
        devices = " or ".join(self._devices) or "the device"
        return (
            f"{devices} has failed or was removed: fio counts {max(issued, completed)} I/Os "
            "without data"
        )


def _fio_counts(fio: FioStatus) -> tuple[int, int, int, int]:
    """(submitted, completed, bytes, failed) so far, of all jobs and directions."""
    statuses = [direction for job in fio.jobs for direction in job.directions.values()]
    return (
        sum(status.issued for status in statuses),
        sum(status.completed or 0 for status in statuses),
        sum(status.io_bytes for status in statuses),
        sum(job.failed or 0 for job in fio.jobs),
    )
