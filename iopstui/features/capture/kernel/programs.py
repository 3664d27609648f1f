"""Builds the programs of the capture as BPF instructions. When a request is allocated, its process
and cgroup are stored under the address of its bio, because another thread may send the request to
the disk. When it is sent, a record of eight words is written to a ring that iopstui reads: time,
sector, and words that are equal for equal requests (model/workload.py). Requests in flight are
stored by queue and tag. So if a completion was missed, the next request with the same tag shows
that the earlier one has ended.

Whether a request is sequential is decided here, where the order is known. For each process and
direction, a table has the sectors at which recent requests ended. A request that begins at one of
them is sequential. So a process may have several interleaved streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.features.capture.kernel.kernel_types import (
    BIO_COMPLETE,
    BIO_QUEUE,
    COMPLETE,
    GETRQ,
    ISSUE,
    REQUEUE,
    CaptureTypes,
)
from iopstui.features.capture.model.workload import (
    DISCARD,
    FLUSH,
    FUA,
    KIND_AT,
    MAX_SECTORS,
    METADATA,
    PID_AT,
    REGION_SECTORS_BITS,
    SEQUENTIAL,
    SYNC,
    WRITE,
)
from iopstui.linux.probe.bpf import GET_CURRENT_PID_TGID, KTIME_GET_NS, STACK, Program
from iopstui.linux.probe.counting import InFlightMap, count_one, finish

RECORD_BITS, RECORD_WORDS = 6, 8
# the indexes of a record's words
TIME, SECTOR, SHAPE, DEPTH, REGION, CGROUP, TOTAL = range(7)

# the first table: sectors at which requests ended, 128 for each of 64 hashes of a process and a
# direction
ENDS_BITS, GROUPS_BITS = 7, 6
ENDS_BYTES = 8 << (ENDS_BITS + GROUPS_BITS)
# the second table: how many requests of a process are in flight, by a hash of its number
DEPTHS_BITS = 10
DEPTHS_AT = ENDS_BYTES
TOTAL_AT = DEPTHS_AT + (8 << DEPTHS_BITS)
# the third table: who allocated a request (bio, process, cgroup, the bio's flags)
SUBMITTERS_BITS, SUBMITTER_BITS = 13, 5
SUBMITTERS_AT = TOTAL_AT + 64
TABLES_BYTES = SUBMITTERS_AT + (1 << (SUBMITTERS_BITS + SUBMITTER_BITS))
# offsets of the counters: records written, completions without an issue, requeues, unknown
# processes
HEAD, MISSED, REQUEUED, UNKNOWN, COUNTERS_BYTES = 0, 64, 72, 80, 128
# the table of bios in flight, for a disk without requests of its own, by a hash of their address
BIO_SLOTS_BITS = 14
SLOT_BITS = 4

# values of enum req_op and enum req_flag_bits, include/linux/blk_types.h
_OPERATION, _READ, _WRITE, _FLUSH, _DISCARD, _ERASE, _PASSTHROUGH = 0xFF, 0, 1, 2, 3, 5, 32
_REQ_SYNC, _REQ_META, _REQ_FUA, _REQ_PREFLUSH = 1 << 11, 1 << 12, 1 << 17, 1 << 18
_MAJOR_AT = 20
_HASH = 0x61C88647
# registers that survive calls, and offsets of values on the stack
IO, SLOT, KIND, PID = 6, 7, 8, 9
_S_CGROUP, _S_SECTOR, _S_SECTORS, _S_FLAGS, _S_DEPTH, _S_TOTAL = -8, -16, -24, -32, -40, -48


@dataclass(frozen=True, slots=True)
class Maps:
    """The file descriptors of the maps: the ring of ``1 << ring_bits`` records, the tables, the
    counters."""

    ring: int
    ring_bits: int
    tables: int
    counters: int


@dataclass(frozen=True, slots=True)
class CapturedDisk:
    """A disk: the slots for its requests in flight, and if only a partition is captured, its
    sectors ``first`` to ``last``."""

    slots: InFlightMap
    first: int = 0
    last: int | None = None


def allocation_program(kernel: CaptureTypes, disks: Sequence[CapturedDisk], maps: Maps) -> bytes:
    """Runs at ``block_getrq``: store who allocates the request, and write a record if it is a
    flush."""
    p = Program()
    p.load(8, IO, 1, 8 * kernel.argument[GETRQ])
    _load_bio_disk(p, kernel)
    for disk in disks:
        p.jump(3, "==", disk.slots.dev, "ours")
    p.goto("out")
    p.label("ours")
    _load_process(p, kernel)
    _find_submitter(p, maps, IO)
    p.store(2, 0, IO)
    p.store(2, 8, PID)
    p.load(8, 3, STACK, _S_CGROUP)
    p.store(2, 16, 3)
    p.load(4, 3, IO, kernel.at["bio.bi_opf"])
    p.store(2, 24, 3)
    p.do("&", 3, _REQ_PREFLUSH)
    p.jump(3, "==", 0, "out")
    _write_flush_record(p, kernel, maps)
    return finish(p)


def issue_program(kernel: CaptureTypes, disks: Sequence[CapturedDisk], maps: Maps) -> bytes:
    """Runs at ``block_rq_issue``: write the request's record."""
    p = Program()
    p.load(8, IO, 1, 8 * kernel.argument[ISSUE])
    p.load(4, 4, IO, kernel.at["request.__data_len"])
    _store_length(p, 4)
    p.load(4, 4, IO, kernel.at["request.cmd_flags"])
    _load_kind(p, 4)
    p.load(8, 4, IO, kernel.at["request.__sector"])
    p.store(STACK, _S_SECTOR, 4)
    _find_request_slot(p, kernel, disks)
    # a request that is sent again already has its record
    p.load(8, 3, SLOT, 0)
    p.do_with("=", 4, IO)
    p.do("+", 4, 1)
    p.jump_with(3, "!=", 4, "first")
    p.store(SLOT, 0, IO)
    p.goto("out")
    p.label("first")
    _load_submitter(p, kernel, maps)
    p.load(4, 3, IO, kernel.at["request.cmd_flags"])
    _mark_metadata(p, 3)
    _add_in_flight(p, maps)
    _write_record(p, maps)
    return finish(p)


