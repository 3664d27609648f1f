"""The slowest requests and a random sample, kept in the kernel, and how they are read. Each CPU has
its own sets, written only by its completions: for each direction the COUNT requests with the
largest key. The key of one set is the time from allocation to completion; the key of the other is a
hash of the time, which gives a uniform random sample. The largest keys of all CPUs together are
exact for both sets. Most requests cost only a comparison with the smallest key of each set. There
are two buffers: the programs write to the one named in word 0 of the map; the reader swaps them,
reads the other one, and empties it."""

from __future__ import annotations

import heapq
import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from iopstui.linux.probe.bpf import (
    GET_CURRENT_PID_TGID,
    GET_CURRENT_TASK,
    PROBE_READ_KERNEL,
    Program,
    Types,
)
from iopstui.linux.probe.regions import Region
from iopstui.model.metrics.slow.slow_requests import FLUSHES, SLOW_KINDS, rwbs
from iopstui.model.samples import Exemplar
from iopstui.text import printable

STRUCTS = (
    "blk_mq_ctx",
    "task_struct",
    "bio",
    "blkcg_gq",
    "blkcg",
    "cgroup_subsys_state",
    "cgroup",
    "kernfs_node",
)
SET_SIZE = 10
"""Number of requests in a set."""
# contents of a slot of counting.py: request, issued, inserted, thread and process, the kernel's
# task, scratch
ISSUED, INSERTED, OWNER, TASK, SCRATCH = 8, 16, 24, 32, 40
COMM_BYTES = 16
SLOT_BITS = 6
# layout of a set: the smallest key and its index, all keys, then an entry for each request
_SMALLEST, _SMALLEST_AT, _KEYS = 0, 8, 16
_ENTRIES = _KEYS + 8 * SET_SIZE
_ENTRY = struct.Struct("<6Q6IQ16sII")
ENTRY_BYTES = _ENTRY.size
SET_BYTES = _ENTRIES + SET_SIZE * ENTRY_BYTES
BUFFER_BYTES = 2 * len(SLOW_KINDS) * SET_BYTES
CPU_BYTES = 2 * BUFFER_BYTES
HEAD_BYTES = 8
_EMPTY = bytes(_ENTRIES)
_HEAD = struct.Struct(f"<{SET_SIZE}Q")
# odd 64-bit constants of MurmurHash3's finalizer
_MIX_1, _MIX_2 = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_MASK = (1 << 64) - 1
# registers and offsets on the stack, as in counting.py
_RQ, _SLOT, _REGION, _SET = 6, 7, 8, 9
_STACK, _NOW, _CPU, _ARGUMENTS, _PLACE = 10, -8, -24, -32, -40
REGION_BITS = 16


@dataclass(frozen=True, slots=True)
class OriginTypes:
    """Offsets (bytes) in this kernel's types: when and by which CPU a request was allocated, a
    thread's number and name, a request's first bio, and the path from there to the number of its
    cgroup (empty: this kernel has none)."""

    start_time: int
    ctx: int
    cpu: int
    pid: int
    comm: int
    bio: int
    group: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """Offsets of the other parts of an entry, as in KernelTypes (counting.py), and the position of
    the request's error among the arguments."""

    origin: OriginTypes
    hctx: int
    number: int
    flags: int
    bytes_left: int
    sector: int
    error_at: int


@dataclass(frozen=True, slots=True)
class SlowestMap:
    """The map (descriptor ``fd``) that holds the sets of each CPU; ``cpus`` is a power of two."""

    fd: int
    cpus: int

    @property
    def size(self) -> int:
        """Size of the map's value in bytes."""
        return map_bytes(self.cpus)


def map_bytes(cpus: int) -> int:
    """Size in bytes of a map for this number of CPUs."""
    return HEAD_BYTES + cpus * CPU_BYTES


