"""The capture's programs, executed instruction by instruction on made-up requests."""

from __future__ import annotations

import struct

import pytest
from bpf_machine import Machine

from iopstui.features.capture.kernel import programs
from iopstui.features.capture.kernel.kernel_types import (
    BIO_COMPLETE,
    BIO_QUEUE,
    COMPLETE,
    GETRQ,
    ISSUE,
    REQUEUE,
    CaptureTypes,
)
from iopstui.features.capture.kernel.programs import CapturedDisk, Maps
from iopstui.features.capture.model import workload
from iopstui.linux.probe.bpf import GET_CURRENT_PID_TGID, KTIME_GET_NS
from iopstui.linux.probe.counting import InFlightMap
from tests.helpers.packed_requests import pack_shape, pack_value

AT = {
    "request.q": 0, "request.bio": 8, "request.mq_hctx": 16, "request.cmd_flags": 24,
    "request.tag": 32, "request.__data_len": 44, "request.__sector": 48,
    "request_queue.disk": 104, "gendisk.major": 0, "gendisk.first_minor": 4,
    "blk_mq_hw_ctx.queue_num": 8, "bio.bi_bdev": 8, "bio.bi_opf": 16, "bio.bi_iter": 32,
    "bvec_iter.bi_sector": 0, "bvec_iter.bi_size": 8, "block_device.bd_disk": 16,
}  # fmt: skip
EVENTS = (GETRQ, ISSUE, COMPLETE, REQUEUE, BIO_QUEUE, BIO_COMPLETE)
# bio -> blkg -> blkcg -> css.cgroup -> kn -> id
KERNEL = CaptureTypes(AT, dict.fromkeys(EVENTS, 1), dict.fromkeys(EVENTS, 0), (72, 0, 0, 0, 0))
CONTEXT, REQUESTS, BIOS, REST = 0x1000, 0x10_0000, 0x20_0000, 0x30_0000
RING_AT, TABLES_AT, COUNTERS_AT, SLOTS_AT = 0x1_0000_0000, 0x2_0000_0000, 0x3_0000_0000, 1 << 34
RING, TABLES, COUNTERS, SLOTS = 1, 2, 3, 4
VDA = 254 << 20
QUEUE, DISK, BDEV, HCTX, OTHER_QUEUE, OTHER_DISK = (REST + 0x200 * n for n in range(6))
READ, WRITE, DISCARD, DRIVER_IN = 0, 1, 3, 34
META, FUA, PREFLUSH = 1 << 12, 1 << 17, 1 << 18
RING_BITS = 4
MAPS = Maps(RING, RING_BITS, TABLES, COUNTERS)


class Disk:
    """A disk, its requests, and the programs that capture them."""

    def __init__(self, first: int = 0, last: int | None = None, bios: bool = False) -> None:
        self.time, self.pid = 1_000_000, 700
        self.memory = {
            CONTEXT: bytearray(24), REQUESTS: bytearray(0x8000), BIOS: bytearray(0x8000),
            REST: bytearray(0x2000), RING_AT: bytearray((1 << RING_BITS) * 64),
            TABLES_AT: bytearray(programs.TABLES_BYTES),
            COUNTERS_AT: bytearray(programs.COUNTERS_BYTES), SLOTS_AT: bytearray(64 * 16),
        }  # fmt: skip
        self.put(QUEUE + 104, DISK)
        self.put(DISK, 254)
        self.put(OTHER_QUEUE + 104, OTHER_DISK)
        self.put(OTHER_DISK, 8)
        self.put(BDEV + 16, DISK)
        self.machine = Machine(
            self.memory,
            {RING: RING_AT, TABLES: TABLES_AT, COUNTERS: COUNTERS_AT, SLOTS: SLOTS_AT},
            {KTIME_GET_NS: lambda: self.time, GET_CURRENT_PID_TGID: lambda: self.pid << 32 | 9},
        )
        disks = [CapturedDisk(InFlightMap(VDA, SLOTS, 64, 63), first, last)]
        self.code = {
            GETRQ: programs.allocation_program(KERNEL, disks, MAPS),
            ISSUE: programs.issue_program(KERNEL, disks, MAPS),
            COMPLETE: programs.completion_program(KERNEL, disks, MAPS),
            REQUEUE: programs.requeue_program(KERNEL, disks, MAPS),
            BIO_QUEUE: programs.bio_queue_program(KERNEL, disks, MAPS),
            BIO_COMPLETE: programs.bio_completion_program(KERNEL, disks, MAPS),
        }
        if bios:
            self.memory[SLOTS_AT] = bytearray(64 * 16)

    def put(self, address: int, value: int, form: str = "<Q") -> None:
        for begins, held in self.memory.items():
            if begins <= address < begins + len(held):
                struct.pack_into(form, held, address - begins, value)

    def bio(self, number: int, flags: int = 0, size: int = 4096, sector: int = 0,
            cgroup: int = 77) -> int:  # fmt: skip
        at = BIOS + 256 * number
        chain = REST + 0x1000 + 64 * number
        self.put(at + 8, BDEV)
        self.put(at + 16, flags, "<I")
        self.put(at + 32, sector)
        self.put(at + 40, size, "<I")
        # four pointers, each at the beginning of what the previous one points to
        for step in range(4):
            self.put((at + 72) if step == 0 else chain + 8 * (step - 1), chain + 8 * step)
        self.put(chain + 24, cgroup)
        return at

    def request(self, number: int, operation: int = READ, sector: int = 0, size: int = 4096,
                tag: int | None = None, queue: int = QUEUE, bio: int = 0) -> int:  # fmt: skip
        at = REQUESTS + 256 * number
        for offset, value in ((0, queue), (8, bio), (16, HCTX), (48, sector)):
            self.put(at + offset, value)
        self.put(at + 24, operation | 1 << 11, "<I")
        self.put(at + 32, number if tag is None else tag, "<I")
        self.put(at + 44, size, "<I")
        return at

    def happens(self, event: str, what: int, size: int = 4096) -> None:
        struct.pack_into("<QQQ", self.memory[CONTEXT], 0, what, 0, size)
        assert self.machine.run(self.code[event], CONTEXT) == 0

    def sent(self, number: int, pid: int = 700, operation: int = READ, **more: int) -> int:
        """A request of this process: allocated, then issued."""
        self.pid = pid
        bio = self.bio(number, operation | more.pop("flags", 0))
        self.happens(GETRQ, bio)
        request = self.request(number, operation, bio=bio, **more)
        self.pid = 1
        self.happens(ISSUE, request)
        return request

    def records(self) -> list[list[int]]:
        count = self.counter(programs.HEAD)
        flat = memoryview(self.memory[RING_AT]).cast("Q").tolist()
        return [flat[8 * n : 8 * n + 7] for n in range(min(count, 1 << RING_BITS))]

    def counter(self, at: int) -> int:
        return int.from_bytes(self.memory[COUNTERS_AT][at : at + 8], "little")


