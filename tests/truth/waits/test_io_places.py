"""Parsing the trace for tests/truth/waits: lines of tracefs, and the places of I/Os that follow."""

from __future__ import annotations

import pytest
from io_places import ABOVE, CPU, DEVICE, IOS, QUEUE, places
from io_trace import BlockEvent, CallEvent, SchedEvent, parse
from wait_compare import Row

DM, VDA, VDB = (253, 0), (254, 0), (254, 16)
NAMES = {DM: "dm-0", VDA: "vda", VDB: "vdb"}

# a read of 8 sectors through dm-linear on virtio, on Linux 6.12
TRACE = """\
# tracer: nop
 fio-323 [003] ...1.   1.000000: sys_io_submit(ctx_id: 7f61, nr: 1, iocbpp: 56)
 fio-323 [003] .....   1.100000: block_bio_queue: 253,0 R 6024 + 8 [fio]
 fio-323 [003] .....   1.200000: block_bio_remap: 254,0 R 8072 + 8 <- (253,0) 6024
 fio-323 [003] .....   1.200000: block_bio_queue: 254,0 R 8072 + 8 [fio]
 fio-323 [003] .....   1.300000: block_rq_issue: 254,0 R 4096 () 8072 + 8 be,0,4 [fio]
 fio-323 [003] ...1.   1.300000: sys_io_submit -> 0x1
 fio-323 [003] ...1.   1.300000: sys_io_getevents(ctx_id: 7f61, min_nr: 1)
 fio-323 [003] d..2.   1.350000: sched_switch: prev_comm=fio prev_pid=323 \
prev_state=S ==> next_comm=swapper/3 next_pid=0
 <idle>-0 [003] d.h2.   1.700000: block_rq_complete: 254,0 R () 8072 + 8 be,0,4 [0]
 <idle>-0 [003] d.h2.   1.800000: block_bio_complete: 253,0 R 6024 + 8 [0]
 <idle>-0 [003] dNh2.   1.800000: sched_wakeup: comm=fio pid=323 prio=120
 <idle>-0 [003] d..2.   1.950000: sched_switch: prev_comm=swapper/3 prev_pid=0 \
prev_state=R ==> next_comm=fio next_pid=323
 fio-323 [003] ...1.   2.000000: sys_io_getevents -> 0x1
"""


def test_each_part_of_a_read_is_measured() -> None:
    (means,) = places(parse(TRACE.splitlines()), [(1.0, 2.0)], DM, NAMES, lowest=["vda"])
    assert means == pytest.approx(
        {IOS: 1.0, ABOVE: 0.15, CPU: 0.15, "dm-0": 0.2, "vda": 0.5, "vdb": 0.0, QUEUE: 0.1,
         DEVICE: 0.4}
    )  # fmt: skip


def test_trace_lines_are_parsed() -> None:
    events = list(parse(TRACE.splitlines()))
    assert events[0] == CallEvent(1.0, "io_submit", 323)
    assert events[2] == BlockEvent(1.2, "bio_remap", 323, VDA, "R", 8072, 8, DM, 6024)
    assert events[4] == BlockEvent(1.3, "rq_issue", 323, VDA, "R", 8072, 8, comm="fio")
    assert events[-2:] == [SchedEvent(1.95, "in", 323), CallEvent(2.0, "io_getevents", 323, 1)]


def queued(t: float, device: tuple[int, int], sector: int, kind: str = "W") -> BlockEvent:
    return BlockEvent(t, "bio_queue", 1, device, kind, sector, 8, comm="fio")


def ended(t: float, device: tuple[int, int], sector: int) -> BlockEvent:
    return BlockEvent(t, "bio_complete", 0, device, "W", sector, 8)


def remapped(t: float, device: tuple[int, int], sector: int) -> BlockEvent:
    return BlockEvent(t, "bio_remap", 1, device, "W", sector, 8, DM, sector)


MIRRORED = [
    CallEvent(0.0, "pwrite64", 1), queued(0.0, DM, 0),
    remapped(0.0, VDA, 0), queued(0.0, VDA, 0), remapped(0.0, VDB, 0), queued(0.0, VDB, 0),
    ended(0.2, VDA, 0), ended(0.6, VDB, 0), ended(1.0, DM, 0), CallEvent(1.0, "pwrite64", 1, 4096),
]  # fmt: skip


def test_a_write_to_two_mirrors_counts_half_in_each() -> None:
    (means,) = places(MIRRORED, [(0.0, 1.0)], DM, NAMES)
    assert means["vda"] == pytest.approx(0.1) and means["vdb"] == pytest.approx(0.5)
    assert means["dm-0"] == pytest.approx(0.4) and means[ABOVE] == pytest.approx(0.0)


def test_buffered_writes_are_not_in_flight() -> None:
    (means,) = places(MIRRORED, [(0.0, 1.0)], DM, NAMES, in_cache=True)
    assert means[IOS] == means[ABOVE] == pytest.approx(1.0)
    assert means["dm-0"] == means["vda"] == 0.0


def test_ios_across_spans_are_divided() -> None:
    first, second = places(MIRRORED, [(0.0, 0.4), (0.4, 0.8)], DM, NAMES)
    assert first["vda"] == pytest.approx(0.25) and first["vdb"] == pytest.approx(0.75)
    assert (second["vdb"], second["dm-0"]) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize(
    ("measured", "theirs", "off"),
    [(1.4, 1.0, False), (1.6, 1.0, True), (21.9, 20.0, False), (17.9, 20.0, True)],
)
def test_an_error_of_a_tenth_or_half_an_io_is_accepted(
    measured: float, theirs: float, off: bool
) -> None:
    assert Row("", "", "", measured, theirs, 0.0).off is off