def origin_of(types: Types) -> OriginTypes | None:
    """Extract the offsets from BTF; ``None`` if this kernel lacks what is needed."""
    try:
        request, ctx = types.members("request"), types.members("blk_mq_ctx")
        task = types.members("task_struct")
        offsets = OriginTypes(request["start_time_ns"], request["mq_ctx"], ctx["cpu"], task["pid"],
                            task["comm"], request["bio"], ())  # fmt: skip
    except KeyError:
        return None
    try:
        state = types.members("blkcg")["css"] + types.members("cgroup_subsys_state")["cgroup"]
        group_path = (types.members("bio")["bi_blkg"], types.members("blkcg_gq")["blkcg"], state,
               types.members("cgroup")["kn"], types.members("kernfs_node")["id"])  # fmt: skip
    except KeyError:
        return offsets
    return replace(offsets, group=group_path)


def jump_if_inserted(p: Program, origin: OriginTypes, to: str) -> None:
    """Jump if the slot has an insertion of this request that was not issued since. (An older
    insertion may be left from an earlier request whose end was not seen.)"""
    p.load(8, 3, _SLOT, 0)
    p.jump_with(3, "!=", _RQ, "anew")
    p.load(8, 3, _SLOT, ISSUED)
    p.jump_wide(3, "!=", 0, "anew")
    p.load(8, 3, _SLOT, INSERTED)
    p.load(8, 4, _RQ, origin.start_time)
    p.jump_with(3, ">=", 4, to)
    p.label("anew")


def note_insertion(p: Program, requeued: bool) -> None:
    """Store r0 as the time of the insertion. Its lowest bit is set if the request was sent back."""
    p.do("|", 0, 1)
    if not requeued:
        p.do("-", 0, 1)
    p.store(_SLOT, INSERTED, 0)


def note_owner(p: Program) -> None:
    """Store the current thread; its name is looked up only for requests that are kept."""
    p.call(GET_CURRENT_PID_TGID)
    p.store(_SLOT, OWNER, 0)
    p.call(GET_CURRENT_TASK)
    p.store(_SLOT, TASK, 0)


def offer(p: Program, entry: Entry) -> None:
    """Put the request into the set at register 9 and into the following one, if its keys are large
    enough. Leaves register 9 after the second set."""
    p.load(8, 4, _STACK, _NOW)
    p.load(8, 3, _RQ, entry.origin.start_time)
    p.jump_wide(3, "!=", 0, "allocated")
    p.load(8, 3, _SLOT, ISSUED)
    p.label("allocated")
    p.do_with("-", 4, 3)
    _offer(p, entry, "slow")
    p.do("+", _SET, SET_BYTES)
    p.load(8, 4, _STACK, _NOW)
    p.load(8, 3, _RQ, entry.sector)
    p.do_with("^", 4, 3)
    _mix(p)
    _offer(p, entry, "random")


def _mix(p: Program) -> None:
    """Replace r4 by its hash."""
    for constant in (_MIX_1, _MIX_2):
        p.do_with("=", 3, 4)
        p.do(">>", 3, 33)
        p.do_with("^", 4, 3)
        p.wide(3, constant)
        p.do_with("*", 4, 3)


def hash_value(n: int) -> int:
    """The hash that ``_mix`` computes in the kernel."""
    for constant in (_MIX_1, _MIX_2):
        n = (n ^ n >> 33) * constant & _MASK
    return n


def _offer(p: Program, entry: Entry, name: str) -> None:
    p.load(8, 3, _SET, _SMALLEST)
    p.jump_with(3, ">=", 4, f"{name} no")
    p.load(8, 5, _SET, _SMALLEST_AT)
    p.jump_wide(5, ">=", SET_SIZE, f"{name} no")
    p.do_with("=", 1, 5)
    p.do("<<", 1, 3)
    p.do_with("+", 1, _SET)
    p.store(1, _KEYS, 4)
    p.do("*", 5, ENTRY_BYTES)
    p.do_with("+", 5, _SET)
    _fill(p, entry)
    _find_smallest(p, name)
    p.label(f"{name} no")


