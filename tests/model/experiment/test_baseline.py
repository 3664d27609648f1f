"""A figure compared with an earlier run's: batches, the interval of the ratio, what passes."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace

import pytest
from fio_recordings import frames
from hypothesis import given
from hypothesis import strategies as st
from lazy_scipy import stats
from made_seconds import frame, run

from iopstui.errors import UsageError
from iopstui.model.experiment.baseline import (
    MAX_BATCHES,
    MIN_INTERVALS,
    BaselineFigure,
    BatchMeans,
    Spread,
    batch_spread,
    next_coarser_figure,
    percentile_spread,
    ratio_interval,
)
from iopstui.model.experiment.expectation import ExpectationChecker, Outcome, parse_expectation
from iopstui.model.histogram import bucket_key
from iopstui.session.tick.outcomes import outcome_event, outcome_event_text

FIGURES = st.lists(st.floats(50, 150), min_size=MIN_INTERVALS, max_size=30)


@given(FIGURES, st.floats(0.1, 10))
def test_the_interval_holds_the_ratio_and_scales(values: list[float], factor: float) -> None:
    own = batch_spread(values)
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


def test_a_single_figure_is_as_uneven_as_the_other() -> None:
    own = Spread(0.02, 9)
    single = ratio_interval(100.0, own, BaselineFigure(100.0, None, "x"))
    assert single is not None and single[1] - 1 > 0.02 * math.sqrt(2) * 2
    assert ratio_interval(100.0, None, BaselineFigure(100.0, own, "x")) == single
    assert ratio_interval(100.0, None, BaselineFigure(100.0, None, "x")) is None
    assert ratio_interval(100.0, own, BaselineFigure(0.0, None, "x")) is None


@pytest.mark.parametrize("percent", [50.0, 95.0, 99.0, 99.9])
def test_a_percentile_s_interval_is_about_the_binomial_one(percent: float) -> None:
    # scipy's interval is exact for independent samples; ours is a little wider, because of the t
    # distribution, the batches and whole buckets
    rng = random.Random(3)
    batches = [[int(1e5 * rng.lognormvariate(0, 0.5)) for _ in range(2000)] for _ in range(20)]
    found = percentile_spread([Counter(map(bucket_key, one)) for one in batches], percent)
    assert found is not None and found.below is not None and found.above is not None
    exact = stats.quantile_test(
        [ns for one in batches for ns in one], p=percent / 100
    ).confidence_interval(0.95)
    width = math.log(exact.high / exact.low)
    assert 0.9 * width < found.below + found.above < 1.6 * width + 2 / 64


@given(st.lists(st.integers(1, 10**10), min_size=40, max_size=200), st.sampled_from((50.0, 95.0)))
def test_a_percentile_lies_within_its_interval(latencies: list[int], percent: float) -> None:
    keys = list(map(bucket_key, latencies))
    found = percentile_spread([Counter(keys[n::20]) for n in range(20)], percent)
    if found is None:
        return
    assert found.below is not None and found.above is not None
    assert found.below >= 0 and found.above >= 0
    base = BaselineFigure(1e5, found, "x")
    low, high = ratio_interval(1e5, found, base) or (9.0, 0.0)
    assert low <= 1.0 <= high


@pytest.mark.parametrize(
    ("path", "count", "why"),
    [
        (("fio", "total", "iops"), MIN_INTERVALS - 1, "only 19 intervals"),
        (("fio", "total", "iops"), MIN_INTERVALS, ""),
        (("fio", "total", "clat", "p99"), MIN_INTERVALS, ""),
        (("fio", "total", "clat", "p99.99"), MIN_INTERVALS, "too few I/Os are this slow"),
        (("fio", "total", "clat", "max"), MIN_INTERVALS, "the maximum is a single I/O"),
    ],
)
def test_why_there_is_no_interval(path: tuple[str, ...], count: int, why: str) -> None:
    batches = BatchMeans(path)
    for one in run(random.Random(1), count, 200):
        batches.add(one)
    assert batches.why.startswith(why) and (batches.spread is None) == bool(why)


def test_a_run_without_an_interval_is_not_judged() -> None:
    one = parse_expectation("iops>=95%").relative_to(BaselineFigure(200.0, Spread(0.01, 9), "x"))
    judge = ExpectationChecker([one])
    for number in range(3):
        judge.add(frame([100_000] * 100, number))
    (outcome,) = judge.outcomes()
    assert outcome.passed is None and outcome.measured == 100.0
    words = outcome_event_text(outcome_event(0.0, 1, outcome))
    assert words.startswith("NOT JUDGED  iops >= 190")
    assert "50.0 % of it; only 3 intervals" in words


FIGURES_JUDGED = ("iops", "clat.mean", "clat.p50", "clat.p95", "clat.p99", "clat.p99.9")


def test_equal_runs_rarely_fail_on_any_figure() -> None:
    """The aim is 2.5 %; 60 pairs, so 5 failures are beyond chance. See tests/simulate."""
    rng = random.Random(11)
    failed: Counter[str] = Counter()
    asked = {name: parse_expectation(f"{name}{'>=' if name == 'iops' else '<='}100%")
             for name in FIGURES_JUDGED}  # fmt: skip
    for _ in range(60):
        before = {name: BatchMeans(one.path) for name, one in asked.items()}
        for one in run(rng, 24, 150, stalls=0.2):
            for batches in before.values():
                batches.add(one)
        judge = ExpectationChecker([
            asked[name].relative_to(BaselineFigure(batches.whole.value or 0.0, batches.spread, "x"))
            for name, batches in before.items() if batches.spread is not None
        ])  # fmt: skip
        for one in run(rng, 24, 150, stalls=0.2):
            judge.add(one)
        failed.update(o.expectation.name for o in judge.outcomes() if o.passed is False)
    assert max(failed.values(), default=0) < 5, failed


def test_which_figure_can_be_used_instead() -> None:
    assert (
        next_coarser_figure("read.clat.max") == "read.clat.p99.9"
        and next_coarser_figure("clat.p99.9") == "clat.p99"
    )
    assert next_coarser_figure("iops") == ""


@pytest.mark.parametrize("count", [3, 17, 20, 21, 64, 500])
def test_batches_stay_few_and_lose_nothing(count: int) -> None:
    held = frames("3.42-c-numjobs4-nogroup")[:-1]
    batches = BatchMeans(("fio", "total", "iops"))
    for number in range(count):
        batches.add(held[number % len(held)])
    known = batches.spread
    if count < MIN_INTERVALS:
        assert known is None
        return
    assert (
        known is not None and MAX_BATCHES / 2 - 1 <= known.freedom + 1 <= MAX_BATCHES
    ) or count < MAX_BATCHES
    one = BatchMeans(("fio", "total", "iops"))
    for each in held:
        one.add(each)
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
    one = parse_expectation(text).relative_to(
        BaselineFigure(10000.0, Spread(0.01, 9), "before.iops")
    )
    outcome = Outcome(one, measured, None, low, high)
    assert outcome.passed is passed
    words = outcome_event_text(outcome_event(0.0, 1, outcome))
    assert words.startswith("PASS" if passed else "FAIL") and "of the baseline's 10000" in words
    assert ("not certain" in words) == ((low is not None and passed and low < 0.95 < (high or 0))
                                        or (text[4] == "<" and passed))  # fmt: skip
    assert ("no confidence interval" in words) == (low is None)
    single = replace(one, base=BaselineFigure(10000.0, None, "x.json"))
    told = outcome_event_text(outcome_event(0.0, 1, replace(outcome, expectation=single)))
    assert ("the baseline has no interval and is assumed to vary as much as this run" in told) == (
        low is not None
    )


def test_a_run_against_itself_passes() -> None:
    held = frames("3.42-c-numjobs4-nogroup") * 12
    first = BatchMeans(("fio", "total", "iops"))
    for one in held:
        first.add(one)
    assert first.whole.value is not None
    base = BaselineFigure(first.whole.value, first.spread, "itself")
    judge = ExpectationChecker([parse_expectation("iops>=100%").relative_to(base)])
    for one in held:
        judge.add(one)
    (outcome,) = judge.outcomes()
    assert outcome.passed and outcome.measured == base.value
    assert first.frames == 24, "without the last ones, which are short"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bw>=100Mb", "100Mb is megabits, but bw is in bytes. As bytes that is 12.5MB/s"),
        ("bw>=1Gib/s", "gigabits"),
        ("IOPS>=5", "Did you mean iops?"),
        ("Read.Clat.P99<=1ms", "Did you mean read.clat.p99?"),
        ("a:lat>=5", "has no 'lat' for a single job"),
        ("a:clat.p99>=5ms", "has no 'clat.p99' for a single job"),
        ("a:IOPS>=5", "Did you mean a:iops"),
    ],
)
def test_what_is_not_understood_gets_the_word_that_was_meant(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_expectation(text, ("vda",))
    assert said in f"{error.value} {error.value.hint}"
