"""The programs that count latencies at the block layer's raw tracepoints, as BPF instructions. With
``Details`` they also note who sent a request and when it was allocated, count its size, CPUs and
process (tasks.py), and keep the slowest ones (slowest.py).

A request is known by its address. At its issue the address and the time are stored in the slot of
its queue and tag (the scheduler's tag, if there is a scheduler). No two requests that a disk has in
flight have the same slot, so this takes one load and two stores, where a hash map would take a lock
and a search. At its completion the difference is counted in fio's bin, in the bank of the CPU. All
of it is in the memory of maps, which is read without system calls. The instructions are fixed
except for numbers: offsets of members in the kernel's types (from its own BTF, which the kernel
checks when the program is loaded), disks and sectors."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.linux.probe import slowest, tasks
from iopstui.linux.probe.bins import BUCKET_BITS
from iopstui.linux.probe.bpf import GET_SMP_PROCESSOR_ID, KTIME_GET_NS, TYPEDEF, Program, Types
from iopstui.linux.probe.regions import Region

ISSUE, COMPLETE, REQUEUE = "block_rq_issue", "block_rq_complete", "block_rq_requeue"
INSERT = "block_rq_insert"
EVENTS = (ISSUE, COMPLETE, REQUEUE)
STRUCTS = ("request", "request_queue", "gendisk", "blk_mq_hw_ctx")
NAMES = (
    *STRUCTS, *slowest.STRUCTS, *(f"btf_trace_{event}" for event in (*EVENTS, INSERT)),
)  # fmt: skip

# contents of a slot: the request, the time of its issue, and with ``Details`` the fields of
# slowest.py
SLOT_BITS = 4
BINS_BITS, REGION_BITS = 3 + 11, 3 + 11 + 2
KIND_BYTES, REGION_BYTES = 1 << BINS_BITS, 1 << REGION_BITS
LAST_BIN = (KIND_BYTES >> 3) - 1
# the highest bit of the largest latencies (ns) that have bins of their own
_HIGHEST = LAST_BIN >> BUCKET_BITS
_HIGHEST += BUCKET_BITS - 1
# counters that follow the banks
MISSED, REQUEUED = 0, 8
COUNTERS_BYTES = 16
# enum req_op, include/linux/blk_types.h: the first 8 bits; operations from DRV_IN on have no
# sectors
OPERATION, _READ, _FLUSH, _DISCARD, _ERASE, PASSTHROUGH = 0xFF, 0, 2, 3, 5, 32
# major and minor in a dev_t
_MAJOR_AT = 20
_NO_TAG = 0xFFFFFFFF
RQ, SLOT, REGION, KIND = 6, 7, 8, 9
# offsets on the stack
_NOW, _BIN, _CPU, _ARGUMENTS = -8, -16, -24, -32
_STACK = 10
FLUSH = 3
"""Number of the kind after read, write and discard. A flush's latency is not counted, because it
has no sectors. The bins of sizes are stored where its bins would be."""
SIZES_AT = FLUSH << BINS_BITS
SIZE_KIND_BITS = 9
"""Bits of the number of a bin of sizes in one direction; there is a bin for each power of two of
bytes."""
_SIZE_SHIFT = BUCKET_BITS + 3


@dataclass(frozen=True, slots=True)
class KernelTypes:
    """Offsets (bytes) in this kernel's types, the numbers of its tracepoints, and the position of
    the request among their arguments. ``origin`` has what slowest.py needs (``None``: this kernel
    lacks some of it)."""

    queue: int
    hctx: int
    flags: int
    tag: int
    scheduler_tag: int
    bytes_left: int
    sector: int
    disk: int
    major: int
    first_minor: int
    number: int
    tracepoints: dict[str, int]
    request_at: dict[str, int]
    origin: slowest.OriginTypes | None = None


@dataclass(frozen=True, slots=True)
class InFlightMap:
    """Map of the requests in flight of the disk ``dev``: the map ``fd`` has ``mask`` + 1 slots of 2
    to the power of ``bits`` bytes, ``tags`` for each queue."""

    dev: int
    fd: int
    tags: int
    mask: int
    bits: int = SLOT_BITS


@dataclass(frozen=True, slots=True)
class CountMap:
    """The map ``fd`` of counts: a number of ``banks`` (a power of two), each with the bins of all
    regions in 2 to the power of ``bank_bits`` bytes, then the counters. A bank has the bins of the
    time in the device, and from ``waiting_at`` (a power of two) on the bins of the time from
    allocation to issue."""

    fd: int
    banks: int
    bank_bits: int
    waiting_at: int


@dataclass(frozen=True, slots=True)
class MatrixMap:
    """The map ``fd`` of requests by the CPU that completed them and the CPU that allocated them,
    with room for 2 to the power of ``bits`` CPUs."""

    fd: int
    bits: int


@dataclass(frozen=True, slots=True)
class Details:
    """The maps of counts beyond latencies; each needs KernelTypes.origin."""

    slowest: slowest.SlowestMap
    matrix: MatrixMap | None = None
    tasks: tasks.TaskMap | None = None


def kernel_types(data: bytes) -> KernelTypes:
    """Extract the needed types from BTF. ValueError or KeyError if this kernel's types differ."""
    try:
        return _kernel_types(Types(data, NAMES))
    except (struct.error, IndexError):
        raise ValueError("BTF that is not understood") from None


