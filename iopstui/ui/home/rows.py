"""Rows of the home screen: a device's facts, users and activity, and the answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from rich.style import Style
from textual import events

from iopstui import format as f
from iopstui.model.answer.answer import GOOD, UNKNOWN, Answer
from iopstui.model.answer.judge import WINDOW, Seen, judge
from iopstui.model.answer.situation import medium
from iopstui.model.answer.use import DiskUse
from iopstui.model.answer.who import combined_shares, moved_s, parts_of_below, perhaps_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import (
    DEVICE,
    DeviceLinks,
    Target,
    TargetPath,
    combine_targets,
)
from iopstui.model.figures.disk import DiskRates, util_text
from iopstui.model.figures.figure import Figure
from iopstui.model.findings.evidence import ENOUGH_SECONDS
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.history import History
from iopstui.tables import DOWN, UP, Column
from iopstui.text import printable
from iopstui.ui.draw.canvas import Canvas
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.chart import Chart, ChartSpec, Curve, TimeWindow
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.style import BOLD, DIM, P50, P99, Charset, load_style

PROGRAM_NAME = "iopstui"
MAX_USES = 4
UNMOUNTED = "not mounted"
MAX_USERS, LEAST_SHARE = 2, 0.01
"""How many users of a disk are named, and the share of its bytes that each has at least."""
MEAN_SECONDS = 60
"""How far back the column of the last minute goes."""
BARS, PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-:=+*#"
NAME, MODEL, MOUNTED, LAST_TITLE = "NAME", "MODEL", "MOUNTED", "LAST 60 s"
MODEL_FROM = 100
"""The least width of a terminal that shows the model."""
GROWTH = {LAST_TITLE: 21, MOUNTED: 16, MODEL: 10, NAME: 8}
"""Spare columns that a column takes first."""
LONG_TEXT = 48
"""Columns of a long model or mount point."""
LONGEST_NAME, WIDE_NAMES = 24, 100
"""From ``WIDE_NAMES`` columns on a tree has blanks between its lines and the names."""
CELL_PADDING = 1
"""Blanks on each side of a cell."""
OPEN_MARK = "▸ "
"""Before the name of the disk of the open session."""


def column_widths(total: int, name: int = 0) -> dict[str, int]:
    """Widths of the columns that fit into ``total`` cells. ``name`` is the length of the longest
    name: names are cut last."""
    widths = {column.title: column.width for column in COLUMNS
              if column.title != MODEL or total + 4 >= MODEL_FROM}  # fmt: skip

    def grow(title: str, least: int, most: int) -> None:
        spare = total - sum(widths.values()) - 2 * CELL_PADDING * len(widths)
        if title in widths:
            widths[title] = max(least, min(widths[title] + spare, most))

    widths[NAME] = max(widths[NAME], min(name, LONGEST_NAME))
    grow(MOUNTED, len(MOUNTED), widths[MOUNTED])
    grow(NAME, COLUMNS[0].width, widths[NAME])
    for title, growth in GROWTH.items():
        grow(title, widths.get(title, 0), widths.get(title, 0) + growth)
    # then one column for each second of the minute, and space for long names
    for title, most in ((LAST_TITLE, MEAN_SECONDS), (MODEL, LONG_TEXT), (MOUNTED, LONG_TEXT)):
        grow(title, widths.get(title, 0), max(widths.get(title, 0), most))
    return widths


class Activity:
    """Activity of one disk in the last minute."""

    def __init__(self) -> None:
        self._utils: deque[float | None] = deque(maxlen=MEAN_SECONDS)
        self._t: float | None = None
        self.rates: DiskRates | None = None
        self.history = new_history()

    def add(self, rates: DiskRates | None, t: float) -> None:
        """Add the rates of the time that ended at ``t``. Earlier seconds that nobody measured stay
        empty."""
        seconds, util = (1.0, None) if rates is None else (rates.seconds, rates.util)
        missed = 0 if self._t is None else round(t - seconds - self._t)
        self._utils.extend([None] * min(missed, MEAN_SECONDS))
        self._utils.extend([util] * max(1, min(round(seconds), MEAN_SECONDS)))
        self.rates, self._t = rates, t
        self.history.add(t, seconds, chart_values(rates))

    @property
    def mean(self) -> float:
        """Percent busy, mean of the measured seconds."""
        measured = [util for util in self._utils if util is not None]
        return sum(measured) / len(measured) if measured else 0.0

    def sparkline(self, width: int, bars: str = BARS) -> str:
        """Percent busy over the last minute, the newest at the right. If a character stands for
        several seconds, it shows the highest. Seconds without a measurement are blank."""
        utils = [*[None] * (MEAN_SECONDS - len(self._utils)), *self._utils]
        edges = [n * MEAN_SECONDS // width for n in range(width + 1)]
        parts = [utils[begin : max(begin + 1, end)] for begin, end in pairwise(edges)]
        return "".join(_bar([util for util in part if util is not None], bars) for part in parts)


def _bar(utils: Sequence[float], bars: str) -> str:
    top = len(bars) - 1
    return bars[min(top, round(max(utils) / 100 * top))] if utils else " "


@dataclass(frozen=True, slots=True, eq=False)
class DiskRow:
    """A row of the table: a device, or the open session (``is_open``; without a ``device`` unless
    it is of this one alone). ``name`` is that of the device whose figures the row shows; ``draw``
    draws its last minute."""

    key: str
    label: str
    name: str
    model: str
    size: str
    mounted: str
    activities: Mapping[str, Activity]
    draw: Callable[[Activity], str]
    device: BlockDevice | None = None
    is_open: bool = False

    @property
    def activity(self) -> Activity | None:
        """Its figures, once there are some."""
        return self.activities.get(self.name)

    @property
    def mean(self) -> float:
        """Percent busy in the last minute."""
        return self.activity.mean if self.activity is not None else 0.0

    @property
    def util(self) -> float | None:
        """Percent busy in the last second."""
        return self.activity.rates.util if self.activity and self.activity.rates else None

    @property
    def util_text(self) -> str:
        rates = self.activity.rates if self.activity is not None else None
        return "" if rates is None else f"{util_text(rates)} %"

    @property
    def util_style(self) -> Style | None:
        util = self.util
        return None if util is None else load_style(util) if util >= 1 else DIM


def label(name: str, depth: int, marked: bool, wide: bool) -> str:
    """A name after the lines of the tree, and its mark."""
    blank = " " if wide else ""
    branch = f"{' ' * (1 + wide) * (depth - 1)}└{blank}" if depth else ""
    mark = "" if not marked else "●" if depth and not wide else "● "
    return f"{branch}{mark}{name}"


def _words(id_: str, title: str, width: int, key: Callable[[DiskRow], Any] | None = None) -> Column:
    return Column(id_, title, width, left=True, sorts=UP, key=key,
                  style_of=lambda row: BOLD if row.is_open else None)  # fmt: skip


def _live(figure: Figure, title: str, width: int, form: Callable[[float | None], str],
          style_of: Callable[[DiskRow], Style | None] | None = None) -> Column:  # fmt: skip
    """A figure of the last second; empty until there was one."""

    def read(row: DiskRow) -> float | str | None:
        rates = row.activity.rates if row.activity is not None else None
        return "" if rates is None else figure.value(rates)

    return Column(
        figure.name, title, width, lambda value: "" if value == "" else form(value), read=read,
        sorts=DOWN, key=lambda row: (read(row) or 0.0, row.name), style_of=style_of,
    )  # fmt: skip


COLUMNS = (
    _words("label", NAME, 10, lambda row: row.name),
    _words("model", MODEL, 14),
    Column("size", "SIZE", 8, sorts=DOWN,
           key=lambda row: ((row.device and row.device.size) or 0.0, row.name)),
    _words("mounted", MOUNTED, 8),
    _live(DiskRates.r_s, "READ/s", 7, f.number),
    _live(DiskRates.w_s, "WRITE/s", 7, f.number),
    _live(DiskRates.data_s, "MiB/s", 6, f.mib),
    Column(DiskRates.util.name, "UTIL", 5, read=lambda row: row.util_text, sorts=DOWN,
           key=lambda row: (row.util or 0.0, row.name), style_of=lambda row: row.util_style),
    Column("", LAST_TITLE, 9, left=True, sorts=DOWN, key=lambda row: (row.mean, row.name),
           read=lambda row: row.draw(row.activity) if row.activity is not None else "",
           style_of=lambda row: load_style(row.mean)),
)  # fmt: skip


def device_tree(
    devices: Mapping[str, BlockDevice], partitions: bool
) -> list[tuple[int, BlockDevice]]:
    """Pairs (depth, device): every disk, and below it the devices on it (md, LVM, multipath), each
    once. ``partitions``: include them, too."""
    rows: list[tuple[int, BlockDevice]] = []
    visited, present = set[str](), {*present_names(devices)}

    def add(device: BlockDevice, depth: int) -> None:
        if device.name in visited:
            return
        visited.add(device.name)
        visible = device.name in present and (partitions or device.disk is None)
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


def present_names(devices: Mapping[str, BlockDevice]) -> list[str]:
    """The devices that are there: one without a size has no medium, or no file (a loop device)."""
    return [name for name, device in devices.items() if not device.hidden and device.size != 0]


def model_text(device: BlockDevice) -> str:
    """A device's model, or the devices that it is made of."""
    slaves = ", ".join(device.slaves)
    kind = " ".join(part for part in (device.layer or "", f"on {slaves}" if slaves else "") if part)
    return device.model or device.backing_file or kind or device.kind


