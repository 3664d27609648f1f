"""fio's own clock goes on after the last I/O, while it writes its logs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fio_recordings import frames, samples, statuses

from iopstui.model.fio.interval_time import io_end_s
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import LATE, NO_FIO, FrameBuilder
from iopstui.model.samples import RawSample

LOGS = "3.33-q-null-logs"


def test_seconds_in_which_fio_writes_its_logs_are_not_measured() -> None:
    """runtime=4: 1.1 to 1.5 million IOPS in each second; fio says runtime 4.9 s, and its last
    report with new I/Os came after 8.6 s."""
    built = [frame.fio for frame in frames(LOGS) if frame.fio]
    seconds = sum(interval.seconds or 0.0 for interval in built)
    slowest = max(interval.total.max_ns or 0 for interval in built) / 1e9
    assert seconds == pytest.approx(4.0, abs=0.01 + slowest)
    assert all(one.total.iops and one.total.iops > 1e6 for one in built)


def tick(seq: int, wall_ms: float) -> RawSample:
    return RawSample(seq, int(wall_ms * 1e6), wall_ms, None, None, False, 1)


def test_ticks_while_fio_writes_its_logs_are_not_late() -> None:
    documents = statuses(LOGS)[:4]
    ran_ms = documents[-1].jobs[0].directions["read"].runtime_ms
    builder = FrameBuilder()
    for sample in samples(documents):
        builder.feed(sample)
    before, behind = (documents[-1].timestamp_ms + 4000 - ran_ms + more for more in (-5, 100))
    assert LATE in builder.feed(tick(4, before)).flags
    over = builder.feed(tick(5, behind))
    assert NO_FIO in over.flags and LATE not in over.flags
    # and what the kernel counts there is not the run's
    meter = Meter(("throttled",))
    assert meter.add(replace(over, flags=frozenset(), throttled=1.0, seconds=1.0)) == 1.0
    assert meter.add(replace(over, throttled=99.0, seconds=1.0)) is None
    assert meter.value == 1.0


def test_where_the_end_of_the_io_is_not_known_nothing_is_left_out() -> None:
    job = statuses(LOGS)[-1].jobs[0]
    assert io_end_s(job) == pytest.approx(4.0, abs=0.05)
    for gone in ("write_lat_log", "runtime"):
        options = {name: value for name, value in job.options.items() if name != gone}
        assert io_end_s(replace(job, options=options)) is None
    assert io_end_s(replace(job, options={**job.options, "startdelay": "1"})) is None
