"""The probe's own programs, executed instruction by instruction on made-up requests."""

from __future__ import annotations

import struct

import pytest
from bpf_machine import Machine
from hypothesis import given
from hypothesis import strategies as st

from iopstui.linux.probe import counting
from iopstui.linux.probe.bins import bucket_middle, size_of
from iopstui.linux.probe.bpf import GET_SMP_PROCESSOR_ID, KTIME_GET_NS
from iopstui.linux.probe.counting import (
    COMPLETE,
    INSERT,
    ISSUE,
    REQUEUE,
    CountMap,
    InFlightMap,
    KernelTypes,
)
from iopstui.linux.probe.regions import Region
from iopstui.model.histogram import bucket_key

KERNEL = KernelTypes(
    queue=0, hctx=16, flags=24, tag=32, scheduler_tag=36, bytes_left=44, sector=48,
    disk=104, major=0,
    first_minor=4, number=364, tracepoints={ISSUE: 1, COMPLETE: 2, REQUEUE: 3, INSERT: 4},
    request_at={ISSUE: 0, COMPLETE: 0, REQUEUE: 0, INSERT: 0},
)  # fmt: skip
CONTEXT, REQUESTS, QUEUES, DISKS, HCTXS = 0x1000, 0x10000, 0x20000, 0x30000, 0x40000
SLOTS_AT, BINS_AT = 0x1_0000_0000, 0x2_0000_0000
VDA, NVME = 254 << 20, 259 << 20 | 3
TAGS, QUEUES_OF = 64, 4
MASK = TAGS * QUEUES_OF - 1
READ, WRITE, DISCARD, ERASE, DRIVER_OUT = 0, 1, 3, 5, 35


