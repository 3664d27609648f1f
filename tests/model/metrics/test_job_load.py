"""What a job has in flight, by direction, and whether its writes wait for the device."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fio_recordings import statuses

from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.intervals import FioIntervals
from iopstui.model.metrics.cpus import SentBytes, job_load, writes_in_cache
from iopstui.model.samples import FioStatus, RawSample

READS_AND_WRITES = "3.42-p-latpct"


def with_options(**options: str) -> FioStatus:
    """A run whose jobs read and write and have no other options."""
    status = statuses(READS_AND_WRITES)[-1]
    return replace(status, jobs=tuple(replace(job, options=options) for job in status.jobs))


@pytest.mark.parametrize(
    ("options", "in_cache"),
    [
        ({}, True),
        ({"direct": "0"}, True),
        ({"direct": "1"}, False),
        ({"direct": ""}, False),
        ({"buffered": "1"}, True),
        ({"buffered": "0"}, False),
        ({"ioengine": "io_uring_cmd"}, False),
        ({"sync": "1"}, False),
        ({"sync": "dsync"}, False),
        ({"sync": "none"}, True),
        ({"sync": "0", "direct": "0"}, True),
    ],
)
def test_buffered_writes_without_o_sync_stay_in_the_page_cache(
    options: dict[str, str], in_cache: bool
) -> None:
    assert writes_in_cache(with_options(**options)) is in_cache


def test_a_job_that_only_reads_leaves_nothing_in_the_cache() -> None:
    status = statuses("3.42-a-randread-grp")[-1]
    buffered = tuple(replace(job, options={}) for job in status.jobs)
    assert not writes_in_cache(replace(status, jobs=buffered))


def measured(name: str) -> tuple[FioStatus, FioInterval]:
    """The last whole interval of a run."""
    fold, found = FioIntervals(), []
    for number, status in enumerate(statuses(name)):
        interval = fold.feed(status, number * 10**9, 1.0, False)
        if interval is not None and interval.seconds:
            found.append((status, interval))
    return found[-1]


def test_the_parts_are_fio_s_directions() -> None:
    status, interval = measured(READS_AND_WRITES)
    load = job_load(status, interval, [50.0, 150.0], 250.0, interval.seconds)
    assert load is not None and load.aligned
    assert (load.cpu_wait, load.workers_wait) == pytest.approx((0.75, 2.5))
    assert {one.letter for one in load.directions} == {"r", "w"}
    assert sum(one.iops for one in load.directions) == pytest.approx(load.iops)
    assert sum(one.ios or 0.0 for one in load.directions) == pytest.approx(load.ios)
    other = job_load(status, interval, [], 0.0, (interval.seconds or 0.0) * 1.2)
    assert other is not None and not other.aligned and other.cpu_wait is None


def test_bytes_sent_are_rates_over_the_kernel_s_interval() -> None:
    sample = RawSample(0, 0, 0.0, None, None, False, 1, read_bytes=4096, written_bytes=100)
    sent = SentBytes()
    assert sent.feed(sample, 2.0) == (2048.0, 50.0), "all since the run began"
    assert sent.feed(replace(sample, read_bytes=8192), 1.0) == (4096.0, 0.0)
    assert sent.feed(replace(sample, read_bytes=None), 1.0) is None
    assert sent.feed(replace(sample, read_bytes=8191), 1.0) is None
