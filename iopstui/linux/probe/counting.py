"""The programs that count latencies at the block layer's raw tracepoints, as BPF instructions.

A request is known by its address. At its issue that and the time are noted in the slot of its queue
and tag: no two requests of a disk that are in flight have the same, so a slot is one load and two
stores, where a hash map's key takes a lock and a search. At its completion the difference is
counted in fio's bin, in the bank of the CPU. All of it is two maps' memory, which is read without
asking the kernel.

Fixed instructions, in which numbers alone are filled in: where the kernel's types have their
members (its own BTF, which the kernel compares when the program is loaded), disks and sectors.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.linux.probe.assembler import GET_SMP_PROCESSOR_ID, KTIME_GET_NS, Program
from iopstui.linux.probe.btf import TYPEDEF, Types
from iopstui.linux.probe.script import BUCKET_BITS, Region

ISSUE, COMPLETE, REQUEUE = "block_rq_issue", "block_rq_complete", "block_rq_requeue"
EVENTS = (ISSUE, COMPLETE, REQUEUE)
STRUCTS = ("request", "request_queue", "gendisk", "blk_mq_hw_ctx")
NAMES = (*STRUCTS, *(f"btf_trace_{event}" for event in EVENTS))

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
_OPERATION, _READ, _DISCARD, _ERASE, _PASSTHROUGH = 0xFF, 0, 3, 5, 32
# major and minor in a dev_t
_MAJOR_AT = 20
RQ, SLOT, REGION, KIND = 6, 7, 8, 9


@dataclass(frozen=True, slots=True)
class KernelTypes:
    """Offsets (bytes) in this kernel's types, the numbers of its tracepoints, and which of their
    arguments is the request."""

    queue: int
    hctx: int
    flags: int
    tag: int
    bytes_left: int
    sector: int
    disk: int
    major: int
    first_minor: int
    number: int
    tracepoints: dict[str, int]
    request_at: dict[str, int]


@dataclass(frozen=True, slots=True)
class InFlightMap:
    """Map of the requests in flight of the disk ``dev``: ``fd`` with ``mask`` + 1 slots, ``tags``
    for each queue."""

    dev: int
    fd: int
    tags: int
    mask: int


@dataclass(frozen=True, slots=True)
class CountMap:
    """The map ``fd`` of what is counted: ``banks`` (a power of two) of the bins of all regions,
    ``bank_bits`` each, then the counters."""

    fd: int
    banks: int
    bank_bits: int


def kernel_of(data: bytes) -> KernelTypes:
    """Extract the needed types from BTF. ValueError or KeyError if this kernel's types differ."""
    try:
        return _kernel_of(Types(data, NAMES))
    except (struct.error, IndexError):
        raise ValueError("BTF that is not understood") from None


def _kernel_of(types: Types) -> KernelTypes:
    request, queue, disk, hctx = (types.members(name) for name in STRUCTS)
    at = {}
    for event in EVENTS:
        # the first is the tracepoint's own
        parameters = types.parameters(f"btf_trace_{event}")[1:]
        at[event] = parameters.index("request")
    return KernelTypes(
        queue=request["q"], hctx=request["mq_hctx"], flags=request["cmd_flags"],
        tag=request["tag"], bytes_left=request["__data_len"], sector=request["__sector"],
        disk=queue["disk"], major=disk["major"], first_minor=disk["first_minor"],
        number=hctx["queue_num"],
        tracepoints={event: types.number(f"btf_trace_{event}", TYPEDEF) for event in EVENTS},
        request_at=at,
    )  # fmt: skip


def issue(kernel: KernelTypes, slots: Sequence[InFlightMap]) -> bytes:
    """Notes the request and the time."""
    p = Program()
    _requests(p, kernel, ISSUE, slots)
    p.call(KTIME_GET_NS)
    p.store(SLOT, 8, 0)
    p.store(SLOT, 0, RQ)
    return _ended(p)


def complete(
    kernel: KernelTypes, slots: Sequence[InFlightMap], bins: CountMap, regions: Sequence[Region]
) -> bytes:
    """Counts what was noted, in its region, direction and bin; once."""
    p = Program()
    _requests(p, kernel, COMPLETE, slots, regions)
    p.load(8, 3, SLOT, 0)
    p.jump_with(3, "!=", RQ, "missed")
    p.do("=", 3, 0)
    p.store(SLOT, 0, 3)
    p.call(KTIME_GET_NS)
    p.load(8, 3, SLOT, 8)
    p.do_with("-", 0, 3)
    _bin(p)
    p.do_with("=", SLOT, 1)
    p.call(GET_SMP_PROCESSOR_ID)
    p.do("&", 0, bins.banks - 1)
    p.do("<<", 0, bins.bank_bits)
    p.value(2, bins.fd)
    for part in (0, REGION, KIND, SLOT):
        p.do_with("+", 2, part)
    _count(p)
    p.goto("out")
    p.label("missed")
    p.value(2, bins.fd, (bins.banks << bins.bank_bits) + MISSED)
    _count(p)
    return _ended(p)


