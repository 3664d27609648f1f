"""Rows of a run that are not verified, found by figures that are independent of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import disk, fio, frame
from fio_recordings import frames, statuses

from iopstui.model.metrics.frame import APART, APPROX_BW, APPROX_IOPS, RAMP, Frame
from iopstui.model.metrics.summary import (
    BANDWIDTH,
    DEVICE,
    IOPS,
    FramesTotal,
    RowChecks,
    fio_summary,
)
from iopstui.output.summary import reconciliation


def row(t: float, on_device: float = 1000.0, flag: str = "", **figures: bool) -> Frame:
    interval = replace(fio(1000, lat_ns=1e6), **figures)
    flags = frozenset({flag} if flag else ())
    return frame(t, interval, disks={"vda": disk(on_device)}, flags=flags)


def doubts(*rows: Frame) -> dict[str, list[float]]:
    checks, parts = RowChecks(), [RowChecks(), RowChecks()]
    for number, each in enumerate(rows):
        checks.add(each)
        parts[2 * number >= len(rows)].add(each)
    parts[0].join(parts[1])
    assert parts[0].doubtful == checks.doubtful, "in parts, as a report reads them"
    return dict(checks.doubtful)


@pytest.mark.parametrize(
    ("doubtful", "column"),
    [
        (row(3, flag=APPROX_IOPS), IOPS),
        (row(3, within_depth=False), IOPS),
        (row(3, flag=APPROX_BW), BANDWIDTH),
        (row(3, bytes_agree=False), BANDWIDTH),
        (row(3, on_device=800), DEVICE),
    ],
)
def test_a_row_that_contradicts_itself_is_not_verified(doubtful: Frame, column: str) -> None:
    good = [row(t) for t in range(10)]
    assert doubts(*good) == {}
    assert doubts(*good, doubtful) == {column: [3]}


def test_the_device_is_no_evidence_where_it_does_not_have_all_bytes() -> None:
    good = [row(t) for t in range(10)]
    assert doubts(*(row(t, on_device=500) for t in range(10))) == {}, "a cache has the others"
    assert doubts(*good, row(3, on_device=800, flag=APART)) == {}, "other seconds"
    assert doubts(*good, row(3, on_device=800, flag=RAMP)) == {}
    cached = replace(row(3, on_device=800), waits=None)
    assert doubts(*good, cached) == {}, "nobody knows where its I/Os were"


def test_the_last_line_names_the_rows() -> None:
    name = "3.42-a-randread-grp"
    total = FramesTotal()
    for number, each in enumerate(frames(name)):
        marked = number in (1, 2)
        total.add_frame(replace(each, t=61.0, flags=each.flags | {APPROX_BW}) if marked else each)
    text = reconciliation(fio_summary(statuses(name)[-1]), total)
    assert text.startswith("Verified: the 5 intervals add up")
    assert text.endswith("Not verified in single rows: MiB/s at 1:01, 1:01.")
