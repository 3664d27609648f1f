"""The slowest requests and the random sample: kept by programs that are executed here instruction
by instruction, and read as the probe reads them."""

from __future__ import annotations

import struct
from dataclasses import replace

from bpf_machine import Machine
from hypothesis import given, settings
from hypothesis import strategies as st
from test_probe_counting import (
    DISCARD,
    KERNEL,
    NVME,
    READ,
    REQUESTS,
    TAGS,
    VDA,
    WRITE,
    Disks,
)

from iopstui.linux.probe import counting, slowest
from iopstui.linux.probe.bpf import (
    GET_CURRENT_PID_TGID,
    GET_CURRENT_TASK,
    GET_SMP_PROCESSOR_ID,
    KTIME_GET_NS,
    PROBE_READ_KERNEL,
)
from iopstui.linux.probe.counting import COMPLETE, INSERT, ISSUE, REQUEUE, Details, InFlightMap
from iopstui.linux.probe.regions import Region
from iopstui.linux.probe.slowest import SET_SIZE, OriginTypes, SlowestMap, SlowestReader, hash_value
from iopstui.model.metrics.slow.slow_requests import rwbs
from iopstui.model.samples import Exemplar

ORIGIN = OriginTypes(
    start_time=104, ctx=8, cpu=64, pid=16, comm=24, bio=56, group=(8, 16, 24, 32, 40)
)
FLUSH, SYNC, FUA, AHEAD, META, BEFORE = 2, 1 << 11, 1 << 17, 1 << 19, 1 << 12, 1 << 18
TASKS = 0x70000
CTX, GROUPS, SLOTS_AT, KEPT_AT = 0x50000, 0x60000, 0x1_0000_0000, 0x3_0000_0000
CPUS, ROOM = 2, 256


class Keeping(Disks):
    """Two disks, with programs that keep the slowest requests."""

    def __init__(self, *regions: Region) -> None:
        super().__init__(*regions)
        kernel = replace(KERNEL, origin=ORIGIN)
        self.slots = [InFlightMap(VDA, 7, TAGS, ROOM - 1, slowest.SLOT_BITS),
                      InFlightMap(NVME, 8, TAGS, ROOM - 1, slowest.SLOT_BITS)]  # fmt: skip
        room = ROOM << slowest.SLOT_BITS
        for at in [one for one in self.memory if 0x1_0000_0000 <= one < 0x2_0000_0000]:
            del self.memory[at]
        kept = SlowestMap(10, CPUS)
        self.kept = bytearray(kept.size)
        self.memory |= {
            SLOTS_AT: bytearray(room),
            SLOTS_AT + room: bytearray(room),
            KEPT_AT: self.kept,
            CTX: bytearray(512),
            GROUPS: bytearray(512),
        }
        self.memory[TASKS] = bytearray(0x1000)
        self.runs(41, 42, b"fio")
        self.machine = Machine(
            self.memory, {7: SLOTS_AT, 8: SLOTS_AT + room, 9: 0x2_0000_0000, 10: KEPT_AT},
            {KTIME_GET_NS: lambda: self.time, GET_SMP_PROCESSOR_ID: lambda: self.cpu,
             GET_CURRENT_PID_TGID: lambda: self.owner, GET_CURRENT_TASK: lambda: self.task,
             PROBE_READ_KERNEL: self._copy},
            frozenset({PROBE_READ_KERNEL}),
        )  # fmt: skip
        self.code = {
            ISSUE: counting.issue_program(kernel, self.slots, True),
            COMPLETE: counting.completion_program(
                kernel, self.slots, self.bins, self.regions, self.details(kept)
            ),
            REQUEUE: counting.requeue_program(kernel, self.slots, self.bins),
            INSERT: counting.insertion_program(kernel, self.slots),
        }
        # all requests have one context, of CPU 1, and one cgroup, with the number 77
        struct.pack_into("<I", self.memory[CTX], ORIGIN.cpu, 1)
        for place in range(len(ORIGIN.group) - 1):
            self._put(GROUPS + 64 * place + ORIGIN.group[place], GROUPS + 64 * (place + 1))
        self._put(GROUPS + 64 * 4 + ORIGIN.group[4], 77)
        self.reader = SlowestReader(self.kept, CPUS, self.regions, "/group-{}".format)

    def details(self, kept: SlowestMap) -> Details:
        """Count the slowest requests besides latencies."""
        return Details(kept)

    def runs(self, pid: int, tid: int, comm: bytes) -> None:
        """From now on, this thread runs."""
        self.owner, self.task = pid << 32 | tid, TASKS + 64 * (tid % 64)
        at = self.task - TASKS
        struct.pack_into("<I", self.memory[TASKS], at + ORIGIN.pid, tid)
        struct.pack_into("16s", self.memory[TASKS], at + ORIGIN.comm, comm)

    def _copy(self, to: int, size: int, source: int, *_: int) -> int:
        (at, held), (begins, read) = (
            next((a, m) for a, m in self.memory.items() if a <= one < a + len(m))
            for one in (to, source)
        )
        held[to - at : to - at + size] = read[source - begins : source - begins + size]
        return 0

    def begun(self, number: int = 0, flags: int = 0, **more: int) -> int:
        """A request that is allocated now."""
        at = self.request(number, **more)
        held = self.memory[REQUESTS]
        (before,) = struct.unpack_from("<I", held, at - REQUESTS + KERNEL.flags)
        operation = before & 0xFF
        struct.pack_into("<I", held, at - REQUESTS + KERNEL.flags, operation | flags)
        for offset, value in (
            (ORIGIN.start_time, self.time),
            (ORIGIN.ctx, CTX),
            (ORIGIN.bio, GROUPS),
        ):
            self._put(at + offset, value)
        return at

    def read(self) -> tuple[Exemplar, ...]:
        self.reader.swap_buffers()
        return self.reader.read()


