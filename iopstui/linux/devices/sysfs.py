"""Block devices as sysfs describes them (Documentation/ABI/stable/sysfs-block).

An attribute that is missing, unreadable or garbage is None. A device that vanishes while it is read
is left out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from iopstui.linux.devices.irqmap import IrqTable, read_irqs
from iopstui.linux.devices.udev import UdevDevice, enumerate_block, udev_properties
from iopstui.linux.devices.usage.mounts import apply_mounts, read_mounts
from iopstui.linux.kernel_files import (
    PAGE,
    Roots,
    decode,
    link_name,
    list_names,
    parse_cpu_list,
    read_bytes,
    read_count,
    read_flag,
    read_int,
    read_text,
)
from iopstui.model.block.device import (
    BlockDevice,
    Hctx,
    IrqVector,
    Kernel,
    QueueLimits,
    parse_version,
)
from iopstui.text import printable

SECTOR = 512
_NUMBER = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")
_NVME_PATH = re.compile(r"nvme([0-9]+)c[0-9]+n([0-9]+)")
_DRIVER_KINDS = {
    "virtblk": "virtio-blk",
    "sd": "scsi",
    "sr": "scsi",
    "nullb": "null_blk",
    "zram": "zram",
    "ramdisk": "ram",
    "nbd": "nbd",
    "xvd": "xen",
    "mmc": "mmc",
    "loop": "loop",
    "md": "md",
    "device-mapper": "dm",
}
_NAME_KINDS = (
    ("nullb", "null_blk"),
    ("zram", "zram"),
    ("ram", "ram"),
    ("nbd", "nbd"),
    ("xvd", "xen"),
    ("mmcblk", "mmc"),
    ("loop", "loop"),
    ("vd", "virtio-blk"),
    ("sd", "scsi"),
    ("sr", "scsi"),
)
_CRYPT_THREAD = "dmcrypt_write/"
_DM_LAYERS = (
    ("LVM-", "LVM"),
    ("CRYPT-", "dm-crypt"),
    ("mpath-", "dm-multipath"),
    ("DMRAID-", "dm-raid"),
    ("stratis-", "Stratis"),
    ("part", "partition"),
)
# by the name of an ancestor in sysfs, without its number; the first match counts
_TRANSPORTS = {
    "usb": "usb",
    "ata": "sata",
    "session": "iscsi",
    "end_device-": "sas",
    "rport-": "fc",
    "virtio": "virtio",
}
_NUMBERED = re.compile(rf"({'|'.join(_TRANSPORTS)})[0-9][0-9:.-]*")
_WITHOUT_REQUESTS = frozenset({"dm", "md", "zram", "ram", "nvme"})


@dataclass(frozen=True)
class _Machine:
    """Facts about the machine that are read once for all devices."""

    roots: Roots
    drivers: Mapping[int, str]
    irqs: IrqTable
    kernel: Kernel

    @cached_property
    def encrypted(self) -> frozenset[str]:
        """Numbers ("253:0") of the dm-crypt devices, found by their kernel threads, which are named
        after them. Before Linux 5.17 these names are cut off, and none is found."""
        pids = filter(str.isdecimal, list_names(self.roots.proc))
        names = (read_text(self.roots.proc / pid / "comm") or "" for pid in pids)
        threads = (name.partition(_CRYPT_THREAD) for name in names)
        return frozenset(number for before, found, number in threads if found and not before)


def read_devices(roots: Roots) -> dict[str, BlockDevice]:
    """Every block device by its kernel name, in the order of ``natural_key``.

    Includes partitions, empty loop devices and hidden NVMe multipath paths."""
    drivers = parse_drivers(decode(read_bytes(roots.proc / "devices") or b""))
    machine = _Machine(roots, drivers, IrqTable(roots), read_kernel(roots))
    found_devices = (_read_device(udev_device, machine) for udev_device in enumerate_block(roots))
    devices = {device.name: device for device in found_devices if device is not None}
    devices = {name: devices[name] for name in sorted(devices, key=natural_key)}
    devices = _join_multipath(devices)
    devices = _inherit(devices)
    mounts, swaps = apply_mounts(devices, read_mounts(roots), roots)
    devices = {
        name: replace(device, mounts=mounts.get(name, ()), swap=name in swaps)
        for name, device in devices.items()
    }
    return _note_shared_irqs(devices)


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts sda2 before sda10."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts if part)


def parse_drivers(text: str) -> dict[int, str]:
    """Drivers by major number, from the "Block devices:" part of /proc/devices."""
    _, _, block = text.partition("Block devices:")
    pairs = [line.split() for line in block.splitlines()]
    return {int(p[0]): p[1] for p in pairs if len(p) == 2 and p[0].isdecimal()}


def _read_device(udev_device: UdevDevice, machine: _Machine) -> BlockDevice | None:
    directory = udev_device.directory
    name = udev_device.name.replace("!", "/")
    number = _NUMBER.fullmatch(read_text(f"{directory}/dev") or "")
    hidden = read_flag(f"{directory}/hidden") or False
    if number is None and not hidden:
        return None  # vanished, or not a block device
    major, minor = (int(number[1]), int(number[2])) if number else (-1, -1)
    partition = os.path.exists(f"{directory}/partition")
    kind = "partition" if partition else _kind(name, directory, major, machine)
    size = read_count(f"{directory}/size")
    device = BlockDevice(
        name=name,
        path=f"/dev/{name}",
        major=major,
        minor=minor,
        kind=kind,
        size=None if size is None else size * SECTOR,
        read_only=read_flag(f"{directory}/ro") or False,
        removable=read_flag(f"{directory}/removable") or False,
        hidden=hidden,
        disk=directory.parent.name.replace("!", "/") if partition else None,
        start=_start(directory) if partition else None,
        holders=_related_names(f"{directory}/holders"),
        slaves=_related_names(f"{directory}/slaves"),
        numa_node=_numa_node(directory, machine.roots),
        kernel=machine.kernel,
    )
    if not partition:
        device = _with_disk_attributes(device, udev_device, machine)
    return device if directory.is_dir() else None


def _start(directory: Path) -> int | None:
    sectors = read_count(f"{directory}/start")
    return None if sectors is None else sectors * SECTOR


def _with_disk_attributes(
    device: BlockDevice, udev_device: UdevDevice, machine: _Machine
) -> BlockDevice:
    directory, kind = udev_device.directory, device.kind
    hctxs = read_hctxs(directory)
    request_based = bool(hctxs) or kind not in _WITHOUT_REQUESTS
    return replace(
        device,
        model=_model(directory, machine.roots),
        serial=_serial(directory, machine.roots),
        transport=_transport(kind, directory),
        diskseq=read_count(f"{directory}/diskseq"),
        partitions=_partitions(directory),
        backing_file=_backing_file(directory),
        queue=read_queue(directory, request_based=request_based),
        hctxs=hctxs,
        irqs=_irqs(directory, kind, hctxs, machine),
        driver=_driver(directory, machine.roots),
        dm_name=read_text(f"{directory}/dm/name"),
        layer=_layer(directory, device, machine),
        firmware=_firmware(directory),
        notes=_queue_notes(hctxs),
    )


def _queue_notes(hctxs: tuple[Hctx, ...]) -> tuple[str, ...]:
    cpus = [cpu for hctx in hctxs for cpu in hctx.cpus]
    if len(cpus) == len(set(cpus)):
        return ()
    # only debugfs shows which queue has which type
    return ("its queues overlap: some are only for polling, reads or writes",)


def _irqs(
    directory: Path, kind: str, hctxs: tuple[Hctx, ...], machine: _Machine
) -> tuple[IrqVector, ...]:
    return read_irqs(directory, kind, hctxs, machine.roots, machine.irqs)


def _related_names(directory: str) -> tuple[str, ...]:
    names = (name.replace("!", "/") for name in list_names(directory))
    return tuple(sorted(names, key=natural_key))


def _partitions(directory: Path) -> tuple[str, ...]:
    # a partition's name begins with its disk's name, so directories with other names are skipped
    candidates = (n for n in list_names(directory) if n.startswith(directory.name))
    names = (n for n in candidates if os.path.exists(f"{directory}/{n}/partition"))
    return tuple(sorted((n.replace("!", "/") for n in names), key=natural_key))


def _kind(name: str, directory: Path, major: int, machine: _Machine) -> str:
    if name.startswith("nvme"):
        return "nvme"
    for member, kind in (("dm", "dm"), ("md", "md"), ("loop", "loop")):
        if os.path.isdir(f"{directory}/{member}"):
            return kind
    driver = machine.drivers.get(major)
    if driver in _DRIVER_KINDS:
        return _DRIVER_KINDS[driver]
    return next((kind for prefix, kind in _NAME_KINDS if name.startswith(prefix)), "disk")


def _model(directory: Path, roots: Roots) -> str | None:
    for attribute in ("device/model", "device/name"):
        text = read_text(f"{directory}/{attribute}")
        if text is not None and printable(text):
            return printable(text)
    model = udev_properties(directory, roots).get("ID_MODEL", "")
    return printable(model.replace("_", " ")) or None


def _firmware(directory: Path) -> str | None:
    text = read_text(f"{directory}/device/firmware_rev") or read_text(f"{directory}/device/rev")
    return printable(text or "") or None


def _serial(directory: Path, roots: Roots) -> str | None:
    cleaned = (printable(text) for text in _serials(directory, roots) if text)
    return next((text for text in cleaned if text), None)


def _serials(directory: Path, roots: Roots) -> Iterator[str | None]:
    """Files that may have the serial number; for most devices it is in the first one."""
    yield read_text(f"{directory}/serial")
    yield read_text(f"{directory}/device/serial")
    page = read_bytes(f"{directory}/device/vpd_pg80")
    # SPC-5 7.8.18: the serial number follows a header of four bytes
    yield decode(page[4:]).replace("\0", "") if page else None
    yield udev_properties(directory, roots).get("ID_SERIAL_SHORT")
    yield read_text(f"{directory}/device/wwid")
    yield read_text(f"{directory}/wwid")


def _transport(kind: str, directory: Path) -> str | None:
    if kind == "nvme":
        transport = read_text(f"{directory}/device/transport")
        return "nvme" if transport in (None, "pcie") else f"nvme-{printable(transport)}"
    numbered = (_NUMBERED.fullmatch(part) for part in directory.parts)
    buses = {match[1] for match in numbered if match}
    bus_transport = next(
        (transport for bus, transport in _TRANSPORTS.items() if bus in buses), None
    )
    return bus_transport or ("mmc" if kind == "mmc" else None)


def _parent_devices(directory: Path, roots: Roots) -> Iterator[Path]:
    """The device's ancestors in sysfs, the nearest first."""
    top = os.path.join(os.path.realpath(roots.sys), "devices", "")
    return takewhile(lambda ancestor: str(ancestor).startswith(top), directory.parents)


