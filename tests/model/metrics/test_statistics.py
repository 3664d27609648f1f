"""Our own statistics against scipy's, and on data whose answer is known."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lazy_scipy import stats

from iopstui.model.experiment.comparison import RESOLUTION
from iopstui.model.histogram import bucket_key
from iopstui.model.metrics.statistics import (
    compare_paired,
    holm,
    knee,
    steadiness,
    t_quantile,
    t_two_sided,
)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 9, 19, 49, 199])
def test_student_s_t_is_scipy_s(freedom: int) -> None:
    for t in (0.0, 0.01, 0.5, 1.0, 2.0, 2.776, 5.0, 20.0, 300.0):
        for sign in (1, -1):
            assert t_two_sided(sign * t, freedom) == pytest.approx(
                2 * stats.t.sf(t, freedom), rel=1e-9, abs=1e-300
            )
    for probability in (0.5, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9999):
        assert t_quantile(probability, freedom) == pytest.approx(
            stats.t.ppf(probability, freedom), rel=1e-9, abs=1e-9
        )


@given(
    st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=2, max_size=20, unique=True)
)
def test_plain_pairs_are_scipy_s_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    steps = [b - a for a, b in pairs]
    if max(steps) - min(steps) < 1e-6 * max(map(abs, steps), default=0) or not any(steps):
        return
    ours = compare_paired(first, second, relative=False)
    theirs = stats.ttest_rel(second, first)
    low, high = theirs.confidence_interval(0.95)
    assert ours is not None and ours.runs == len(pairs)
    scale = max(abs(low), abs(high))
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
    assert ours.low == pytest.approx(low, rel=1e-6, abs=1e-6 * scale)
    assert ours.high == pytest.approx(high, rel=1e-6, abs=1e-6 * scale)


def test_relative_pairs_are_the_same_of_the_logarithms() -> None:
    first, second = [100.0, 120.0, 90.0, 104.0, 99.0], [130.0, 149.0, 112.0, 141.0, 120.0]
    ours = compare_paired(first, second)
    theirs = stats.ttest_rel([math.log(b) for b in second], [math.log(a) for a in first])
    low, high = theirs.confidence_interval(0.95)
    assert ours is not None and ours.shown
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert (ours.low, ours.high) == pytest.approx((math.expm1(low), math.expm1(high)), rel=1e-9)
    assert 0.2 < ours.mean < 0.35


def test_pairs_that_say_nothing() -> None:
    assert compare_paired([1.0], [2.0]) is None, "one pair"
    assert compare_paired([1.0, 0.0], [2.0, 1.0]) is None, "nothing to relate to"
    same = compare_paired([5.0, 6.0, 7.0], [5.0, 6.0, 7.0])
    assert same is not None and not same.shown and same.p == 1.0
    with pytest.raises(ValueError, match="pairs"):
        compare_paired([1.0, 2.0], [1.0])


def false_alarms(make: object, trials: int = 4000, runs: int = 5) -> float:
    rng = random.Random(7)
    alarms = 0
    for _ in range(trials):
        first, second = make(rng, runs)  # type: ignore[operator]
        found = compare_paired(first, second)
        assert found is not None
        alarms += found.shown
    return alarms / trials


def lognormal(rng: random.Random, runs: int) -> tuple[list[float], list[float]]:
    return tuple([math.exp(rng.gauss(10, 0.1)) for _ in range(runs)] for _ in "ab")  # type: ignore[return-value]


def normal(rng: random.Random, runs: int) -> tuple[list[float], list[float]]:
    return tuple([rng.gauss(50_000, 5000) for _ in range(runs)] for _ in "ab")  # type: ignore[return-value]


def drifting(rng: random.Random, runs: int) -> tuple[list[float], list[float]]:
    """ABBA under a drift of 10 % a run, each run's own seconds autocorrelated (AR 0.9)."""
    a: list[float] = []
    b: list[float] = []
    for step in range(2 * runs):
        level, total = rng.gauss(0, 1), 0.0
        for _ in range(8):
            level = 0.9 * level + rng.gauss(0, 1)
            total += 1000 * 0.9**step * math.exp(0.05 * level)
        (b if (step % 4) in (1, 2) else a).append(total / 8)
    return a, b


@pytest.mark.parametrize("make", [lognormal, normal])
def test_false_alarms_come_at_the_stated_rate(make: object) -> None:
    # 5 % of 4000: the standard error is 0.34 %
    assert 0.038 < false_alarms(make) < 0.062


