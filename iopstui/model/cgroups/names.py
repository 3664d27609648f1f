"""What runs in a cgroup, by its path alone: a systemd unit, a container, a pod, a login.

Sources: systemd.slice(5) and systemd.unit(5) (escapes), the cgroup paths that Docker and Podman
(cgroupfs and systemd drivers), containerd, CRI-O, kubelet, LXC, systemd-nspawn, libvirt and Slurm
make. No daemon is asked, so a container is called by the beginning of its id, not by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from iopstui.text import printable

UNIT, CONTAINER, POD, USER, SLICE, MACHINE, JOB, GROUP, ROOT = (
    "unit", "container", "pod", "user", "slice", "machine", "job", "group", "root",
)  # fmt: skip
"""The kinds of groups. ROOT stands for I/O that no group is charged with: the kernel's own."""
CONTAINER_ROOT = "."
"""The path of the top if that is a container's own group, because the real root is not visible."""
MAX_NAMES = 4096
"""How many names are kept, because each is needed for every sample."""
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
    """The name of a group: ``kind`` is one of this module's constants, ``name`` is what people call
    it. ``whole``: the groups below it are its own parts and need no names. ``pod`` is the id of the
    pod that it is or belongs to."""

    kind: str
    name: str
    whole: bool = False
    pod: str = ""

    @property
    def text(self) -> str:
        """The name and its kind, unless the name says the kind itself ("nginx.service")."""
        return self.name if self.kind in (UNIT, SLICE, GROUP, ROOT) else f"{self.kind} {self.name}"


@lru_cache(MAX_NAMES)
def group_name(path: str) -> GroupName:
    """The name of a cgroup, "/" for the top, also found from the groups above it. It is safe to
    print."""
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
    """Virtual machines (libvirt), system containers (LXC, Incus, systemd-nspawn)."""
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
    r"""systemd's ``\x2d`` undone (systemd-escape(1))."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


def _short_id(identifier: str) -> str:
    return identifier[:SHORT_ID]


# Counters of each cgroup without the groups below it, from counters that include these.
#
# The files are read one after another, so a group may be ahead of the one above it. Therefore a
# group's own count is the highest difference that was ever seen: nothing is counted twice, and what
# comes late in one reading is in the next.


Counts = tuple[int, ...]
Totals = Mapping[tuple[str, str], Counts]
"""Counts by path ("/" is the top) and disk."""


class OwnCounts:
    """Each cgroup's own counts; feed each reading. All counts in ``own`` add up to the top's
    counters."""

    def __init__(self) -> None:
        self._last: Totals = {}
        self._own: dict[tuple[str, str], Counts] = {}
        self._gone: dict[tuple[str, str], Counts] = {}

    def feed(self, totals: Totals) -> dict[tuple[str, str], Counts]:
        """What each group in this reading has done by itself so far."""
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
        """Note what removed groups did: it was counted already, and must not be added to the group
        above."""
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
