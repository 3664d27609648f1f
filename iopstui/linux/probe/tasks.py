"""Latencies by process and cgroup, counted in the kernel, and how they are read.

A table of rows, each of one process, cgroup, region and bank of CPUs. A completion looks for its
row at PLACES positions, takes an empty one of these, or counts as lost. The reader empties rows
without requests since the last reading, to make room for others."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress

from iopstui.linux.probe import slowest
from iopstui.linux.probe.bins import BUCKET_BITS, midpoint
from iopstui.linux.probe.bpf import PROBE_READ_KERNEL, STACK, Program
from iopstui.linux.probe.regions import Region
from iopstui.model.metrics.probe import KINDS
from iopstui.model.samples import TaskCounts
from iopstui.text import printable

ROW_BITS = 12
ROW_BYTES = 1 << ROW_BITS
PLACES = 4
MAX_TASKS = 64
MAX_BANKS = 4
BANK_ROWS = 128
# contents of a row: bins of 4 bytes for each direction, then its process and cgroup, bytes, and
# first thread; one bin spans several of fio's and is 12 % wide
_MERGED_BITS = 3
_KIND_BYTES = 1 << 10
_KEY, _GROUP, _BYTES, _OWNER, _COMM, _COMM_TID = range(len(KINDS) << 10, (len(KINDS) << 10) + 48, 8)
_COMM_TID += 8
_HEAD = struct.Struct("<4Q16sI")
# fields of a key: process, region, bank; a key is never 0
_REGION_AT, _BANK_AT, _USED = 32, 48, 1 << 56
_SECTOR_BITS = 9
_EMPTY = bytes(ROW_BYTES)
_WORD = (1 << 32) - 1
# 2^64 divided by the golden ratio (Knuth, multiplicative hashing)
_HASH = 0x9E3779B97F4A7C15
# registers and offsets on the stack, as in counting.py
_RQ, _SLOT, _REGION, _KIND = 6, 7, 8, 9
_BIN, _CPU, _ARGUMENTS, _ROW, _KEY_OF = -16, -24, -32, -40, -48


@dataclass(frozen=True, slots=True)
class TaskMap:
    """The map ``fd`` with ``rows`` (a power of two) for ``banks`` of CPUs (a power of two), then
    the number of requests that found no row."""

    fd: int
    rows: int
    banks: int

    @property
    def size(self) -> int:
        """Size of the map's value in bytes."""
        return map_bytes(self.rows)


def map_bytes(rows: int) -> int:
    """Size in bytes of a map with this number of rows."""
    return (rows << ROW_BITS) + 8


def size_for(cpus: int) -> tuple[int, int]:
    """The numbers (rows, banks) of the map for this number of CPUs."""
    banks = min(1 << (cpus - 1).bit_length(), MAX_BANKS)
    return BANK_ROWS * banks, banks


def count_task(p: Program, origin: slowest.OriginTypes, size_at: int, tasks: TaskMap) -> None:
    """Count the request in the row of its process and cgroup. On the stack is the offset of its bin
    among fio's bins (8 bytes each); ``size_at`` is the argument with its size."""
    _load_key(p, origin, tasks)
    for place in range(PLACES):
        p.do("+", 5, min(place, 1))
        p.do_with("=", 3, 5)
        p.do("&", 3, tasks.rows - 1)
        p.do("<<", 3, ROW_BITS)
        p.value(2, tasks.fd)
        p.do_with("+", 2, 3)
        p.load(8, 3, 2, _KEY)
        p.jump_wide(3, "==", 0, "new task")
        p.jump_with(3, "!=", 4, f"not in {place}")
        p.load(8, 3, 2, _GROUP)
        p.jump_with(3, "==", 1, "task")
        p.label(f"not in {place}")
    p.value(2, tasks.fd, tasks.rows << ROW_BITS)
    p.do("=", 3, 1)
    p.add_atomic(2, 3)
    p.goto("task counted")
    p.label("new task")
    _take_row(p, origin)
    p.label("task")
    p.load(8, 3, STACK, _BIN)
    p.do_with("+", 3, _KIND)
    p.do(">>", 3, 4)
    p.do("&", 3, ROW_BYTES - 4)
    p.do_with("+", 3, 2)
    p.do("=", 1, 1)
    p.add_atomic(3, 1, size=4)
    p.load(8, 1, STACK, _ARGUMENTS)
    p.load(8, 1, 1, size_at)
    p.do("+", 2, _BYTES)
    p.add_atomic(2, 1)
    p.label("task counted")


def _load_key(p: Program, origin: slowest.OriginTypes, tasks: TaskMap) -> None:
    """r1 = the request's cgroup, r4 = the other part of the key, r5 = the hash of both."""
    slowest.load_group(p, origin)
    p.load(8, 4, _SLOT, slowest.OWNER)
    p.do(">>", 4, 32)
    p.do_with("=", 3, _REGION)
    p.do("<<", 3, _REGION_AT - slowest.REGION_BITS)
    p.do_with("|", 4, 3)
    p.load(8, 3, STACK, _CPU)
    p.do("&", 3, tasks.banks - 1)
    p.do("<<", 3, _BANK_AT)
    p.do_with("|", 4, 3)
    p.wide(3, _USED)
    p.do_with("|", 4, 3)
    p.do_with("=", 5, 4)
    p.do_with("+", 5, 1)
    p.wide(3, _HASH)
    p.do_with("*", 5, 3)
    p.do(">>", 5, 65 - tasks.rows.bit_length())


