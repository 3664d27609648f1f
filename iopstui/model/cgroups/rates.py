"""Rates of cgroups from their counters, which don't include the groups below them (names.py): all
of them, and the I/O that no group is charged with, add up to the disk's I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from iopstui import format as f
from iopstui.model.cgroups.names import CONTAINER_ROOT, GroupName, group_name
from iopstui.model.figures.figure import BY_KEY, TEXT, Figure, Part, Rows
from iopstui.model.rates import delta, ratio
from iopstui.model.sizes import MIB

SOURCE = "cgroups"
"""The name of these counters in a sample (KernelSample.more)."""
COUNTERS = ("rios", "wios", "rbytes", "wbytes")
"""Counters from io.stat, by disk, without the groups below."""
PRESSURES = ("io.some", "io.full", "cpu.some", "memory.some", "memory.full")
"""Counters from the pressure files, in µs."""
LIMITS = ("riops", "wiops", "rbps", "wbps")
"""Of io.max, by disk."""
CPU_US = "cpu.usage"
AT_NS = "at_ns"
"""When the files were read: reading many takes a while, and not always the same."""
ROOT_FLAG = "root"
"""A counter that exists if "/" is the machine's root, and not a container's."""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """What a group does on one disk, per second."""

    reads_s: float
    writes_s: float
    read_bytes_s: float
    write_bytes_s: float

    def times(self, factor: float) -> DiskUse:
        """Everything multiplied."""
        return DiskUse(self.reads_s * factor, self.writes_s * factor,
                       self.read_bytes_s * factor, self.write_bytes_s * factor)  # fmt: skip

    @property
    def ios_s(self) -> float:
        """Reads and writes."""
        return self.reads_s + self.writes_s

    @property
    def bytes_s(self) -> float:
        """Read and written."""
        return self.read_bytes_s + self.write_bytes_s


NO_USE = DiskUse(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class GroupRates:
    """A group's own I/O in an interval, without the groups below it: ``disks`` by name.
    ``pressure`` is the percentage of the time in which its tasks waited (PRESSURES), ``cpu`` is in
    percent of one CPU, ``memory`` in bytes. Limits: ``io_limits`` by disk and LIMITS, ``cpu_limit``
    in percent of one CPU, ``memory_limit`` in bytes. All these figures are about the group with all
    groups below it. A figure that is ``None`` or left out is not known, or there is no limit."""

    path: str
    disks: Mapping[str, DiskUse]
    pressure: Mapping[str, float] = field(default_factory=dict)
    cpu: float | None = None
    memory: int | None = None
    io_limits: Mapping[tuple[str, str], int] = field(default_factory=dict)
    cpu_limit: float | None = None
    memory_limit: int | None = None

    @property
    def name(self) -> GroupName:
        """What runs in the group."""
        return group_name(self.path)

    @property
    def total(self) -> DiskUse:
        """All disks together."""
        return sum_uses(self.disks.values())


def _use(of: str) -> tuple[Figure, Figure, Figure, Figure]:
    scope = f"per second by this group, without those below it, {of}"
    return (
        Figure("r/s", "1/s", f"reads {scope}", "reads_s"),
        Figure("w/s", "1/s", f"writes {scope}", "writes_s"),
        Figure("rMB/s", "MiB/s", f"read {scope}", "read_bytes_s", scale=MIB, form=f.mib),
        Figure("wMB/s", "MiB/s", f"written {scope}", "write_bytes_s", scale=MIB, form=f.mib),
    )


def _pressure(resource: str) -> Part:
    kinds = {"some": "at least one task", "full": "all tasks"}
    rows = (
        Figure(kind, "%", f"share of the time in which {tasks} of the group waited for {resource}",
               f"{resource}.{kind}")
        for kind, tasks in kinds.items()
        if f"{resource}.{kind}" in PRESSURES
    )  # fmt: skip
    return Part(resource, tuple(rows), lambda pressure: pressure)


def _limits(group: GroupRates) -> dict[str, dict[str, int | None]]:
    limits = group.io_limits
    return {disk: {kind: limits.get((disk, kind)) for kind in LIMITS} for disk in group.disks}


USE = _use("on all of the target's disks")
GROUP: Rows = (
    Figure("cgroup", "", "path of a cgroup that did I/O on the target's disks (watch --cgroups)",
           "path", kind=TEXT),
    Figure("kind", "", "what runs in it, by its path: unit, container, pod, machine, job, user, "
           "slice, group, or root for what is charged to none", "name/kind", kind=TEXT),
    Figure("name", "", "its name: a systemd unit, the beginning of a container's or pod's id",
           "name/name", kind=TEXT),
    *(replace(row, part=f"total/{row.part}") for row in USE),
    Part("disks", _use("on this"), many=BY_KEY, always=True),
    Part("pressure", tuple(map(_pressure, dict.fromkeys(n.split(".")[0] for n in PRESSURES))),
         always=True),
    Figure("cpu", "%", "CPU time of the group, percent of one CPU"),
    Figure("cpu_limit", "%", "cpu.max, percent of one CPU; null: no limit"),
    Figure("memory", "B", "memory.current"),
    Figure("memory_limit", "B", "memory.max; null: no limit"),
    Part("limits", tuple(
        Figure(name, "", "io.max of the group on this disk, per second; null: no limit")
        for name in LIMITS), _limits, many=BY_KEY, always=True),
)  # fmt: skip


def sum_uses(uses: Iterable[DiskUse]) -> DiskUse:
    """The sum of several uses."""
    rates = [(use.reads_s, use.writes_s, use.read_bytes_s, use.write_bytes_s) for use in uses]
    return DiskUse(*(sum(values) for values in zip(*rates, strict=True))) if rates else NO_USE


def counter_name(counter: str, path: str, disk: str = "") -> str:
    """The name of a counter: its parts are separated by blanks, and the path comes last, because it
    may contain blanks."""
    return f"{counter} {disk} {path}"


def group_rates(
    now: Mapping[str, int] | None, before: Mapping[str, int] | None, seconds: float | None
) -> tuple[GroupRates, ...] | None:
    """The groups that did I/O between two readings, the busiest first; ``None`` if there are no two
    readings. ``seconds`` is the time between them, used if they don't contain it (AT_NS)."""
    if now is None or before is None or not seconds:
        return None
    began, ended = before.get(counter_name(AT_NS, "/")), now.get(counter_name(AT_NS, "/"))
    if began is not None and ended is not None and ended > began:
        seconds = (ended - began) / 1e9
    growth = _growth(now, before)
    groups = [
        _rates_of_group(path, disks, now, before, seconds)
        for path, disks in growth.items()
        if any(any(values) for values in disks.values())
    ]
    return tuple(
        sorted(groups, key=lambda group: (-group.total.bytes_s, -group.total.ios_s, group.path))
    )