def mount_text(
    device: BlockDevice, devices: Mapping[str, BlockDevice], place: TargetPath | None = None
) -> str:
    """Mount point of the device or of a device on it; else its use; "on vda" for a loop device that
    is not used (``place`` knows what its file is on); "no" for others."""
    usage = use_above(device, devices)
    for prefix in ("carries ", "mounted at "):
        usage = usage.removeprefix(prefix)
    if usage and usage != UNMOUNTED:
        return usage
    below = place.tree[1:2] if place is not None and device.kind == "loop" else ()
    return f"on {below[0]}" if below else "no"


def detail_rows(
    device: BlockDevice, devices: Mapping[str, BlockDevice], users: str = ""
) -> list[tuple[str, str]]:
    """(label, text) for the selected disk; ``users`` are those of ``users_text``."""
    usage = use_above(device, devices)
    jobs = (
        "only those that read"
        if _is_in_use(device, devices)
        else "those that read; others need --destroy-data"
    )
    kinds = ", ".join(filter(None, (_kind(device), f.size(device.size), _queue(device))))
    rows = [
        ("Used by", users),
        ("Model", device.model or device.backing_file or ""), ("Type", kinds),
        ("In use", usage.removeprefix("carries ")),
        ("Jobs", jobs),
    ]  # fmt: skip
    return [(label, text) for label, text in rows if text]


