"""Whether a cgroup throttles iopstui and the fio it starts.

Sources: Documentation/admin-guide/cgroup-v2.rst (cpu.stat throttled_usec, cpu.max) and
Documentation/scheduler/sched-bwc.rst (cgroup v1: cpu.stat throttled_time, in ns).
"""

from __future__ import annotations

from pathlib import Path

from iopstui.linux.roots import Roots


def parse_throttled_us(data: bytes) -> int | None:
    """Microseconds throttled so far, from cpu.stat of either version; None if it has none."""
    for line in data.splitlines():
        name, _, value = line.partition(b" ")
        if name in (b"throttled_usec", b"throttled_time") and value.strip().isdigit():
            return int(value) // (1000 if name == b"throttled_time" else 1)
    return None


def cpu_stat_files(roots: Roots) -> tuple[Path, ...]:
    """cpu.stat of this process's cgroup and of every one above it, nearest first."""
    try:
        lines = (roots.proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return ()
    found: list[Path] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            found += _upwards(roots.sys / "fs/cgroup", path)
        elif "cpu" in controllers.split(","):
            for name in (controllers, "cpu"):
                found += _upwards(roots.sys / "fs/cgroup" / name, path)
    return tuple(dict.fromkeys(found))


def _upwards(top: Path, path: str) -> list[Path]:
    # "/../x" is a group outside of this cgroup namespace: it can't be seen from here
    here = top if ".." in path.split("/") else top / path.strip("/")
    places = [here, *here.parents]
    return [
        place / "cpu.stat"
        for place in places
        if (place == top or top in place.parents) and (place / "cpu.stat").is_file()
    ]
