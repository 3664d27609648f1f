"""The power of a paired t-test, against scipy's noncentral t."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lazy_scipy import stats

from iopstui.model.metrics.power import POWER, power, repeats_for, smallest, spread_of


@given(
    st.integers(2, 200), st.floats(0, 0.5), st.floats(0.002, 0.3), st.sampled_from([0.05, 0.05 / 7])
)
def test_it_is_the_noncentral_t_s(repeats: int, apart: float, spread: float, alpha: float) -> None:
    limit = stats.t.ppf(1 - alpha / 2, repeats - 1)
    shift = apart / spread * math.sqrt(repeats)
    beyond = stats.nct.sf(limit, repeats - 1, shift) + stats.nct.cdf(-limit, repeats - 1, shift)
    # scipy's own series gives up far out, where nearly all is found
    expected = 1.0 if math.isnan(beyond) else beyond
    assert power(apart, spread, repeats, alpha) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("repeats", [2, 3, 5, 30])
def test_the_smallest_is_found_as_often_as_said(repeats: int) -> None:
    least = smallest(0.03, repeats)
    assert power(least, 0.03, repeats) == pytest.approx(POWER, abs=1e-3)
    assert power(0.9 * least, 0.03, repeats) < POWER


def test_how_many_would_do() -> None:
    enough = repeats_for(0.05, 0.04)
    assert enough is not None
    assert power(0.05, 0.04, enough) >= POWER > power(0.05, 0.04, enough - 1)
    assert repeats_for(0.0001, 0.3) is None


def test_without_spread_everything_is_found() -> None:
    assert smallest(0.0, 2) == 0.0 and power(0.01, 0.0, 2) == 1.0
    with pytest.raises(ValueError, match="two"):
        power(0.1, 0.1, 1)


def test_the_spread_of_pairs() -> None:
    pairs = [(100.0, 110.0), (100.0, 121.0), (50.0, 55.0)]
    step = math.log(1.1)
    assert spread_of(pairs) == pytest.approx(stats.tstd([step, 2 * step, step]))
    assert spread_of(pairs[:1]) is None and spread_of([(1.0, 0.0), (1.0, 2.0)]) is None