def _kernel_types(types: Types) -> KernelTypes:
    request, queue, disk, hctx = (types.members(name) for name in STRUCTS)
    at = {event: argument_of(types, event, "request") for event in EVENTS}
    numbers = {event: types.number(f"btf_trace_{event}", TYPEDEF) for event in EVENTS}
    origin = slowest.origin_of(types)
    try:
        at[INSERT] = argument_of(types, INSERT, "request")
        numbers[INSERT] = types.number(f"btf_trace_{INSERT}", TYPEDEF)
    except (KeyError, ValueError):
        origin = None
    return KernelTypes(
        queue=request["q"], hctx=request["mq_hctx"], flags=request["cmd_flags"],
        tag=request["tag"], scheduler_tag=request["internal_tag"],
        bytes_left=request["__data_len"], sector=request["__sector"],
        disk=queue["disk"], major=disk["major"], first_minor=disk["first_minor"],
        number=hctx["queue_num"],
        tracepoints=numbers, request_at=at, origin=origin,
    )  # fmt: skip


def argument_of(types: Types, event: str, struct_name: str) -> int:
    """The index of the argument of a tracepoint that points to this struct. Raises KeyError or
    ValueError."""
    # the first parameter is the tracepoint's own
    return types.parameters(f"btf_trace_{event}")[1:].index(struct_name)


def insertion_program(kernel: KernelTypes, slots: Sequence[InFlightMap]) -> bytes:
    """Stores the thread that hands a request to a scheduler or a queue, and the time."""
    p = Program()
    _select_requests(p, kernel, INSERT, slots, origin=True)
    assert kernel.origin is not None
    slowest.jump_if_inserted(p, kernel.origin, "out")
    slowest.note_owner(p)
    p.call(KTIME_GET_NS)
    slowest.note_insertion(p, requeued=False)
    p.do("=", 3, 0)
    p.store(SLOT, slowest.ISSUED, 3)
    p.store(SLOT, 0, RQ)
    return finish(p)


def issue_program(kernel: KernelTypes, slots: Sequence[InFlightMap], origin: bool = False) -> bytes:
    """Stores the request and the time; with ``origin`` also the thread that sends it, if it was not
    inserted."""
    p = Program()
    _select_requests(p, kernel, ISSUE, slots, origin=origin)
    if origin:
        assert kernel.origin is not None
        slowest.jump_if_inserted(p, kernel.origin, "noted")
        p.do("=", 3, 0)
        p.store(SLOT, slowest.INSERTED, 3)
        slowest.note_owner(p)
        p.label("noted")
    p.call(KTIME_GET_NS)
    p.store(SLOT, 8, 0)
    p.store(SLOT, 0, RQ)
    return finish(p)


