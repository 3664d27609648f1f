"""Parse the output of bpftrace (``-f json``: one JSON object per line) into probe readings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from iopstui.linux.probe.script import (
    BUCKET_BITS,
    CPU_AT,
    DIRECTION_AT,
    PID_AT,
    REGION_AT,
    TASK_BITS,
    Region,
)
from iopstui.model.metrics.probe import KINDS
from iopstui.model.samples import ProbeSample, TaskCounts
from iopstui.text import printable
from iopstui.untrusted import parse_json

Counts = Mapping[int, int]
GroupOf = Callable[[int], str]

OFFSET_MASK = (1 << DIRECTION_AT) - 1
# bins, directions and regions below the next part of a key
DIRECTION_MASK = (1 << (REGION_AT - DIRECTION_AT)) - 1
REGIONS = (1 << (PID_AT - REGION_AT)) - 1
MAX_TASKS = 64


def midpoint(index: int, bits: int) -> int:
    """The middle (ns) of the bucket with this number, as fio names it (plat_idx_to_val), of
    buckets with ``bits`` below the highest bit."""
    octave = index >> bits
    if octave <= 1:
        return index
    low = ((1 << bits) | (index & ((1 << bits) - 1))) << (octave - 1)
    return low + (1 << (octave - 1) >> 1)


class ProbeOutput:
    """Parses lines of bpftrace and returns each complete reading. ``unknown_lines`` counts unknown
    lines since the last reading, ``keys`` is the capacity of a map, and ``group_of`` returns a
    task's cgroup."""

    def __init__(
        self,
        regions: Sequence[Region],
        parts: Sequence[str],
        probe_number: int,
        keys: int,
        group_of: GroupOf = lambda pid: "",
    ) -> None:
        self.unknown_lines = 0
        self._regions = tuple(regions)
        self._parts = tuple(parts)
        self._probe_number = probe_number
        self._keys = keys
        self._group_of = group_of
        self._groups: dict[int, str] = {}
        self._maps: dict[str, Any] = {}
        self._lost = 0

    def feed(self, line: str, arrived_ns: int) -> ProbeSample | None:
        """The reading that this line completes."""
        if not line.strip():
            return None
        try:
            row = parse_json(line.encode(), is_large=False)
            kind, data = str(row["type"]), row.get("data")
            if kind == "map":
                self._maps.update(data)
            elif kind == "lost_events":
                self._lost += int(data["events"])
            elif kind == "value" and isinstance(data, int):
                return self._finish_sample(data, arrived_ns)
            elif kind not in ("value", "attached_probes", "printf", "time"):
                self.unknown_lines += 1
        except (ValueError, KeyError, TypeError, AttributeError):
            self.unknown_lines += 1
        return None

    def _finish_sample(self, time_ns: int, arrived_ns: int) -> ProbeSample:
        maps, self._maps = self._maps, {}
        self.unknown_lines = 0
        full = sum(
            1
            for map_value in maps.values()
            if isinstance(map_value, dict) and len(map_value) >= self._keys
        )
        names = ("missed", "m"), ("unpaired", "u"), ("requeued", "r"), ("merged", "g")
        counts = {name: _count_of(maps, key) for name, key in (*names, ("sequential", "s"))}
        sizes = counts_by_disk(self._regions, _ints(maps, "z"), lambda low: 512 << low)
        counts["issued"] = sum(
            n for d in self._whole_disks(sizes) for k in d.values() for n in k.values()
        )
        return ProbeSample(
            time_ns=time_ns,
            arrived_ns=arrived_ns,
            parts=self._parts,
            begun=self._probe_number,
            device=counts_by_disk(self._regions, _ints(maps, "d"), bucket_middle),
            waiting=counts_by_disk(self._regions, _ints(maps, "w"), bucket_middle),
            matrix=_matrix(_ints(maps, "x")),
            sizes=sizes,
            tasks=self._tasks(maps),
            counts={**counts, "lost": self._lost, "full": full},
        )

    def _whole_disks(self, by_disk: Mapping[str, Any]) -> list[Any]:
        return [by_disk[r.name] for r in self._regions if r.last is None and r.name in by_disk]

    def _tasks(self, maps: Mapping[str, Any]) -> tuple[TaskCounts, ...]:
        names = maps.get("@n") or {}
        sectors = _ints(maps, "b")
        bins: dict[int, dict[str, dict[int, int]]] = {}
        for key, count in _ints(maps, "q").items():
            task = key >> REGION_AT << REGION_AT
            kind = KINDS[(key >> DIRECTION_AT) & DIRECTION_MASK]
            task_bins = bins.setdefault(task, {}).setdefault(kind, {})
            task_bins[midpoint(key & OFFSET_MASK, TASK_BITS)] = count
        busiest = sorted(bins, key=lambda task: -sum(map(_total, bins[task].values())))
        tasks = []
        for task in busiest[:MAX_TASKS]:
            pid = task >> PID_AT
            disk = self._regions[(task >> REGION_AT) & REGIONS].name
            comm = printable(str(names.get(str(pid), "")))
            tasks.append(
                TaskCounts(pid, comm, self._group(pid), disk, sectors.get(task, 0), bins[task])
            )
        return tuple(tasks)

    def _group(self, pid: int) -> str:
        if pid not in self._groups:
            if len(self._groups) > 4096:
                self._groups.clear()
            self._groups[pid] = self._group_of(pid)
        return self._groups[pid]


def counts_by_disk(
    regions: Sequence[Region], counts: Counts, value: Callable[[int], int]
) -> dict[str, dict[str, dict[int, int]]]:
    """``counts`` by region's number, direction and bin as counts by name, direction and ``value``
    of the bin. A partition's requests are its disk's as well."""
    by_disk: dict[str, dict[str, dict[int, int]]] = {
        region.name: {kind: {} for kind in KINDS} for region in regions
    }
    bins_of: dict[int, list[dict[int, int]]] = {}
    for key, count in counts.items():
        place = key >> DIRECTION_AT
        if place not in bins_of:
            kind, region = KINDS[place & DIRECTION_MASK], regions[(key >> REGION_AT) & REGIONS]
            bins_of[place] = [
                by_disk[each.name][kind] for each in regions
                if each is region or (each.last is None and each.devs == region.devs)
            ]  # fmt: skip
        low = value(key & OFFSET_MASK)
        for bins in bins_of[place]:
            bins[low] = bins.get(low, 0) + count
    return by_disk


@cache
def bucket_middle(low: int) -> int:
    """The middle (ns) of the bucket of a latency with this number."""
    return midpoint(low, BUCKET_BITS)


def _total(bins: Mapping[int, int]) -> int:
    return sum(bins.values())


def _matrix(counts: Counts) -> dict[int, dict[int, int]]:
    """The CPU 0 of a key is: not known."""
    matrix: dict[int, dict[int, int]] = {}
    for key, count in counts.items():
        submitter = (key >> CPU_AT) - 1
        if submitter >= 0:
            matrix.setdefault(submitter, {})[key & ((1 << CPU_AT) - 1)] = count
    return matrix


def _ints(maps: Mapping[str, Any], name: str) -> dict[int, int]:
    entries = maps.get(f"@{name}")
    return {int(k): int(n) for k, n in entries.items()} if isinstance(entries, dict) else {}


def _count_of(maps: Mapping[str, Any], name: str) -> int:
    count = maps.get(f"@{name}", 0)
    return int(count) if isinstance(count, int) else 0