def completion_program(kernel: CaptureTypes, disks: Sequence[CapturedDisk], maps: Maps) -> bytes:
    """Runs at ``block_rq_complete``: note that the request is no longer in flight."""
    p = Program()
    at = kernel.argument[COMPLETE]
    p.load(8, IO, 1, 8 * at)
    p.load(8, 4, 1, 8 * (at + 2))
    p.load(4, 3, IO, kernel.at["request.__data_len"])
    p.jump(3, "==", 0, "out")
    # only a part of the request has completed
    p.jump_with(4, "<", 3, "out")
    p.load(8, 4, IO, kernel.at["request.__sector"])
    p.store(STACK, _S_SECTOR, 4)
    p.load(4, 4, IO, kernel.at["request.cmd_flags"])
    p.do("&", 4, _OPERATION)
    p.jump(4, ">=", _PASSTHROUGH, "out")
    _find_request_slot(p, kernel, disks)
    p.load(8, 3, SLOT, 0)
    p.jump_with(3, "==", IO, "known")
    p.do("-", 3, 1)
    p.jump_with(3, "==", IO, "known")
    _count(p, maps, MISSED)
    p.goto("out")
    p.label("known")
    _remove_in_flight(p, maps)
    return finish(p)


def requeue_program(kernel: CaptureTypes, disks: Sequence[CapturedDisk], maps: Maps) -> bytes:
    """Runs at ``block_rq_requeue``: note that the next issue of this request is not a new
    request."""
    p = Program()
    p.load(8, IO, 1, 8 * kernel.argument[REQUEUE])
    p.load(8, 4, IO, kernel.at["request.__sector"])
    p.store(STACK, _S_SECTOR, 4)
    _find_request_slot(p, kernel, disks)
    p.load(8, 3, SLOT, 0)
    p.jump_with(3, "!=", IO, "out")
    p.do("+", 3, 1)
    p.store(SLOT, 0, 3)
    _count(p, maps, REQUEUED)
    return finish(p)


