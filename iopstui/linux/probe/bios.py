"""Latencies of disks without requests of their own (dm, md, zram), counted by their bios.

A bio is known by its address, from the moment it is handed to the disk to its end; a kernel map,
with a key for each bio in flight, has that time and where to count it. Requests cost less
(counting.py), but a bio has no tag that could be the number of a slot."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui.linux.probe.bpf import (
    GET_SMP_PROCESSOR_ID,
    KTIME_GET_NS,
    MAP_DELETE,
    MAP_LOOKUP,
    MAP_UPDATE,
    STACK,
    TYPEDEF,
    Program,
    Types,
)
from iopstui.linux.probe.counting import (
    BINS_BITS,
    KIND,
    MISSED,
    OPERATION,
    PASSTHROUGH,
    REGION,
    REGION_BITS,
    REGION_BYTES,
    CountMap,
    argument_of,
    count_one,
    finish,
    load_bin,
    load_direction,
)
from iopstui.linux.probe.regions import Region

QUEUE, COMPLETE = "block_bio_queue", "block_bio_complete"
EVENTS = (QUEUE, COMPLETE)
MAX_IN_FLIGHT = 1 << 14
VALUE_BYTES = 16
"""Size of a value of the map: the time, and the offset of the bins of its region and direction."""
_STRUCTS = ("bio", "bvec_iter", "block_device")
_BIO, _PLACE, _TIME, _BANK = 6, 7, 8, 9
# offsets on the stack: of the key, and of the value before it
_KEY, _VALUE = -8, -24


@dataclass(frozen=True, slots=True)
class BioTypes:
    """Offsets (bytes) in this kernel's types, the numbers of its tracepoints, and the position of
    the bio among their arguments."""

    device: int
    dev: int
    flags: int
    size: int
    tracepoints: Mapping[str, int]
    bio_at: Mapping[str, int]


def bio_types(data: bytes) -> BioTypes:
    """Extract the needed types from BTF. ValueError or KeyError if this kernel's types differ."""
    try:
        types = Types(data, (*_STRUCTS, *(f"btf_trace_{event}" for event in EVENTS)))
        bio, place, device = map(types.members, _STRUCTS)
        return BioTypes(
            bio["bi_bdev"], device["bd_dev"], bio["bi_opf"], bio["bi_iter"] + place["bi_size"],
            {event: types.number(f"btf_trace_{event}", TYPEDEF) for event in EVENTS},
            {event: argument_of(types, event, "bio") for event in EVENTS},
        )  # fmt: skip
    except (struct.error, IndexError):
        raise ValueError("BTF that is not understood") from None


def queue_program(
    kernel: BioTypes, in_flight: int, bins: CountMap, regions: Sequence[Region]
) -> bytes:
    """Stores a bio of one of these disks and the time in the map ``in_flight``."""
    p = Program()
    p.load(8, _BIO, 1, 8 * kernel.bio_at[QUEUE])
    p.load(8, 2, _BIO, kernel.device)
    p.load(4, 3, 2, kernel.dev)
    for number, region in enumerate(regions):
        if region.bios and region.last is None:
            for dev in region.devs:
                p.jump(3, "!=", dev, f"not {number} {dev}")
                p.do("=", REGION, number << REGION_BITS)
                p.goto("found")
                p.label(f"not {number} {dev}")
    p.goto("out")
    p.label("found")
    p.load(4, 3, _BIO, kernel.size)
    p.jump(3, "==", 0, "out")
    p.load(4, KIND, _BIO, kernel.flags)
    p.do("&", KIND, OPERATION)
    p.jump(KIND, ">=", PASSTHROUGH, "out")
    load_direction(p, flushes=False)
    p.do_with("+", REGION, KIND)
    p.store(STACK, _VALUE + 8, REGION)
    p.store(STACK, _KEY, _BIO)
    p.call(KTIME_GET_NS)
    p.store(STACK, _VALUE, 0)
    p.map(1, in_flight)
    _address(p, 2, _KEY)
    _address(p, 3, _VALUE)
    p.do("=", 4, 0)
    p.call(MAP_UPDATE)
    p.jump_wide(0, "==", 0, "out")
    p.value(2, bins.fd, (bins.banks << bins.bank_bits) + MISSED)
    count_one(p)
    return finish(p)


def completion_program(kernel: BioTypes, in_flight: int, bins: CountMap) -> bytes:
    """Counts a bio that ``queue_program`` stored, once."""
    p = Program()
    p.load(8, _BIO, 1, 8 * kernel.bio_at[COMPLETE])
    p.store(STACK, _KEY, _BIO)
    p.map(1, in_flight)
    _address(p, 2, _KEY)
    p.call(MAP_LOOKUP)
    p.jump_wide(0, "==", 0, "out")
    p.load(8, _TIME, 0, 0)
    p.load(8, _PLACE, 0, 8)
    p.map(1, in_flight)
    _address(p, 2, _KEY)
    p.call(MAP_DELETE)
    p.call(GET_SMP_PROCESSOR_ID)
    p.do_with("=", _BANK, 0)
    p.do("&", _BANK, bins.banks - 1)
    p.do("<<", _BANK, bins.bank_bits)
    p.do("&", _PLACE, bins.waiting_at - REGION_BYTES | 3 << BINS_BITS)
    p.call(KTIME_GET_NS)
    p.do_with("-", 0, _TIME)
    load_bin(p)
    p.value(2, bins.fd)
    for part in (_BANK, _PLACE, 1):
        p.do_with("+", 2, part)
    count_one(p)
    return finish(p)


def _address(p: Program, to: int, offset: int) -> None:
    p.do_with("=", to, STACK)
    p.do("+", to, offset)
