"""Frames without a job, of one or more disks, with the figures that a test chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iopstui.model.figures.disk import DiskRates, disk_rates
from iopstui.model.metrics.frame import NO_FIO, Frame
from iopstui.model.samples import DiskCounters


def rates(
    reads: int = 0, writes: int = 0, wait_ms: int = 0, kib: int = 4, seconds: float = 1.0
) -> DiskRates:
    """The rates of an interval with these counts of requests, each of ``kib`` and taking
    ``wait_ms``."""
    before = DiskCounters("vda", 254, 0, *[0] * 17)
    after = DiskCounters(
        "vda", 254, 0, reads, 0, 2 * kib * reads, wait_ms * reads,
        writes, 0, 2 * kib * writes, wait_ms * writes,
        0, min(1000, wait_ms * (reads + writes)), wait_ms * (reads + writes), *[0] * 6,
    )  # fmt: skip
    found = disk_rates(after, before, seconds)
    assert found is not None
    return found


def frame(t: float, disks: Mapping[str, DiskRates] | None, seconds: float | None = 1.0) -> Frame:
    """A frame of a watch that ends at ``t``; without ``disks`` it is the first."""
    return Frame(
        seq=round(t), step=0, t=t, wall_ms=1e12 + 1000 * t,
        seconds=None if disks is None else seconds,
        flags=frozenset({NO_FIO}), fio=None, fio_age_s=None, skew_ms=None,
        disks=disks or {}, opened=tuple(disks or ()),
    )  # fmt: skip


def watched(disks: Sequence[DiskRates | None]) -> list[Frame]:
    """One frame for each second of vda; in a second that is ``None``, vda was not measured."""
    return [
        frame(0.0, None),
        *(frame(n + 1.0, {} if one is None else {"vda": one}) for n, one in enumerate(disks)),
    ]