def _driver(directory: Path, roots: Roots) -> str | None:
    """The driver of the nearest ancestor that has one. "sd" is skipped, because it hides the driver
    that matters."""
    first = None
    for ancestor in _parent_devices(directory, roots):
        driver = link_name(f"{ancestor}/driver")
        if driver is not None and driver not in ("sd", "sr"):
            return driver
        first = first or driver
    return first


def _numa_node(directory: Path, roots: Roots) -> int | None:
    for ancestor in _parent_devices(directory, roots):
        node = read_count(f"{ancestor}/numa_node")
        if node is not None:
            return node
    return None


def _layer(directory: Path, device: BlockDevice, machine: _Machine) -> str | None:
    kind = device.kind
    if kind == "dm":
        uuid = read_text(f"{directory}/dm/uuid") or ""
        # a device made with dmsetup alone has no uuid
        if not uuid and f"{device.major}:{device.minor}" in machine.encrypted:
            return "dm-crypt"
        matching = (layer for prefix, layer in _DM_LAYERS if uuid.startswith(prefix))
        return next(matching, "device-mapper")
    if kind == "md":
        level = read_text(f"{directory}/md/level")
        return printable(level) if level else "md"
    return "bcache" if directory.name.startswith("bcache") else None


def _backing_file(directory: Path) -> str | None:
    data = read_bytes(f"{directory}/loop/backing_file")
    # a file's name may end in spaces, so remove only the kernel's own newline
    return (decode(data).removesuffix("\n") or None) if data else None


