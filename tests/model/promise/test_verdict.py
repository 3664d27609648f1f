"""PASS, FAIL, or why neither can be told."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.catalog import read_catalog
from iopstui.features.promise.model import (
    FAIL,
    LATENCY,
    MIN_SECONDS,
    PASS,
    UNDECIDED,
    Check,
    Measurement,
    QueueDepth,
    is_promise_met,
    is_too_shallow,
    judge,
    judge_drained,
    list_checks,
    percentile_interval,
    rate_interval,
    untested_rows,
    without_refuted_limits,
    without_volume_limits,
)
from iopstui.features.promise.run import promise_text
from iopstui.model.volumes.promised import INSTANCE_IOPS, VOLUME_BW, VOLUME_IOPS, promised_figures

CATALOG = read_catalog(Path("/nonexistent"))
PLAIN = list_checks(promised_figures(CATALOG.volume("vng/nvme-5000")))[0]
BURST = list_checks(promised_figures(CATALOG.volume("azure/p20")))[0]
ON_SMALL = list_checks(
    promised_figures(CATALOG.volume("azure/p60"), instance=CATALOG.instance("Standard_D8ds_v4"))
)[0]
SOFT = 0.02


def at(rate: float, half: float = 0.01, **more: object) -> Measurement:
    found = Measurement(rate, rate * (1 - half), rate * (1 + half), 6e6, 5e6, 7e6, single_ns=1e6,
                     job_cpu=0.3, machine_cpu=0.2)  # fmt: skip
    return replace(found, **more)  # type: ignore[arg-type]


def test_a_short_run_fails_nobody() -> None:
    latency = list_checks(promised_figures(CATALOG.volume("aliyun/essd-pl1"), 500))[0]
    for check, found in ((PLAIN, at(4000)), (latency, at(4000, latency_ns=9e9, latency_low=8e9))):
        assert one(check, found)[0] == FAIL
        assert one(check, replace(found, seconds=29.4))[0] == UNDECIDED


def test_an_interval_that_says_nothing_neither_passes_nor_fails() -> None:
    small = replace(PLAIN, promised=0.5)
    for check in (small, PLAIN):
        row = judge(check, replace(at(19_000), low=1.0, high=38_105.0), SOFT)[0]
        assert row.result == UNDECIDED and row.why.startswith("too unsteady")
    assert one(PLAIN, replace(at(19_000), low=9000.0, high=29_000.0))[0] == PASS


def test_the_interval_of_a_percentile_holds_that_of_the_distribution() -> None:
    rng = random.Random(4)
    # buckets of 10 us; 1 % of an exponential distribution of mean 1 ms are above ln(100) ms
    seconds = [
        Counter(10_000 * int(rng.expovariate(0.01)) + 5000 for _ in range(2000)) for _ in range(30)
    ]
    value, low, high = percentile_interval(seconds, 99.0)
    assert value is not None and low is not None and high is not None
    assert low < math.log(100) * 1e6 < high and high / low < 1.4
    assert percentile_interval(seconds[:4], 99.0)[1:] == (None, None)


def test_own_numbers_are_no_limits() -> None:
    rows = [row for row in judge(PLAIN, at(5000), SOFT)]
    assert rows[0].binding == VOLUME_IOPS
    assert [row.binding for row in without_volume_limits(rows)] == [""]


def one(check: Check, found: Measurement, tolerance: float = SOFT) -> tuple[str, str]:
    row = judge(check, found, tolerance)[0]
    return row.result, row.binding


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (at(5000), (PASS, VOLUME_IOPS)),
        (at(4950, half=0.02), (UNDECIDED, "")),
        (at(4950, half=0.005), (PASS, VOLUME_IOPS)),
        (at(5200, half=0.1), (UNDECIDED, "")),
        (at(5200, half=0.1, high=math.inf, low=0.0), (UNDECIDED, "")),
        (at(10200, high=math.inf, low=0.0), (PASS, "")),
        (at(1000, depth=QueueDepth(32, 2), cpus=2), (UNDECIDED, "this machine's CPU")),
        (at(1000, depth=QueueDepth(32, 2), cpus=4), (FAIL, "the volume")),
        (at(20000), (PASS, "")),
        (at(4000), (FAIL, "the volume")),
        (at(4850, half=0.03), (UNDECIDED, "")),
        (at(4000, job_cpu=0.97), (UNDECIDED, "this machine's CPU")),
        (at(4000, machine_cpu=0.95), (UNDECIDED, "this machine's CPU")),
        (at(4000, rules=frozenset({"job-cpu"})), (UNDECIDED, "this machine's CPU")),
        (at(4000, rules=frozenset({"above"})), (UNDECIDED, "a limit above the device")),
        (at(4000, rules=frozenset({"busy"})), (UNDECIDED, "other I/O on the device")),
        (at(4000, machine_cpu=0.85), (UNDECIDED, "this machine's CPU")),
        (at(4000, rules=frozenset({"cpu-wait"})), (UNDECIDED, "this machine's CPU")),
        (at(4000, rules=frozenset({"neighbour"})), (UNDECIDED, "other I/O on the device")),
        (at(4000, above=0.7), (UNDECIDED, "a limit above the device")),
        (at(4000, above=0.7, rules=frozenset({"tags"})), (FAIL, "the volume")),
        (at(4000, above=0.4), (FAIL, "the volume")),
        (at(4000, others=0.3), (UNDECIDED, "other I/O on the device")),
        (at(4000, others=0.04), (FAIL, "the volume")),
        (at(4000, rules=frozenset({"cap"})), (FAIL, "the volume")),
        (at(4000, latency_ns=1.2e6), (UNDECIDED, "queue too shallow")),
        (at(4000, latency_ns=None), (FAIL, "the volume")),
    ],
)
def test_a_flat_promise(found: Measurement, expected: tuple[str, str]) -> None:
    assert one(PLAIN, found) == expected


SEVERAL = list_checks(promised_figures(CATALOG.volume("azure/p40")))
RANDOM, RANDOM_WRITES, READS, WRITES = (check for check in SEVERAL if check.kind != LATENCY)


def test_a_limit_binds_only_if_no_other_row_exceeds_it() -> None:
    by_bytes = {check.rw: _limit_rate(check, VOLUME_BW) for check in SEVERAL}
    (near,) = judge(READS, at(by_bytes["read"]), SOFT)
    (far,) = judge(WRITES, at(10 * by_bytes["write"]), SOFT)
    assert near.binding == VOLUME_BW
    assert [row.binding for row in without_refuted_limits([near, far], SOFT)] == ["", ""]
    assert without_refuted_limits([near, far], SOFT)[0].result == PASS
    (as_near,) = judge(WRITES, at(by_bytes["write"]), SOFT)
    assert without_refuted_limits([near, as_near], SOFT) == [near, as_near]
    # IOPS are limited for reads and for writes, each by itself
    (iops,) = judge(RANDOM, at(_limit_rate(RANDOM, VOLUME_IOPS)), SOFT)
    (others,) = judge(RANDOM_WRITES, at(10 * _limit_rate(RANDOM_WRITES, VOLUME_IOPS)), SOFT)
    assert without_refuted_limits([iops, others], SOFT)[0].binding == VOLUME_IOPS
    assert without_refuted_limits([iops, replace(others, check=READS)], SOFT)[0].binding == ""


def test_an_instance_s_limit_is_one_for_reads_and_writes() -> None:
    (row,) = judge(ON_SMALL, at(_limit_rate(ON_SMALL, INSTANCE_IOPS)), SOFT)
    assert (row.result, row.binding) == (UNDECIDED, INSTANCE_IOPS)
    writes = replace(ON_SMALL, direction="write", rw="randwrite")
    (more,) = judge(writes, at(2 * _limit_rate(writes, INSTANCE_IOPS)), SOFT)
    (first, _) = without_refuted_limits([row, more], SOFT)
    assert first.binding == "" and "another row exceeds" in first.why


@pytest.mark.parametrize(
    ("exceeded", "expected"),
    [
        (None, (FAIL, "the volume")),
        ((), (FAIL, "the volume")),
        ((VOLUME_BW, VOLUME_IOPS), (FAIL, VOLUME_BW)),
        ((VOLUME_IOPS, INSTANCE_IOPS), (UNDECIDED, INSTANCE_IOPS)),
    ],
)
def test_a_limit_that_the_volume_counts_is_named(
    exceeded: tuple[str, ...] | None, expected: tuple[str, str]
) -> None:
    assert one(PLAIN, at(4000, exceeded=exceeded)) == expected


def test_a_rate_near_a_limit_is_not_held_by_it_if_the_volume_counts_otherwise() -> None:
    assert one(PLAIN, at(5000, exceeded=())) == (PASS, "")
    assert one(PLAIN, at(5200, exceeded=(VOLUME_IOPS,))) == (PASS, VOLUME_IOPS)
    allowed = _limit_rate(ON_SMALL, INSTANCE_IOPS)
    assert one(ON_SMALL, at(allowed, exceeded=())) == (UNDECIDED, "")
    assert one(ON_SMALL, at(allowed, exceeded=(INSTANCE_IOPS,))) == (UNDECIDED, INSTANCE_IOPS)


def _limit_rate(check: Check, name: str) -> float:
    return next((limit.rate for limit in check.limits if limit.name == name), 0.0)


@pytest.mark.parametrize(
    ("found", "seconds"),
    [(at(4850, half=0.03), 300), (at(4700, half=0.06), 60), (at(5200, half=0.06), 60)],
)
def test_it_says_how_long_to_measure(found: Measurement, seconds: int) -> None:
    # the interval's half width shrinks with the square root of the time, until 4900 is outside
    row = judge(PLAIN, found, SOFT)[0]
    assert row.why.endswith(f"(--measure {seconds})")
    half = (found.high - found.rate) * math.sqrt(found.seconds / seconds)
    assert half <= abs(found.rate - 4900)


def test_a_rate_too_near_to_the_promise_is_not_measured_for_hours() -> None:
    assert "too near" in judge(PLAIN, at(4901, half=0.1), SOFT)[0].why


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(12800, (UNDECIDED, INSTANCE_IOPS)), (13052, (UNDECIDED, INSTANCE_IOPS)),
     (9000, (FAIL, "the volume")), (16000, (PASS, VOLUME_IOPS))],
)  # fmt: skip
def test_an_instance_that_allows_less(rate: float, expected: tuple[str, str]) -> None:
    assert one(ON_SMALL, at(rate)) == expected


@pytest.mark.parametrize(
    ("rate", "base", "burst"),
    [(3500, PASS, PASS), (2300, PASS, UNDECIDED), (3000, PASS, UNDECIDED), (2000, FAIL, FAIL)],
)
def test_a_promise_with_a_burst(rate: float, base: str, burst: str) -> None:
    rows = judge(BURST, at(rate), SOFT)
    assert [row.result for row in rows] == [base, burst]
    assert [row.promised for row in rows] == [2300, 3500]


@pytest.mark.parametrize(
    ("full", "after", "base", "burst"),
    [(3500, 2300, PASS, PASS), (2300, 2300, PASS, UNDECIDED), (3500, 1500, FAIL, PASS),
     (1500, 1500, FAIL, FAIL)],
)  # fmt: skip
def test_a_burst_whose_credits_were_used_up_in_between(
    full: float, after: float, base: str, burst: str
) -> None:
    rows = judge_drained(BURST, at(full), at(after), SOFT)
    assert [row.result for row in rows] == [base, burst]
    assert [row.measured for row in rows] == [after, full]
    assert "during a burst" not in rows[0].why


def test_a_burst_whose_interval_includes_the_promise_is_not_told_to_be_used_up() -> None:
    assert (
        judge(BURST, at(3300, half=0.1), SOFT)[1].why == "the interval includes what was promised"
    )
    assert "credits" in judge(BURST, at(3300), SOFT)[1].why


def test_a_baseline_is_not_claimed_during_a_burst() -> None:
    assert "during a burst" in judge(BURST, at(3500), SOFT)[0].why
    assert "credits" in judge(BURST, at(2300), SOFT)[1].why


def test_throughput_names_its_limit() -> None:
    read = list_checks(promised_figures(CATALOG.volume("aliyun/essd-pl1"), 500))[3]
    assert one(read, at(350e6 / (1 << 20)))[1] == VOLUME_BW


@pytest.mark.parametrize(
    ("mean", "low", "expected"),
    [(0.19e6, 0.18e6, PASS), (0.203e6, 0.2e6, PASS), (0.3e6, 0.28e6, FAIL),
     (0.3e6, 0.19e6, UNDECIDED), (None, None, UNDECIDED)],
)  # fmt: skip
def test_latency(mean: float | None, low: float | None, expected: str) -> None:
    check = list_checks(promised_figures(CATALOG.volume("aliyun/essd-pl1"), 500))[0]
    assert check.kind == LATENCY
    found = at(4000, latency_ns=mean, latency_low=low, latency_high=mean)
    assert judge(check, found, SOFT)[0].result == expected


@pytest.mark.parametrize(
    ("rate", "p99", "rules", "expected"),
    [(2990, 1.5e6, (), PASS), (2990, 3e6, (), FAIL), (2500, 1.5e6, (), FAIL),
     (2990, 3e6, ("cpu-wait",), UNDECIDED), (2500, 9e6, ("busy",), UNDECIDED)],
)  # fmt: skip
def test_latency_at_a_load(rate: float, p99: float, rules: tuple[str, ...], expected: str) -> None:
    check = Check(LATENCY, "read", "randread", 4096, 2e6, percentile="p99", load=3000.0)
    found = at(
        rate, latency_ns=p99, latency_low=0.95 * p99, latency_high=1.05 * p99,
        rules=frozenset(rules), single_ns=p99,
    )  # fmt: skip
    row = judge(check, found, SOFT)[0]
    assert row.result == expected
    assert ("only 2,500 of 3,000/s" in row.why) == (rate == 2500 and not rules)


def test_what_is_not_tested_is_not_told() -> None:
    rows = untested_rows(BURST, "no")
    assert [row.result for row in rows] == [UNDECIDED, UNDECIDED]
    assert not is_promise_met(rows)


def test_a_promise_is_met_only_if_something_passed() -> None:
    good, bad = judge(PLAIN, at(5000), SOFT), judge(PLAIN, at(1000), SOFT)
    assert is_promise_met([*good, *untested_rows(PLAIN, "no")])
    assert not is_promise_met([*good, *bad]) and not is_promise_met([])


def test_a_shallow_queue_is_seen() -> None:
    assert is_too_shallow(PLAIN, at(4000, latency_ns=1.1e6))
    assert not is_too_shallow(PLAIN, at(5000, latency_ns=1.1e6))
    assert not is_too_shallow(PLAIN, at(4000, latency_ns=3e6))


@pytest.mark.parametrize("alike, most", [(0.0, 0.025), (0.3, 0.025), (0.6, 0.03)])
def test_steady_volumes_seldom_fail_though_neighbouring_seconds_are_alike(
    alike: float, most: float
) -> None:
    # nominal: 2.5 % of the intervals are below; MIN_SECONDS and BATCHES are chosen for this
    rng, runs = random.Random(7), 3000
    below = 0
    for _ in range(runs):
        now, rates = rng.gauss(0, 1), []
        for _ in range(round(MIN_SECONDS)):
            rates.append(5000 + 500 * now)
            now = alike * now + (1 - alike * alike) ** 0.5 * rng.gauss(0, 1)
        below += rate_interval(rates)[2] < 5000
    assert below / runs <= most


@given(st.floats(1, 1e6), st.floats(0, 0.5), st.sampled_from(["cap", "busy", "job-cpu", ""]),
       st.floats(0, 1))  # fmt: skip
def test_what_reaches_the_promise_never_fails(
    rate: float, half: float, rule: str, cpu: float
) -> None:
    found = at(rate, half, rules=frozenset({rule}), job_cpu=cpu)
    for check in (PLAIN, BURST, ON_SMALL):
        rows = judge(check, found, SOFT)
        assert all(row.result in (PASS, FAIL, UNDECIDED) for row in rows)
        if rate >= check.promised:
            assert rows[0].result != FAIL
        if rate * (1 - half) >= check.promised:
            assert rows[0].result == PASS
        if rows[0].result == FAIL:
            assert rate * (1 + half) < check.promised and rule not in ("busy", "job-cpu")


def test_interval_of_constant_rates_is_a_point() -> None:
    assert rate_interval([100.0] * 10) == (100.0, 100.0, 100.0)


def test_too_few_rates_have_no_interval() -> None:
    assert rate_interval([100.0] * 4)[1:] == (0.0, float("inf"))


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    chance = random.Random(7)
    held = 0
    for _ in range(1000):
        rates = [chance.gauss(1000, 50) for _ in range(20)]
        _, low, high = rate_interval(rates)
        held += low <= 1000 <= high
    assert 940 <= held <= 990


@given(st.lists(st.floats(1, 1e6), min_size=5, max_size=60))
def test_the_interval_is_around_the_mean_of_the_batches(rates: list[float]) -> None:
    mean, low, high = rate_interval(rates)
    assert mean == pytest.approx(statistics.fmean(rates))
    assert 0 <= low <= high


def test_a_table_wider_than_the_terminal_leaves_its_binding_limits_to_sentences() -> None:
    row = replace(judge(PLAIN, at(4000), SOFT)[0], binding="volume IOPS", why="")
    promised = promised_figures(CATALOG.volume("vng/nvme-5000"))
    title = "sequential writes, 1 MiB"
    whole = promise_text(promised, [row], [title], 80)
    assert "BINDING LIMIT" in whole and promise_text(promised, [row], [title], 120, True) == whole
    narrow = promise_text(promised, [row], [title], 80, True)
    assert "BINDING LIMIT" not in narrow and max(map(len, narrow.splitlines())) <= 80
    assert f"{title}: the binding limit is volume IOPS." in narrow
