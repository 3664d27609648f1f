"""cgroups: what runs in one, by its path alone, and its I/O rates, from its counters.

Sources: systemd.slice(5) and systemd.unit(5) (escapes), and the cgroup paths of Docker and Podman
(cgroupfs and systemd drivers), containerd, CRI-O, kubelet, LXC, systemd-nspawn, libvirt and Slurm.
No daemon is asked, so a container is called by the beginning of its id, not by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from iopstui import format as f
from iopstui.model.figures.figure import BY_KEY, TEXT, Figure, Part, Rows
from iopstui.model.rates import delta, ratio
from iopstui.model.sizes import MIB
from iopstui.text import printable

UNIT, CONTAINER, POD, USER, SLICE, MACHINE, JOB, GROUP, ROOT = (
    "unit", "container", "pod", "user", "slice", "machine", "job", "group", "root",
)  # fmt: skip
"""The kinds of groups. ROOT stands for I/O that no group is charged with: the kernel's own."""
CONTAINER_ROOT = "."
"""The path that stands for a container's own group, if the real root is not visible."""
MAX_NAMES = 4096
"""Size of the cache of names: each sample needs them all again."""
SHORT_ID = 12
"""Characters of a container's id that Docker and Podman show."""
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_ID = re.compile(r"(?:(?P<runtime>[a-z][a-z-]*)-)?(?P<id>[0-9a-f]{64}|[0-9a-f]{32})(?:\.scope)?")
_POD = re.compile(
    r"(?:kubepods(?:-(?:burstable|besteffort))?-)?pod(?P<uid>[0-9a-f]{8}[0-9a-f_-]*)(?:\.slice)?"
)
_RUNTIMES = {"libpod": "podman", "cri-containerd": "containerd", "crio": "cri-o"}
_PARENTS = {"docker": "docker", "libpod_parent": "podman", "k8s.io": "containerd",
            "actions_job": "docker", "garden": "garden"}  # fmt: skip
_MANAGER = re.compile(r"user@([0-9]+)\.service")
_USER_SLICE = re.compile(r"user-([0-9]+)\.slice")
_SLURM_JOB = re.compile(r"job_([0-9]+)")


@dataclass(frozen=True, slots=True)
class GroupName:
    """The name of a group: ``kind`` is one of this module's constants, ``name`` is the name that
    people use. ``whole``: the groups below it are its own parts and need no names. ``pod`` is the
    id of the pod that it is or belongs to."""

    kind: str
    name: str
    whole: bool = False
    pod: str = ""

    @property
    def text(self) -> str:
        """The name and its kind, unless the name shows the kind ("nginx.service")."""
        return self.name if self.kind in (UNIT, SLICE, GROUP, ROOT) else f"{self.kind} {self.name}"


@lru_cache(MAX_NAMES)
def group_name(path: str) -> GroupName:
    """Name a cgroup by its path ("/" is the top). Parents in the path may give the name as well.
    The result is safe to print."""
    group = _group_name(path)
    return replace(group, name=printable(group.name))


def _group_name(path: str) -> GroupName:
    if path == CONTAINER_ROOT:
        return GroupName(GROUP, "(this container)")
    parts = [part for part in path.split("/") if part]
    if not parts:
        return GroupName(ROOT, "(no group)")
    pod = next((match["uid"] for part in parts if (match := _POD.fullmatch(part))), None)
    if pod is not None:
        return _pod_name(pod.replace("_", "-"), parts)
    return (
        _container_name(parts)
        or _machine_name(parts)
        or _slurm_job_name(parts)
        or _systemd_name(parts, path)
    )


def _pod_name(uid: str, parts: list[str]) -> GroupName:
    for part in parts:
        match = _ID.fullmatch(part)
        if match is not None:
            return GroupName(POD, f"{uid[:8]} {_short_id(match['id'])}", True, uid)
    if _POD.fullmatch(parts[-1]):
        return GroupName(POD, uid[:8], pod=uid)
    return GroupName(POD, f"{uid[:8]} {unescape(parts[-1])}", True, uid)