def _join_multipath(devices: dict[str, BlockDevice]) -> dict[str, BlockDevice]:
    """Put NVMe multipath heads on their hidden paths: sysfs has no slaves/ links for these."""
    paths: dict[str, list[str]] = {}
    for device in devices.values():
        match = _NVME_PATH.fullmatch(device.name)
        if match and device.hidden:
            paths.setdefault(f"nvme{match[1]}n{match[2]}", []).append(device.name)
    joined = dict(devices)
    for head, names in paths.items():
        if head not in devices:
            continue
        note = "multipath: its I/O goes through the hidden " + ", ".join(names)
        slaves = (*devices[head].slaves, *names)
        joined[head] = replace(devices[head], slaves=slaves, notes=(*devices[head].notes, note))
        for name in names:
            joined[name] = replace(joined[name], holders=(*joined[name].holders, head))
    return joined


def _inherit(devices: dict[str, BlockDevice]) -> dict[str, BlockDevice]:
    """Give partitions the queue and the interrupts of their disk."""
    result = {}
    for name, device in devices.items():
        disk = devices.get(device.disk) if device.disk else None
        result[name] = device if disk is None else _partition_of(device, disk)
    return result


def _partition_of(device: BlockDevice, disk: BlockDevice) -> BlockDevice:
    return replace(
        device,
        transport=disk.transport,
        diskseq=disk.diskseq,
        queue=disk.queue,
        hctxs=disk.hctxs,
        irqs=disk.irqs,
        driver=disk.driver,
        read_only=device.read_only or disk.read_only,
        removable=disk.removable,
    )