def bio_queue_program(kernel: CaptureTypes, disks: Sequence[CapturedDisk], maps: Maps) -> bytes:
    """Runs at ``block_bio_queue``, for a disk without requests of its own: write the record of the
    bio."""
    p = Program()
    p.load(8, IO, 1, 8 * kernel.argument[BIO_QUEUE])
    _load_bio_disk(p, kernel)
    _find_bio_slot(p, kernel, disks, maps)
    _load_process(p, kernel)
    p.load(4, 3, IO, kernel.at["bio.bi_opf"])
    p.do("&", 3, _REQ_PREFLUSH)
    p.jump(3, "==", 0, "no flush")
    _write_flush_record(p, kernel, maps)
    p.label("no flush")
    p.load(4, 4, IO, kernel.at["bio.bi_iter"] + kernel.at["bvec_iter.bi_size"])
    _store_length(p, 4)
    p.load(4, 4, IO, kernel.at["bio.bi_opf"])
    _load_kind(p, 4)
    p.load(4, 3, IO, kernel.at["bio.bi_opf"])
    _mark_metadata(p, 3)
    _add_in_flight(p, maps)
    _write_record(p, maps)
    return finish(p)


def bio_completion_program(
    kernel: CaptureTypes, disks: Sequence[CapturedDisk], maps: Maps
) -> bytes:
    """Runs at ``block_bio_complete``: note that the bio is no longer in flight."""
    p = Program()
    p.load(8, IO, 1, 8 * kernel.argument[BIO_COMPLETE])
    _load_bio_disk(p, kernel)
    _find_bio_slot(p, kernel, disks, maps, everywhere=True)
    p.load(8, 3, SLOT, 0)
    p.jump_with(3, "!=", IO, "out")
    _remove_in_flight(p, maps)
    return finish(p)


# -- parts of programs. IO, SLOT, KIND and PID are registers


def _count(p: Program, maps: Maps, counter: int) -> None:
    p.value(2, maps.counters, counter)
    count_one(p)


def _load_bio_disk(p: Program, kernel: CaptureTypes) -> None:
    """Set r3 to the number of the bio's whole disk (the bio is in IO)."""
    p.load(8, 2, IO, kernel.at["bio.bi_bdev"])
    p.load(8, 2, 2, kernel.at["block_device.bd_disk"])
    _load_disk_number(p, kernel)


def _load_disk_number(p: Program, kernel: CaptureTypes) -> None:
    p.load(4, 3, 2, kernel.at["gendisk.major"])
    p.do("<<", 3, _MAJOR_AT)
    p.load(4, 4, 2, kernel.at["gendisk.first_minor"])
    p.do_with("|", 3, 4)


def _load_process(p: Program, kernel: CaptureTypes) -> None:
    """Set PID to the current process, and store the bio's cgroup on the stack."""
    p.call(GET_CURRENT_PID_TGID)
    p.do_with("=", PID, 0)
    p.do(">>", PID, 32)
    _load_cgroup(p, kernel)


def _load_cgroup(p: Program, kernel: CaptureTypes) -> None:
    if not kernel.cgroup:
        p.do("=", 3, 0)
    for number, offset in enumerate(kernel.cgroup):
        p.load(8, 3, 3 if number else IO, offset)
    p.do("<<", 3, 32)
    p.do(">>", 3, 32)
    p.store(STACK, _S_CGROUP, 3)


def _hash_address(p: Program, maps: Maps, to: int, pointer: int) -> None:
    """Hash an address into the register ``to``. The verifier forbids arithmetic with a pointer, but
    allows the difference of two pointers. Overwrites r2."""
    p.value(2, maps.tables)
    p.do_with("=", to, pointer)
    p.do_with("-", to, 2)
    p.do(">>", to, 6)
    p.do("*", to, _HASH)
    p.do(">>", to, 16)


def _find_submitter(p: Program, maps: Maps, bio: int) -> None:
    """Set r2 to the address of the bio's entry in the table of submitters."""
    _hash_address(p, maps, 3, bio)
    p.do("&", 3, (1 << SUBMITTERS_BITS) - 1)
    p.do("<<", 3, SUBMITTER_BITS)
    p.value(2, maps.tables, SUBMITTERS_AT)
    p.do_with("+", 2, 3)


