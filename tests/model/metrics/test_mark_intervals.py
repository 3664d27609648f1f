from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import disk, fio, frame

from iopstui.model import histogram
from iopstui.model.metrics.frame import RAMP, Frame
from iopstui.model.metrics.mark_intervals import BEGIN, RESTART_S, MarkIntervals


def second(t: float, iops: float | None, latency: int = 100_000) -> Frame:
    """One that ends at ``t``; without ``iops`` no job runs. The device does 10 more."""
    found = frame(t=t, disks={"sda": disk((iops or 0.0) + 10)})
    if iops is None:
        return replace(found, fio=None, seconds=1.0)
    one = fio(iops)
    bins = {histogram.bucket_key(latency): int(iops)}
    total = replace(one.total, iops=iops, bw=iops * 4096, bins=bins)
    return replace(found, fio=replace(one, seconds=1.0, total=total))


def test_each_stretch_has_the_mean_of_its_own_seconds() -> None:
    told = MarkIntervals()
    for t, iops in ((1, 100.0), (2, 300.0)):
        told.add_frame(second(t, iops))
    assert not told.marked
    told.add_mark(2.0, "cache off")
    for t, iops in ((3, 50.0), (4, 70.0), (5, 90.0)):
        told.add_frame(second(t, iops, latency=900_000))
    first, off = told.all
    assert told.marked and (first.text, off.text) == (BEGIN, "cache off")
    assert (first.iops, first.seconds, off.iops, off.seconds) == (200.0, 2.0, 70.0, 3.0)
    assert off.bw == 70.0 * 4096 and (off.start, off.end) == (2.0, 5.0)
    # of this stretch's latencies alone; a bin's middle is within a percent or two
    assert off.p99_ns == pytest.approx(900_000, rel=0.02)


def test_a_second_that_began_before_the_mark_is_not_behind_it() -> None:
    told = MarkIntervals()
    told.add_mark(2.9, "a")
    told.add_frame(second(3.0, 1000.0))
    told.add_frame(second(4.0, 10.0))
    told.add_frame(replace(second(5.0, 5000.0), flags=frozenset({RAMP})))
    assert [one.iops for one in told.all] == [10.0]


def test_without_a_job_it_is_the_device_that_is_told() -> None:
    told = MarkIntervals()
    told.add_mark(0.0, "backup")
    told.add_frame(second(1.0, None))
    (one,) = told.all
    assert (one.by_fio, one.iops, one.p99_ns) == (False, 10.0, None)


def test_it_ends_with_its_job_though_nothing_follows() -> None:
    told = MarkIntervals()
    told.add_mark(1.0, "cache off")
    for t, iops in ((2.0, 100.0), (3.0, 100.0), (4.0, None), (60.0, None)):
        told.add_frame(second(t, iops))
    (one,) = told.all
    assert (one.start, one.end, one.seconds, one.iops) == (1.0, 3.0, 2.0, 100.0)


def test_a_run_right_behind_a_mark_is_that_of_the_mark() -> None:
    told = MarkIntervals()
    told.add_frame(second(1.0, 100.0))
    told.add_mark(1.0, "QD 8")
    # the old run still goes on
    told.add_frame(second(2.0, 100.0))
    told.start_run(2.5, "randread 4k")
    told.add_frame(second(4.0, 800.0))
    told.start_run(4.0 + RESTART_S, "another")
    told.add_frame(second(11.0, 5.0))
    assert [(one.text, one.iops) for one in told.all] == [
        (BEGIN, 100.0), ("QD 8", 800.0), ("another", 5.0),
    ]  # fmt: skip


def test_a_copy_stays_as_it_was() -> None:
    told = MarkIntervals()
    told.add_frame(second(1.0, 100.0))
    still = told.copy()
    told.add_frame(second(2.0, 300.0))
    assert [one.iops for one in still.all] == [100.0]
