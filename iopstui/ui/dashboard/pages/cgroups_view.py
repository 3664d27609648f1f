"""Cgroups by their I/O: systemd units, containers, pods, each with its waiting time and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from iopstui import format as f
from iopstui.model.cgroups.names import CONTAINER_ROOT
from iopstui.model.cgroups.rates import GroupRates, limits_reached
from iopstui.model.histogram import Bins, merge, percentiles
from iopstui.model.metrics.probe import PROCESSES, ProbeInterval
from iopstui.text import printable
from iopstui.ui.draw.rows import Column, Row, Table, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, WARNING, Charset

MAX_ROWS = 40
LABEL = 32
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


def _pressure(name: str) -> Callable[[GroupRates], str]:
    return lambda group: f.percent(group.pressure.get(name))


def _wait_style(name: str) -> Callable[[GroupRates], Any]:
    return lambda group: WARNING if group.pressure.get(name, 0.0) >= HIGH_PRESSURE else None


def _of_limit(now: str, limit: str | None) -> str:
    return now if limit is None else f"{now}/{limit}"


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


COLUMNS: tuple[Column[GroupRates], ...] = (
    Column("r/s", 7, lambda g: f.number(g.total.reads_s), style=DEVICE),
    Column("w/s", 7, lambda g: f.number(g.total.writes_s)),
    Column("rMB/s", 8, lambda g: f.mib(g.total.read_bytes_s), style=DEVICE),
    Column("wMB/s", 8, lambda g: f.mib(g.total.write_bytes_s)),
    Column("io", 5, _pressure("io.some"), style_of=_wait_style("io.some")),
    Column("cpu", 5, _pressure("cpu.some"), drop=2, style_of=_wait_style("cpu.some")),
    Column("mem", 5, _pressure("memory.some"), drop=2, style_of=_wait_style("memory.some")),
    Column("CPU %", 11, lambda g: _of_limit(
        f.percent(g.cpu), None if g.cpu_limit is None else f.percent(g.cpu_limit)), drop=4),
    Column("memory", 18, lambda g: _of_limit(
        f.size(g.memory), None if g.memory_limit is None else f.size(g.memory_limit)), drop=3),
    Column("limit", 32, _limit, drop=5, style_of=_limit_style),
)  # fmt: skip
ORDERS: Mapping[str, Callable[[GroupRates], Any]] = {
    "cgroup": lambda g: g.name.text,
    "r/s": lambda g: -g.total.reads_s,
    "w/s": lambda g: -g.total.writes_s,
    "rMB/s": lambda g: -g.total.read_bytes_s,
    "wMB/s": lambda g: -g.total.write_bytes_s,
    "io": lambda g: -g.pressure.get("io.some", 0.0),
}
"""The titles of the columns by which the groups can be sorted, and how."""


def rows(
    groups: Sequence[GroupRates] | None,
    disks: Sequence[str],
    why_not: str,
    width: int,
    charset: Charset,
    order: str = "",
    frozen: bool = False,
    probe: ProbeInterval | None = None,
) -> list[Row]:
    """The groups that did I/O on the ``disks``; ``None``: not measured yet. ``why_not``: why there
    are none at all. ``order``: one of ORDERS, "": the busiest first. ``frozen``: the screen shows
    an earlier second than the groups. ``probe`` knows the latencies of their requests."""
    if why_not:
        return wrap(width, charset, f"Nothing is counted by cgroup: {why_not}.", None)
    order = order if order in ORDERS else ""
    note = ": current ones, not those of the frozen second" if frozen else ""
    order_text = f"sorted by {order}" if order else "busiest first"
    title = f"cgroups, on {printable(', '.join(disks))} only"
    page = [rule(width, charset, (title, BOLD), (note, WARNING), right=((order_text, DIM),))]
    if groups is None:
        return [*page, message(width, charset, "first sample; rates need two")]
    if not groups:
        return [*page, message(width, charset, "no cgroup read or wrote in this second")]
    table = Table((*COLUMNS[:4], *_latency_columns(probe), *COLUMNS[4:]), LABEL, width, charset)
    page.append(table.header("cgroup", order))
    for group in (sorted(groups, key=ORDERS[order]) if order else groups)[:MAX_ROWS]:
        page.append(table.row(_end(printable(group.name.text), LABEL - 1), group))
    if len(groups) > MAX_ROWS:
        page.append(message(width, charset, f"and {len(groups) - MAX_ROWS} more"))
    return [*page, *wrap(width, charset, ABOUT)]


def _latency_columns(probe: ProbeInterval | None) -> Iterator[Column[GroupRates]]:
    if probe is None or PROCESSES not in probe.parts:
        return
    bins: dict[str, list[Bins]] = {}
    for group in probe.groups:
        bins.setdefault(group.group, []).append(group.bins)
    ranks = {path: percentiles(merge(parts), (50.0, 99.0)) for path, parts in bins.items()}

    def latency(group: GroupRates, percent: float) -> str:
        path = "/" if group.path == CONTAINER_ROOT else group.path
        return f.latency(ranks.get(path, {}).get(percent))

    yield Column("p50", 9, lambda g: latency(g, 50.0), drop=2)
    yield Column("p99", 9, lambda g: latency(g, 99.0), drop=2)


def _end(name: str, width: int) -> str:
    """The end of a path, which tells groups apart."""
    return name if len(name) <= width else "…" + name[1 - width :]
