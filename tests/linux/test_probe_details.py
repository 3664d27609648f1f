"""What the probe counts besides latencies of requests (waiting, sizes, CPUs, bios), by programs
that are executed here instruction by instruction."""

from __future__ import annotations

import struct
from collections import Counter

from bpf_machine import Machine
from hypothesis import given, settings
from hypothesis import strategies as st
from test_probe_counting import BINS_AT, CONTEXT, DISCARD, READ, WRITE, Disks
from test_probe_slowest import CPUS, CTX, FLUSH, ORIGIN, Keeping

from iopstui.linux.probe import bios, counting
from iopstui.linux.probe.bins import bucket_middle
from iopstui.linux.probe.bios import BioTypes
from iopstui.linux.probe.bpf import (
    GET_SMP_PROCESSOR_ID,
    KTIME_GET_NS,
    MAP_DELETE,
    MAP_LOOKUP,
    MAP_UPDATE,
)
from iopstui.linux.probe.counting import COMPLETE, ISSUE, Details, MatrixMap
from iopstui.linux.probe.regions import Region
from iopstui.linux.probe.slowest import SlowestMap
from iopstui.model.histogram import bucket_key

KINDS = {READ: 0, WRITE: 1, DISCARD: 2}
MATRIX_AT = 0x5_0000_0000


class Detailed(Keeping):
    """Two disks, with counts for pairs of four CPUs."""

    def __init__(self, *regions: Region) -> None:
        super().__init__(*regions)
        self.matrix = self.memory[MATRIX_AT] = bytearray(8 << 4)
        before = self.machine
        self.machine = Machine(
            self.memory, {**before._maps, 12: MATRIX_AT}, before._helpers, before._writers
        )

    def details(self, kept: SlowestMap) -> Details:
        return Details(kept, MatrixMap(12, 2))

    def cpus(self) -> dict[tuple[int, int], int]:
        """Requests by (CPU that allocated, CPU that completed)."""
        words = memoryview(self.matrix).cast("Q")
        return {(at % 4, at // 4): n for at, n in enumerate(words) if n}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(tuple(KINDS)), st.integers(0, 1 << 30), st.integers(0, 1 << 30),
                  st.integers(1, 1 << 16), st.integers(0, 3), st.integers(0, CPUS - 1)),
        max_size=20,
    )
)  # fmt: skip
def test_waiting_sizes_and_cpus_of_each_request(requests: list[tuple[int, ...]]) -> None:
    disks = Detailed(Region("vda", 254, 0))
    times: list[Counter[tuple[int, int]]] = [Counter(), Counter(), Counter()]
    cpus: Counter[tuple[int, int]] = Counter()
    for operation, waits, lasts, sectors, allocated_on, disks.cpu in requests:
        struct.pack_into("<I", disks.memory[CTX], ORIGIN.cpu, allocated_on)
        request = disks.begun(operation=operation)
        disks.time += waits
        disks.happens(ISSUE, request)
        disks.time += lasts
        disks.happens(COMPLETE, request, size=512 * sectors)
        size = 1 << (512 * sectors).bit_length() - 1
        for counter, value in zip(times, (bucket_key(lasts), bucket_key(waits), size), strict=True):
            counter[KINDS[operation], value] += 1
        cpus[allocated_on, disks.cpu] += 1
    for counter, found in zip(times[:2], (disks.counts(), disks.waits()), strict=True):
        by_value: Counter[tuple[int, int]] = Counter()
        for (_, kind, index), n in found.items():
            by_value[kind, bucket_middle(index)] += n
        assert by_value == counter
    assert {key[1:]: n for key, n in disks.sizes().items()} == times[2]
    assert disks.cpus() == cpus


def test_what_was_never_allocated_by_the_kernel_s_clock_did_not_wait() -> None:
    disks = Detailed(Region("vda", 254, 0))
    # queue/iostats is off; an issue before the allocation belongs to another request
    for allocated in (0, disks.time + 1000):
        request = disks.begun()
        disks._put(request + ORIGIN.start_time, allocated)
        disks.lasts(request, 100)
    assert disks.waits() == {} and disks.counts() == {("vda", 0, 100): 2}


def test_flushes_have_neither_size_nor_cpus() -> None:
    disks = Detailed(Region("vda", 254, 0))
    flush = disks.begun(operation=FLUSH, size=0)
    disks.happens(ISSUE, flush)
    disks.happens(COMPLETE, flush, size=0)
    assert disks.sizes() == {} and disks.cpus() == {} and disks.waits() == {}