def users_text(
    target: Target, use: DiskUse | None, seconds: Sequence[Mapping[str, DiskRates]] = (),
    most: int = MAX_USERS,
) -> str:  # fmt: skip
    """Who did how much of a disk's bytes in the last reading: the first ones; "" if unknown.
    ``seconds`` are the last rates of the disks: the reading has none of partitions and of devices
    that are made of others."""
    disk = target.device or ""
    if use is None or (disk not in use.disks and not any(disk in rates for rates in seconds)):
        return ""
    users = {user.pid: user for user in use.users}
    found = combined_shares({disk: target.tree}, use, seconds)
    texts = []
    for one in [one for one in found if one.share >= LEAST_SHARE][:most]:
        user = users.get(one.pid or 0)
        owner = f", {user.user}" if user is not None and user.user else ""
        short = user and replace(one, name=f"{user.comm} ({user.pid}{owner})")
        texts.append(f"{(short or one).label} {one.percent_text}")
    parts = parts_of_below(disk, target.tree, use, seconds)
    if not texts and moved_s(disk, target.tree, use, parts):
        hidden = "" if use.as_root else " (root sees all processes)"
        perhaps = perhaps_text(disk, target.tree, use, parts)
        return perhaps or f"no process that can be seen{hidden}"
    return f"{', '.join(texts)} of its bytes" if texts else ""


def _queue(device: BlockDevice) -> str:
    """A device's scheduler, hardware queues and kind of medium."""
    scheduler = (device.queue.scheduler if device.queue else None) or ""
    parts = [f"scheduler {scheduler}" if scheduler else ""]
    parts.append(f.counted(len(device.hctxs), "queue") if device.hctxs else "")
    parts.append("rotational" if medium(device) == "disk" else "")
    return ", ".join(part for part in parts if part)


def summary_line(
    device: BlockDevice, devices: Mapping[str, BlockDevice], width: int, users: str = ""
) -> str:
    """Facts missing from the table, as many as fit into one line of a low terminal: first who uses
    the disk."""
    in_use = _is_in_use(device, devices)
    facts = "in use, only jobs that read" if in_use else UNMOUNTED
    line = f"{device.name}: {users or facts}"
    for part in (
        facts if users else "",
        device.model or device.backing_file or _kind(device),
        *_queue(device).split(", "),
    ):
        if part and len(line) + 3 + len(part) <= width:
            line += f" · {part}"
    return line


