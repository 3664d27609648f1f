"""Home screen's view of a device: its facts, who uses it, its activity."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from iopstui import format as f
from iopstui.model.block.device import BlockDevice
from iopstui.model.rates import DiskRates

HEAD = "iopstui"
MAX_CARRIED = 4
MEAN_SECONDS = 60
"""How far back the column of the last minute goes."""
BARS, PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-:=+*#"
Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """``least`` is the width of the terminal from which on it is shown; ``grows``: it takes a share
    of the columns that are left over."""

    title: str
    width: int
    right: bool = False
    least: int = 0
    grows: int = 0


COLUMNS = (
    Column("NAME", 10, grows=8), Column("MODEL", 14, least=100, grows=10), Column("SIZE", 8, True),
    Column("MOUNTED", 8, grows=16), Column("READ/s", 7, True), Column("WRITE/s", 7, True),
    Column("MiB/s", 6, True), Column("UTIL", 5, True), Column("LAST 60 s", 9, grows=21),
)  # fmt: skip
LAST_TITLE = "LAST 60 s"
LIVE = ("READ/s", "WRITE/s", "MiB/s", "UTIL", "LAST 60 s")
LONG_TEXT = 48
"""Columns of a long model or mount point."""
CELL_PADDING = 1
"""Blanks on each side of a cell."""


def widths(total: int) -> dict[str, int]:
    """The columns that a table of ``total`` cells has room for, with their widths."""
    shown = [column for column in COLUMNS if total + 4 >= column.least]
    spare = max(0, total - sum(column.width + 2 * CELL_PADDING for column in shown))
    found = {}
    for column in sorted(shown, key=lambda one: one.grows, reverse=True):
        more = min(column.grows, spare)
        spare -= more
        found[column.title] = column.width + more
    # then a minute has a column for each second, and long names their room
    for title, most in ((LAST_TITLE, MEAN_SECONDS), ("MODEL", LONG_TEXT), ("MOUNTED", LONG_TEXT)):
        more = max(0, min(spare, most - found.get(title, most)))
        spare -= more
        if more:
            found[title] += more
    return {column.title: found[column.title] for column in shown}


class Activity:
    """Activity of one disk in the last minute."""

    def __init__(self) -> None:
        self._utils: deque[float] = deque(maxlen=MEAN_SECONDS)
        self.rates: DiskRates | None = None

    def add(self, rates: DiskRates | None) -> None:
        """The second that has passed."""
        self.rates = rates
        self._utils.append((rates.util or 0.0) if rates is not None else 0.0)

    @property
    def mean(self) -> float:
        """Percent busy, of the seconds that are known."""
        return sum(self._utils) / len(self._utils) if self._utils else 0.0

    def sparkline(self, width: int, bars: str = BARS) -> str:
        """Percent busy over the last minute, the newest at the right; the worst of each part."""
        known = [0.0] * (MEAN_SECONDS - len(self._utils)) + list(self._utils)
        parts = [
            known[
                n * MEAN_SECONDS // width : max(
                    n * MEAN_SECONDS // width + 1, (n + 1) * MEAN_SECONDS // width
                )
            ]
            for n in range(width)
        ]
        top = len(bars) - 1
        return "".join(bars[min(top, round(max(part) / 100 * top))] for part in parts)


def tree(devices: Mapping[str, BlockDevice], partitions: bool) -> list[tuple[int, BlockDevice]]:
    """(depth, device): every disk, below it what lies on it (md, LVM, multipath), each once.
    ``partitions``: those, too."""
    found: list[tuple[int, BlockDevice]] = []
    seen: set[str] = set()

    def add(device: BlockDevice, depth: int) -> None:
        if device.name in seen:
            return
        seen.add(device.name)
        shown = not device.hidden and device.size != 0 and (partitions or device.disk is None)
        if shown:
            found.append((depth, device))
        parts = [one.name for one in devices.values() if one.disk == device.name]
        for name in (*device.partitions, *parts, *device.holders):
            child = devices.get(name)
            if child is not None:
                add(child, depth + shown)

    for device in devices.values():
        if device.disk is None and not any(slave in devices for slave in device.slaves):
            add(device, 0)
    for device in devices.values():
        # what no disk leads to
        if device.disk is None or device.disk not in devices:
            add(device, 0)
    return found


def cells(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> dict[str, str]:
    """The columns that don't change by themselves, without the name."""
    on = ", ".join(device.slaves)
    kind = " ".join(word for word in (device.layer or "", f"on {on}" if on else "") if word)
    model = device.model or device.backing_file or kind or device.kind
    return {"MODEL": model, "SIZE": f.size(device.size), "MOUNTED": mounted(device, devices)}


