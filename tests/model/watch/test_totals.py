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


def test_a_piece_of_a_second_is_no_highest_second_but_counts_for_the_mean() -> None:
    totals = WatchTotals(["vda"], 1.0)
    for one in (
        frame(0.0, None),
        frame(0.2, {"vda": rates(100, seconds=0.2)}, 0.2),
        frame(1.2, {"vda": rates(80)}),
    ):
        totals.add(one)
    disk = totals.disks["vda"]
    assert disk.mean(DiskRates.r_s) == disk.most(DiskRates.r_s) == pytest.approx(180 / 1.2)
    totals.add(frame(2.2, {"vda": rates(300)}))
    assert disk.most(DiskRates.r_s) == 300 and disk.mean(DiskRates.r_s) == pytest.approx(480 / 2.2)


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


def test_a_disk_that_was_away_for_a_while_says_so() -> None:
    totals = WatchTotals(["vda"], 1.0)
    for one in watched([rates(10), None, None, rates(10)]):
        totals.add(one)
    assert totals.missing_s("vda") == 2.0 and totals.disks["vda"].mean(DiskRates.r_s) == 10
    assert totals.gap_s == 0


def test_a_finding_said_again_is_one_with_all_its_seconds() -> None:
    totals = WatchTotals(["vda"], 1.0)
    totals.found(10.0, Finding("deep", "the queue is 30 deep", since=5.0, until=10.0))
    totals.found(20.0, Finding("other", "something else"))
    totals.found(40.0, Finding("deep", "the queue is 31 deep", since=35.0, until=40.0))
    deep, other = totals.findings.values()
    assert (deep.text, deep.since, deep.until, deep.times) == ("the queue is 31 deep", 5.0, 40.0, 2)
    assert (other.since, other.until, other.times) == (20.0, 20.0, 1)


def test_nothing_grows_without_end() -> None:
    totals = WatchTotals(["vda"], 1.0)
    for n in range(2 * MAX_FINDINGS):
        totals.found(float(n), Finding(f"rule {n}", ""))
    assert len(totals.findings) == MAX_FINDINGS