def test_a_request_is_noted_with_the_process_that_asked_for_it() -> None:
    disk = Disk()
    disk.sent(3, pid=4711, sector=(5 << 11) + 8, size=8192)
    ((time, sector, shape, depth, region, cgroup, total),) = disk.records()
    assert (time, sector) == (1_000_000, (5 << 11) + 8)
    assert shape == pack_shape(4711, workload.READ, 16, workload.SYNC)
    assert depth == pack_value(4711, workload.READ, 1)
    assert region == pack_value(4711, workload.READ, 5)
    assert (cgroup, total) == (77, 1)
    assert disk.counter(programs.UNKNOWN) == 0


def test_a_request_without_a_known_bio_belongs_to_who_runs() -> None:
    disk = Disk()
    disk.pid = 88
    disk.happens(ISSUE, disk.request(0, WRITE, bio=BIOS + 256))
    ((*_, shape, _, _, cgroup, _),) = disk.records()
    assert (shape >> workload.PID_AT, cgroup, disk.counter(programs.UNKNOWN)) == (88, 0, 1)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        (READ, workload.READ),
        (WRITE, workload.WRITE),
        (DISCARD, workload.DISCARD),
        (5, workload.DISCARD),
        (9, workload.WRITE),
    ],
)
def test_kinds(operation: int, kind: int) -> None:
    disk = Disk()
    disk.sent(0, operation=operation)
    ((_, _, shape, *_),) = disk.records()
    assert shape >> workload.KIND_AT & 3 == kind and not shape & workload.FUA


def test_what_has_no_data_or_is_another_disk_s_is_left_out() -> None:
    disk = Disk()
    disk.happens(ISSUE, disk.request(0, size=0))
    disk.happens(ISSUE, disk.request(1, DRIVER_IN))
    disk.happens(ISSUE, disk.request(2, queue=OTHER_QUEUE))
    assert disk.records() == []


def test_only_the_sectors_of_a_partition() -> None:
    disk = Disk(first=2048, last=4095)
    for number, sector in enumerate((2047, 2048, 4095, 4096)):
        disk.sent(number, sector=sector)
    assert [record[1] for record in disk.records()] == [2048, 4095]


def test_a_flush_and_fua_are_those_of_the_bio() -> None:
    disk = Disk()
    disk.sent(0, pid=5, operation=WRITE, flags=FUA | PREFLUSH)
    flush, write = disk.records()
    # the flush's size is that of the bio's data
    assert flush[2] == pack_shape(5, workload.FLUSH, 8)
    assert flush[3] == flush[4] == flush[6] == 0
    assert write[2] == pack_shape(5, workload.WRITE, 8, workload.FUA | workload.SYNC)