def live(rates: DiskRates | None) -> dict[str, str]:
    """Rates and util of the last second; empty until there was one."""
    if rates is None:
        return dict.fromkeys(LIVE[:4], "")
    return {
        "READ/s": f.number(rates.r_s), "WRITE/s": f.number(rates.w_s),
        "MiB/s": f.mib(rates.bytes_s), "UTIL": f"{f.percent(rates.util)} %",
    }  # fmt: skip


def mounted(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> str:
    """Mount point of the device or of what lies on it; else its use; "–" if it is free."""
    said = carries(device, devices)
    for words in ("carries ", "mounted at "):
        said = said.removeprefix(words)
    return f.MISSING if said == "free" or not said else said


def about(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> list[tuple[str, str]]:
    """(label, words) for the selected disk."""
    size, kind, _, model, _ = facts(device)
    used = carries(device, devices)
    safe = "reads, scratch files" + (" only" if _busy(device, devices) else "")
    found = [
        ("Model", model), ("Type", f"{kind}, {size}"), ("Queue", _queue(device)),
        ("In use", "no" if used == "free" else used.removeprefix("carries ")),
        ("Safe", safe),
    ]  # fmt: skip
    return [(label, words) for label, words in found if words]


def _queue(device: BlockDevice) -> str:
    """Its scheduler, its hardware queues, and what kind of medium it says that it is."""
    scheduler = (device.queue.scheduler if device.queue else None) or ""
    parts = [f"scheduler {scheduler}" if scheduler else ""]
    parts.append(f.counted(len(device.hctxs), "queue") if device.hctxs else "")
    parts.append("rotational" if device.queue is not None and device.queue.rotational else "")
    return ", ".join(part for part in parts if part)


def in_a_line(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> str:
    """Facts missing from the table, in one line for low terminals."""
    _, kind, _, model, _ = facts(device)
    parts = ["no writing jobs" if _busy(device, devices) else "free", model or kind]
    parts.append(_queue(device))
    return f"{device.name}: " + " · ".join(part for part in parts if part)


def _busy(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> bool:
    used = carries(device, devices)
    return bool(device.mounts or device.swap or device.holders or used.startswith("carries"))


def facts(device: BlockDevice) -> tuple[str, str, str, str, str]:
    """Size, kind, use, model and scheduler of a device, in words."""
    kind = device.kind
    if device.disk:
        kind = f"partition of {device.disk}"
    elif device.slaves:
        kind += f" on {', '.join(device.slaves)}"
    model = device.model or device.backing_file or ""
    scheduler = (device.queue.scheduler if device.queue else None) or ""
    return (f.size(device.size), kind, use(device), model, scheduler)


def use(device: BlockDevice) -> str:
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


def carries(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> str:
    """As ``use``; of a disk that is used by what lies on it: what that is."""
    found = list(dict.fromkeys(_uses_above(device, devices, frozenset())))
    if device.mounts or device.swap or not found:
        return use(device)
    more = ", ..." if len(found) > MAX_CARRIED else ""
    return f"carries {', '.join(found[:MAX_CARRIED])}{more}"


def _uses_above(
    device: BlockDevice, devices: Mapping[str, BlockDevice], above: frozenset[str]
) -> Iterator[str]:
    """Mount points and swap of everything that lies on it, in its order."""
    for name in (*device.partitions, *device.holders):
        child = devices.get(name)
        if child is None or name in above:
            continue
        yield from (mount.mountpoint for mount in child.mounts)
        if child.swap:
            yield "swap"
        yield from _uses_above(child, devices, above | {device.name})
