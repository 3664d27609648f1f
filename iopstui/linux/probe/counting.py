"""The programs that count latencies at the block layer's raw tracepoints, as BPF instructions.
With ``Slowest`` (slowest.py) they also note who sent a request, and keep the slowest ones.

A request is known by its address. At its issue that and the time are noted in the slot of its queue
and tag (the scheduler's tag, where there is a scheduler): no two requests of a disk that are in
flight have the same, so a slot is one load and two stores, where a hash map's key takes a lock and
a search. At its completion the difference is counted in fio's bin, in the bank of the CPU. All of
it is the memory of maps, which is read without asking the kernel.

Fixed instructions, in which numbers alone are filled in: where the kernel's types have their
members (its own BTF, which the kernel compares when the program is loaded), disks and sectors.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.linux.probe import slowest, tasks
from iopstui.linux.probe.assembler import GET_SMP_PROCESSOR_ID, KTIME_GET_NS, Program
from iopstui.linux.probe.btf import TYPEDEF, Types
from iopstui.linux.probe.script import BUCKET_BITS, Region

ISSUE, COMPLETE, REQUEUE = "block_rq_issue", "block_rq_complete", "block_rq_requeue"
INSERT = "block_rq_insert"
EVENTS = (ISSUE, COMPLETE, REQUEUE)
STRUCTS = ("request", "request_queue", "gendisk", "blk_mq_hw_ctx")
NAMES = (
    *STRUCTS, *slowest.STRUCTS, *(f"btf_trace_{event}" for event in (*EVENTS, INSERT)),
)  # fmt: skip

# a slot: the request, when it was issued; and with ``Slowest`` what slowest.py notes
SLOT_BITS = 4
BINS_BITS, KIND_BITS, REGION_BITS = 3 + 11, 2, 3 + 11 + 2
KIND_BYTES, REGION_BYTES = 1 << BINS_BITS, 1 << REGION_BITS
LAST_BIN = (KIND_BYTES >> 3) - 1
# the highest bit of a latency (ns) that has bins of its own
_HIGHEST = LAST_BIN >> BUCKET_BITS
_HIGHEST += BUCKET_BITS - 1
# what stands behind the banks
MISSED, REQUEUED = 0, 8
COUNTERS_BYTES = 16
# enum req_op, include/linux/blk_types.h: the first 8 bits; what comes from DRV_IN on has no sectors
_OPERATION, _READ, _FLUSH, _DISCARD, _ERASE, _PASSTHROUGH = 0xFF, 0, 2, 3, 5, 32
# major and minor in a dev_t
_MAJOR_AT = 20
_NO_TAG = 0xFFFFFFFF
RQ, SLOT, REGION, KIND = 6, 7, 8, 9
# on the stack
_NOW, _BIN, _CPU, _ARGUMENTS = -8, -16, -24, -32
_STACK = 10
FLUSH = 3
"""After read, write and discard; its latencies are not counted, as it has no sectors."""


@dataclass(frozen=True, slots=True)
class KernelTypes:
    """Offsets (bytes) in this kernel's types, the numbers of its tracepoints, and which of their
    arguments is the request. ``origin`` is what slowest.py needs (``None``: this kernel lacks some
    of it)."""

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
    """Map of the requests in flight of the disk ``dev``: ``fd`` with ``mask`` + 1 slots of 2 to the
    power of ``bits`` bytes, ``tags`` for each queue."""

    dev: int
    fd: int
    tags: int
    mask: int
    bits: int = SLOT_BITS


@dataclass(frozen=True, slots=True)
class CountMap:
    """The map ``fd`` of what is counted: ``banks`` (a power of two) of the bins of all regions,
    ``bank_bits`` each, then the counters."""

    fd: int
    banks: int
    bank_bits: int


def kernel_types(data: bytes) -> KernelTypes:
    """Extract the needed types from BTF. ValueError or KeyError if this kernel's types differ."""
    try:
        return _kernel_types(Types(data, NAMES))
    except (struct.error, IndexError):
        raise ValueError("BTF that is not understood") from None


def _kernel_types(types: Types) -> KernelTypes:
    request, queue, disk, hctx = (types.members(name) for name in STRUCTS)
    at = {event: _request_at(types, event) for event in EVENTS}
    numbers = {event: types.number(f"btf_trace_{event}", TYPEDEF) for event in EVENTS}
    origin = slowest.origin_of(types)
    try:
        at[INSERT] = _request_at(types, INSERT)
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


def _request_at(types: Types, event: str) -> int:
    # the first is the tracepoint's own
    return types.parameters(f"btf_trace_{event}")[1:].index("request")


def insertion_program(kernel: KernelTypes, slots: Sequence[InFlightMap]) -> bytes:
    """Notes who hands a request to a scheduler or a queue, and the time."""
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
    return _finish(p)


def issue_program(kernel: KernelTypes, slots: Sequence[InFlightMap], origin: bool = False) -> bytes:
    """Notes the request and the time; with ``origin`` who sends it, if nobody inserted it."""
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
    return _finish(p)


