"""The power of a paired t-test, against scipy's noncentral t."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lazy_scipy import integrate, stats

from iopstui.model.metrics.statistics import (
    POWER,
    power,
    repeats_for,
    smallest_detectable,
    spread_of,
)


@given(
    st.integers(2, 200), st.floats(0, 0.5), st.floats(0.002, 0.3), st.sampled_from([0.05, 0.05 / 7])
)
def test_it_is_the_noncentral_t_s(repeats: int, apart: float, spread: float, alpha: float) -> None:
    limit = stats.t.ppf(1 - alpha / 2, repeats - 1)
    shift = apart / spread * math.sqrt(repeats)
    beyond = stats.nct.sf(limit, repeats - 1, shift) + stats.nct.cdf(-limit, repeats - 1, shift)
    # far out, scipy's own series gives NaN
    expected = integrated(repeats - 1, limit, shift) if math.isnan(beyond) else beyond
    assert power(apart, spread, repeats, alpha) == pytest.approx(expected, abs=1e-3)


def integrated(freedom: int, limit: float, shift: float) -> float:
    """How often |t| is beyond the limit, integrated over the standard deviation of the samples."""
    root = math.sqrt(freedom)
    low, high = (stats.chi.ppf(p, freedom) / root for p in (1e-9, 1 - 1e-9))

    def beyond(s: float) -> float:
        found = stats.norm.sf(limit * s - shift) + stats.norm.cdf(-limit * s - shift)
        return float(found * stats.chi.pdf(s * root, freedom) * root)

    return float(integrate.quad(beyond, low, high, limit=200)[0])


def test_where_scipy_gives_up_not_all_is_found() -> None:
    limit = stats.t.ppf(0.975, 1)
    assert integrated(1, limit, 2.0) == pytest.approx(
        stats.nct.sf(limit, 1, 2.0) + stats.nct.cdf(-limit, 1, 2.0), abs=1e-6
    )
    assert power(0.5, 0.0625, 2) == pytest.approx(integrated(1, limit, 8 * math.sqrt(2)), abs=1e-3)


@pytest.mark.parametrize("repeats", [2, 3, 5, 30])
def test_the_smallest_is_found_as_often_as_said(repeats: int) -> None:
    least = smallest_detectable(0.03, repeats)
    assert power(least, 0.03, repeats) == pytest.approx(POWER, abs=1e-3)
    assert power(0.9 * least, 0.03, repeats) < POWER


def test_how_many_would_do() -> None:
    enough = repeats_for(0.05, 0.04)
    assert enough is not None
    assert power(0.05, 0.04, enough) >= POWER > power(0.05, 0.04, enough - 1)
    assert repeats_for(0.0001, 0.3) is None


def test_without_spread_everything_is_found() -> None:
    assert smallest_detectable(0.0, 2) == 0.0 and power(0.01, 0.0, 2) == 1.0
    with pytest.raises(ValueError, match="two"):
        power(0.1, 0.1, 1)


def test_the_spread_of_pairs() -> None:
    pairs = [(100.0, 110.0), (100.0, 121.0), (50.0, 55.0)]
    step = math.log(1.1)
    assert spread_of(pairs) == pytest.approx(stats.tstd([step, 2 * step, step]))
    assert spread_of(pairs[:1]) is None and spread_of([(1.0, 0.0), (1.0, 2.0)]) is None