def _container_name(parts: list[str]) -> GroupName | None:
    for place, part in enumerate(parts):
        # nested drivers write "system.slice:cri-containerd:ID"
        match = _ID.fullmatch(part.rpartition(":")[2])
        if match is None:
            continue
        runtime = match["runtime"] or ""
        if not runtime and place:
            runtime = _PARENTS.get(parts[place - 1], "")
        if runtime.endswith("-conmon"):
            return GroupName(CONTAINER, f"{_short_id(match['id'])} (conmon)", whole=True)
        runtime = _RUNTIMES.get(runtime, runtime)
        return GroupName(CONTAINER, f"{runtime} {_short_id(match['id'])}".strip(), whole=True)
    return None


def _machine_name(parts: list[str]) -> GroupName | None:
    """The name of a virtual machine (libvirt) or a system container (LXC, Incus, systemd-nspawn);
    ``None`` for any other group."""
    for place, part in enumerate(parts):
        if part.startswith("lxc.payload"):
            return GroupName(MACHINE, part.removeprefix("lxc.payload")[1:], whole=True)
        if part == "lxc" and place + 1 < len(parts):
            return GroupName(MACHINE, parts[place + 1], whole=True)
        if part.startswith("machine-") and part.endswith(".scope"):
            name = unescape(part.removeprefix("machine-").removesuffix(".scope"))
            return GroupName(MACHINE, re.sub(r"^(?:qemu|lxc)-[0-9]+-", "", name), whole=True)
        if part.startswith("systemd-nspawn@"):
            name = part.removeprefix("systemd-nspawn@").removesuffix(".service")
            return GroupName(MACHINE, unescape(name), whole=True)
    return None


def _slurm_job_name(parts: list[str]) -> GroupName | None:
    if not any(part.startswith("slurm") for part in parts):
        return None
    number = next((match[1] for part in parts if (match := _SLURM_JOB.fullmatch(part))), None)
    return GroupName(JOB, f"Slurm {number}", whole=True) if number else None


def _systemd_name(parts: list[str], path: str) -> GroupName:
    user = next((match[1] for part in parts if (match := _USER_SLICE.fullmatch(part))), None)
    of_user = f" (user {user})" if user else ""
    for part in parts:
        unit = part.endswith((".service", ".scope", ".socket", ".mount", ".swap"))
        # a user's own manager has its units below it
        if unit and not _MANAGER.fullmatch(part):
            return GroupName(UNIT, unescape(part) + of_user, whole=True)
    last = parts[-1]
    if _USER_SLICE.fullmatch(last):
        return GroupName(USER, str(user))
    if _MANAGER.fullmatch(last) or last.endswith(".slice"):
        return GroupName(SLICE, unescape(last) + of_user)
    return GroupName(GROUP, path)


