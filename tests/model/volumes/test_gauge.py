"""Burst credits and limits of a bought volume, followed second by second."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence_frames import disk
from hypothesis import given
from hypothesis import strategies as st

from iopstui.catalog import read_catalog
from iopstui.model.volumes.gauge import VolumeGauge, fitting_limit, gauges, rate_limits
from iopstui.model.volumes.promised import promised_figures
from iopstui.model.volumes.volume import IOPS, THROUGHPUT

CATALOG = read_catalog(Path("/nonexistent"))
GP2 = promised_figures(CATALOG.volume("aws/gp2"), 100)
"""300 IOPS, 3,000 in a burst, 5.4 million credits."""
FIRST = 5_400_000


def fed(*rates: float, aqu: float = 8.0) -> VolumeGauge:
    (gauge,) = gauges(GP2)
    for rate in rates:
        gauge.feed(disk(rate, aqu=aqu))
    return gauge


def test_what_is_left_is_at_most_a_full_bucket_less_what_was_used() -> None:
    gauge = fed(*[3000.0] * 100)
    assert gauge.level == FIRST - 100 * 2700 and not gauge.known
    # the rest lasts (5,400,000 - 270,000) / 2,700 s
    assert gauge.text() == "burst for ≤ 31:40 more"


def test_a_fall_to_the_baseline_shows_that_the_credits_are_used_up() -> None:
    gauge = fed(3000, 3000, 310, 295, 300)
    assert gauge.known and gauge.level == 0 and gauge.text() == "burst credits used up"
    for _ in range(100):
        gauge.feed(disk(100))
    assert gauge.level == 100 * 200
    assert gauge.text() == f"burst credits full in {(FIRST - 20_000) / 200 // 3600:.0f}:28:20"
    gauge.feed(disk(3000))
    # the burst began somewhere in this second
    assert gauge.text() == "burst"
    gauge.feed(disk(3000))
    # 14,600 left, 2,700 more used than refilled each second
    assert gauge.text() == "burst for 0:05 more"


@pytest.mark.parametrize("rates, aqu", [
    ((300, 300, 300), 8.0), ((3000, 300, 300), 8.0), ((3000, 300, 300, 300), 0.3),
    ((3000, 200, 200, 200), 8.0),
], ids=["never above", "too short", "nothing waits", "below"])  # fmt: skip
def test_other_rates_do_not_show_it(rates: tuple[float, ...], aqu: float) -> None:
    assert not fed(*rates, aqu=aqu).known


def test_an_empty_bucket_at_most_is_an_empty_bucket() -> None:
    gauge = fed(3000)
    gauge.level = 100.0
    gauge.feed(disk(330))
    assert not gauge.known and gauge.text() == "burst credits used up"


def test_a_burst_without_credits_refutes_the_promise() -> None:
    gauge = fed(3000, 3000, 310, 295, 300, 3000, 3000, 3000, 3000)
    assert gauge.refuted and gauge.text() == ""
    assert not fed(3000, 3000, 310, 295, 300, 3000, 3000, 300).refuted


def test_a_limit_that_another_run_exceeds_is_not_the_one_reached() -> None:
    bought = promised_figures(CATALOG.volume("aws/gp2"), 1000)
    assert fitting_limit(bought, "read", 4096, 3000) is not None
    assert fitting_limit(bought, "read", 4096, 3000, other_rates=[(16384, 2900)]) is not None
    assert fitting_limit(bought, "read", 4096, 3000, other_rates=[(16384, 9000)]) is None


def test_large_ios_take_as_many_credits_as_the_provider_counts() -> None:
    (gauge,) = gauges(GP2)
    assert gauge.used(disk(10, size=256 << 10)) == 10
    assert gauge.used(disk(10, size=1 << 20)) == 40


def test_bytes_are_the_credits_of_a_throughput_bucket() -> None:
    st1 = promised_figures(CATALOG.volume("aws/st1"), 1024)
    (gauge,) = gauges(st1)
    assert gauge.kind == THROUGHPUT and gauge.used(disk(10, size=1 << 20)) == 10 << 20


def test_a_volume_without_a_bucket_has_no_gauge() -> None:
    assert gauges(promised_figures(CATALOG.volume("aws/gp3"), 100)) == ()


@given(st.lists(st.floats(0, 5000), max_size=50))
def test_the_level_stays_within_the_bucket(rates: list[float]) -> None:
    assert 0 <= fed(*rates).level <= FIRST


def test_limits_to_draw_are_those_of_ios_as_large_as_the_device_s() -> None:
    assert rate_limits(GP2, IOPS, disk(100)) == [300, 3000]
    # 1 MiB counts as four I/Os of 256 KiB
    assert rate_limits(GP2, IOPS, disk(100, size=1 << 20)) == [75, 750]
    assert rate_limits(GP2, IOPS, disk(0)) == [300, 3000]
    assert rate_limits(GP2, THROUGHPUT, disk(100)) == [pytest.approx(128 * (1 << 20))]


def test_an_instance_that_allows_less_is_the_limit_to_draw() -> None:
    small = promised_figures(
        CATALOG.volume("azure/p60"), instance=CATALOG.instance("Standard_D8ds_v4")
    )
    assert rate_limits(small, IOPS, disk(100)) == [12800]


@pytest.mark.parametrize("rate, name", [(300, "volume IOPS"), (290, "volume IOPS"), (500, "")])
def test_the_limit_that_a_flat_rate_stands_at(rate: float, name: str) -> None:
    found = fitting_limit(GP2, "read", 4096, rate)
    assert (found.name if found else "") == name