BIO_TYPES = BioTypes(
    device=8, dev=16, flags=24, size=40, tracepoints={}, bio_at={bios.QUEUE: 0, bios.COMPLETE: 1}
)
BIOS, DEVICES, ENTRIES = 0x80000, 0x90000, 0xA0000
DM, MD = Region("dm-0", 253, 0, bios=True), Region("md0", 9, 0, bios=True)


class Stacked(Disks):
    """Two disks followed by their bios, and one disk with requests."""

    def __init__(self, room: int = 1 << 10) -> None:
        super().__init__(Region("vda", 254, 0), DM, MD)
        self.entries: dict[int, int] = {}
        self.memory |= {
            BIOS: bytearray(0x1000), DEVICES: bytearray(0x100), ENTRIES: bytearray(1 << 14)
        }  # fmt: skip
        for number, dev in enumerate((253 << 20, 9 << 20, 254 << 20)):
            struct.pack_into("<I", self.memory[DEVICES], 32 * number + BIO_TYPES.dev, dev)

        def key(place: int) -> int:
            return self.machine._at(place, 8)

        def update(map_: int, place: int, value: int, *_: int) -> int:
            assert map_ == 13
            if len(self.entries) >= room:
                return -7
            at = self.entries.setdefault(key(place), ENTRIES + 16 * len(self.entries))
            for offset in (0, 8):
                self.machine._put(at + offset, self.machine._at(value + offset, 8))
            return 0

        helpers = {
            KTIME_GET_NS: lambda *_: self.time, GET_SMP_PROCESSOR_ID: lambda *_: self.cpu,
            MAP_UPDATE: update, MAP_LOOKUP: lambda map_, place, *_: self.entries.get(key(place), 0),
            MAP_DELETE: lambda map_, place, *_: 0 if self.entries.pop(key(place), 0) else -2,
        }  # fmt: skip
        self.machine = Machine(self.memory, {9: BINS_AT, 13: 13}, helpers, frozenset(helpers))
        self.bio_code = {
            bios.QUEUE: bios.queue_program(BIO_TYPES, 13, self.bins, self.regions),
            bios.COMPLETE: bios.completion_program(BIO_TYPES, 13, self.bins),
        }

    def bio(self, number: int, disk: int, operation: int = READ, size: int = 4096) -> int:
        at = BIOS + 64 * number
        self._put(at + BIO_TYPES.device, DEVICES + 32 * disk)
        self._put(at + BIO_TYPES.flags, operation | 1 << 11)
        self._put(at + BIO_TYPES.size, size)
        return at

    def step(self, event: str, bio: int) -> None:
        arguments = (bio, 0) if event == bios.QUEUE else (0, bio)
        struct.pack_into("<QQ", self.memory[CONTEXT], 0, *arguments)
        assert self.machine.run(self.bio_code[event], CONTEXT) == 0


def test_bios_in_flight_together_have_their_own_times() -> None:
    disks = Stacked()
    first, second = disks.bio(0, 0), disks.bio(1, 1, WRITE)
    # bios of a disk with requests, flushes, and passthrough commands are not followed
    others = disks.bio(2, 2), disks.bio(3, 0, FLUSH, 0), disks.bio(4, 0, 34)
    for bio in (first, second, *others):
        disks.step(bios.QUEUE, bio)
    disks.time += 100
    disks.step(bios.COMPLETE, second)
    # md passes the same bio on to a member, so at its end it has another disk
    disks._put(first + BIO_TYPES.device, DEVICES + 64)
    disks.time, disks.cpu = disks.time + 20, 1
    for bio in (first, first, *others):
        disks.step(bios.COMPLETE, bio)
    assert disks.counts() == {("dm-0", 0, 120): 1, ("md0", 1, 100): 1}
    assert disks.entries == {} and disks.counter(counting.MISSED) == 0


def test_bios_for_which_there_is_no_room_are_missed() -> None:
    disks = Stacked(room=1)
    asked = [disks.bio(number, 0) for number in range(3)]
    for event in (bios.QUEUE, bios.COMPLETE):
        for bio in asked:
            disks.step(event, bio)
        disks.time += 100
    assert disks.counts() == {("dm-0", 0, 100): 1} and disks.counter(counting.MISSED) == 2