def requeue(kernel: KernelTypes, slots: Sequence[InFlightMap], bins: CountMap) -> bytes:
    """Counts requests that are sent again."""
    p = Program()
    _requests(p, kernel, REQUEUE, slots)
    p.value(2, bins.fd, (bins.banks << bins.bank_bits) + REQUEUED)
    _count(p)
    return _ended(p)


def _count(p: Program) -> None:
    p.do("=", 3, 1)
    p.add_atomic(2, 3)


def _ended(p: Program) -> bytes:
    p.label("out")
    p.end()
    return p.code()


def _place_of_request(p: Program, kernel: KernelTypes) -> None:
    """Loads where the request RQ is: its disk's number into register 3, its hardware queue into
    SLOT, its tag into register 4."""
    p.load(8, 2, RQ, kernel.queue)
    p.load(8, 2, 2, kernel.disk)
    p.load(4, 3, 2, kernel.major)
    p.do("<<", 3, _MAJOR_AT)
    p.load(4, 4, 2, kernel.first_minor)
    p.do_with("|", 3, 4)
    p.load(8, 2, RQ, kernel.hctx)
    p.load(4, SLOT, 2, kernel.number)
    p.load(4, 4, RQ, kernel.tag)


def _requests(
    p: Program,
    kernel: KernelTypes,
    event: str,
    slots: Sequence[InFlightMap],
    regions: Sequence[Region] = (),
) -> None:
    """Leaves out what is of no disk of ours or has no sectors. RQ is the request, SLOT its slot's
    address; where ``regions`` are given, REGION and KIND are the distances of its bins."""
    at = kernel.request_at[event]
    p.load(8, RQ, 1, 8 * at)
    if event == COMPLETE:
        # block_rq_complete(rq, error, nr_bytes)
        p.load(8, 3, 1, 8 * (at + 2))
    else:
        p.load(4, 3, RQ, kernel.bytes_left)
    p.jump(3, "==", 0, "out")
    p.load(4, KIND, RQ, kernel.flags)
    p.do("&", KIND, _OPERATION)
    p.jump(KIND, ">=", _PASSTHROUGH, "out")
    _place_of_request(p, kernel)
    for number, disk in enumerate(slots):
        p.jump(3, "!=", disk.dev, f"no {number}")
        p.do("*", SLOT, disk.tags)
        p.do_with("+", SLOT, 4)
        p.do("&", SLOT, disk.mask)
        p.value(2, disk.fd)
        if regions:
            _region(p, kernel, number, disk.dev, regions)
        p.goto("found")
        p.label(f"no {number}")
    p.goto("out")
    p.label("found")
    p.do("<<", SLOT, SLOT_BITS)
    p.do_with("+", SLOT, 2)
    if regions:
        _emit_direction(p)


def _region(
    p: Program, kernel: KernelTypes, number: int, dev: int, regions: Sequence[Region]
) -> None:
    """The smallest that holds the request: the whole disk, if no other does."""
    own = [(index, region) for index, region in enumerate(regions) if dev in region.devs]
    p.load(8, 3, RQ, kernel.sector)
    for index, region in own:
        p.do("=", REGION, index << REGION_BITS)
        if region.last is not None:
            p.wide(4, region.first)
            p.jump_with(3, "<", 4, f"not {number} {index}")
            p.wide(4, region.last + 1)
            p.jump_with(3, "<", 4, f"in {number}")
            p.label(f"not {number} {index}")
    for index, region in own:
        if region.last is None:
            p.do("=", REGION, index << REGION_BITS)
    p.label(f"in {number}")


def _emit_direction(p: Program) -> None:
    """0 read, 1 write, 2 discard, as the first letter of a tracepoint's rwbs says it."""
    p.jump(KIND, "==", _READ, "kind")
    p.jump(KIND, "==", _DISCARD, "discard")
    p.jump(KIND, "==", _ERASE, "discard")
    p.do("=", KIND, 1 << BINS_BITS)
    p.goto("kind")
    p.label("discard")
    p.do("=", KIND, 2 << BINS_BITS)
    p.label("kind")


def _bin(p: Program) -> None:
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