def _is_in_use(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> bool:
    usage = use_above(device, devices)
    return bool(device.mounts or device.swap or device.holders or usage.startswith("carries"))


def _kind(device: BlockDevice) -> str:
    if device.disk:
        return f"partition of {device.disk}"
    return device.kind + (f" on {', '.join(device.slaves)}" if device.slaves else "")


def use_text(device: BlockDevice) -> str:
    """Users of the device, in words; UNMOUNTED without one: a program may have it open."""
    places = ", ".join(mount.mountpoint for mount in device.mounts)
    parts = [f"mounted at {places}"] if places else []
    if device.swap:
        parts.append("swap")
    if device.holders:
        parts.append(f"under {', '.join(device.holders)}")
    if device.read_only:
        parts.append("read-only")
    if not parts and device.partitions:
        return f.counted(len(device.partitions), "partition")
    return ", ".join(parts) or UNMOUNTED


def use_above(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> str:
    """Like ``use_text``; for a disk without a use of its own, the uses of the devices on it."""
    uses = list(dict.fromkeys(_uses_above(device, devices)))
    if device.mounts or device.swap or not uses:
        return use_text(device)
    more = ", ..." if len(uses) > MAX_USES else ""
    return f"carries {', '.join(uses[:MAX_USES])}{more}"


def mountpoints(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> list[str]:
    """Where the device, or a device on it, is mounted."""
    tree = (device, *_above(device, devices, frozenset()))
    return [mount.mountpoint for each in tree for mount in each.mounts]


def _uses_above(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> Iterator[str]:
    """Mount points and swap of all devices on this one, in the order of partitions and holders."""
    for child in _above(device, devices, frozenset()):
        yield from (mount.mountpoint for mount in child.mounts)
        if child.swap:
            yield "swap"


def _above(
    device: BlockDevice, devices: Mapping[str, BlockDevice], visited: frozenset[str]
) -> Iterator[BlockDevice]:
    for name in (*device.partitions, *device.holders):
        child = devices.get(name)
        if child is None or name in visited:
            continue
        yield child
        yield from _above(child, devices, visited | {device.name})


# Charts of the selected disk, if they fit on the home screen.


READS, WRITES, R_AWAIT, W_AWAIT = SERIES = tuple(
    row.name for row in (DiskRates.r_s, DiskRates.w_s, DiskRates.r_await, DiskRates.w_await)
)
MIN_HEIGHT = 10
HISTORY_S = 600
NS_OF_MS = 1e6


def new_history() -> History:
    """History of one disk, for the widest chart."""
    return History(SERIES, raw_samples=HISTORY_S, folded_samples=1)


def chart_values(rates: DiskRates | None) -> dict[str, float | None]:
    """Values of one second, by series."""
    if rates is None:
        return {}
    return {
        READS: rates.r_s, WRITES: rates.w_s,
        R_AWAIT: None if rates.r_await is None else rates.r_await * NS_OF_MS,
        W_AWAIT: None if rates.w_await is None else rates.w_await * NS_OF_MS,
    }  # fmt: skip


class DiskCharts(Canvas):
    """The charts of IOPS and mean latency of one disk, side by side. ``named``: their titles have
    its name."""

    def __init__(self, charset: Charset, named: bool = True) -> None:
        self._named = named
        self._iops = _chart("home-iops", "IOPS", ("reads", READS), ("writes", WRITES), charset)
        self._await = _chart(
            "home-await", "Await (means)", (R_AWAIT, R_AWAIT), (W_AWAIT, W_AWAIT), charset
        )
        self._window = TimeWindow()
        self._name = ""
        self._painted: tuple[str, History, DiskRates | None] | None = None
        super().__init__([*self._iops.widgets(), *self._await.widgets()])
        self.id = "home-charts"

    def on_resize(self, event: events.Resize) -> None:
        """Both take half of the width."""
        width, height = event.size
        half = width // 2
        boxes = (Box(0, 0, half, height), Box(half, 0, width - half, height))
        for chart, box in zip((self._iops, self._await), boxes, strict=True):
            self.add(chart.place(box, framed=True))
        if self._painted is not None:
            self.paint(*self._painted)

    def paint(self, name: str, history: History, rates: DiskRates | None) -> None:
        """Show the history of a disk; ``rates`` are those of its newest second."""
        self._painted = name, history, rates
        if name != self._name:
            self._name = name
            for chart, title in ((self._iops, "IOPS"), (self._await, "Await")):
                chart.forget()
                more = f" of {printable(name)}" if self._named else ""
                chart.spec = replace(chart.spec, title=title + more)
        self._window.follow(history.end or 0.0, self._iops.columns, 2.0)
        iops, awaits = ["", ""], ["", ""]
        if rates is not None:
            iops = [f.number(rates.w_s), f.number(rates.r_s)]
            awaits = ["" if ms is None else f.dense_ms(ms) for ms in (rates.w_await, rates.r_await)]
        self._iops.paint(history, self._window, iops, ())
        self._await.paint(history, self._window, awaits, ())


def _chart(
    name: str, title: str, reads: tuple[str, str], writes: tuple[str, str], charset: Charset
) -> Chart:
    """A chart of two curves, each given as a label and its series; await has a logarithmic
    scale."""
    curves = (
        Curve(writes[1], writes[0], plotting.POINTS, P99),
        Curve(reads[1], reads[0], plotting.LINE, P50),
    )
    is_await = reads[1] == R_AWAIT
    axis = f.axis_latency if is_await else f.axis_number
    return Chart(ChartSpec(name, title, curves, is_await, axis, 0), charset)


class HomeAnswer:
    """Judges all disks for the home screen; feed each second's rates."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque(maxlen=WINDOW)
        self.places: Mapping[str, TargetPath] = {}
        """What is below each device, once it was looked for."""

    def target(self, names: Sequence[str], devices: Mapping[str, BlockDevice]) -> Target:
        """These disks, to be looked at."""
        return combine_targets(
            [self.places.get(name) or _place(devices[name], devices) for name in names]
        )

    @property
    def is_short(self) -> bool:
        """Whether too few seconds were fed to judge."""
        return len(self._frames) < ENOUGH_SECONDS

    def forget(self) -> None:
        """Begin anew: what was measured is of another time."""
        self._frames.clear()

    def add(
        self, t: float, rates: Mapping[str, DiskRates], devices: Mapping[str, BlockDevice]
    ) -> None:
        """Add the rates of the second that ended at ``t``."""
        disks = {name: row for name, row in rates.items() if _is_disk(devices.get(name))}
        seconds = max((row.seconds for row in disks.values()), default=1.0)
        self._frames.append(
            Frame(seq=0, step=0, t=t, wall_ms=0.0, seconds=seconds, flags=frozenset(), fio=None,
                  fio_age_s=None, skew_ms=None, disks=disks)
        )  # fmt: skip

    def now(self, devices: Mapping[str, BlockDevice], use: DiskUse | None = None) -> Answer | None:
        """The answer for the last seconds; ``None`` if there is no disk. ``use`` is the last
        reading of who uses the disks."""
        disks = self._frames[-1].disks if self._frames else {}
        if not disks:
            return None
        if self.is_short:
            measured = f.counted(len(self._frames), "second")
            return Answer("", "short", GOOD, f"{measured} measured, too short to tell", UNKNOWN)
        active = [name for name in disks if any(map(_does_io, self._rates_of(name)))]
        if not active:
            looked = f.counted(len(disks), "disk is idle", "disks are idle")
            return Answer("", "quiet", GOOD, f"{looked}: nothing is in flight")
        return self.about(active, devices, use)

    def about(
        self, names: Sequence[str], devices: Mapping[str, BlockDevice], use: DiskUse | None
    ) -> Answer:
        """The answer on these disks."""
        target = self.target(names, devices)
        return judge(Seen(target, list(self._frames), devices, use=use))[0][1]

    @property
    def seconds(self) -> list[Mapping[str, DiskRates]]:
        """The rates of all disks in the last seconds."""
        return [frame.disks for frame in self._frames]

    def _rates_of(self, name: str) -> list[DiskRates]:
        return [frame.disks[name] for frame in self._frames if name in frame.disks]


def _is_disk(device: BlockDevice | None) -> bool:
    return device is not None and bool(device.size) and not device.disk and not device.hidden


def _does_io(rates: DiskRates) -> bool:
    return bool(rates.ios_s or rates.in_flight)


def find_places(devices: Mapping[str, BlockDevice]) -> dict[str, TargetPath]:
    """Each device as a target to look at, with all devices below it. It looks for the files of loop
    devices, which may hang."""
    from iopstui.linux.devices.target import device_links, device_tree
    from iopstui.linux.kernel_files import Roots

    roots, places = Roots(), {}
    for name, device in devices.items():
        tree = device_tree(name, devices, roots)
        links = device_links(tree, devices, roots)
        places[name] = TargetPath(DEVICE, device.path, name, tree, links=links)
    return places


def _place(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> TargetPath:
    """The same from sysfs alone."""
    below = tuple(
        devices[name].disk or name for name in device.slaves if name in devices
    )  # fmt: skip
    return TargetPath(DEVICE, device.path, device.name, (device.name, *below),
                      links=(DeviceLinks(device.name, below, device.layer),))  # fmt: skip