def _note_shared_irqs(devices: dict[str, BlockDevice]) -> dict[str, BlockDevice]:
    """Note on each disk which others share its interrupts (one host adapter)."""
    users: dict[int, list[str]] = {}
    for device in devices.values():
        for vector in device.irqs if device.disk is None else ():
            users.setdefault(vector.irq, []).append(device.name)
    result = {}
    for name, device in devices.items():
        irq_users = (users[v.irq] for v in device.irqs)
        others = _sorted(
            {user for names in irq_users for user in names} - {name, device.disk or ""}
        )
        note = "its interrupts also serve " + ", ".join(others)
        result[name] = replace(device, notes=(*device.notes, note)) if others else device
    return result


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=natural_key)


# A block device's request queue: limits (queue/) and hardware queues (mq/).


_CPU_DIRECTORY = re.compile(r"cpu([0-9]+)")


def parse_scheduler(text: str) -> tuple[str | None, tuple[str, ...]]:
    """(current, all) schedulers of "[none] mq-deadline"; a single word without brackets is
    current."""
    words = text.split()
    names = tuple(word.strip("[]") for word in words)
    current = next((w[1:-1] for w in words if w.startswith("[") and w.endswith("]")), None)
    if current is None and len(names) == 1:
        current = names[0]
    return current or None, tuple(name for name in names if name)


