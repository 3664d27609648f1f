from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.figures.disk import DiskRates, disk_rates, util_column, util_text
from iopstui.model.rates import (
    WRAP_32,
    CpuLoad,
    cpu_load,
    delta,
    delta_ms,
    per_second,
    ratio,
)
from iopstui.model.samples import CpuTimes, DiskCounters

counters = st.integers(min_value=0, max_value=1 << 62)
BEFORE = DiskCounters(
    "sda", 8, 0,
    reads=1000, read_merges=10, read_sectors=8000, read_ms=500,
    writes=2000, write_merges=20, write_sectors=32000, write_ms=4000,
    in_flight=3, io_ms=700, weighted_ms=4500,
    discards=5, discard_merges=1, discard_sectors=2048, discard_ms=10,
    flushes=7, flush_ms=70,
)  # fmt: skip
AFTER = DiskCounters(
    "sda", 8, 0,
    reads=1400, read_merges=50, read_sectors=8000 + 400 * 8, read_ms=700,
    writes=2100, write_merges=25, write_sectors=32000 + 100 * 32, write_ms=4800,
    in_flight=9, io_ms=1700, weighted_ms=5600,
    discards=15, discard_merges=3, discard_sectors=2048 + 20480, discard_ms=60,
    flushes=17, flush_ms=120,
)  # fmt: skip


def test_every_figure_as_iostat_computes_it() -> None:
    rates = disk_rates(AFTER, BEFORE, 2.0)
    assert rates is not None
    assert (rates.reads, rates.writes, rates.discards) == (400, 100, 10)
    assert (rates.r_s, rates.w_s, rates.d_s, rates.f_s) == (200.0, 50.0, 5.0, 5.0)
    assert rates.r_bytes_s == 400 * 8 * 512 / 2
    assert rates.w_bytes_s == 100 * 32 * 512 / 2
    assert rates.d_bytes_s == 20480 * 512 / 2
    assert (rates.rrqm_s, rates.wrqm_s, rates.drqm_s) == (20.0, 2.5, 1.0)
    assert (rates.r_await, rates.w_await, rates.d_await, rates.f_await) == (0.5, 8.0, 5.0, 5.0)
    assert (rates.rareq_size, rates.wareq_size) == (4096.0, 16384.0)
    assert rates.dareq_size == 2048 * 512
    assert rates.aqu_sz == 1100 / 2000
    assert rates.util == 50.0
    assert rates.in_flight == 9


def test_nothing_done_has_rates_of_zero_and_no_awaits() -> None:
    rates = disk_rates(BEFORE, BEFORE, 1.0)
    assert rates is not None
    assert (rates.r_s, rates.w_s, rates.aqu_sz, rates.util) == (0.0, 0.0, 0.0, 0.0)
    assert (rates.r_await, rates.w_await, rates.f_await, rates.rareq_size) == (None,) * 4


def test_columns_an_old_kernel_lacks_stay_missing() -> None:
    old = {"discards": None, "discard_merges": None, "discard_sectors": None,
           "discard_ms": None, "flushes": None, "flush_ms": None}  # fmt: skip
    rates = disk_rates(replace(AFTER, **old), replace(BEFORE, **old), 1.0)
    assert rates is not None
    assert rates.r_s == 400.0
    assert (rates.d_s, rates.d_await, rates.f_s, rates.f_await, rates.discards) == (None,) * 5


def test_a_four_column_partition_has_no_times() -> None:
    gone = dict.fromkeys(
        ("read_merges", "read_ms", "write_merges", "write_ms", "in_flight", "io_ms", "weighted_ms")
    )
    rates = disk_rates(replace(AFTER, **gone), replace(BEFORE, **gone), 1.0)
    assert rates is not None
    assert (rates.r_s, rates.w_s) == (400.0, 100.0)
    assert (rates.r_await, rates.aqu_sz, rates.util, rates.in_flight, rates.rrqm_s) == (None,) * 5


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_no_interval_no_rates(seconds: float) -> None:
    assert disk_rates(AFTER, BEFORE, seconds) is None


def test_another_device_under_the_same_name_is_a_gap() -> None:
    assert disk_rates(replace(AFTER, minor=16), BEFORE, 1.0) is None


def test_a_counter_that_went_back_is_missing_and_the_others_are_not() -> None:
    rates = disk_rates(replace(AFTER, reads=1), BEFORE, 1.0)
    assert rates is not None
    assert (rates.reads, rates.r_s, rates.r_await, rates.rareq_size) == (None,) * 4
    assert rates.w_s == 100.0


def test_util_is_capped_because_reading_takes_time() -> None:
    rates = disk_rates(replace(AFTER, io_ms=BEFORE.io_ms + 1004), BEFORE, 1.0)  # type: ignore[operator]
    assert rates is not None
    assert rates.util == 100.0


def test_the_32_bit_times_wrap() -> None:
    before = replace(BEFORE, read_ms=WRAP_32 - 100, weighted_ms=WRAP_32 - 1000)
    rates = disk_rates(replace(AFTER, read_ms=100, weighted_ms=1000), before, 1.0)
    assert rates is not None
    assert rates.r_await == 200 / 400
    assert rates.aqu_sz == 2.0


