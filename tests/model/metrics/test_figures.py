"""A run's figures from its frames: each mean is weighted, and none is a mean of means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from disks import disk_of
from evidence_frames import disk, fio, frame
from session_frames import whole_frames

from iopstui.model.metrics.figures import Meter, is_measurable
from iopstui.model.metrics.frame import FINAL, PARTIAL, RAMP, Frame
from iopstui.model.metrics.probe import LatencyStats, ProbeInterval, RequestStats
from iopstui.model.metrics.run_figures import RunFigures
from iopstui.model.metrics.waits import Waits

# 1 s with 100 reads, 10 writes ... and 3 s with three times as much of all but the writes
SHORT = disk_of(
    seconds=1.0, reads=100, writes=10, discards=4, r_s=100, w_s=10, d_s=4, f_s=2,
    r_bytes_s=1 << 20, w_bytes_s=2 << 20, d_bytes_s=4 << 20, rrqm_s=1, wrqm_s=3, drqm_s=0,
    r_await=1, w_await=2, d_await=3, f_await=4, rareq_size=4096, wareq_size=8192,
    dareq_size=None, aqu_sz=1, util=10, in_flight=1,
)  # fmt: skip
LONG = disk_of(
    seconds=3.0, reads=900, writes=10, discards=36, r_s=300, w_s=10 / 3, d_s=12, f_s=6,
    r_bytes_s=3 << 20, w_bytes_s=6 << 20, d_bytes_s=12 << 20, rrqm_s=5, wrqm_s=7, drqm_s=0,
    r_await=2, w_await=4, d_await=4, f_await=6, rareq_size=8192, wareq_size=4096,
    dareq_size=None, aqu_sz=3, util=50, in_flight=1,
)  # fmt: skip


def over(name: str, *frames: Frame) -> float | None:
    meter = Meter(tuple(name.split("/", 3)))
    for one in frames:
        meter.add(one)
    return meter.value


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # per second: the sum over all seconds (four)
        ("r/s", (100 + 900) / 4), ("w/s", (10 + 10) / 4), ("d/s", (4 + 36) / 4),
        ("f/s", (2 + 18) / 4), ("rMB/s", (1 + 9) / 4), ("wMB/s", (2 + 18) / 4),
        ("dMB/s", (4 + 36) / 4), ("rrqm/s", (1 + 15) / 4), ("wrqm/s", (3 + 21) / 4),
        # per request: the sum over all requests
        ("r_await", (100 * 1 + 900 * 2) / 1000), ("w_await", (10 * 2 + 10 * 4) / 20),
        ("d_await", (4 * 3 + 36 * 4) / 40), ("f_await", (2 * 4 + 18 * 6) / 20),
        ("rareq-sz", 10 * 1024 / 1000), ("wareq-sz", 20 * 1024 / 20),
        # shares of the time
        ("aqu-sz", (1 + 9) / 4), ("util", (10 + 150) / 4),
    ],
)  # fmt: skip
def test_a_device_s_figures_in_iostat_s_units(name: str, expected: float) -> None:
    frames = [frame(1, disks={"vda": SHORT}), frame(4, disks={"vda": LONG})]
    assert over(f"kernel/disks/vda/{name}", *frames) == pytest.approx(expected)


def probed(t: float, **bins_of: Mapping[int, int]) -> Frame:
    """A second in which vda completed requests, in these times (ns) by direction."""
    parts = {
        kind: RequestStats(1.0, LatencyStats.from_bins(bins)) for kind, bins in bins_of.items()
    }
    counted = ProbeInterval(1.0, 0.0, (), {"vda": parts}, {}, (), None, None, 0, 0, 0,
                            None, None)  # fmt: skip
    return replace(frame(t, disks={"vda": SHORT}), probe=counted)


def test_a_device_s_latencies_weigh_by_its_requests() -> None:
    frames = [probed(1, read={1000: 1}), probed(2, read={5000: 2}, write={3000: 1})]
    assert over("device/total/mean", *frames) == pytest.approx((1000 + 2 * 5000 + 3000) / 4)
    assert over("device/read/mean", *frames) == pytest.approx((1000 + 2 * 5000) / 3)
    assert over("device/total/p50", *frames) == 3000 and over("device/total/max", *frames) == 5000


def test_figures_by_key_weigh_by_time() -> None:
    frames = [replace(frame(t, disks={"vda": one}), seconds=one.seconds)
              for t, one in ((1, SHORT), (4, LONG))]  # fmt: skip
    waits = [Waits(8.0, None, None, {"vda": ios}, None, None, 0.0) for ios in (8.0, 4.0)]
    frames = [replace(one, waits=place) for one, place in zip(frames, waits, strict=True)]
    assert over("wait/layers/vda", *frames) == (1 * 8 + 3 * 4) / 4
    assert over("wait/layers/vdb", *frames) is None


def test_fio_s_end_is_measured_as_long_as_it_is() -> None:
    end = frame(2, fio(400, seconds=0.5), flags=frozenset({FINAL, PARTIAL}))
    assert over("fio/total/iops", frame(1, fio(100)), end) == pytest.approx(300 / 1.5)
    assert over("fio/total/bw", frame(1, fio(100)), end) == pytest.approx(4096 * 300 / 1.5)


@pytest.mark.parametrize(
    "path",
    ["fio", "fio/total", "fio/total/ios", "fio/total/clat/sum", "kernel/disks/vda/in_flight",
     "kernel/cpus/0/guest", "kernel/vda/util", "own", "seconds", "kernel/irqs/0/0",
     "kernel/disks/vda"],
)  # fmt: skip
def test_what_has_no_figure_of_a_whole_run(path: str) -> None:
    parts = tuple(path.split("/", 3))
    assert not is_measurable(parts)
    with pytest.raises(ValueError, match="no figure of a whole run: "):
        Meter(parts)


def test_all_devices_together() -> None:
    both = frame(1, disks={"vda": disk(100), "vdb": disk(50)})
    path = ("kernel", "total", "r/s")
    assert is_measurable(path) and not is_measurable(("kernel", "total", "in_flight"))
    meter = Meter(path)
    meter.add(replace(both, opened=("vda", "vdb")))
    assert meter.value == 150


def test_a_run_s_waits_add_up_although_its_last_interval_has_no_job() -> None:
    """When fio has ended, it is no longer known how long its jobs waited for a CPU."""
    full = Waits(8.0, 1.0, 2.0, {"vda": 5.0}, None, None, 0.0)
    last = Waits(8.0, None, 6.0, {"vda": 2.0}, None, None, 0.0)
    middle = replace(whole_frames("3.42-a-randread-grp")[1], flags=frozenset(), waits=full)
    frames = [
        replace(middle, flags=frozenset({RAMP}), waits=last),
        middle,
        replace(middle, fio=None, waits=last),
        replace(middle, flags=frozenset({FINAL, PARTIAL}), waits=last),
    ]
    total = RunFigures()
    for one in frames:
        total.add(one)
    assert total.waits.value == full
    alone = RunFigures()
    alone.add(frames[-1])
    assert alone.waits.value == last