def _load_submitter(p: Program, kernel: CaptureTypes, maps: Maps) -> None:
    """Set PID and store the cgroup of the request in IO: as stored at its allocation, or else of
    the current process."""
    p.load(8, 5, IO, kernel.at["request.bio"])
    _find_submitter(p, maps, 5)
    p.load(8, 3, 2, 0)
    p.jump_with(3, "!=", 5, "unknown")
    p.load(8, PID, 2, 8)
    p.load(8, 3, 2, 16)
    p.store(STACK, _S_CGROUP, 3)
    # for a disk without FUA, the kernel sends a flush after the request instead
    p.load(8, 3, 2, 24)
    p.do("&", 3, _REQ_FUA)
    p.jump(3, "==", 0, "submitter")
    p.load(8, 3, STACK, _S_FLAGS)
    p.do("|", 3, FUA)
    p.store(STACK, _S_FLAGS, 3)
    p.goto("submitter")
    p.label("unknown")
    _count(p, maps, UNKNOWN)
    p.do("=", 3, 0)
    p.store(STACK, _S_CGROUP, 3)
    p.call(GET_CURRENT_PID_TGID)
    p.do_with("=", PID, 0)
    p.do(">>", PID, 32)
    p.label("submitter")


def _store_length(p: Program, register: int) -> None:
    """Store the length in sectors; jump to "out" for a request of length 0."""
    p.jump(register, "==", 0, "out")
    p.do(">>", register, 9)
    p.do("&", register, MAX_SECTORS)
    p.store(STACK, _S_SECTORS, register)


def _load_kind(p: Program, register: int) -> None:
    """Set KIND and the flags on the stack from a request's operation and flags, which are in
    ``register``. Jumps to "out" for passthrough requests."""
    p.do_with("=", KIND, register)
    p.do("&", KIND, _OPERATION)
    p.jump(KIND, ">=", _PASSTHROUGH, "out")
    p.do("=", 5, 0)
    for bit, flag, name in ((_REQ_FUA, FUA, "fua"), (_REQ_SYNC, SYNC, "sync")):
        p.do_with("=", 3, register)
        p.do("&", 3, bit)
        p.jump(3, "==", 0, f"no {name}")
        p.do("|", 5, flag)
        p.label(f"no {name}")
    p.store(STACK, _S_FLAGS, 5)
    p.jump(KIND, "==", _READ, "kind")
    p.jump(KIND, "==", _DISCARD, "discard")
    p.jump(KIND, "==", _ERASE, "discard")
    p.do("=", KIND, WRITE)
    p.goto("kind")
    p.label("discard")
    p.do("=", KIND, DISCARD)
    p.label("kind")


def _mark_metadata(p: Program, register: int) -> None:
    """Mark PID if the flags in ``register`` say that the request is for metadata, so that it is
    counted as another process."""
    p.do("&", register, _REQ_META)
    p.jump(register, "==", 0, "data")
    p.do("|", PID, METADATA)
    p.label("data")


def _find_request_slot(p: Program, kernel: CaptureTypes, disks: Sequence[CapturedDisk]) -> None:
    """Set SLOT to the slot of the request in IO, by its queue and tag. Jumps to "out" for requests
    of other disks."""
    p.load(8, 2, IO, kernel.at["request.q"])
    p.load(8, 2, 2, kernel.at["request_queue.disk"])
    _load_disk_number(p, kernel)
    p.load(8, 2, IO, kernel.at["request.mq_hctx"])
    p.load(4, SLOT, 2, kernel.at["blk_mq_hw_ctx.queue_num"])
    p.load(4, 4, IO, kernel.at["request.tag"])
    for number, disk in enumerate(disks):
        p.jump(3, "!=", disk.slots.dev, f"not {number}")
        _skip_outside(p, disk, number)
        p.do("*", SLOT, disk.slots.tags)
        p.do_with("+", SLOT, 4)
        p.do("&", SLOT, disk.slots.mask)
        p.value(2, disk.slots.fd)
        p.goto("slot")
        p.label(f"not {number}")
    _load_slot_address(p)


