"""The machine's block devices as a table for people and as JSON for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from iopstui import format as units
from iopstui.linux.devices.smart import Attribute, DiskHealth
from iopstui.linux.devices.zones import Zones
from iopstui.model.block.device import BlockDevice, Hctx, IrqVector
from iopstui.model.block.stack import uses_of_device
from iopstui.model.block.tunable import why_rq_affinity_cannot_matter
from iopstui.tables import Column, head_line, row_line
from iopstui.text import printable

Devices = Mapping[str, BlockDevice]

SCHEMA = 1
_GAP = "  "
# columns in the order in which they are narrowed: (title, narrowest width, where 0 means that the
# column may vanish)
_SHRINK = (("MODEL", 8), ("MODEL", 0), ("IN USE", 12), ("HCTX>CPUS", 9), ("IRQ", 0), ("NAME", 8))
_TITLES = ("NAME", "SIZE", "TYPE", "MODEL", "SCHED", "RQ_AFF", "HCTX>CPUS", "IRQ", "IN USE")
_RIGHT_ALIGNED = frozenset({"SIZE", "RQ_AFF"})


def devices_table(
    devices: Devices, width: int = 80, *, all: bool = False, only: str | None = None
) -> str:
    """One line per device, partitions under their disk; never wider than ``width`` columns.

    Without ``all``, devices of size 0 (unused loop devices), hidden multipath paths and RAM disks
    are left out; ``only`` lists one device. RQ_AFF is rq_affinity; HCTX>CPUS the hardware queues
    and the CPUs each one serves; IRQ the interrupts of those queues. Plain ASCII; ``-`` where a
    device has no value."""
    rows = list(_order(devices, show_all=all)) if only is None else [(devices[only], 0)]
    if not rows:
        return "No block devices found.\n"
    cells = [_TITLES, *(_cells(device, depth, devices) for device, depth in rows)]
    longest = (max(map(len, column)) for column in zip(*cells, strict=True))
    widths = _fit(dict(zip(_TITLES, longest, strict=True)), width)
    lines = (_line(dict(zip(_TITLES, row, strict=True)), widths) for row in cells)
    return "".join(line[: max(width, 1)].rstrip() + "\n" for line in lines)


def devices_json(devices: Devices, online: Collection[int] = ()) -> dict[str, object]:
    """Everything known, ready for ``json.dumps``: ``{"schema": 1, "devices": [...]}``.

    Fields are those of model/block/device.py, sizes in bytes, unknown is null. Each hctx also lists
    the numbers of its interrupts in ``irqs``; ``in_use`` and ``in_use_by`` are the reasons of
    model/block/stack.py. ``queue`` has the present values of all tunables (model/block/tunable.py).
    ``rq_affinity_cannot_matter`` says why rq_affinity has no effect on this device with the CPUs
    ``online``; it is null if it may have one."""
    return {"schema": SCHEMA, "devices": [_json(d, devices, online) for d in devices.values()]}


def format_hctxs(hctxs: tuple[Hctx, ...]) -> str:
    """Number of hardware queues, and the CPUs of each.

    "1: 0-3", "4: 0 1 2 3"; long lists are summarised: "64: 2 CPUs each". A dash without queues."""
    if not hctxs:
        return units.MISSING
    count = len(hctxs)
    listed = " ".join(units.ranges(hctx.cpus) for hctx in hctxs)
    if len(listed) <= 12:
        return f"{count}: {listed}"
    sizes = {len(hctx.cpus) for hctx in hctxs}
    everything = [cpu for hctx in hctxs for cpu in hctx.cpus]
    if len(set(everything)) < len(everything):
        return f"{count}: overlapping"
    low, high = min(sizes), max(sizes)
    cpus = f"{low}" if low == high else f"{low}-{high}"
    return f"{count}: {cpus} CPU{'' if high == 1 else 's'} each"


def short_usage(device: BlockDevice, devices: Devices) -> str:
    """The device's uses in a few words for a table; a dash if none is known."""
    uses = [_mount_text(mount.mountpoint, mount.elsewhere) for mount in device.mounts]
    uses += ["swap"] if device.swap else []
    uses += [_holder_text(devices.get(name), name) for name in device.holders]
    if not uses:
        reasons = uses_of_device(device.name, devices)
        uses += [_short_reason(device, devices)] if reasons else []
    if device.read_only:
        uses.append("read-only")
    return printable(", ".join(dict.fromkeys(uses))) or units.MISSING