def _find_smallest(p: Program, name: str) -> None:
    p.load(8, 3, _SET, _KEYS)
    p.do("=", 5, 0)
    for place in range(1, SET_SIZE):
        p.load(8, 1, _SET, _KEYS + 8 * place)
        p.jump_with(1, ">=", 3, f"{name} {place}")
        p.do_with("=", 3, 1)
        p.do("=", 5, place)
        p.label(f"{name} {place}")
    p.store(_SET, _SMALLEST, 3)
    p.store(_SET, _SMALLEST_AT, 5)


def _fill(p: Program, entry: Entry) -> None:
    """Write the entry at offset r5 of the set. Clobbers r0 to r3."""
    origin, at = entry.origin, iter(range(_ENTRIES, 1 << 12, 8))
    for address, offset in (
        (_STACK, _NOW), (_SLOT, ISSUED), (_SLOT, INSERTED), (_RQ, origin.start_time),
        (_SLOT, OWNER), (_RQ, entry.sector),
    ):  # fmt: skip
        p.load(8, 1, address, offset)
        p.store(5, next(at), 1)
    _pair(p, next(at), (_RQ, entry.bytes_left), (_RQ, entry.flags))
    p.load(8, 3, _RQ, origin.ctx)
    p.load(8, 2, _STACK, _CPU)
    _with_upper(p, next(at), (3, origin.cpu))
    p.load(8, 3, _RQ, entry.hctx)
    p.do_with("=", 2, _REGION)
    p.do(">>", 2, REGION_BITS)
    _with_upper(p, next(at), (3, entry.number))
    load_group(p, origin)
    p.store(5, next(at), 1)
    name = next(at)
    next(at)
    end = next(at)
    p.load(8, 1, _STACK, _ARGUMENTS)
    p.load(8, 1, 1, 8 * entry.error_at)
    p.store(5, end, 1)
    # safe even if the thread is gone; the stored number shows whether the name is of this thread
    p.store(_STACK, _PLACE, 5)
    for offset, size, to in ((origin.comm, COMM_BYTES, name), (origin.pid, 4, end + 4)):
        p.load(8, 1, _STACK, _PLACE)
        p.do("+", 1, to)
        p.do("=", 2, size)
        p.load(8, 3, _SLOT, TASK)
        p.do("+", 3, offset)
        p.call(PROBE_READ_KERNEL)


def forget(p: Program, register: int, mask: int) -> None:
    """Make the kernel's verifier forget everything about this register except that it is within
    ``mask``: it then checks the following code once, not once for each region, direction and size
    of bin (0.03 s instead of 3 s)."""
    p.store(_SLOT, SCRATCH, register)
    p.load(8, register, _SLOT, SCRATCH)
    p.do("&", register, mask)


def load_group(p: Program, origin: OriginTypes) -> None:
    """r1 = the number of the cgroup that the request is charged to (0: unknown)."""
    p.do("=", 1, 0)
    if origin.group:
        p.load(8, 1, _RQ, origin.bio)
        for offset in origin.group:
            p.load(8, 1, 1, offset)


def _pair(p: Program, at: int, low: tuple[int, int], high: tuple[int, int]) -> None:
    """Store two words of 32 bits at offset ``at`` of the entry."""
    p.load(4, 2, *high)
    _with_upper(p, at, low)


def _with_upper(p: Program, at: int, low: tuple[int, int]) -> None:
    """Store at offset ``at`` the word at ``low``, with r2 as the upper word."""
    p.load(4, 1, *low)
    p.do("<<", 2, 32)
    p.do_with("|", 1, 2)
    p.store(5, at, 1)