def unescape(name: str) -> str:
    r"""Undo systemd's escapes such as ``\x2d`` (systemd-escape(1))."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


def _short_id(identifier: str) -> str:
    return identifier[:SHORT_ID]


# Counters of each cgroup without the groups below it, from counters that include these.
#
# The files are read one after another, so a group may be ahead of the one above it. Therefore a
# group's own count is the highest difference that was ever seen: nothing is counted twice, and an
# I/O that one reading misses is in the next.


Counts = tuple[int, ...]
Totals = Mapping[tuple[str, str], Counts]
"""Counts by path ("/" is the top) and disk."""


class OwnCounts:
    """Each cgroup's own counts; feed it each reading. The counts in ``own`` add up to the counters
    of the top."""

    def __init__(self) -> None:
        self._last: Totals = {}
        self._own: dict[tuple[str, str], Counts] = {}
        self._gone: dict[tuple[str, str], Counts] = {}

    def feed(self, totals: Totals) -> dict[tuple[str, str], Counts]:
        """Return the I/O that each group in this reading has done by itself so far."""
        paths = {path for path, _ in totals}
        self._note_gone(totals, paths)
        remaining = {key: _subtract(n, self._gone.get(key)) for key, n in totals.items()}
        for (path, disk), counts in totals.items():
            above = nearest_ancestor(path, paths)
            if above is not None and (above, disk) in remaining:
                remaining[above, disk] = _subtract(remaining[above, disk], counts)
        own = {}
        for key, counts in remaining.items():
            before = self._own.get(key, (0,) * len(counts))
            own[key] = tuple(map(max, before, counts))
        self._last, self._own = dict(totals), own
        return own

    def _note_gone(self, totals: Totals, paths: set[str]) -> None:
        """Note the I/O of removed groups: it was counted already, and must not be added to the
        group above."""
        for (path, disk), counts in self._last.items():
            now = totals.get((path, disk))
            restarted = now is not None and any(a < b for a, b in zip(now, counts, strict=True))
            if now is not None and not restarted:
                continue
            self._own.pop((path, disk), None)
            self._gone.pop((path, disk), None)
            last_paths = {path for path, of in self._last if of == disk}
            if nearest_ancestor(path, last_paths) == nearest_ancestor(path, paths):
                above = (nearest_ancestor(path, paths) or "", disk)
                self._gone[above] = _add(self._gone.get(above), counts)


def nearest_ancestor(path: str, paths: set[str]) -> str | None:
    """The nearest group above that was read."""
    while path not in ("", "/"):
        path = path.rpartition("/")[0] or "/"
        if path in paths:
            return path
    return None


def _subtract(counts: Counts, subtracted: Counts | None) -> Counts:
    return (
        counts
        if subtracted is None
        else tuple(a - b for a, b in zip(counts, subtracted, strict=True))
    )


def _add(counts: Counts | None, added: Counts) -> Counts:
    return added if counts is None else tuple(a + b for a, b in zip(counts, added, strict=True))


SOURCE = "cgroups"
"""The name of these counters in a sample (KernelSample.more)."""
COUNTERS = ("rios", "wios", "rbytes", "wbytes")
"""Names of the counters from io.stat, counted for each disk without the groups below."""
PRESSURES = ("io.some", "io.full", "cpu.some", "memory.some", "memory.full")
"""Counters from the pressure files, in µs."""
LIMITS = ("riops", "wiops", "rbps", "wbps")
"""Names of the limits in io.max, which are set for each disk."""
CPU_US = "cpu.usage"
AT_NS = "at_ns"
"""When the files were read. Needed because reading many files takes a while, and not always equally
long."""
ROOT_FLAG = "root"
"""A counter that is present if "/" is the machine's root, not a container's."""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """I/O of a group on one disk, per second."""

    reads_s: float
    writes_s: float
    read_bytes_s: float
    write_bytes_s: float

    def times(self, factor: float) -> DiskUse:
        return DiskUse(self.reads_s * factor, self.writes_s * factor,
                       self.read_bytes_s * factor, self.write_bytes_s * factor)  # fmt: skip

    @property
    def ios_s(self) -> float:
        """Reads and writes per second."""
        return self.reads_s + self.writes_s

    @property
    def bytes_s(self) -> float:
        """Bytes read and written per second."""
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
        """The name of the container, pod or unit that runs in the group."""
        return group_name(self.path)

    @property
    def total(self) -> DiskUse:
        return sum_uses(self.disks.values())


def _use(of: str) -> tuple[Figure, Figure, Figure, Figure]:
    scope = f"per second by this group, without those below it, {of}"
    return (
        Figure("r/s", "1/s", f"reads {scope}", "reads_s"),
        Figure("w/s", "1/s", f"writes {scope}", "writes_s"),
        Figure(
            "rMB/s", "MiB/s", f"read {scope}", "read_bytes_s", scale=MIB, form=f.mib, title="rMiB/s"
        ),
        Figure(
            "wMB/s",
            "MiB/s",
            f"written {scope}",
            "write_bytes_s",
            scale=MIB,
            form=f.mib,
            title="wMiB/s",
        ),
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
GROUP_ROWS: Rows = (
    Figure("cgroup", "", "path of a cgroup that did I/O on the target's disks (watch --cgroups)",
           "path", kind=TEXT),
    Figure("kind", "", "what runs in it, by its path: unit, container, pod, machine, job, user, "
           "slice, group, or root for I/O that no group is charged with", "name/kind", kind=TEXT),
    Figure("name", "", "name: a systemd unit, the beginning of a container's or pod's id",
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
    readings. ``seconds`` is the time between them; it is used if they don't contain their times
    (AT_NS)."""
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
    """For each limit (percentage in use, its name in LIMITS, its value), the one closest to being
    reached first."""
    limits = []
    for (disk, kind), value in group.io_limits.items():
        use = group.disks.get(disk, NO_USE)
        now = {"riops": use.reads_s, "wiops": use.writes_s, "rbps": use.read_bytes_s,
               "wbps": use.write_bytes_s}[kind]  # fmt: skip
        limits.append((100 * now / value if value else 100.0, kind, value))
    return sorted(limits, reverse=True)


_Counts = dict[str, dict[str, list[int]]]
"""Growth of each of COUNTERS, by path and disk."""


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
