"""Cgroups by their I/O (systemd units, containers, pods), each with its waiting time and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from iopstui import format as f
from iopstui.model.cgroups import CONTAINER_ROOT, USE, GroupRates, limits_reached
from iopstui.model.histogram import Bins, merge, percentiles
from iopstui.model.metrics.probe import PROCESSES, ProbeInterval
from iopstui.tables import DOWN, UP, Column
from iopstui.text import printable
from iopstui.ui.draw.rows import Row, has_words, list_title, listing, message, no_match, wrap
from iopstui.ui.draw.style import DEVICE, WARNING, Charset

MAX_ROWS = 40
HIGH_PRESSURE = 20.0
"""Percent of waiting time from which a group is highlighted."""
NEAR_LIMIT = 95.0
ABOUT = (
    "Each group's own I/O on these disks (io.stat), without the groups below it: together they are "
    "the disks' I/O. Page cache writes count for the group that dirtied the pages; (no group) is "
    "the kernel's own I/O. io, cpu and mem: percent of the time in which a task of the group "
    "waited for it (PSI; io also counts programs that sleep in io_uring). limit: the nearest limit "
    "of io.max, and how much of it is used."
)


def _pressure(name: str, rank: int = 0, sorts: int = 0) -> Column:
    def style(group: GroupRates) -> Any:
        return WARNING if group.pressure.get(name, 0.0) >= HIGH_PRESSURE else None

    title = name.removesuffix(".some").replace("memory", "mem")
    return Column(f"pressure/{name}", title, 4, f.percent, rank=rank, style_of=style, sorts=sorts,
                  key=lambda group: group.pressure.get(name, 0.0))  # fmt: skip


def _of_limit(form: Callable[[float | None], str], now: float | None, limit: float | None) -> str:
    return form(now) if limit is None else f"{form(now)}/{form(limit)}"


def _limit(group: GroupRates) -> str:
    limits = limits_reached(group)
    if not limits:
        return ""
    percent, knob, value = limits[0]
    limit = f.mib(value) + " MiB/s" if knob.endswith("bps") else f.number(value) + "/s"
    return f"{f.percent(percent)} % of {limit} {'read' if knob[0] == 'r' else 'write'}"


def _limit_style(group: GroupRates) -> Any:
    limits = limits_reached(group)
    return WARNING if limits and limits[0][0] >= NEAR_LIMIT else None


COLUMNS = (
    Column("", "cgroup", 32, read=lambda group: _end(printable(group.name.text), 31), sorts=UP,
           key=lambda group: group.name.text),
    *(row.column("total", width=width, style=style, sorts=DOWN) for row, width, style in zip(
        USE, (6, 6, 7, 7), (DEVICE, None, DEVICE, None), strict=True)),
    _pressure("io.some", sorts=DOWN),
    _pressure("cpu.some", rank=2),
    _pressure("memory.some", rank=2),
    Column("", "CPU %", 10, read=lambda g: _of_limit(f.percent, g.cpu, g.cpu_limit), rank=4),
    Column("", "memory", 17, read=lambda g: _of_limit(f.size, g.memory, g.memory_limit), rank=3),
    Column("", "limit", 31, read=_limit, rank=5, style_of=_limit_style),
)  # fmt: skip


def rows(
    groups: Sequence[GroupRates] | None,
    disks: Sequence[str],
    why_not: str,
    width: int,
    charset: Charset,
    order: str = "",
    frozen: bool = False,
    probe: ProbeInterval | None = None,
    words: str = "",
) -> list[Row]:
    """Rows for the groups that did I/O on the ``disks``; ``groups`` is ``None`` if nothing was
    measured yet. ``why_not`` says why no groups can be read. ``order`` is a title of COLUMNS, or ""
    for the busiest first. ``frozen``: the screen shows an earlier second than the groups. ``probe``
    has the latencies of their requests. ``words`` is a filter: only groups whose name contains all
    of them."""
    if why_not:
        return wrap(width, charset, f"Nothing is counted by cgroup: {why_not}.", None)
    title = f"cgroups, on {printable(', '.join(disks))} only"
    page = [list_title(title, COLUMNS, order, frozen, width, charset)]
    if groups is None:
        return [*page, message(width, charset, "first sample; rates need two")]
    if not groups:
        return [*page, message(width, charset, "no cgroup read or wrote in this second")]
    groups = [one for one in groups if has_words(words, one.name.text, one.path)]
    if not groups:
        return [*page, no_match("cgroup", words, width, charset)]
    columns = (*COLUMNS[:5], *_latency_columns(probe), *COLUMNS[5:])
    page += listing(columns, groups, width, charset, MAX_ROWS, order)
    return page if words.strip() else [*page, *wrap(width, charset, ABOUT)]


def _latency_columns(probe: ProbeInterval | None) -> Iterator[Column]:
    if probe is None or PROCESSES not in probe.parts:
        return
    bins: dict[str, list[Bins]] = {}
    for group in probe.groups:
        bins.setdefault(group.group, []).append(group.bins)
    ranks = {path: percentiles(merge(parts), (50.0, 99.0)) for path, parts in bins.items()}

    def column(percent: float) -> Column:
        def read(group: GroupRates) -> float | None:
            path = "/" if group.path == CONTAINER_ROOT else group.path
            return ranks.get(path, {}).get(percent)

        return Column("", f"p{percent:g}", 8, f.latency, read=read, rank=2)

    yield from map(column, (50.0, 99.0))


def _end(name: str, width: int) -> str:
    """The end of a path, which distinguishes groups better than its beginning."""
    return name if len(name) <= width else "…" + name[1 - width :]
