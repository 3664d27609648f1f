"""Rows of the home screen: a device's facts, users and activity."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from iopstui import format as f
from iopstui.linux.process.process_io import ProcessRates
from iopstui.model.block.device import BlockDevice
from iopstui.model.figures.disk import DiskRates
from iopstui.ui.home.disk_charts import chart_values, new_history

PROGRAM_NAME = "iopstui"
MAX_USES = 4
MEAN_SECONDS = 60
"""How far back the column of the last minute goes."""
BARS, PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-:=+*#"
Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """``min_terminal`` is the least width of a terminal that shows it, ``growth`` how many spare
    columns it takes at most."""

    title: str
    width: int
    right: bool = False
    min_terminal: int = 0
    growth: int = 0


COLUMNS = (
    Column("NAME", 10, growth=8), Column("MODEL", 14, min_terminal=100, growth=10),
    Column("SIZE", 8, True),
    Column("MOUNTED", 8, growth=16), Column("READ/s", 7, True), Column("WRITE/s", 7, True),
    Column("MiB/s", 6, True), Column("UTIL", 5, True), Column("LAST 60 s", 9, growth=21),
)  # fmt: skip
NAME, MODEL, MOUNTED, LAST_TITLE = "NAME", "MODEL", "MOUNTED", "LAST 60 s"
LIVE = ("READ/s", "WRITE/s", "MiB/s", "UTIL", "LAST 60 s")
LONGEST_NAME, WIDE_NAMES = 24, 100
"""From ``WIDE_NAMES`` columns on a tree has blanks between its lines and the names."""
LONG_TEXT = 48
"""Columns of a long model or mount point."""
CELL_PADDING = 1
"""Blanks on each side of a cell."""


def column_widths(total: int, name: int = 0) -> dict[str, int]:
    """Widths of the columns that fit into ``total`` cells. ``name`` is the length of the longest
    name: names are cut last."""
    columns = [column for column in COLUMNS if total + 4 >= column.min_terminal]
    columns[0] = replace(columns[0], width=max(columns[0].width, min(name, LONGEST_NAME)))
    needed = sum(column.width + 2 * CELL_PADDING for column in columns)
    columns = [
        replace(column, width=max(len(MOUNTED), column.width - max(0, needed - total)))
        if column.title == MOUNTED else column
        for column in columns
    ]  # fmt: skip
    needed = sum(column.width + 2 * CELL_PADDING for column in columns)
    columns[0] = replace(
        columns[0], width=max(COLUMNS[0].width, columns[0].width - max(0, needed - total))
    )
    spare = max(0, total - sum(column.width + 2 * CELL_PADDING for column in columns))
    sizes = {}
    for column in sorted(columns, key=lambda column: column.growth, reverse=True):
        more = min(column.growth, spare)
        spare -= more
        sizes[column.title] = column.width + more
    # then one column for each second of the minute, and space for long names
    for title, limit in ((LAST_TITLE, MEAN_SECONDS), ("MODEL", LONG_TEXT), ("MOUNTED", LONG_TEXT)):
        more = max(0, min(spare, limit - sizes.get(title, limit)))
        spare -= more
        if more:
            sizes[title] += more
    return {column.title: sizes[column.title] for column in columns}


class Activity:
    """Activity of one disk in the last minute."""

    def __init__(self) -> None:
        self._utils: deque[float | None] = deque(maxlen=MEAN_SECONDS)
        self.rates: DiskRates | None = None
        self.history = new_history()

    def add(self, rates: DiskRates | None, t: float) -> None:
        """Add the rates of the second that ended at ``t``."""
        self.rates = rates
        self._utils.append(rates.util if rates is not None else None)
        self.history.add(t, 1.0, chart_values(rates))

    @property
    def mean(self) -> float:
        """Percent busy, mean of the measured seconds."""
        measured = [util for util in self._utils if util is not None]
        return sum(measured) / len(measured) if measured else 0.0

    def sparkline(self, width: int, bars: str = BARS) -> str:
        """Percent busy over the last minute, the newest at the right; the worst of each part.
        Seconds without a measurement are blank."""
        utils = [*[None] * (MEAN_SECONDS - len(self._utils)), *self._utils]
        parts = [
            utils[
                n * MEAN_SECONDS // width : max(
                    n * MEAN_SECONDS // width + 1, (n + 1) * MEAN_SECONDS // width
                )
            ]
            for n in range(width)
        ]
        return "".join(_bar([util for util in part if util is not None], bars) for part in parts)


def _bar(utils: Sequence[float], bars: str) -> str:
    top = len(bars) - 1
    return bars[min(top, round(max(utils) / 100 * top))] if utils else " "


def label(name: str, depth: int, marked: bool, wide: bool) -> str:
    """A name behind the lines of its tree, and its mark."""
    blank = " " if wide else ""
    branch = f"{' ' * (1 + wide) * (depth - 1)}└{blank}" if depth else ""
    mark = "" if not marked else "●" if depth and not wide else "● "
    return f"{branch}{mark}{name}"


def shorten(text: str, width: int) -> str:
    """Cut ``text`` to ``width`` characters, with a mark; of a path the end is kept."""
    if len(text) > width > 1 and text.startswith("/") and ", " not in text:
        return "…" + text[1 - width :]
    return f.cut(text, width)


def device_tree(
    devices: Mapping[str, BlockDevice], partitions: bool
) -> list[tuple[int, BlockDevice]]:
    """(depth, device): every disk, below it the devices on it (md, LVM, multipath), each once.
    ``partitions``: those, too."""
    rows: list[tuple[int, BlockDevice]] = []
    visited: set[str] = set()

    def add(device: BlockDevice, depth: int) -> None:
        if device.name in visited:
            return
        visited.add(device.name)
        visible = not device.hidden and device.size != 0 and (partitions or device.disk is None)
        if visible:
            rows.append((depth, device))
        parts = [d.name for d in devices.values() if d.disk == device.name]
        for name in (*device.partitions, *parts, *device.holders):
            child = devices.get(name)
            if child is not None:
                add(child, depth + visible)

    for device in devices.values():
        if device.disk is None and not any(slave in devices for slave in device.slaves):
            add(device, 0)
    for device in devices.values():
        # devices that no disk leads to
        if device.disk is None or device.disk not in devices:
            add(device, 0)
    return rows


def static_cells(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> dict[str, str]:
    """Cells that don't change each second, without the name."""
    slaves = ", ".join(device.slaves)
    kind = " ".join(part for part in (device.layer or "", f"on {slaves}" if slaves else "") if part)
    model = device.model or device.backing_file or kind or device.kind
    return {"MODEL": model, "SIZE": f.size(device.size), "MOUNTED": mount_text(device, devices)}