class SlowestReader:
    """Reads the sets of a mapped SlowestMap. ``group_of`` gives the path of a cgroup by its number.
    ``torn`` counts entries that were read while they were written."""

    def __init__(
        self, memory: mmap.mmap | bytearray, cpus: int, regions: Sequence[Region],
        group_of: Callable[[int], str],
    ) -> None:  # fmt: skip
        self._memory, self._cpus, self._regions = memory, cpus, regions
        self._group_of = group_of
        self._buffer = 0
        self.torn = 0

    def swap_buffers(self) -> None:
        """Make the programs write to the other buffer. Some time later ``read`` reads this one."""
        self._buffer ^= 1
        self._memory[:HEAD_BYTES] = self._buffer.to_bytes(HEAD_BYTES, "little")

    def read(self) -> tuple[Exemplar, ...]:
        """Read the buffer that was written until ``swap_buffers``, and empty it. Returns the
        slowest first."""
        by_request: dict[tuple[int, ...], Exemplar] = {}
        for kind in SLOW_KINDS:
            for sampled in (False, True):
                for key, entry in self._largest(SLOW_KINDS.index(kind), sampled):
                    exemplar = self._exemplar(kind, key, entry, sampled)
                    if exemplar is None:
                        self.torn += 1
                        continue
                    request_key = (
                        exemplar.completed_ns,
                        exemplar.sector or 0,
                        exemplar.cpu_done,
                        exemplar.level,
                    )
                    if request_key in by_request:
                        exemplar = replace(exemplar, slow=True, sampled=True)
                    by_request[request_key] = exemplar
        return tuple(sorted(by_request.values(), key=lambda request: -request.total_ns))

    def _largest(self, kind: int, sampled: bool) -> Iterator[tuple[int, bytes]]:
        """The largest keys of all CPUs with their entries."""
        memory, keys = self._memory, []
        for cpu in range(self._cpus):
            at = HEAD_BYTES + cpu * CPU_BYTES + (self._buffer ^ 1) * BUFFER_BYTES
            at += (2 * kind + sampled) * SET_BYTES
            for place, key in enumerate(_HEAD.unpack_from(memory, at + _KEYS)):
                if key:
                    entry = at + _ENTRIES + place * ENTRY_BYTES
                    keys.append((key, entry))
        for key, entry in heapq.nlargest(SET_SIZE, keys):
            yield key, bytes(memory[entry : entry + ENTRY_BYTES])
        for cpu in range(self._cpus if keys else 0):
            at = HEAD_BYTES + cpu * CPU_BYTES + (self._buffer ^ 1) * BUFFER_BYTES
            at += (2 * kind + sampled) * SET_BYTES
            memory[at : at + _ENTRIES] = _EMPTY

    def _exemplar(self, kind: str, key: int, data: bytes, sampled: bool) -> Exemplar | None:
        """The request in an entry; ``None`` if the entry does not belong to its key."""
        (completed, issued, inserted, allocated, owner, sector, size, flags, cpu, cpu_done, hctx,
         region, group, comm, error, comm_tid) = _ENTRY.unpack(data)  # fmt: skip
        expected_key = (
            hash_value(completed ^ sector) if sampled else completed - (allocated or issued)
        )
        if key != expected_key or region >= len(self._regions) or issued > completed:
            return None
        of, placed = self._regions[region], kind != FLUSHES
        # the insertion is of an earlier request, whose end was not seen
        queued = inserted if inserted >= allocated and inserted else None
        return Exemplar(
            disk=of.name, kind=kind, slow=not sampled, sampled=sampled,
            sector=sector if placed else None,
            offset=(sector - of.first) << 9 if placed else None, size=size, flags=rwbs(flags),
            pid=owner >> 32, tid=owner & 0xFFFFFFFF,
            comm=_text(comm) if comm_tid == owner & 0xFFFFFFFF else "",
            group=self._group_of(group) if group else "",
            cpu=cpu, cpu_done=cpu_done, hctx=hctx,
            allocated_ns=allocated or None,
            inserted_ns=None if queued is None or queued & 1 else queued,
            requeued_ns=queued if queued is not None and queued & 1 else None,
            issued_ns=issued, completed_ns=completed, error=error, level=of.level,
        )  # fmt: skip


def _text(name: bytes) -> str:
    return printable(name.split(b"\0", 1)[0].decode("utf-8", "replace"))