class Disks:
    """Two disks, and the probe's programs for them."""

    def __init__(self, *regions: Region) -> None:
        self.regions = regions or (Region("vda", 254, 0), Region("nvme0n1", 259, 3))
        self.time, self.cpu = 1_000_000, 0
        waiting_at = 1 << (len(self.regions) - 1).bit_length() << counting.REGION_BITS
        bank = 2 * waiting_at
        self.bins = CountMap(9, 2, bank.bit_length() - 1, waiting_at)
        self.slots = [InFlightMap(VDA, 7, TAGS, MASK), InFlightMap(NVME, 8, TAGS, MASK)]
        room = (MASK + 1) << counting.SLOT_BITS
        self.counted = bytearray(2 * bank + counting.COUNTERS_BYTES)
        self.memory: dict[int, bytearray] = {
            CONTEXT: bytearray(24),
            REQUESTS: bytearray(0x4000), QUEUES: bytearray(0x400), DISKS: bytearray(0x100),
            HCTXS: bytearray(0x4000),
            SLOTS_AT: bytearray(room), SLOTS_AT + room: bytearray(room), BINS_AT: self.counted,
        }  # fmt: skip
        for number, (major, minor) in enumerate(((254, 0), (259, 3), (8, 0))):
            self._put(QUEUES + 256 * number + KERNEL.disk, DISKS + 16 * number)
            struct.pack_into("<II", self.memory[DISKS], 16 * number, major, minor)
        for number in range(QUEUES_OF):
            struct.pack_into("<I", self.memory[HCTXS], 512 * number + KERNEL.number, number)
        self.machine = Machine(
            self.memory, {7: SLOTS_AT, 8: SLOTS_AT + room, 9: BINS_AT},
            {KTIME_GET_NS: lambda: self.time, GET_SMP_PROCESSOR_ID: lambda: self.cpu},
        )  # fmt: skip
        self.code = {
            ISSUE: counting.issue_program(KERNEL, self.slots),
            COMPLETE: counting.completion_program(KERNEL, self.slots, self.bins, self.regions),
            REQUEUE: counting.requeue_program(KERNEL, self.slots, self.bins),
        }

    def request(
        self, number: int = 0, disk: int = 0, operation: int = READ, sector: int = 0,
        queue: int = 0, tag: int = 0, size: int = 4096, scheduler_tag: int = -1,
    ) -> int:  # fmt: skip
        """Write a request, and return its address."""
        at = REQUESTS + 256 * number
        self._put(at + KERNEL.queue, QUEUES + 256 * disk)
        self._put(at + KERNEL.hctx, HCTXS + 512 * queue)
        held = self.memory[REQUESTS]
        # REQ_SYNC and other flags are in the bits above the operation
        struct.pack_into("<I", held, at - REQUESTS + KERNEL.flags, operation | 1 << 11)
        struct.pack_into("<i", held, at - REQUESTS + KERNEL.tag, tag)
        struct.pack_into("<i", held, at - REQUESTS + KERNEL.scheduler_tag, scheduler_tag)
        struct.pack_into("<I", held, at - REQUESTS + KERNEL.bytes_left, size)
        self._put(at + KERNEL.sector, sector)
        return at

    def happens(self, event: str, request: int, size: int = 4096) -> None:
        struct.pack_into("<QQQ", self.memory[CONTEXT], 0, request, 0, size)
        assert self.machine.run(self.code[event], CONTEXT) == 0

    def lasts(self, request: int, latency: int) -> None:
        self.happens(ISSUE, request)
        self.time += latency
        self.happens(COMPLETE, request)

    def counts(
        self, offset: int = 0, kind_bytes: int = counting.KIND_BYTES
    ) -> dict[tuple[str, int, int], int]:
        """Counts of all banks by region, direction and bin; ``offset`` is where they begin in each
        region."""
        found: dict[tuple[str, int, int], int] = {}
        words = memoryview(self.counted).cast("Q")
        for bank in range(self.bins.banks):
            for index, region in enumerate(self.regions):
                begins = bank << self.bins.bank_bits | index << counting.REGION_BITS
                for cell in range(3 * kind_bytes // 8):
                    if n := words[(offset + begins) // 8 + cell]:
                        key = (region.name, *divmod(cell, kind_bytes // 8))
                        found[key] = found.get(key, 0) + n
        return found

    def waits(self) -> dict[tuple[str, int, int], int]:
        """The bins from allocation to issue."""
        return self.counts(self.bins.waiting_at)

    def sizes(self) -> dict[tuple[str, int, int], int]:
        """The counts by the smallest size, in bytes, of those that are counted together."""
        counts = self.counts(counting.SIZES_AT, 1 << counting.SIZE_KIND_BITS)
        return {(name, kind, size_of(at)): n for (name, kind, at), n in counts.items()}

    def counter(self, at: int) -> int:
        begins = (self.bins.banks << self.bins.bank_bits) + at
        return int.from_bytes(self.counted[begins : begins + 8], "little")

    def _put(self, address: int, value: int) -> None:
        for begins, held in self.memory.items():
            if begins <= address < begins + len(held):
                struct.pack_into("<Q", held, address - begins, value)


SMALL = Disks(Region("vda", 254, 0))


@given(st.integers(0, (1 << 37) - 1))
def test_a_latency_is_counted_in_fio_s_bucket(latency: int) -> None:
    before = SMALL.counts()
    SMALL.lasts(SMALL.request(), latency)
    after = SMALL.counts()
    ((_, kind, index),) = (key for key in after if after[key] != before.get(key, 0))
    assert kind == 0 and bucket_middle(index) == bucket_key(latency)


def test_whatever_takes_longer_is_in_the_last_one() -> None:
    disks = Disks(Region("vda", 254, 0))
    disks.lasts(disks.request(), 1 << 40)
    assert disks.counts() == {("vda", 0, counting.LAST_BIN): 1}


@pytest.mark.parametrize(
    ("operation", "kind"), [(READ, 0), (WRITE, 1), (DISCARD, 2), (ERASE, 2), (9, 1)]
)
def test_directions_are_told_apart(operation: int, kind: int) -> None:
    disks = Disks()
    disks.lasts(disks.request(operation=operation), 100)
    assert disks.counts() == {("vda", kind, 100): 1}


def test_what_is_of_no_disk_or_has_no_sectors_is_left_out() -> None:
    disks = Disks()
    for request in (disks.request(disk=2), disks.request(operation=DRIVER_OUT)):
        disks.lasts(request, 100)
    flush = disks.request(operation=2, size=0)
    disks.happens(ISSUE, flush)
    disks.happens(COMPLETE, flush, size=0)
    assert disks.counts() == {} and disks.counter(counting.MISSED) == 0


def test_requests_in_flight_together_have_their_own_times() -> None:
    disks = Disks()
    asked = [
        disks.request(4 * queue + n, disk=disk, queue=queue, tag=n, sector=8)
        for n, disk in enumerate((0, 1, 0, 1)) for queue in range(QUEUES_OF)
    ]  # fmt: skip
    for request in asked:
        disks.happens(ISSUE, request)
    disks.time += 50
    disks.cpu = 3
    for request in asked[:8]:
        disks.happens(COMPLETE, request)
    disks.time += 50
    disks.cpu = 2
    for request in asked[8:]:
        disks.happens(COMPLETE, request)
    assert disks.counts() == {
        ("vda", 0, 50): 4, ("nvme0n1", 0, 50): 4, ("vda", 0, 100): 4, ("nvme0n1", 0, 100): 4,
    }  # fmt: skip


def test_a_completion_without_a_beginning_is_missed_and_none_is_counted_twice() -> None:
    disks = Disks()
    disks.happens(COMPLETE, disks.request())
    disks.lasts(disks.request(1), 100)
    disks.happens(COMPLETE, disks.request(1))
    # the beginning of another request in the same slot is not used
    disks.happens(ISSUE, disks.request(2, tag=3))
    disks.happens(COMPLETE, disks.request(3, tag=3))
    assert disks.counts() == {("vda", 0, 100): 1} and disks.counter(counting.MISSED) == 3


def test_what_is_sent_again_begins_anew() -> None:
    disks = Disks()
    request = disks.request()
    disks.happens(ISSUE, request)
    disks.happens(REQUEUE, request)
    disks.time += 500
    disks.lasts(request, 100)
    assert disks.counts() == {("vda", 0, 100): 1} and disks.counter(counting.REQUEUED) == 1


def test_a_partition_is_counted_by_its_sectors() -> None:
    high = 1 << 33
    disks = Disks(
        Region("vda1", 254, 0, 2048, 4095), Region("vda", 254, 0),
        Region("vda2", 254, 0, high, high + 7),
    )  # fmt: skip
    for sector in (0, 2047, 2048, 4095, 4096, high - 1, high, high + 7, high + 8):
        disks.lasts(disks.request(sector=sector), 100)
    assert disks.counts() == {
        ("vda", 0, 100): 5, ("vda1", 0, 100): 2, ("vda2", 0, 100): 2,
    }  # fmt: skip


def test_the_paths_of_a_disk_are_one_region() -> None:
    disks = Disks(Region("nvme1n1", 259, 9, paths=((254, 0), (259, 3))))
    for disk in (0, 1):
        disks.lasts(disks.request(disk=disk), 100)
    assert disks.counts() == {("nvme1n1", 0, 100): 2}


def test_with_a_scheduler_its_tag_is_the_request_s() -> None:
    disks = Disks()
    # meanwhile another request may have the driver's tag
    first, second = (disks.request(n, tag=5, scheduler_tag=n) for n in (1, 2))
    disks.happens(ISSUE, first)
    disks.happens(ISSUE, second)
    disks.time += 100
    disks.happens(COMPLETE, first)
    disks.happens(COMPLETE, second)
    assert disks.counts() == {("vda", 0, 100): 2} and disks.counter(counting.MISSED) == 0
