"""A watch's totals: means weighted as they must be, the highest second, gaps, findings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watch_frames import frame, rates, watched

from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.finding import Finding
from iopstui.model.watch.totals import MAX_FINDINGS, WatchTotals

counts = st.tuples(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 50))


@given(st.lists(counts, min_size=1, max_size=30))
def test_means_are_all_requests_over_all_time(seconds: list[tuple[int, int, int]]) -> None:
    totals = WatchTotals(["vda"], 1.0)
    for one in watched([rates(r, w, ms) for r, w, ms in seconds]):
        totals.add(one)
    disk, length = totals.disks["vda"], len(seconds)
    reads, writes = (sum(one[n] for one in seconds) for n in (0, 1))
    assert totals.watched_s == disk.seconds == length and totals.gap_s == 0
    assert disk.mean(DiskRates.r_s) == pytest.approx(reads / length)
    assert disk.most(DiskRates.w_s) == max(w for _, w, _ in seconds)
    assert disk.mean(DiskRates.data_s) == pytest.approx((reads + writes) * 4096 / length)
    assert disk.most(DiskRates.data_s) == max(r + w for r, w, _ in seconds) * 4096
    waited = sum(r * ms for r, _, ms in seconds)
    assert disk.mean(DiskRates.r_await) == (pytest.approx(waited / reads) if reads else None)
    assert totals.missing_s("vda") == 0


def test_a_sample_that_came_late_is_a_gap_whose_requests_still_count() -> None:
    totals = WatchTotals(["vda"], 1.0)
    for one in (
        frame(0.0, None),
        frame(1.0, {"vda": rates(30)}),
        frame(6.0, {"vda": rates(80, seconds=5.0)}, 5.0),
    ):
        totals.add(one)
    disk = totals.disks["vda"]
    assert totals.gap_s == 4.0 and totals.watched_s == 6.0 and totals.missing_s("vda") == 0
    assert disk.mean(DiskRates.r_s) == pytest.approx(110 / 6) and disk.most(DiskRates.r_s) == 30


def test_nothing_grows_without_end() -> None:
    totals = WatchTotals(["vda"], 1.0)
    for n in range(2 * MAX_FINDINGS):
        totals.found(float(n), Finding(f"rule {n}", ""))
    assert len(totals.findings) == MAX_FINDINGS