def test_a_request_has_its_way_and_its_owner() -> None:
    disks = Keeping(Region("vda", 254, 0), Region("vda2", 254, 0, 2048, 4095))
    request = disks.begun(operation=WRITE, sector=2056, queue=3, tag=9, flags=FUA | SYNC)
    disks.time += 10
    disks.happens(INSERT, request)
    # a worker thread of the kernel issues it
    disks.runs(7, 7, b"kworker/0:1H")
    disks.time += 100
    disks.happens(ISSUE, request)
    disks.time, disks.cpu = disks.time + 1000, 3
    disks.happens(COMPLETE, request)
    [one] = disks.read()
    assert (one.disk, one.kind, one.sector, one.offset, one.size) == (
        "vda2", "write", 2056, 4096, 4096
    )  # fmt: skip
    assert (one.pid, one.tid, one.comm, one.group) == (41, 42, "fio", "/group-77")
    assert (one.flags, one.cpu, one.cpu_done, one.hctx) == ("WFS", 1, 3, 3)
    assert (one.plugged_ns, one.queued_ns, one.device_ns, one.total_ns) == (10, 100, 1000, 1110)
    assert one.slow and one.sampled and one.error == 0 and disks.reader.torn == 0
    assert disks.counts() == {("vda2", 1, counting_bin(1000)): 1}


def counting_bin(latency: int) -> int:
    other = Disks(Region("vda", 254, 0))
    other.lasts(other.request(), latency)
    ((_, _, index),) = other.counts()
    return index


def test_one_that_is_issued_at_once_has_no_insertion() -> None:
    disks = Keeping()
    request = disks.begun()
    disks.time += 30
    disks.lasts(request, 500)
    [one] = disks.read()
    assert (one.inserted_ns, one.plugged_ns, one.queued_ns, one.device_ns) == (None, None, 30, 500)
    assert (one.pid, one.comm) == (41, "fio")


def test_what_is_sent_again_keeps_its_owner() -> None:
    disks = Keeping()
    request = disks.begun()
    disks.happens(ISSUE, request)
    disks.time += 50
    disks.happens(REQUEUE, request)
    disks.runs(7, 7, b"kworker")
    disks.time += 50
    disks.happens(INSERT, request)
    disks.time += 50
    disks.lasts(request, 500)
    [one] = disks.read()
    assert (one.pid, one.total_ns, one.device_ns) == (41, 650, 500)
    # the time since allocation was spent being tried, not plugged; the lowest bit is the mark for
    # that
    assert one.inserted_ns is None and one.plugged_ns is None
    assert one.tried_ns in (50, 51) and one.tried_ns + (one.queued_ns or 0) == 150


def test_what_an_earlier_request_left_is_not_its_own() -> None:
    disks = Keeping()
    # inserted, then merged into another request: its own end is never seen
    disks.happens(INSERT, disks.begun())
    disks.time += 1000
    disks.runs(8, 9, b"dd")
    disks.lasts(disks.begun(), 500)
    [one] = disks.read()
    assert (one.pid, one.tid, one.comm, one.inserted_ns) == (8, 9, "dd", None)
    # its completion was not seen
    disks.happens(ISSUE, disks.begun())
    disks.time += 1000
    disks.runs(5, 5, b"cp")
    request = disks.begun()
    disks.time += 10
    disks.happens(INSERT, request)
    disks.time += 10
    disks.lasts(request, 500)
    [one] = disks.read()
    assert (one.pid, one.comm, one.plugged_ns, one.queued_ns) == (5, "cp", 10, 10)