def _load_slot_address(p: Program) -> None:
    """Set SLOT to the address of slot number SLOT in the map whose value is at r2. Code that
    reaches this point without a jump (a request of another disk) goes to "out"."""
    p.goto("out")
    p.label("slot")
    p.do("<<", SLOT, SLOT_BITS)
    p.do_with("+", SLOT, 2)


def _skip_outside(p: Program, disk: CapturedDisk, number: int) -> None:
    """Jump to "out" for requests outside the partition, if ``disk`` is one."""
    if disk.last is None:
        return
    p.load(8, 5, STACK, _S_SECTOR)
    p.wide(2, disk.first)
    p.jump_with(5, "<", 2, f"not {number}")
    p.wide(2, disk.last)
    p.jump_with(5, ">", 2, f"not {number}")


def _find_bio_slot(
    p: Program,
    kernel: CaptureTypes,
    disks: Sequence[CapturedDisk],
    maps: Maps,
    everywhere: bool = False,
) -> None:
    """Set SLOT to the slot of the bio in IO, whose disk is in r3. ``everywhere``: do not check the
    partition, because a completed bio no longer has the sector at which it began."""
    p.load(8, 4, IO, kernel.at["bio.bi_iter"] + kernel.at["bvec_iter.bi_sector"])
    p.store(STACK, _S_SECTOR, 4)
    _hash_address(p, maps, SLOT, IO)
    for number, disk in enumerate(disks):
        p.jump(3, "!=", disk.slots.dev, f"not {number}")
        if not everywhere:
            _skip_outside(p, disk, number)
        p.do("&", SLOT, disk.slots.mask)
        p.value(2, disk.slots.fd)
        p.goto("slot")
        p.label(f"not {number}")
    _load_slot_address(p)


def _find_depth(p: Program, maps: Maps, offset_in: int) -> None:
    """Set r2 to the address of the count of requests in flight whose offset is in the register
    ``offset_in``."""
    p.do("&", offset_in, (8 << DEPTHS_BITS) - 8)
    p.value(2, maps.tables, DEPTHS_AT)
    p.do_with("+", 2, offset_in)


def _add_in_flight(p: Program, maps: Maps) -> None:
    """Count one more request in flight: occupy the SLOT, and store the depths, including this
    request, on the stack. If the SLOT is occupied, the completion of that earlier request was
    missed."""
    p.load(8, 3, SLOT, 0)
    p.jump_wide(3, "==", 0, "free")
    _decrement_depths(p, maps)
    p.label("free")
    p.store(SLOT, 0, IO)
    p.do_with("=", 4, PID)
    p.do("<<", 4, 3)
    p.do("&", 4, (8 << DEPTHS_BITS) - 8)
    p.store(SLOT, 8, 4)
    _find_depth(p, maps, 4)
    p.do("=", 3, 1)
    p.fetch_add(2, 3)
    p.do("+", 3, 1)
    p.store(STACK, _S_DEPTH, 3)
    p.value(2, maps.tables, TOTAL_AT)
    p.do("=", 3, 1)
    p.fetch_add(2, 3)
    p.do("+", 3, 1)
    p.store(STACK, _S_TOTAL, 3)


def _remove_in_flight(p: Program, maps: Maps) -> None:
    _decrement_depths(p, maps)
    p.do("=", 3, 0)
    p.store(SLOT, 0, 3)


def _decrement_depths(p: Program, maps: Maps) -> None:
    p.load(8, 4, SLOT, 8)
    _find_depth(p, maps, 4)
    p.do("=", 3, -1)
    p.add_atomic(2, 3)
    p.value(2, maps.tables, TOTAL_AT)
    p.do("=", 3, -1)
    p.add_atomic(2, 3)


def _find_end(p: Program, maps: Maps, sector: int) -> None:
    """Set r2 to the table's entry for a request that ends at this sector (in the register
    ``sector``), and r5 to the value to store there. Overwrites r3."""
    p.do_with("=", 5, sector)
    p.do("<<", 5, 2)
    p.do_with("|", 5, KIND)
    p.do("+", 5, 1)
    p.do_with("=", 3, 5)
    p.do("*", 3, _HASH)
    p.do(">>", 3, 24)
    p.do("&", 3, (1 << ENDS_BITS) - 1)
    p.do("<<", 3, 3)
    p.value(2, maps.tables)
    p.do_with("+", 2, 3)
    p.do_with("=", 3, PID)
    p.do("*", 3, 3)
    p.do_with("+", 3, KIND)
    p.do("&", 3, (1 << GROUPS_BITS) - 1)
    p.do("<<", 3, 3 + ENDS_BITS)
    p.do_with("+", 2, 3)


