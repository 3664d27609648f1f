"""A device's I/Os per second are one figure, wherever it is shown.

500 discards and 50 flushes a second on one device: its tps, as iostat counts it, is 500.
"""

from __future__ import annotations

import pytest
from evidence_frames import device, disk, fio, frame, seconds
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.block.topology import Topology
from iopstui.model.experiment.point import PointMeter
from iopstui.model.figures.disk import DiskRates, disk_rates
from iopstui.model.findings.figures import device_figures
from iopstui.model.metrics.queue_map import queue_map
from iopstui.model.metrics.run_figures import DeviceTotal
from iopstui.model.samples import DiskCounters


def trims(t: float = 1.0, count: float = 500.0) -> dict[str, DiskRates]:
    return {"vda": disk(d_s=count, f_s=50.0)}


def test_all_that_show_it_agree() -> None:
    frames = seconds(5, disks=trims(), interval=fio(500))
    figures = device_figures(frames, [device()])
    assert figures is not None and figures.ios_s == 500
    (queues,) = queue_map([device()], frames[-1], Topology())
    assert queues.ios_s == 500
    meter = PointMeter(0.0)
    of_report = DeviceTotal()
    for one in frames:
        meter.add(one)
        of_report.add_interval(one.combined(["vda"]), counts=True)
    point = meter.point()
    assert point is not None and point.device_iops == 500
    assert point.device_bw == 500 * 4096 and point.request_bytes == 4096
    assert of_report.ios == 5 * 500 and of_report.mean(DiskRates.ios_s) == 500


COUNTS = st.lists(st.integers(0, 10**6), min_size=17, max_size=17)


@given(COUNTS, st.floats(0.2, 60))
def test_what_all_waited_is_what_the_kernel_summed(grown: list[int], seconds_: float) -> None:
    rates = disk_rates(
        DiskCounters("vda", 254, 0, *grown), DiskCounters("vda", 254, 0, *[0] * 17), seconds_
    )
    assert rates is not None
    reads, _, _, read_ms, writes, _, _, write_ms = grown[:8]
    discards, discard_ms = grown[11], grown[14]
    expected = sum(
        ms for ms, count in ((read_ms, reads), (write_ms, writes), (discard_ms, discards)) if count
    )
    assert (rates.waited_ms or 0.0) == pytest.approx(expected)
    assert rates.ios == reads + writes + discards
    assert rates.ios_s == pytest.approx(rates.ios / seconds_)
    assert frame(1.0, disks={"vda": rates}).combined(["vda"]) is rates
