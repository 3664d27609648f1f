"""A test that one may look at after every run, against its definition (by scipy) and by chance."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lazy_scipy import integrate, stats

from iopstui.model.metrics.statistics import (
    MIN_RUNS,
    MIXTURE,
    anytime_limit,
    anytime_p,
    compare_paired,
    runs_needed,
)


@pytest.mark.parametrize("runs", [2, 4, 7, 20])
@pytest.mark.parametrize("t", [0.0, 0.5, 2.0, 4.0])
def test_it_is_the_ratio_of_the_two_likelihoods_of_t(t: float, runs: int) -> None:
    def mixed(effect: float) -> float:
        weight = stats.norm.pdf(effect, scale=math.sqrt(MIXTURE))
        return float(weight * stats.nct.pdf(t, runs - 1, effect * math.sqrt(runs)))

    reach = 6 * math.sqrt(MIXTURE)
    some, _ = integrate.quad(mixed, -reach, reach, points=[0.0, t / math.sqrt(runs)], limit=300)
    ratio = some / stats.t.pdf(t, runs - 1)
    assert anytime_p(t, runs) == pytest.approx(min(1.0, 1 / ratio), rel=1e-3)


@given(st.integers(MIN_RUNS, 400), st.sampled_from([0.05, 0.2]))
def test_the_interval_ends_where_the_probability_does(runs: int, alpha: float) -> None:
    limit = anytime_limit(runs, alpha)
    assert anytime_p(limit, runs) == pytest.approx(alpha)
    assert limit > stats.t.ppf(1 - alpha / 2, runs - 1), "looking often has its price"


def test_so_few_runs_say_nothing() -> None:
    assert anytime_limit(1, 0.05) == math.inf == anytime_limit(2, 0.05)
    assert (
        compare_paired([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.5, 8.1, 9.0], sequential=True)
        is None
    )
    found = compare_paired([1.0, 2.0, 3.0] * 2, [2.0, 4.1, 6.0] * 2, sequential=True)
    assert found is not None and found.low < 1.0 < found.high
    same = compare_paired([5.0] * 6, [5.0] * 6, sequential=True)
    assert same is not None and (same.p, same.low, same.high) == (1.0, 0.0, 0.0)


def test_how_many_runs_an_interval_takes() -> None:
    needed = runs_needed(0.04, 0.02, 0.05, 1000)
    assert needed is not None
    assert anytime_limit(needed, 0.05) * 0.04 / math.sqrt(needed) <= 0.02
    assert anytime_limit(needed - 1, 0.05) * 0.04 / math.sqrt(needed - 1) > 0.02
    assert runs_needed(0.5, 0.001, 0.05, 50) is None


def test_looked_at_after_every_repeat_it_is_as_seldom_wrong_as_it_says() -> None:
    """1,000 comparisons of 20 repeats without a difference. `make simulate` makes 10,000."""
    rng, naive, false, outside = random.Random(5), 0, 0, 0
    for _ in range(1000):
        first = [rng.lognormvariate(0, 0.03) for _ in range(20)]
        second = [rng.lognormvariate(0, 0.03) for _ in range(20)]
        looks = [(first[:n], second[:n]) for n in range(MIN_RUNS, 21)]
        found = [one for pair in looks if (one := compare_paired(*pair, sequential=True))]
        false += any(one.p < 0.05 for one in found)
        outside += any(not one.low <= 0 <= one.high for one in found)
        naive += any(
            one is not None and one.p < 0.05 for one in (compare_paired(*pair) for pair in looks)
        )
    assert max(false, outside) <= 50 + 2 * math.sqrt(1000 * 0.05 * 0.95)
    assert naive > 100, "the plain test is wrong more often, or this shows nothing"