def _mount_text(mountpoint: str, elsewhere: bool) -> str:
    return f"{mountpoint} (other namespace)" if elsewhere else mountpoint


def _holder_text(holder: BlockDevice | None, name: str) -> str:
    if holder is None:
        return name
    parts = (_layer_word(holder) if holder.layer else None, holder.dm_name or holder.name)
    return " ".join(part for part in parts if part)


def _layer_word(device: BlockDevice) -> str:
    return {"device-mapper": "dm"}.get(device.layer or "", device.layer or device.kind)


def _short_reason(device: BlockDevice, devices: Devices) -> str:
    if any(uses_of_device(name, devices) for name in device.partitions):
        return "partitions"
    loops = [d.name for d in devices.values() if d.backing_file == device.path]
    return ", ".join(loops) or ("its disk" if device.disk else "yes")


def _order(devices: Devices, *, show_all: bool) -> Iterable[tuple[BlockDevice, int]]:
    """Sort the devices: hardware before virtual devices, and partitions after their disk."""
    for device in sorted(devices.values(), key=_is_virtual):
        parted = device.disk in devices
        if parted or not (show_all or _interesting(device)):
            continue
        yield device, 0
        for name in device.partitions:
            if name in devices:
                yield devices[name], 1


def _is_virtual(device: BlockDevice) -> bool:
    return device.kind in ("loop", "zram", "ram")


def _interesting(device: BlockDevice) -> bool:
    return bool(device.size) and not device.hidden and device.kind != "ram"


def _cells(device: BlockDevice, depth: int, devices: Devices) -> Sequence[str]:
    if depth:
        cells = ["  " + printable(device.name), units.size(device.size), "partition"]
        return [*cells, "", "", "", "", "", short_usage(device, devices)]
    queue = device.queue
    return [
        printable(device.name),
        units.size(device.size),
        _type(device),
        _model_text(device),
        (queue.scheduler if queue else None) or units.MISSING,
        units.MISSING if queue is None or queue.rq_affinity is None else str(queue.rq_affinity),
        *_queues(device, devices),
        short_usage(device, devices),
    ]


def _queues(device: BlockDevice, devices: Devices) -> tuple[str, str]:
    """The cells HCTX>CPUS and IRQ. For a multipath device, the number and interrupts of its hidden
    paths."""
    paths = [devices[n] for n in device.slaves if n in devices and devices[n].hidden]
    vectors = [vector for owner in (device, *paths) for vector in owner.irqs]
    irqs = units.ranges({v.irq for v in vectors if v.hctx is not None or v.shared})
    if paths and not device.hctxs:
        return f"{len(paths)} path{'' if len(paths) == 1 else 's'}", irqs or units.MISSING
    return format_hctxs(device.hctxs), irqs or units.MISSING


def _type(device: BlockDevice) -> str:
    if device.kind == "scsi" and device.transport:
        return "scsi" if device.transport == "virtio" else device.transport
    if device.kind == "nvme":
        return device.transport or "nvme"
    if device.kind in ("dm", "md"):
        return _layer_word(device)
    return device.kind


def _model_text(device: BlockDevice) -> str:
    text = device.model or device.dm_name or device.backing_file or ""
    return printable(text) or units.MISSING


def _fit(widths: dict[str, int], width: int) -> dict[str, int]:
    """The columns' widths by title: as wide as the content, narrowed in the order of _SHRINK until
    all fit."""
    for title, least in _SHRINK:
        excess = sum(widths.values()) + len(_GAP) * (len(widths) - 1) - width
        if excess <= 0:
            break
        if least == 0:
            del widths[title]
        else:
            floor = min(widths[title], max(least, len(title)))
            widths[title] = max(floor, widths[title] - excess)
    return widths