def completion_program(
    kernel: KernelTypes,
    slots: Sequence[InFlightMap],
    bins: CountMap,
    regions: Sequence[Region],
    details: Details | None = None,
) -> bytes:
    """Counts a stored request once, in its region, direction and bin. With ``details`` it also
    counts the time before its issue, its size, CPUs and process, and offers it to the sets of
    slowest requests."""
    p = Program()
    if details is not None:
        p.store(_STACK, _ARGUMENTS, 1)
    _select_requests(p, kernel, COMPLETE, slots, regions, origin=details is not None)
    p.load(8, 3, SLOT, 0)
    p.jump_with(3, "!=", RQ, "missed")
    p.do("=", 3, 0)
    p.store(SLOT, 0, 3)
    p.call(KTIME_GET_NS)
    p.store(_STACK, _NOW, 0)
    p.call(GET_SMP_PROCESSOR_ID)
    p.store(_STACK, _CPU, 0)
    if details is not None:
        slowest.forget(p, REGION, bins.waiting_at - REGION_BYTES)
        slowest.forget(p, KIND, FLUSH << BINS_BITS)
        p.jump(KIND, "==", FLUSH << BINS_BITS, "counted")
    _count_latency(p, bins, details is not None)
    if details is None:
        p.goto("out")
    else:
        _count_details(p, kernel, bins, details)
        p.label("counted")
        _offer_to_slowest(p, kernel, details.slowest)
    p.label("missed")
    if details is not None:
        p.jump(KIND, "==", FLUSH << BINS_BITS, "out")
    p.value(2, bins.fd, (bins.banks << bins.bank_bits) + MISSED)
    count_one(p)
    return finish(p)


def requeue_program(kernel: KernelTypes, slots: Sequence[InFlightMap], bins: CountMap) -> bytes:
    """Counts requests that are sent again, and stores in the slots of slowest.py when each began to
    wait."""
    p = Program()
    _select_requests(p, kernel, REQUEUE, slots)
    if slots and slots[0].bits > SLOT_BITS:
        p.load(8, 3, SLOT, 0)
        p.jump_with(3, "!=", RQ, "count")
        p.call(KTIME_GET_NS)
        slowest.note_insertion(p, requeued=True)
        p.do("=", 3, 0)
        p.store(SLOT, slowest.ISSUED, 3)
        p.label("count")
    p.value(2, bins.fd, (bins.banks << bins.bank_bits) + REQUEUED)
    count_one(p)
    return finish(p)


def _count_latency(p: Program, bins: CountMap, has_scratch: bool) -> None:
    p.load(8, 0, _STACK, _NOW)
    p.load(8, 3, SLOT, 8)
    p.do_with("-", 0, 3)
    load_bin(p)
    if has_scratch:
        slowest.forget(p, 1, LAST_BIN << 3)
    p.store(_STACK, _BIN, 1)
    _count_in_bank(p, bins, 0, KIND)


def _count_details(p: Program, kernel: KernelTypes, bins: CountMap, details: Details) -> None:
    assert kernel.origin is not None
    size_at = 8 * (kernel.request_at[COMPLETE] + 2)
    _count_waiting(p, kernel.origin, bins)
    _count_size(p, size_at, bins)
    if details.matrix is not None:
        _count_cpus(p, kernel.origin, details.matrix)
    if details.tasks is not None:
        tasks.count_task(p, kernel.origin, size_at, details.tasks)


def _count_waiting(p: Program, origin: slowest.OriginTypes, bins: CountMap) -> None:
    """Count the time from the request's allocation, if the kernel records that (queue/iostats), to
    its issue."""
    p.load(8, 0, SLOT, slowest.ISSUED)
    p.load(8, 3, RQ, origin.start_time)
    p.jump_wide(3, "==", 0, "waited")
    p.jump_with(3, ">", 0, "waited")
    p.do_with("-", 0, 3)
    load_bin(p, "wait ")
    slowest.forget(p, 1, LAST_BIN << 3)
    _count_in_bank(p, bins, bins.waiting_at, KIND)
    p.label("waited")


def _count_size(p: Program, size_at: int, bins: CountMap) -> None:
    """Count the request by its size: by the highest bit, which is in the upper part of a bin's
    number."""
    p.load(8, 1, _STACK, _ARGUMENTS)
    p.load(8, 0, 1, size_at)
    load_bin(p, "size ")
    slowest.forget(p, 1, LAST_BIN << 3)
    p.do(">>", 1, _SIZE_SHIFT)
    p.do("<<", 1, 3)
    p.do_with("=", 4, KIND)
    p.do(">>", 4, BINS_BITS - SIZE_KIND_BITS)
    _count_in_bank(p, bins, SIZES_AT, 4)