@pytest.mark.parametrize("runs", [2, 3, 5])
@pytest.mark.parametrize("spread", [0.001, 0.004, 0.01, 0.05])
def test_figures_in_coarse_steps_make_no_more_false_alarms(runs: int, spread: float) -> None:
    # percentiles come in fio's buckets: a few equal differences are no certainty
    rng = random.Random(7)

    def bucketed() -> list[float]:
        # the worst place for a median: at the border of two buckets
        return [float(bucket_key(int(98304 * rng.lognormvariate(0, spread)))) for _ in range(runs)]

    found = [compare_paired(bucketed(), bucketed(), resolution=RESOLUTION) for _ in range(2000)]
    assert sum(one is not None and one.p < 0.05 for one in found) / 2000 < 0.065
    certain = compare_paired([1e5] * runs, [2e5] * runs, resolution=RESOLUTION)
    assert certain is not None and certain.shown
    # the spread of a difference of two figures that are each rounded to a step: a step / √6
    error = RESOLUTION / math.sqrt(6 * runs)
    width = math.log((1 + certain.high) / (1 + certain.low))
    assert width == pytest.approx(2 * float(stats.t.ppf(0.975, runs - 1)) * error)


def test_a_drift_makes_no_false_alarms_in_abba_order() -> None:
    assert false_alarms(drifting, trials=2000, runs=6) < 0.062


def test_a_real_difference_is_found() -> None:
    rng = random.Random(11)
    found = 0
    for _ in range(300):
        first, second = lognormal(rng, 8)
        result = compare_paired(first, [1.4 * value for value in second])
        assert result is not None
        found += result.shown and result.low <= 0.4 <= result.high
    assert found > 270


def test_holm_by_its_definition() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_holm_keeps_the_alarms_of_a_whole_comparison_at_the_rate() -> None:
    rng = random.Random(3)
    alarms = 0
    for _ in range(1500):
        probabilities = []
        for _ in range(5):
            found = compare_paired(*lognormal(rng, 5))
            assert found is not None
            probabilities.append(found.p)
        alarms += min(holm(probabilities)) < 0.05
    assert alarms / 1500 < 0.066


def test_the_knee_of_a_device_is_the_depth_it_serves_at_once() -> None:
    # 100 µs each, 12 at once; a closed loop of N: X = min(N, 12)/R0, R = N/X
    depths = [1, 2, 4, 8, 12, 16, 32, 64]
    curve = [(min(n, 12) / 100e-6, 100e-6 * max(1, n / 12)) for n in depths]
    found = knee(curve)
    assert found is not None and depths[found.index] == 12 and found.edge == ""
    rising, falling = knee(curve[:4]), knee(curve[4:])
    assert rising is not None and rising.edge == "last"
    assert falling is not None and falling.edge == "first"
    assert knee(curve[:2]) is None
    assert knee([(0.0, 1.0), *curve]) is None


def series(rates: list[float], seconds: float = 1.0) -> list[tuple[float, float]]:
    return [(seconds, rate * seconds) for rate in rates]


def test_steady_state_by_the_rule_s_numbers() -> None:
    flat = steadiness(series([100.0] * 30))
    assert flat.steady and flat.range == pytest.approx(0) and flat.round_s == 6.0
    # five rounds of 90 95 100 105 110: range 20 %, line over 20 %
    leaning = steadiness(series([90.0, 95.0, 100.0, 105.0, 110.0]))
    assert leaning.range == pytest.approx(0.2) and leaning.slope == pytest.approx(0.2)
    assert leaning.steady is False, "within the range, but not level"
    jumping = steadiness(series([100.0, 100.0, 126.0, 100.0, 100.0]))
    assert jumping.slope == pytest.approx(0) and jumping.range > 0.2
    assert jumping.steady is False, "level, but not within the range"
    within = steadiness(series([98.0, 101.0, 100.0, 99.0, 102.0]))
    assert within.steady is True


def test_a_long_run_is_judged_by_its_last_five_minutes() -> None:
    found = steadiness(series([500.0] * 300 + [100.0] * 300))
    assert found.round_s == 60.0 and found.steady is True


def test_too_short_to_be_judged() -> None:
    assert steadiness(series([1.0] * 4)).steady is None
    assert steadiness(series([0.0] * 9)).steady is None
    assert steadiness([]).steady is None


@given(st.lists(st.tuples(st.floats(0.3, 2), st.floats(1, 1e6)), min_size=5, max_size=60))
def test_rounds_share_out_intervals_and_lose_none(intervals: list[tuple[float, float]]) -> None:
    from iopstui.model.metrics.statistics import _rounds

    total = sum(seconds for seconds, _ in intervals)
    rates = _rounds(intervals, 0.0, total / 5)
    assert sum(rates) * total / 5 == pytest.approx(sum(count for _, count in intervals))