def read_queue(device: Path, *, request_based: bool = True) -> QueueLimits | None:
    """The limits of a whole disk, None if it has no queue directory.

    Linux 6.1 shows scheduler, rq_affinity and nr_requests even for bio-based devices, where they
    are meaningless and accept any value: with ``request_based`` False they are None."""
    queue = f"{device}/queue"
    if not os.path.isdir(queue):
        return None
    scheduler, schedulers = parse_scheduler(read_text(f"{queue}/scheduler") or "")
    return QueueLimits(
        scheduler=scheduler if request_based else None,
        schedulers=schedulers if request_based else (),
        rq_affinity=read_count(f"{queue}/rq_affinity") if request_based else None,
        nr_requests=read_count(f"{queue}/nr_requests") if request_based else None,
        nomerges=read_count(f"{queue}/nomerges"),
        rotational=read_flag(f"{queue}/rotational"),
        write_cache=read_text(f"{queue}/write_cache"),
        logical_block_size=read_count(f"{queue}/logical_block_size"),
        physical_block_size=read_count(f"{queue}/physical_block_size"),
        max_sectors_kb=read_count(f"{queue}/max_sectors_kb"),
        read_ahead_kb=read_count(f"{queue}/read_ahead_kb"),
        wbt_lat_usec=read_int(f"{queue}/wbt_lat_usec"),
        iostats=read_flag(f"{queue}/iostats"),
        discard_max_bytes=read_count(f"{queue}/discard_max_bytes"),
        zoned=read_text(f"{queue}/zoned"),
    )


def read_hctxs(device: Path) -> tuple[Hctx, ...]:
    """The hardware queues of a whole disk in numerical order; empty for bio-based devices."""
    indices = sorted(int(n) for n in list_names(f"{device}/mq") if n.isascii() and n.isdigit())
    return tuple(_read_hctx(f"{device}/mq/{index}", index) for index in indices)


def _read_hctx(directory: str, index: int) -> Hctx:
    return Hctx(
        index=index,
        cpus=_read_cpus(directory),
        nr_tags=read_count(f"{directory}/nr_tags"),
        nr_reserved_tags=read_count(f"{directory}/nr_reserved_tags"),
    )


def _read_cpus(directory: str) -> tuple[int, ...]:
    """The CPUs in ``cpu_list``, or in the cpuN directories if that file is missing or cut off at a
    page's end."""
    data = read_bytes(f"{directory}/cpu_list")
    if data is not None and data.strip() and len(data) < PAGE - 1:
        return parse_cpu_list(decode(data))
    matches = (_CPU_DIRECTORY.fullmatch(name) for name in list_names(directory))
    numbers = tuple(sorted(int(match[1]) for match in matches if match))
    if numbers or data is None:
        return numbers
    # the number at the cut may have lost digits
    complete, _, _ = decode(data).rpartition(",")
    return parse_cpu_list(complete if len(data) >= PAGE - 1 else decode(data))


# The running kernel, and whether its interrupt handlers are threads.
#
# Sources: Documentation/admin-guide/kernel-parameters.txt (threadirqs), proc_version(5).


def read_kernel(roots: Roots) -> Kernel:
    """Read the running kernel; it does not change while the machine runs."""
    return Kernel(
        version=parse_version(read_text(roots.proc / "sys/kernel/osrelease") or ""),
        threaded_irqs=parse_threaded(
            read_text(roots.proc / "cmdline") or "", read_text(roots.proc / "version") or ""
        ),
    )


def parse_threaded(cmdline: str, version: str) -> bool:
    """Whether interrupt handlers are threads: /proc/cmdline requests it, or the kernel is built for
    real time ("#1 SMP PREEMPT_RT Debian ..." in /proc/version)."""
    # arguments after "--" are for init
    kernel_options, _, _ = f" {cmdline} ".partition(" -- ")
    return "threadirqs" in kernel_options.split() or "PREEMPT_RT" in version.split()