def _count_cpus(p: Program, origin: slowest.OriginTypes, matrix: MatrixMap) -> None:
    p.load(8, 3, RQ, origin.ctx)
    p.load(4, 3, 3, origin.cpu)
    p.do("&", 3, (1 << matrix.bits) - 1)
    p.load(8, 4, _STACK, _CPU)
    p.do("&", 4, (1 << matrix.bits) - 1)
    p.do("<<", 4, matrix.bits)
    # an addition, because Linux 6.1 knows no bounds after "|"
    p.do_with("+", 3, 4)
    p.do("<<", 3, 3)
    p.value(2, matrix.fd)
    p.do_with("+", 2, 3)
    count_one(p)


def _count_in_bank(p: Program, bins: CountMap, offset: int, kind: int) -> None:
    """Count in the bin at offset r1 among the bins of a direction in REGION (the register ``kind``
    has their offset), in the bank of this CPU."""
    p.load(8, 0, _STACK, _CPU)
    p.do("&", 0, bins.banks - 1)
    p.do("<<", 0, bins.bank_bits)
    p.value(2, bins.fd, offset)
    for part in (0, REGION, kind, 1):
        p.do_with("+", 2, part)
    count_one(p)


def _offer_to_slowest(p: Program, kernel: KernelTypes, slowest_map: slowest.SlowestMap) -> None:
    """Set KIND to the set of this CPU, buffer and direction, and offer the request to both sets."""
    p.do(">>", KIND, BINS_BITS)
    p.do("*", KIND, 2 * slowest.SET_BYTES)
    p.do("+", KIND, slowest.HEAD_BYTES)
    p.load(8, 3, _STACK, _CPU)
    p.do("&", 3, slowest_map.cpus - 1)
    p.do("*", 3, slowest.CPU_BYTES)
    p.do_with("+", KIND, 3)
    p.value(2, slowest_map.fd)
    p.load(8, 3, 2, 0)
    p.do("&", 3, 1)
    p.do("*", 3, slowest.BUFFER_BYTES)
    p.do_with("+", KIND, 3)
    p.do_with("+", KIND, 2)
    assert kernel.origin is not None
    entry = slowest.Entry(
        kernel.origin, kernel.hctx, kernel.number, kernel.flags, kernel.bytes_left, kernel.sector,
        kernel.request_at[COMPLETE] + 1,
    )  # fmt: skip
    slowest.offer(p, entry)
    p.goto("out")


def count_one(p: Program) -> None:
    """Add one to the 8-byte counter at r2."""
    p.do("=", 3, 1)
    p.add_atomic(2, 3)


def finish(p: Program) -> bytes:
    """Return the program, which ends at the label "out"."""
    p.label("out")
    p.end()
    return p.code()


def _locate_request(p: Program, kernel: KernelTypes) -> None:
    """Load the location of the request RQ: its disk's number into register 3, its hardware queue
    into SLOT, its tag into register 4 (the scheduler's tag, which it has from its allocation on, or
    without a scheduler the driver's)."""
    p.load(8, 2, RQ, kernel.queue)
    p.load(8, 2, 2, kernel.disk)
    p.load(4, 3, 2, kernel.major)
    p.do("<<", 3, _MAJOR_AT)
    p.load(4, 4, 2, kernel.first_minor)
    p.do_with("|", 3, 4)
    p.load(8, 2, RQ, kernel.hctx)
    p.load(4, SLOT, 2, kernel.number)
    p.load(4, 4, RQ, kernel.scheduler_tag)
    p.jump(4, "!=", _NO_TAG, "tagged")
    p.load(4, 4, RQ, kernel.tag)
    p.label("tagged")


def _select_requests(
    p: Program,
    kernel: KernelTypes,
    event: str,
    slots: Sequence[InFlightMap],
    regions: Sequence[Region] = (),
    origin: bool = False,
) -> None:
    """Skip requests of other disks and those without sectors (with ``origin``, flushes are not
    skipped). Then RQ is the request, SLOT its slot's address; if ``regions`` are given, REGION and
    KIND are the offsets of its bins."""
    at = kernel.request_at[event]
    p.load(8, RQ, 1, 8 * at)
    if event == COMPLETE:
        # block_rq_complete(rq, error, nr_bytes)
        p.load(8, 3, 1, 8 * (at + 2))
    else:
        p.load(4, 3, RQ, kernel.bytes_left)
    if not origin:
        p.jump(3, "==", 0, "out")
    p.load(4, KIND, RQ, kernel.flags)
    p.do("&", KIND, OPERATION)
    p.jump(KIND, ">=", PASSTHROUGH, "out")
    if origin:
        p.jump(3, "!=", 0, "has sectors")
        p.jump(KIND, "!=", _FLUSH, "out")
        p.label("has sectors")
    _locate_request(p, kernel)
    _select_slot(p, kernel, slots, regions)
    if regions:
        load_direction(p, origin)