def test_metadata_counts_as_another_process() -> None:
    disk = Disk()
    disk.sent(0, pid=5, operation=WRITE | META)
    disk.sent(1, pid=5, operation=WRITE)
    metadata, data = disk.records()
    assert metadata[2] == pack_shape(5 | workload.METADATA, workload.WRITE, 8, workload.SYNC)
    assert data[2] == pack_shape(5, workload.WRITE, 8, workload.SYNC)
    # the depth counts a process's data and metadata together
    assert metadata[3] == pack_value(5 | workload.METADATA, workload.WRITE, 1)
    assert data[3] == pack_value(5, workload.WRITE, 2)


def test_depths_are_those_of_the_process_and_of_the_disk() -> None:
    disk = Disk()
    first = disk.sent(0, pid=5)
    disk.sent(1, pid=6)
    disk.sent(2, pid=5)
    disk.happens(COMPLETE, first)
    disk.sent(3, pid=5)
    assert [record[3] & workload.LOW_BITS for record in disk.records()] == [1, 1, 2, 2]
    assert [record[6] for record in disk.records()] == [1, 2, 3, 3]


def test_a_part_of_a_request_does_not_end_it() -> None:
    disk = Disk()
    request = disk.sent(0, size=8192)
    disk.happens(COMPLETE, request, size=4096)
    disk.sent(1)
    assert disk.records()[1][3] & workload.LOW_BITS == 2
    disk.happens(COMPLETE, request, size=8192)
    disk.sent(2)
    assert disk.records()[2][3] & workload.LOW_BITS == 2


def test_a_completion_that_was_not_seen_is_repaired_by_the_next_of_its_tag() -> None:
    disk = Disk()
    for number in range(10):
        disk.sent(number, tag=1, sector=number * 100)
    assert {record[3] & workload.LOW_BITS for record in disk.records()} == {1}
    assert {record[6] for record in disk.records()} == {1}


def test_a_completion_without_a_beginning_is_missed() -> None:
    disk = Disk()
    disk.happens(COMPLETE, disk.request(0))
    assert disk.counter(programs.MISSED) == 1
    disk.sent(1)
    assert disk.records()[0][6] == 1


def test_a_request_that_is_sent_again_is_one() -> None:
    disk = Disk()
    request = disk.sent(0)
    disk.happens(REQUEUE, request)
    disk.happens(ISSUE, request)
    assert len(disk.records()) == 1 and disk.counter(programs.REQUEUED) == 1
    disk.happens(COMPLETE, request)
    # nothing is known of a request that has completed
    disk.happens(REQUEUE, request)
    assert disk.counter(programs.REQUEUED) == 1
    disk.sent(0)
    assert [record[6] for record in disk.records()] == [1, 1]


def sequential(disk: Disk) -> list[bool]:
    return [bool(record[2] & workload.SEQUENTIAL) for record in disk.records()]


def test_streams_that_are_interleaved_are_sequential_each() -> None:
    disk = Disk()
    for step in range(3):
        disk.sent(0, sector=1000 + 8 * step)
        disk.sent(1, sector=900_000 + 8 * step)
        disk.sent(2, operation=WRITE, sector=1000 + 16 * step, size=8192)
    assert sequential(disk) == [False] * 3 + [True] * 6


def test_another_direction_process_or_place_is_not_sequential() -> None:
    disk = Disk()
    disk.sent(0, sector=1000)
    disk.sent(1, sector=1008, operation=WRITE)
    disk.sent(2, sector=1008, pid=701)
    disk.sent(3, sector=1007)
    assert sequential(disk) == [False] * 4
    disk.sent(4, sector=1008)
    assert sequential(disk)[-1]


def test_bios_of_a_disk_without_requests() -> None:
    disk = Disk(bios=True)
    bio = disk.bio(0, WRITE | PREFLUSH, 4096, 2048)
    disk.pid = 12
    disk.happens(BIO_QUEUE, bio)
    flush, write = disk.records()
    assert flush[2] == pack_shape(12, workload.FLUSH, 8)
    assert write[1:5] == [2048, pack_shape(12, workload.WRITE, 8),
                          pack_value(12, 1, 1), pack_value(12, 1, 1)]  # fmt: skip
    # the bio's sector has moved on when it completes
    disk.put(bio + 32, 2056)
    disk.happens(BIO_COMPLETE, bio)
    disk.happens(BIO_COMPLETE, bio)
    disk.happens(BIO_QUEUE, disk.bio(1, READ))
    assert disk.records()[2][6] == 1


def test_the_ring_begins_again() -> None:
    disk = Disk()
    for number in range((1 << RING_BITS) + 3):
        disk.sent(number % 8, sector=number)
    assert disk.counter(programs.HEAD) == (1 << RING_BITS) + 3
    assert [record[1] for record in disk.records()][:4] == [16, 17, 18, 3]


def test_a_bio_s_metadata_counts_as_another_process() -> None:
    disk = Disk(bios=True)
    disk.pid = 12
    disk.happens(BIO_QUEUE, disk.bio(0, READ | META, 4096, 2048))
    ((_, _, shape, depth, *_),) = disk.records()
    assert shape == pack_shape(12 | workload.METADATA, workload.READ, 8)
    assert depth == pack_value(12 | workload.METADATA, workload.READ, 1)
