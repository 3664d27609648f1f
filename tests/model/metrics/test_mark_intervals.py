from __future__ import annotations

from dataclasses import replace

from evidence_frames import disk, fio, frame

from iopstui.model import histogram
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.run_figures import MarkIntervals


def second(t: float, iops: float | None, latency: int = 100_000) -> Frame:
    """A second that ends at ``t``; without ``iops`` no job runs. The device does 10 I/Os more."""
    found = frame(t=t, disks={"sda": disk((iops or 0.0) + 10)})
    if iops is None:
        return replace(found, fio=None, seconds=1.0)
    one = fio(iops)
    bins = {histogram.bucket_key(latency): int(iops)}
    total = replace(one.total, iops=iops, bw=iops * 4096, bins=bins)
    return replace(found, fio=replace(one, seconds=1.0, total=total))


def test_a_copy_stays_as_it_was() -> None:
    told = MarkIntervals()
    told.add_frame(second(1.0, 100.0))
    still = told.copy()
    told.add_frame(second(2.0, 300.0))
    assert [one.iops for one in still.all] == [100.0]