@given(st.integers(0, WRAP_32 - 1), st.integers(0, WRAP_32 // 4 - 1))
def test_any_short_growth_survives_the_wrap(start: int, grown: int) -> None:
    assert delta_ms((start + grown) % WRAP_32, start) == grown


def test_a_time_that_began_again_is_missing() -> None:
    assert delta_ms(5, 1_000_000) is None


@given(counters, counters)
def test_delta_is_growth_or_missing(current: int, previous: int) -> None:
    expected = current - previous if current >= previous else None
    assert delta(current, previous) == expected


def test_missing_sides() -> None:
    assert delta(None, 1) is None
    assert delta(1, None) is None
    assert delta_ms(None, 1) is None
    assert delta_ms(1, None) is None
    assert ratio(None, 1.0) is None
    assert ratio(1.0, 0) is None
    assert ratio(1.0, None) is None
    assert ratio(0, 5.0) == 0.0


disk_counters = st.builds(
    DiskCounters,
    name=st.just("sda"),
    major=st.just(8),
    minor=st.just(0),
    **{
        field.name: counters | (st.none() if "None" in str(field.type) else st.nothing())
        for field in fields(DiskCounters)
        if field.name not in ("name", "major", "minor")
    },
)


@given(disk_counters, disk_counters, st.floats(1e-3, 1e5))
def test_no_figure_is_ever_negative_or_not_finite(
    current: DiskCounters, previous: DiskCounters, seconds: float
) -> None:
    rates = disk_rates(current, previous, seconds)
    assert rates is not None
    for field in fields(rates):
        value = getattr(rates, field.name)
        assert value is None or (value >= 0 and math.isfinite(value)), field.name


ZERO = CpuTimes(0, 0, 0, 0, 0, 0, 0, 0)


def test_cpu_load_in_percent_of_the_ticks() -> None:
    load = cpu_load(CpuTimes(10, 10, 20, 30, 10, 5, 5, 10), ZERO)
    assert load == CpuLoad(usr=20, sys=20, iowait=10, irq=5, soft=5, idle=30, steal=10)


def test_iowait_may_step_back() -> None:
    before = replace(ZERO, iowait=100, idle=50)
    load = cpu_load(CpuTimes(50, 0, 0, 100, 99, 0, 0, 0), before)
    assert load is not None
    assert (load.usr, load.idle, load.iowait) == (50.0, 50.0, 0.0)


def test_a_cpu_that_began_again_has_no_load() -> None:
    assert cpu_load(ZERO, replace(ZERO, user=100)) is None


def test_no_tick_no_load() -> None:
    assert cpu_load(ZERO, ZERO) is None


ticks = st.integers(0, 10**9)
cpu_times = st.builds(CpuTimes, *[ticks] * 8)


@given(cpu_times, cpu_times)
def test_cpu_load_sums_to_100(before: CpuTimes, grown: CpuTimes) -> None:
    after = CpuTimes(*(getattr(before, f.name) + getattr(grown, f.name) for f in fields(CpuTimes)))
    load = cpu_load(after, before)
    if load is None:
        assert not any(getattr(grown, f.name) for f in fields(CpuTimes))
        return
    shares = [getattr(load, f.name) for f in fields(load)]
    assert sum(shares) == pytest.approx(100)
    assert all(0 <= share <= 100.000001 for share in shares)


def test_per_second_keeps_only_cpus_known_before_and_not_reset() -> None:
    assert per_second({0: 30, 1: 5, 2: 7}, {0: 10, 1: 6}, 2.0) == {0: 10.0}


@pytest.mark.parametrize(
    ("current", "previous", "seconds"), [(None, {}, 1.0), ({}, None, 1.0), ({0: 1}, {0: 0}, 0.0)]
)
def test_per_second_without_a_side(
    current: dict[int, int] | None, previous: dict[int, int] | None, seconds: float
) -> None:
    assert per_second(current, previous, seconds) == {}


def test_counts_that_are_the_very_same() -> None:
    counts = {0: 5, 3: 0}
    assert per_second(counts, counts, 2.0) == per_second(counts, dict(counts), 2.0)
    assert per_second(counts, counts, 0.0) == {}


@pytest.mark.parametrize(
    ("rates", "text"),
    [
        (DiskRates(1.0, 10, 0, io_ms=123.0, weighted_ms=200.0), "12"),
        (DiskRates(1.0, 0, 0, io_ms=0.0, weighted_ms=0.0), "0"),
        (DiskRates(1.0, 1700, 0, io_ms=0.0, weighted_ms=42.5), "<5"),
        (DiskRates(1.0, 30, 0, io_ms=0.0, weighted_ms=0.0), "<1"),
        (DiskRates(1.0, 30, 0, io_ms=0.0, weighted_ms=3000.0), "–"),
        (DiskRates(1.0, 30, 0, weighted_ms=3000.0), "–"),
        (DiskRates(1.0, 1700, 0, io_ms=860.0, weighted_ms=430.0), "<43"),
        (DiskRates(1.0, 1700, 0, io_ms=440.0, weighted_ms=430.0), "44"),
        (DiskRates(1.0, 1700, 0, io_ms=860.0, weighted_ms=430.0, in_flight=1), "86"),
        (DiskRates(1.0, 1700, 0, io_ms=860.0, weighted_ms=430.0, flushes=3), "86"),
        (None, "–"),
    ],
)
def test_util_is_never_more_than_the_requests_took_and_not_0_where_there_were_some(
    rates: DiskRates | None, text: str
) -> None:
    assert util_text(rates) == text
    assert rates is None or util_column().text(rates) == text