def _line(cells: Mapping[str, str], widths: Mapping[str, int]) -> str:
    texts = []
    for title, width in widths.items():
        cell = cells[title]
        text = cell if len(cell) <= width else cell[: width - 1] + "~"
        texts.append(text.rjust(width) if title in _RIGHT_ALIGNED else text.ljust(width))
    return _GAP.join(texts)


def _json(device: BlockDevice, devices: Devices, online: Collection[int]) -> dict[str, object]:
    values: dict[str, object] = asdict(device)
    if device.major < 0:
        values["major"] = values["minor"] = None
    values["hctxs"] = [
        {**asdict(hctx), "irqs": [v.irq for v in device.irqs if _serves(v, hctx)]}
        for hctx in device.hctxs
    ]
    reasons = uses_of_device(device.name, devices)
    values["rq_affinity_cannot_matter"] = why_rq_affinity_cannot_matter(device, sorted(online))
    values["in_use"] = bool(reasons)
    values["in_use_by"] = list(reasons)
    return values


def _serves(vector: IrqVector, hctx: Hctx) -> bool:
    return vector.shared or vector.hctx == hctx.index


# Details of one disk as text: the health of a SATA or SAS disk, the zones of a zoned one.


_COLUMNS = (
    Column("number", "ID", 3),
    Column("name", "ATTRIBUTE", 26, lambda name: name or units.MISSING, left=True),
    Column("value", "VALUE", 5), Column("worst", "WORST", 5), Column("limit", "LIMIT", 5),
)  # fmt: skip


def health_text(health: DiskHealth, width: int = 80) -> str:
    """A line on the whole disk, then its attributes; sentences are wrapped at ``width``."""
    if health.problem:
        return _wrapped(f"Health: {health.problem}", width)
    lines = _wrapped(f"Health (SMART): {', '.join(_words(health))}", width)
    if health.attributes:
        rows = [f"{head_line(_COLUMNS)}  RAW", *map(_attribute, health.attributes)]
        lines += "".join(row[: max(width, 1)].rstrip() + "\n" for row in rows)
    return lines


def _wrapped(text: str, width: int) -> str:
    return "".join(f"{line}\n" for line in textwrap.wrap(text, width, subsequent_indent="  "))


def _words(health: DiskHealth) -> Iterator[str]:
    states = {True: "passed", False: "FAILED: replace the disk", None: "no verdict"}
    yield states[health.passed]
    yield f"{units.or_dash(health.degrees)} °C"
    if health.hours is not None:
        yield f"{health.hours:,} h powered on"
    if health.grown_defects is not None:
        grown = f"{health.grown_defects:,}" if health.grown_defects else "none"
        yield f"grown defects {grown}"
    if health.uncorrected is not None:
        counts = ", ".join(f"{kind} {count:,}" for kind, count in health.uncorrected.items())
        yield f"uncorrected errors: {counts}"
    failing = sum(attribute.failed == "now" for attribute in health.attributes)
    if failing:
        yield f"{failing} of its attributes below their limit now"


def _attribute(attribute: Attribute) -> str:
    failed = f"  failed: {attribute.failed}" if attribute.failed else ""
    return f"{row_line(_COLUMNS, attribute)}  {attribute.raw or units.MISSING}{failed}"


def zones_text(zones: Zones, width: int = 80) -> str:
    """Size, limits and conditions of the zones, wrapped at ``width`` columns."""
    limits = [
        f"{most} {name}"
        for name, most in (("open", zones.most_open), ("active", zones.most_active))
        if most is not None
    ]
    most = f"; at most {', '.join(limits)}" if limits else ""
    capacity = ""
    if zones.capacity is not None and zones.capacity != zones.size:
        capacity = f" of which {units.size(zones.capacity)} can be written"
    count = units.MISSING if zones.count is None else f"{zones.count:,}"
    lines = [f"Zones: {count} of {units.size(zones.size)}{capacity}, {zones.model}{most}"]
    if zones.conditions:
        lines.append("Now: " + ", ".join(f"{n:,} {name}" for name, n in zones.conditions.items()))
    if zones.problem:
        lines.append(zones.problem)
    return "".join(_wrapped(line, width) for line in lines)
