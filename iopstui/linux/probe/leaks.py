"""Remove stale requests, whose completion was not seen, from the probe's maps.

bpftrace's own ``clear()`` ends it (0.17, "Could not clear map") where a request completes at that
moment, and would drop those in flight. So each is looked at, and only the old ones go.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from iopstui.linux.probe import bpf
from iopstui.linux.probe.script import TIME_MASK

# what bpftrace calls @t and @p in the kernel
TIMES, TASKS = "AT_t", "AT_p"
LEAK_AGE_NS = 5_000_000_000
"""A request in flight for longer is taken for one that has ended, and counted as missed when it
ends after all."""


def drop_leaks(pid: int, now_ns: int, proc: Path = Path("/proc")) -> int:
    """Drop what the maps of process ``pid`` have kept for longer than LEAK_AGE_NS; return how
    many. ``now_ns``: monotonic clock. 0, too, if the kernel does not let us look."""
    maps = _maps(pid, proc)
    try:
        times = _map(maps, TIMES)
        if times is None:
            return 0
        tasks = _map(maps, TASKS)
        # before the times: what begins meanwhile isn't among these
        task_keys = [(tasks, key) for key in tasks] if tasks is not None else []
        remaining, dropped = set(), 0
        for key in list(times):
            value = times.get(key)
            if value is not None and (now_ns - value) & TIME_MASK > LEAK_AGE_NS:
                dropped += times.delete(key)
            elif value is not None:
                remaining.add(key)
        for map_of, key in task_keys:
            if key not in remaining:
                map_of.delete(key)
        return dropped
    finally:
        for fd, _ in maps.values():
            os.close(fd)


def _maps(pid: int, proc: Path) -> dict[str, tuple[int, int]]:
    """Descriptor and room of each map of the process, by its name."""
    maps: dict[str, tuple[int, int]] = {}
    with contextlib.suppress(OSError):
        for file in (proc / str(pid) / "fdinfo").iterdir():
            number = _map_id(file)
            fd = bpf.open_map(number) if number is not None else -1
            if fd < 0:
                continue
            described = bpf.describe_map(fd)
            if described is None or described[0] in maps:
                os.close(fd)
            else:
                maps[described[0]] = (fd, described[1])
    return maps


def _map_id(file: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            if line.startswith("map_id:"):
                return int(line.partition(":")[2])
    return None


def _map(maps: dict[str, tuple[int, int]], name: str) -> bpf.Map | None:
    entry = maps.get(name)
    return bpf.Map(*entry) if entry is not None else None