def live_cells(rates: DiskRates | None) -> dict[str, str]:
    """Rates and util of the last second; empty until there was one."""
    if rates is None:
        return dict.fromkeys(LIVE[:4], "")
    return {
        "READ/s": f.number(rates.r_s), "WRITE/s": f.number(rates.w_s),
        "MiB/s": f.mib(rates.bytes_s), "UTIL": f"{f.percent(rates.util)} %",
    }  # fmt: skip


def mount_text(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> str:
    """Mount point of the device or of a device on it; else its use; "–" if it is free."""
    usage = use_above(device, devices)
    for prefix in ("carries ", "mounted at "):
        usage = usage.removeprefix(prefix)
    return f.MISSING if usage == "free" or not usage else usage


def detail_rows(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> list[tuple[str, str]]:
    """(label, text) for the selected disk."""
    size, kind, _, model, _ = facts(device)
    usage = use_above(device, devices)
    jobs = (
        "only those that read"
        if _is_in_use(device, devices)
        else "those that read; others need --destroy-data"
    )
    kinds = ", ".join(part for part in (kind, size, _queue(device)) if part)
    rows = [
        ("Model", model), ("Type", kinds),
        ("In use", "no" if usage == "free" else usage.removeprefix("carries ")),
        ("Jobs", jobs),
    ]  # fmt: skip
    return [(label, text) for label, text in rows if text]


def busiest_process_text(process: ProcessRates | None) -> str:
    """The process with the most I/O, for people; "" if none had any."""
    if process is None:
        return ""
    mib = f.mib(process.read_s + process.write_s)
    return f"{process.comm} ({process.pid}), {mib} MiB/s on all disks"


def _queue(device: BlockDevice) -> str:
    """Return its scheduler, hardware queues and kind of medium."""
    scheduler = (device.queue.scheduler if device.queue else None) or ""
    parts = [f"scheduler {scheduler}" if scheduler else ""]
    parts.append(f.counted(len(device.hctxs), "queue") if device.hctxs else "")
    parts.append("rotational" if device.queue is not None and device.queue.rotational else "")
    return ", ".join(part for part in parts if part)


def summary_line(device: BlockDevice, devices: Mapping[str, BlockDevice], width: int) -> str:
    """Facts missing from the table, as many as fit into one line of a low terminal."""
    _, kind, _, model, _ = facts(device)
    line = (
        f"{device.name}: {'in use, only jobs that read' if _is_in_use(device, devices) else 'free'}"
    )
    for part in (model or kind, *_queue(device).split(", ")):
        if part and len(line) + 3 + len(part) <= width:
            line += f" · {part}"
    return line


def _is_in_use(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> bool:
    usage = use_above(device, devices)
    return bool(device.mounts or device.swap or device.holders or usage.startswith("carries"))


def facts(device: BlockDevice) -> tuple[str, str, str, str, str]:
    """Size, kind, use, model and scheduler of a device, in words."""
    kind = device.kind
    if device.disk:
        kind = f"partition of {device.disk}"
    elif device.slaves:
        kind += f" on {', '.join(device.slaves)}"
    model = device.model or device.backing_file or ""
    scheduler = (device.queue.scheduler if device.queue else None) or ""
    return (f.size(device.size), kind, use_text(device), model, scheduler)


def use_text(device: BlockDevice) -> str:
    """Users of the device, in words; "free" if none can be seen."""
    parts = [f"mounted at {mount.mountpoint}" for mount in device.mounts]
    if device.swap:
        parts.append("swap")
    if device.holders:
        parts.append(f"under {', '.join(device.holders)}")
    if device.read_only:
        parts.append("read-only")
    if not parts and device.partitions:
        return f.counted(len(device.partitions), "partition")
    return ", ".join(parts) or "free"


def use_above(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> str:
    """Return the use of a disk that is used by devices on top of it, like ``use_text``."""
    uses = list(dict.fromkeys(_uses_above(device, devices, frozenset())))
    if device.mounts or device.swap or not uses:
        return use_text(device)
    more = ", ..." if len(uses) > MAX_USES else ""
    return f"carries {', '.join(uses[:MAX_USES])}{more}"


def _uses_above(
    device: BlockDevice, devices: Mapping[str, BlockDevice], visited: frozenset[str]
) -> Iterator[str]:
    """Mount points and swap of all devices on it, in its order."""
    for name in (*device.partitions, *device.holders):
        child = devices.get(name)
        if child is None or name in visited:
            continue
        yield from (mount.mountpoint for mount in child.mounts)
        if child.swap:
            yield "swap"
        yield from _uses_above(child, devices, visited | {device.name})