def completion_program(
    kernel: KernelTypes,
    slots: Sequence[InFlightMap],
    bins: CountMap,
    regions: Sequence[Region],
    slowest_map: slowest.SlowestMap | None = None,
    task_map: tasks.TaskMap | None = None,
) -> bytes:
    """Counts what was noted, in its region, direction and bin; once. With ``slowest_map`` the
    slowest requests and a random sample go there, with ``task_map`` as well the latencies by
    process."""
    p = Program()
    if slowest_map is not None:
        p.store(_STACK, _ARGUMENTS, 1)
    _select_requests(p, kernel, COMPLETE, slots, regions, origin=slowest_map is not None)
    p.load(8, 3, SLOT, 0)
    p.jump_with(3, "!=", RQ, "missed")
    p.do("=", 3, 0)
    p.store(SLOT, 0, 3)
    p.call(KTIME_GET_NS)
    p.store(_STACK, _NOW, 0)
    p.call(GET_SMP_PROCESSOR_ID)
    p.store(_STACK, _CPU, 0)
    if slowest_map is not None:
        slowest.forget(p, REGION, (1 << bins.bank_bits) - REGION_BYTES)
        slowest.forget(p, KIND, FLUSH << BINS_BITS)
        p.jump(KIND, "==", FLUSH << BINS_BITS, "counted")
    _count_latency(p, bins, slowest_map is not None)
    if task_map is not None:
        assert kernel.origin is not None
        tasks.count_task(p, kernel.origin, 8 * (kernel.request_at[COMPLETE] + 2), task_map)
    if slowest_map is None:
        p.goto("out")
    else:
        p.label("counted")
        _offer_to_slowest(p, kernel, slowest_map)
    p.label("missed")
    if slowest_map is not None:
        p.jump(KIND, "==", FLUSH << BINS_BITS, "out")
    p.value(2, bins.fd, (bins.banks << bins.bank_bits) + MISSED)
    _count(p)
    return _finish(p)


def requeue_program(kernel: KernelTypes, slots: Sequence[InFlightMap], bins: CountMap) -> bytes:
    """Counts requests that are sent again, and notes for slots of slowest.py since when they
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
    _count(p)
    return _finish(p)


def _count_latency(p: Program, bins: CountMap, has_scratch: bool) -> None:
    p.load(8, 0, _STACK, _NOW)
    p.load(8, 3, SLOT, 8)
    p.do_with("-", 0, 3)
    _load_bin(p)
    if has_scratch:
        slowest.forget(p, 1, LAST_BIN << 3)
    p.store(_STACK, _BIN, 1)
    p.load(8, 0, _STACK, _CPU)
    p.do("&", 0, bins.banks - 1)
    p.do("<<", 0, bins.bank_bits)
    p.value(2, bins.fd)
    for part in (0, REGION, KIND, 1):
        p.do_with("+", 2, part)
    _count(p)


def _offer_to_slowest(p: Program, kernel: KernelTypes, slowest_map: slowest.SlowestMap) -> None:
    """Lets KIND be the set of this CPU, buffer and direction, and offers the request to both."""
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


def _count(p: Program) -> None:
    p.do("=", 3, 1)
    p.add_atomic(2, 3)


def _finish(p: Program) -> bytes:
    p.label("out")
    p.end()
    return p.code()


def _locate_request(p: Program, kernel: KernelTypes) -> None:
    """Loads where the request RQ is: its disk's number into register 3, its hardware queue into
    SLOT, its tag into register 4: the scheduler's, which it has from its allocation on, or
    without a scheduler the driver's."""
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
    """Leaves out what is of no disk of ours or has no sectors (with ``origin``: and is no flush).
    RQ is the request, SLOT its slot's address; where ``regions`` are given, REGION and KIND are the
    distances of its bins."""
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
    p.do("&", KIND, _OPERATION)
    p.jump(KIND, ">=", _PASSTHROUGH, "out")
    if origin:
        p.jump(3, "!=", 0, "has sectors")
        p.jump(KIND, "!=", _FLUSH, "out")
        p.label("has sectors")
    _locate_request(p, kernel)
    _select_slot(p, kernel, slots, regions)
    if regions:
        _load_direction(p, origin)


def _select_slot(
    p: Program, kernel: KernelTypes, slots: Sequence[InFlightMap], regions: Sequence[Region]
) -> None:
    """SLOT = the address of the request's slot in its disk's map; ``out`` if it is of none."""
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
    """The smallest that holds the request: the whole disk, if no other does."""
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


def _load_direction(p: Program, flushes: bool) -> None:
    """0 read, 1 write, 2 discard, as the first letter of a tracepoint's rwbs says it; 3 flush."""
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


def _load_bin(p: Program) -> None:
    """r1 = the distance of the bin of r0 ns, fio's (stat.c, plat_val_to_idx)."""
    p.do_with("=", 1, 0)
    p.jump_wide(0, "<", 2 << BUCKET_BITS, "bin")
    p.do("=", 1, LAST_BIN)
    p.do_with("=", 3, 0)
    p.do(">>", 3, _HIGHEST + 1)
    p.jump_wide(3, "!=", 0, "bin")
    p.do("=", 1, 0)
    p.do_with("=", 3, 0)
    for bits in (32, 16, 8, 4, 2, 1):
        if bits == 32:
            p.do_with("=", 4, 3)
            p.do(">>", 4, 32)
            p.jump(4, "==", 0, f"below {bits}")
        else:
            p.jump(3, "<", 1 << bits, f"below {bits}")
        p.do(">>", 3, bits)
        p.do("+", 1, bits)
        p.label(f"below {bits}")
    p.do_with("=", 4, 1)
    p.do("-", 4, BUCKET_BITS)
    p.do_with(">>", 0, 4)
    p.do("&", 0, (1 << BUCKET_BITS) - 1)
    p.do("-", 1, BUCKET_BITS - 1)
    p.do("<<", 1, BUCKET_BITS)
    p.do_with("+", 1, 0)
    p.label("bin")
    p.do("&", 1, LAST_BIN)
    p.do("<<", 1, 3)