def _select_slot(
    p: Program, kernel: KernelTypes, slots: Sequence[InFlightMap], regions: Sequence[Region]
) -> None:
    """SLOT = the address of the request's slot in its disk's map; jump to ``out`` if the request
    has no slot."""
    for number, disk in enumerate(slots):
        p.jump(3, "!=", disk.dev, f"no {number}")
        p.do("*", SLOT, disk.tags)
        p.do_with("+", SLOT, 4)
        p.do("&", SLOT, disk.mask)
        p.value(2, disk.fd)
        if regions:
            _select_region(p, kernel, number, disk.dev, regions)
        p.goto("found")
        p.label(f"no {number}")
    p.goto("out")
    p.label("found")
    p.do("<<", SLOT, slots[0].bits if slots else SLOT_BITS)
    p.do_with("+", SLOT, 2)


def _select_region(
    p: Program, kernel: KernelTypes, number: int, dev: int, regions: Sequence[Region]
) -> None:
    """Select the smallest region that contains the request; without a partition that is the whole
    disk."""
    on_disk = [(index, region) for index, region in enumerate(regions) if dev in region.devs]
    p.load(8, 3, RQ, kernel.sector)
    for index, region in on_disk:
        p.do("=", REGION, index << REGION_BITS)
        if region.last is not None:
            p.wide(4, region.first)
            p.jump_with(3, "<", 4, f"not {number} {index}")
            p.wide(4, region.last + 1)
            p.jump_with(3, "<", 4, f"in {number}")
            p.label(f"not {number} {index}")
    for index, region in on_disk:
        if region.last is None:
            p.do("=", REGION, index << REGION_BITS)
    p.label(f"in {number}")


def load_direction(p: Program, flushes: bool) -> None:
    """KIND = the offset of the bins of this operation: of kind 0 read, 1 write or 2 discard, as in
    the first letter of a tracepoint's rwbs, or 3 flush."""
    p.jump(KIND, "==", _READ, "kind")
    p.jump(KIND, "==", _DISCARD, "discard")
    p.jump(KIND, "==", _ERASE, "discard")
    if flushes:
        p.jump(KIND, "==", _FLUSH, "flush")
    p.do("=", KIND, 1 << BINS_BITS)
    p.goto("kind")
    p.label("discard")
    p.do("=", KIND, 2 << BINS_BITS)
    if flushes:
        p.goto("kind")
        p.label("flush")
        p.do("=", KIND, FLUSH << BINS_BITS)
    p.label("kind")


def load_bin(p: Program, prefix: str = "") -> None:
    """r1 = the offset of the bin of r0 ns, as in fio (stat.c, plat_val_to_idx); ``prefix`` is for
    the labels."""
    p.do_with("=", 1, 0)
    p.jump_wide(0, "<", 2 << BUCKET_BITS, f"{prefix}bin")
    p.do("=", 1, LAST_BIN)
    p.do_with("=", 3, 0)
    p.do(">>", 3, _HIGHEST + 1)
    p.jump_wide(3, "!=", 0, f"{prefix}bin")
    p.do("=", 1, 0)
    p.do_with("=", 3, 0)
    for bits in (32, 16, 8, 4, 2, 1):
        if bits == 32:
            p.do_with("=", 4, 3)
            p.do(">>", 4, 32)
            p.jump(4, "==", 0, f"{prefix}below {bits}")
        else:
            p.jump(3, "<", 1 << bits, f"{prefix}below {bits}")
        p.do(">>", 3, bits)
        p.do("+", 1, bits)
        p.label(f"{prefix}below {bits}")
    p.do_with("=", 4, 1)
    p.do("-", 4, BUCKET_BITS)
    p.do_with(">>", 0, 4)
    p.do("&", 0, (1 << BUCKET_BITS) - 1)
    p.do("-", 1, BUCKET_BITS - 1)
    p.do("<<", 1, BUCKET_BITS)
    p.do_with("+", 1, 0)
    p.label(f"{prefix}bin")
    p.do("&", 1, LAST_BIN)
    p.do("<<", 1, 3)