def _write_record(p: Program, maps: Maps) -> None:
    """Write the record of the request, from KIND, PID and the values on the stack."""
    p.load(8, 4, STACK, _S_SECTOR)
    _find_end(p, maps, 4)
    p.load(8, 3, 2, 0)
    p.jump_with(3, "!=", 5, "random")
    p.load(8, 3, STACK, _S_FLAGS)
    p.do("|", 3, SEQUENTIAL)
    p.store(STACK, _S_FLAGS, 3)
    p.label("random")
    p.load(8, 4, STACK, _S_SECTOR)
    p.load(8, 3, STACK, _S_SECTORS)
    p.do_with("+", 4, 3)
    _find_end(p, maps, 4)
    p.store(2, 0, 5)
    _reserve_record(p, maps)
    p.load(8, 3, STACK, _S_SECTOR)
    p.store(IO, 8 * SECTOR, 3)
    p.do_with("=", 4, KIND)
    p.do("<<", 4, KIND_AT)
    p.do("<<", PID, PID_AT)
    p.do_with("|", PID, 4)
    p.load(8, 4, STACK, _S_SECTORS)
    p.load(8, 5, STACK, _S_FLAGS)
    p.do_with("|", 4, 5)
    p.do_with("|", 4, PID)
    p.store(IO, 8 * SHAPE, 4)
    p.load(8, 4, STACK, _S_DEPTH)
    p.do("&", 4, 0xFFFF)
    p.do_with("|", 4, PID)
    p.store(IO, 8 * DEPTH, 4)
    p.do(">>", 3, REGION_SECTORS_BITS)
    p.do_with("|", 3, PID)
    p.store(IO, 8 * REGION, 3)
    p.load(8, 3, STACK, _S_CGROUP)
    p.store(IO, 8 * CGROUP, 3)
    p.load(8, 3, STACK, _S_TOTAL)
    p.do("&", 3, 0xFFFF)
    p.store(IO, 8 * TOTAL, 3)


def _write_flush_record(p: Program, kernel: CaptureTypes, maps: Maps) -> None:
    """Write the record of a flush by PID, with the length of the bio in IO. Keeps IO."""
    p.store(STACK, _S_DEPTH, IO)
    p.load(4, 4, IO, kernel.at["bio.bi_iter"] + kernel.at["bvec_iter.bi_size"])
    p.do(">>", 4, 9)
    p.do("&", 4, MAX_SECTORS)
    p.store(STACK, _S_SECTORS, 4)
    _reserve_record(p, maps)
    p.do("=", 3, 0)
    for index in (SECTOR, DEPTH, REGION, TOTAL):
        p.store(IO, 8 * index, 3)
    p.do_with("=", 4, PID)
    p.do("<<", 4, PID_AT)
    p.wide(3, FLUSH << KIND_AT)
    p.do_with("|", 4, 3)
    p.load(8, 3, STACK, _S_SECTORS)
    p.do_with("|", 4, 3)
    p.store(IO, 8 * SHAPE, 4)
    p.load(8, 3, STACK, _S_CGROUP)
    p.store(IO, 8 * CGROUP, 3)
    p.load(8, IO, STACK, _S_DEPTH)


def _reserve_record(p: Program, maps: Maps) -> None:
    """Set IO to the address of the next record, and store its time."""
    p.call(KTIME_GET_NS)
    p.value(2, maps.counters, HEAD)
    p.do("=", IO, 1)
    p.fetch_add(2, IO)
    p.do("&", IO, (1 << maps.ring_bits) - 1)
    p.do("<<", IO, RECORD_BITS)
    p.value(2, maps.ring)
    p.do_with("+", IO, 2)
    p.store(IO, 8 * TIME, 0)
