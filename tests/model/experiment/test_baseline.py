"""A figure against an earlier run's: batches, the interval of the ratio, who passes."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from fio_recordings import frames
from hypothesis import given
from hypothesis import strategies as st
from lazy_scipy import stats

from iopstui.errors import UsageError
from iopstui.model.experiment.baseline import (
    FEWEST,
    MOST,
    BaselineFigure,
    BatchMeans,
    Spread,
    ratio_interval,
    spread,
)
from iopstui.model.experiment.expectation import Judge, Outcome, parse_expectation
from iopstui.session.tick.outcomes import judged_event, judged_text

FIGURES = st.lists(st.floats(50, 150), min_size=FEWEST, max_size=30)


@given(FIGURES, st.floats(0.1, 10))
def test_the_interval_holds_the_ratio_and_scales(values: list[float], factor: float) -> None:
    own = spread(values)
    assert own is not None
    mean = sum(values) / len(values)
    low, high = ratio_interval(mean * factor, own, BaselineFigure(mean, own, "x")) or (9.0, 0.0)
    assert low <= factor * (1 + 1e-9) and factor * (1 - 1e-9) <= high
    plain = ratio_interval(mean, own, BaselineFigure(mean, own, "x"))
    assert plain is not None and low == pytest.approx(factor * plain[0])


def test_without_correlation_it_is_welch_s() -> None:
    one, other = Spread(0.02, 9), Spread(0.03, 14)
    low, high = ratio_interval(100.0, one, BaselineFigure(100.0, other, "x")) or (0.0, 0.0)
    freedom = (4e-4 + 9e-4) ** 2 / (4e-4**2 / 9 + 9e-4**2 / 14)
    half = stats.t.ppf(0.975, int(freedom)) * math.sqrt(4e-4 + 9e-4)
    assert (math.log(low), math.log(high)) == pytest.approx((-half, half), rel=1e-6)


def test_correlated_batches_are_less_sure() -> None:
    rng = random.Random(1)
    alone = [rng.gauss(100, 5) for _ in range(16)]
    wide, narrow = spread(sorted(alone)), spread(alone)
    assert wide is not None and narrow is not None and wide.error > 2 * narrow.error


def test_a_single_figure_is_as_uneven_as_the_other() -> None:
    own = Spread(0.02, 9)
    single = ratio_interval(100.0, own, BaselineFigure(100.0, None, "x"))
    assert single is not None and single[1] - 1 > 0.02 * math.sqrt(2) * 2
    assert ratio_interval(100.0, None, BaselineFigure(100.0, own, "x")) == single
    assert ratio_interval(100.0, None, BaselineFigure(100.0, None, "x")) is None
    assert ratio_interval(100.0, own, BaselineFigure(0.0, None, "x")) is None


@pytest.mark.parametrize("count", [3, 17, 20, 21, 64, 500])
def test_batches_stay_few_and_lose_nothing(count: int) -> None:
    held = frames("3.42-c-numjobs4-nogroup")[1:]
    batches = BatchMeans(("fio", "total", "iops"))
    for number in range(count):
        batches.add(held[number % len(held)])
    known = batches.spread
    if count < FEWEST:
        assert known is None
        return
    assert (known is not None and MOST / 2 - 1 <= known.freedom + 1 <= MOST) or count < MOST
    one = BatchMeans(("fio", "total", "iops"))
    for frame in held:
        one.add(frame)
    if count % len(held) == 0:
        assert batches.whole.value == pytest.approx(one.whole.value)


@pytest.mark.parametrize(
    ("text", "low", "high", "measured", "passed"),
    [
        ("iops>=95%", 0.90, 0.94, 9200.0, False),
        ("iops>=95%", 0.90, 0.96, 9300.0, True),
        ("iops>=95%", 0.96, 0.99, 9700.0, True),
        ("iops>=95%", None, None, 9400.0, False),
        ("iops>=95%", None, None, 9600.0, True),
        ("iops<=105%", 1.06, 1.10, 10800.0, False),
        ("iops<=105%", 1.04, 1.10, 10700.0, True),
    ],
)
def test_only_a_whole_interval_beyond_the_limit_fails(
    text: str, low: float | None, high: float | None, measured: float, passed: bool
) -> None:
    one = parse_expectation(text).against(BaselineFigure(10000.0, Spread(0.01, 9), "before.iops"))
    outcome = Outcome(one, measured, None, low, high)
    assert outcome.passed is passed
    words = judged_text(judged_event(0.0, 1, outcome))
    assert words.startswith("PASS" if passed else "FAIL") and "of the baseline's 10000" in words
    assert ("not certain" in words) == ((low is not None and passed and low < 0.95 < (high or 0))
                                        or (text[4] == "<" and passed))  # fmt: skip
    assert ("only the figures themselves" in words) == (low is None)
    single = replace(one, base=BaselineFigure(10000.0, None, "x.json"))
    told = judged_text(judged_event(0.0, 1, replace(outcome, expectation=single)))
    assert ("as uneven as this run" in told) == (low is not None)


def test_a_run_against_itself_passes() -> None:
    held = frames("3.42-c-numjobs4-nogroup")
    first = BatchMeans(("fio", "total", "iops"))
    for frame in held:
        first.add(frame)
    assert first.whole.value is not None
    base = BaselineFigure(first.whole.value, first.spread, "itself")
    judge = Judge([parse_expectation("iops>=100%").against(base)])
    for frame in held:
        judge.add(frame)
    (outcome,) = judge.outcomes()
    assert outcome.passed and outcome.measured == base.value


def test_percent_of_a_percentage_is_no_share() -> None:
    assert parse_expectation("util<=90%", ("vda",)).part is None
    assert parse_expectation("clat.p99<=120%").part == 1.2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bw>=100Mb", "100Mb is megabits, and bw is counted in bytes. So many bits are 12.5MB/s"),
        ("bw>=1Gib/s", "gigabits"),
        ("IOPS>=5", "Did you mean iops?"),
        ("Read.Clat.P99<=1ms", "Did you mean read.clat.p99?"),
        ("a:lat>=5", "says no 'lat' of a single job"),
        ("a:clat.p99>=5ms", "says no 'clat.p99' of a single job"),
        ("a:IOPS>=5", "Did you mean a:iops"),
    ],
)
def test_what_is_not_understood_gets_the_word_that_was_meant(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_expectation(text, ("vda",))
    assert said in f"{error.value} {error.value.hint}"