def test_flushes_are_kept_and_not_counted() -> None:
    disks = Keeping()
    flush = disks.begun(operation=FLUSH, size=0, flags=BEFORE)
    disks.happens(ISSUE, flush)
    disks.time += 900
    disks.happens(COMPLETE, flush, size=0)
    # a request without a beginning is only counted as missed if it has sectors
    disks.happens(COMPLETE, disks.begun(1, operation=FLUSH, size=0), size=0)
    [one] = disks.read()
    assert (one.kind, one.flags, one.size, one.device_ns) == ("flush", "FF", 0, 900)
    assert (one.sector, one.offset) == (None, None)
    assert disks.counts() == {} and disks.counter(counting.MISSED) == 0


def test_the_name_of_a_thread_that_is_gone_is_not_another_s() -> None:
    disks = Keeping()
    request = disks.begun()
    disks.happens(ISSUE, request)
    # by now another thread uses its memory
    disks.runs(50, 42 + 64, b"other")
    disks.time += 10
    disks.happens(COMPLETE, request)
    [one] = disks.read()
    assert (one.pid, one.tid, one.comm) == (41, 42, "")


def test_without_the_kernel_s_time_it_begins_with_its_issue() -> None:
    disks = Keeping()
    request = disks.begun()
    disks._put(request + ORIGIN.start_time, 0)
    disks.time += 30
    disks.lasts(request, 500)
    [one] = disks.read()
    assert (one.allocated_ns, one.queued_ns, one.total_ns) == (None, None, 500)


requests = st.lists(
    st.tuples(st.sampled_from((READ, READ, READ, WRITE, DISCARD)), st.integers(0, CPUS - 1),
              st.integers(1, 10_000)),
    min_size=1, max_size=60,
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(requests)
def test_the_slowest_of_each_direction_are_kept_whatever_cpu_completes_them(
    made: list[tuple[int, int, int]],
) -> None:
    disks = KEEPING
    for number, (operation, cpu, latency) in enumerate(made):
        disks.cpu = cpu
        disks.lasts(disks.begun(operation=operation, sector=number), latency)
    found = disks.read()
    for operation, kind in ((READ, "read"), (WRITE, "write"), (DISCARD, "discard")):
        all_of = sorted((lasts for what, _, lasts in made if what == operation), reverse=True)
        slow = [one.total_ns for one in found if one.kind == kind and one.slow]
        assert slow == all_of[:SET_SIZE]
        sample = [one for one in found if one.kind == kind and one.sampled]
        assert len(sample) == min(SET_SIZE, len(all_of))
        for one in sample:
            assert made[one.sector][0] == operation and made[one.sector][2] == one.total_ns
    assert disks.read() == () and disks.read() == (), "each is given once"
    assert disks.reader.torn == 0


KEEPING = Keeping(Region("vda", 254, 0))


def test_what_completes_after_the_turn_is_of_the_next_reading() -> None:
    disks = Keeping()
    disks.lasts(disks.begun(sector=1), 100)
    disks.reader.swap_buffers()
    disks.lasts(disks.begun(sector=2), 200)
    assert [one.sector for one in disks.reader.read()] == [1]
    assert [one.sector for one in disks.read()] == [2]


def test_an_entry_that_does_not_belong_to_its_key_is_counted_and_left_out() -> None:
    disks = Keeping(Region("vda", 254, 0))
    disks.lasts(disks.begun(sector=1), 100)
    at = disks.kept.index(struct.pack("<Q", disks.time), slowest.HEAD_BYTES)
    disks.kept[at : at + 8] = struct.pack("<Q", disks.time + 5)
    found = disks.read()
    assert [(one.slow, one.sampled) for one in found] == [(False, True)]
    assert disks.reader.torn == 1


def test_every_request_of_a_second_is_as_likely_to_be_in_the_sample() -> None:
    of, seconds, period = 50, 2000, 10_000
    taken = [0] * of
    for second in range(seconds):
        began = 10**15 + second * 10**9
        keys = sorted(
            ((hash_value((began + n * period) ^ 8 * n), n) for n in range(of)), reverse=True
        )
        for _, place in keys[:SET_SIZE]:
            taken[place] += 1
    expected = seconds * SET_SIZE / of
    share = SET_SIZE / of
    chi = sum((n - expected) ** 2 / (expected * (1 - share)) for n in taken)
    # 49 degrees of freedom: 99.9 % are below 85, and below 23 only 0.1 %
    assert 20 < chi < 95


def test_flags_are_those_of_the_kernel_s_tracepoints() -> None:
    assert [rwbs(flags) for flags in (
        READ | AHEAD, WRITE | SYNC | META, WRITE | BEFORE | FUA | SYNC, FLUSH | BEFORE, DISCARD,
        5, 34,
    )] == ["RA", "WSM", "FWFS", "FF", "D", "DE", "N"]  # fmt: skip