def _take_row(p: Program, origin: slowest.OriginTypes) -> None:
    """Give the row at r2 to this key. If two CPUs take it at once, one request counts for the
    other's key, and the next one finds another row."""
    p.store(2, _GROUP, 1)
    p.load(8, 3, _SLOT, slowest.OWNER)
    p.store(2, _OWNER, 3)
    p.store(STACK, _ROW, 2)
    p.store(STACK, _KEY_OF, 4)
    for offset, size, to in ((origin.comm, slowest.COMM_BYTES, _COMM), (origin.pid, 4, _COMM_TID)):
        p.load(8, 1, STACK, _ROW)
        p.do("+", 1, to)
        p.do("=", 2, size)
        p.load(8, 3, _SLOT, slowest.TASK)
        p.do("+", 3, offset)
        p.call(PROBE_READ_KERNEL)
    p.load(8, 2, STACK, _ROW)
    p.load(8, 4, STACK, _KEY_OF)
    p.store(2, _KEY, 4)


@dataclass(slots=True)
class _Total:
    """The counts of a process, cgroup and region since it was last idle; ``grown`` is the part
    since the last reading."""

    comm: str
    grown: int
    bytes: int
    bins: dict[str, dict[int, int]]


class TaskReader:
    """Reads a mapped TaskMap. ``group_of`` gives the path of a cgroup by its number, ``name_of``
    the name of a process. ``left_out`` counts the requests in no returned row."""

    def __init__(
        self, memory: mmap.mmap | bytearray, tasks: TaskMap, regions: Sequence[Region],
        group_of: Callable[[int], str], name_of: Callable[[int], str],
    ) -> None:  # fmt: skip
        self._memory, self._rows, self._regions = memory, tasks.rows, regions
        self._group_of, self._name_of = group_of, name_of
        self._before: dict[int, tuple[int, bytes]] = {}
        self._totals: dict[tuple[int, int, int], _Total] = {}
        self._more = 0

    @property
    def left_out(self) -> int:
        """The number of requests in no returned row since the beginning."""
        lost = self._memory[self._rows << ROW_BITS : (self._rows << ROW_BITS) + 8]
        return self._more + int.from_bytes(lost, "little")

    def read(self) -> tuple[TaskCounts, ...]:
        """Cumulative counts of tasks that had requests since the last reading, at most MAX_TASKS,
        the tasks with most requests first."""
        for total in self._totals.values():
            total.grown = 0
        with memoryview(self._memory) as memory:
            words = memory[: self._rows << ROW_BITS].cast("Q")
            used = words[_KEY >> 3 :: ROW_BYTES >> 3].tolist()
            del words
        for row in compress(range(self._rows), used):
            self._read_row(row)
        active = sorted(
            ((key, total) for key, total in self._totals.items() if total.grown),
            key=lambda item: -item[1].grown,
        )
        self._more += sum(total.grown for _, total in active[MAX_TASKS:])
        # tasks that are left out start again at 0
        self._totals = dict(active[:MAX_TASKS])
        return tuple(
            TaskCounts(pid, total.comm, self._group_of(group) if group else "",
                       self._regions[region].name, total.bytes >> _SECTOR_BITS,
                       {kind: dict(bins) for kind, bins in total.bins.items()})
            for (pid, region, group), total in self._totals.items()
        )  # fmt: skip

    def _read_row(self, row: int) -> None:
        at = row << ROW_BITS
        key, group, size, owner, comm, tid = _HEAD.unpack_from(self._memory, at + _KEY)
        region = (key >> _REGION_AT) & ((1 << (_BANK_AT - _REGION_AT)) - 1)
        if region >= len(self._regions):
            return
        counts = bytes(self._memory[at : at + _KEY])
        size_before, before = self._before.get(row, (0, _EMPTY[:_KEY]))
        if counts == before:
            self._before.pop(row, None)
            self._memory[at : at + ROW_BYTES] = _EMPTY
            return
        self._before[row] = size, counts
        pid = key & _WORD
        total = self._totals.get((pid, region, group))
        if total is None:
            thread = owner & _WORD
            known = printable(comm.split(b"\0", 1)[0].decode("utf-8", "replace"))
            # the first thread's name is the process's name
            name = known if tid == thread == pid else self._name_of(pid) or known
            total = self._totals[pid, region, group] = _Total(name, 0, 0, {})
        total.bytes += size - size_before
        for number, kind in enumerate(KINDS):
            part = slice(number * _KIND_BYTES, (number + 1) * _KIND_BYTES)
            if counts[part] != before[part]:
                bins = total.bins.setdefault(kind, {})
                total.grown += _add(bins, counts[part], before[part])


def _add(bins: dict[int, int], now: bytes, before: bytes) -> int:
    """Add the growth since the last reading to ``bins``, and return how much it is."""
    grown = 0
    words = zip(memoryview(now).cast("I"), memoryview(before).cast("I"), strict=True)
    for index, (count, last) in enumerate(words):
        if count != last:
            more = (count - last) & _WORD
            middle = _middle(index)
            bins[middle] = bins.get(middle, 0) + more
            grown += more
    return grown


def _middle(index: int) -> int:
    """The middle (ns) of a bin."""
    first = index << _MERGED_BITS
    last = first + (1 << _MERGED_BITS) - 1
    return (midpoint(first, BUCKET_BITS) + midpoint(last, BUCKET_BITS)) // 2
