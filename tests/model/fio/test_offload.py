"""io_submit_mode=offload: until its end fio counts bytes alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fio_recordings import samples, statuses

from iopstui.model.fio.rows import NOTHING
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import NO_LATENCY, Frame, FrameBuilder
from iopstui.model.metrics.summary import EXACT, UNCHECKED, FramesTotal, certificate, fio_summary
from iopstui.model.samples import FioStatus
from iopstui.output.summary import reconciliation

OFFLOAD = "3.42-q-offload"


def built(documents: list[FioStatus]) -> tuple[list[Frame], FramesTotal]:
    builder, total = FrameBuilder(), FramesTotal()
    found = [builder.feed(sample) for sample in samples(documents)]
    for frame in found:
        total.add(frame.fio)
    return found, total


def test_a_steady_rate_is_steady() -> None:
    documents = list(statuses(OFFLOAD))
    found, total = built(documents)
    assert all(
        frame.fio and frame.fio.total.iops == pytest.approx(1000, rel=0.02) for frame in found
    )
    assert all(NO_LATENCY in frame.flags for frame in found)
    assert certificate(fio_summary(documents[-1]), total).verdict == EXACT


def test_where_sizes_vary_the_rate_is_unknown_not_zero() -> None:
    documents = [
        replace(one, jobs=tuple(replace(job, block_size=None) for job in one.jobs))
        for one in statuses(OFFLOAD)
    ]
    found, total = built(documents)
    meter, moved = Meter(("fio", "total", "iops")), Meter(("fio", "total", "bw"))
    for frame in found:
        assert frame.fio is not None and frame.fio.total.iops is None
        assert frame.fio.jobs[0].counted_by == NOTHING
        assert meter.add(frame) is None and moved.add(frame)
    assert meter.value is None and moved.value == pytest.approx(4096 * 1000, rel=0.02)
    summary = fio_summary(documents[-1])
    assert certificate(summary, total).verdict == UNCHECKED
    assert (
        "Not verified: fio reports the number of I/Os only at its end, and block sizes vary"
        in reconciliation(summary, total)
    )
