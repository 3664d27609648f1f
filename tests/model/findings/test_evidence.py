"""Figures and words that the rules share."""

from __future__ import annotations

from dataclasses import replace

import pytest
from disks import changed
from evidence_frames import device, disk, fio, frame

from iopstui.model.findings.cpu_accounts import busiest_cpu, busy_by_job, mean_by_cpu
from iopstui.model.findings.evidence import Evidence, JobShape, measured_frames, recent_job_frames
from iopstui.model.findings.figures import (
    device_figures,
    fio_bytes_s,
    fio_iops,
    fio_latency_ns,
    iops_by_second,
)
from iopstui.model.findings.finding import cpus_text, device_names_text
from iopstui.model.metrics.frame import APPROX_BW, APPROX_IOPS, PARTIAL, RAMP, RESET


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, ""), (1, "d0"), (2, "d0 and d1"), (3, "d0, d1 and d2"), (4, "d0, d1, d2 and d3"),
     (5, "d0, d1, d2 and 2 more"), (8, "d0, d1, d2 and 5 more")],
)  # fmt: skip
def test_names_of_devices(count: int, words: str) -> None:
    assert device_names_text([device(name=f"d{n}") for n in range(count)]) == words


def test_names_of_cpus() -> None:
    assert cpus_text([0, 1, 5]) == "CPU 0, 1, 5"
    assert cpus_text(range(6)) == "CPU 0, 1, 2, 3, 4, 5"
    assert cpus_text(range(64)) == "CPU 0, 1, 2, 3, 4, 5 ... (64 CPUs)"
    assert cpus_text(range(64), most=3) == "CPU 0, 1, 2 ... (64 CPUs)"


def test_only_frames_of_a_whole_interval_are_measured() -> None:
    good = [frame(n, fio(100)) for n in range(3)]
    unfit = (RAMP, PARTIAL, RESET, APPROX_IOPS, APPROX_BW)
    bad = [frame(n, fio(100), flags=frozenset({flag})) for n, flag in enumerate(unfit)]
    unknown = replace(fio(100), seconds=None)
    assert measured_frames([*bad, *good, frame(9), frame(10, unknown)]) == good
    late = replace(frame(11, fio(100)), seconds=0.4, beside=frame(11, fio(100)))
    assert measured_frames([late]) == [late.beside]
    assert recent_job_frames(Evidence([*good, *bad])) == good
    assert recent_job_frames(Evidence([*good[1:], *bad])) == []
    assert recent_job_frames(Evidence(good), 2) == good[1:]


def test_rates_are_over_all_seconds_and_latencies_over_all_ios() -> None:
    frames = [frame(1, fio(100, lat_ns=1000)), frame(4, fio(300, seconds=3, lat_ns=2000)), frame(5)]
    assert fio_iops(frames) == (100 + 900) / 4
    assert fio_bytes_s(frames) == 4096 * (100 + 900) / 4
    assert fio_latency_ns(frames) == (100 * 1000 + 900 * 2000) / 1000
    assert fio_latency_ns([frame(1, fio(100, clat_ns=7)), frame(2, fio(100))]) == 7
    assert fio_latency_ns([frame(2, fio(100)), frame(3)]) is None
    assert fio_iops([frame(1)]) == fio_bytes_s([]) == 0


def test_devices_together_over_the_frames_that_measured_all_of_them() -> None:
    merged = changed(disk(100, 10, d_s=5), rrqm_s=1, wrqm_s=2, drqm_s=4)
    both = {"vda": merged, "vdb": disk(200, size=8192)}
    frames = [frame(n, disks=both) for n in range(3)] + [frame(4, disks={"vda": disk(9)})]
    devices = [device(), device(name="vdb")]
    found = device_figures(frames, devices)
    assert found is not None
    assert (found.r_s, found.w_s, found.ios_s, found.merges_s) == (300, 10, 315, 7)
    assert found.bytes_s == 115 * 4096 + 200 * 8192
    assert device_figures(frames[1:], devices) is None
    assert device_figures(frames[1:], devices, 2) is not None
    assert device_figures(frames, []) is None
    assert device_figures([], devices, 0) is None


def test_seconds_that_both_sides_know() -> None:
    disks = {"vda": disk(50)}
    frames = [frame(1, fio(100), disks=disks), frame(2, fio(100)), frame(3, None, disks=disks),
              frame(4, fio(0), disks=disks)]  # fmt: skip
    assert iops_by_second(frames, [device()]) == [(100, 50, 50)]


def test_a_cpu_s_mean_is_over_the_frames_that_know_it() -> None:
    frames = [frame(1, block={0: 10, 1: 4}, cpus=2), frame(2, block={0: 30}, cpus=1), frame(3)]
    assert mean_by_cpu(frames, "block_s") == {0: 20, 1: 4}
    assert busiest_cpu({0: 5, 3: 9, 2: 9}) == (2, 9)  # the first of the busiest
    jobs = [frame(1, jobs=((0, 50), (1, None))), frame(2, jobs=((0, 70), (1, 5)))]
    assert busy_by_job(jobs) == {0: [50, 70], 1: [5]}


def test_depth() -> None:
    assert JobShape().depth == 1
    assert JobShape(jobs=4, iodepth=8).depth == 32
    assert JobShape(jobs=4, iodepth=None).depth == 4
    assert JobShape(jobs=4, iodepth=8, in_flight=20).depth == 20


def test_seconds_that_lie_apart_are_not_taken_together() -> None:
    def at(*times: float) -> int:
        frames = tuple(frame(t, fio(100)) for t in times)
        return len(recent_job_frames(Evidence(frames)))

    assert at(1, 2, 3) == at(1, 3, 5) == at(2, 4, 6) == 3
    assert at(1, 2, 30) == at(1, 5, 9) == 0
    assert at(1, 30, 31, 32) == 3