def limits_reached(group: GroupRates) -> list[tuple[float, str, int]]:
    """For each limit (percentage that is used, which one of LIMITS, its value), beginning with the
    one that is closest to being reached."""
    limits = []
    for (disk, kind), value in group.io_limits.items():
        use = group.disks.get(disk, NO_USE)
        now = {"riops": use.reads_s, "wiops": use.writes_s, "rbps": use.read_bytes_s,
               "wbps": use.write_bytes_s}[kind]  # fmt: skip
        limits.append((100 * now / value if value else 100.0, kind, value))
    return sorted(limits, reverse=True)


_Counts = dict[str, dict[str, list[int]]]
"""Path -> disk -> growth of COUNTERS."""


def _growth(now: Mapping[str, int], before: Mapping[str, int]) -> _Counts:
    growth: _Counts = {}
    for name, value in now.items():
        counter, disk, path = name.split(" ", 2)
        if counter in COUNTERS:
            # a new group did all its I/O since the previous reading
            more = delta(value, before.get(name, 0))
            counters = growth.setdefault(path, {}).setdefault(disk, [0] * len(COUNTERS))
            counters[COUNTERS.index(counter)] = int(more or 0)
    return growth


def _rates_of_group(
    path: str,
    disks: Mapping[str, Sequence[int]],
    now: Mapping[str, int],
    before: Mapping[str, int],
    seconds: float,
) -> GroupRates:
    def percent(counter: str) -> float | None:
        name = counter_name(counter, path)
        return ratio(delta(now.get(name), before.get(name)), seconds * 1e4)

    pressure = {name: percent(name) for name in PRESSURES}
    limits = {
        (disk, kind): now[counter_name(kind, path, disk)]
        for disk in disks
        for kind in LIMITS
        if counter_name(kind, path, disk) in now
    }
    cpus = now.get(counter_name("cpu.max", path))
    return GroupRates(
        CONTAINER_ROOT if path == "/" and counter_name(ROOT_FLAG, path) not in now else path,
        {disk: DiskUse(*(growth / seconds for growth in values)) for disk, values in disks.items()
         if any(values)},
        {name: min(100.0, value) for name, value in pressure.items() if value is not None},
        percent(CPU_US),
        now.get(counter_name("memory.current", path)),
        limits,
        None if cpus is None else cpus / 10,
        now.get(counter_name("memory.max", path)),
    )  # fmt: skip
