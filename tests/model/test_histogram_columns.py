"""Histograms as columns give the same figures as dicts, whatever fio's counters do."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from iopstui.model import histogram
from iopstui.model.histogram import BinsTotal, HistogramColumns

PLACES = st.lists(st.integers(0, 40), min_size=1, max_size=8, unique=True).map(sorted)


@st.composite
def cumulative(draw: st.DrawFn) -> list[dict[int, int]]:
    """Successive histograms: buckets come, counts grow, lag a little, or begin again."""
    now = dict.fromkeys(draw(PLACES), 0)
    found = []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.integers(0, 9)) == 0:
            now = {}
        if not now or draw(st.integers(0, 3)) == 0:
            now = {**dict.fromkeys(draw(PLACES), 0), **now}
        now = {key: max(1, count + draw(st.integers(-2, 9))) for key, count in sorted(now.items())}
        found.append(now)
    return found


def columns(found: list[dict[int, int]]) -> list[HistogramColumns]:
    """The same as columns; successive histograms with the same buckets share a list of buckets."""
    made: list[HistogramColumns] = []
    for one in found:
        places = [*one]
        if made and made[-1].bucket_keys == places:
            made.append(HistogramColumns(made[-1].bucket_keys, [*one.values()]))
        else:
            made.append(HistogramColumns(places, [*one.values()]))
    return made


@given(cumulative())
def test_columns_are_subtracted_as_dicts_are(found: list[dict[int, int]]) -> None:
    before_dict: Mapping[int, int] = {}
    before: Mapping[int, int] = {}
    for one, other in zip(found, columns(found), strict=True):
        assert other == one and [*other] == [*one]
        grown, by_columns = histogram.subtract(one, before_dict), histogram.subtract(other, before)
        assert by_columns == grown
        if grown is not None and by_columns is not None:
            assert bool(by_columns) == bool(grown)
            assert histogram.percentiles(by_columns) == histogram.percentiles(grown)
            assert histogram.maximum(by_columns) == histogram.maximum(grown)
        before_dict, before = one, other


@given(cumulative(), st.booleans(), st.sets(st.integers(0, 11)))
def test_a_total_is_the_sum_of_its_parts(
    found: list[dict[int, int]], in_order: bool, left_out: set[int]
) -> None:
    total, expected = BinsTotal(in_order), dict[int, int]()
    before: Mapping[int, int] = {}
    for number, one in enumerate(columns(found)):
        part = histogram.subtract(one, before)
        before = one
        if number in left_out or part is None:
            continue
        total.add(part)
        histogram.add(expected, dict(part))
        if number % 3 == 0:
            assert total.bins == expected
    assert total.bins == expected
    if in_order:
        assert [*total.bins] == [*expected]


def test_a_bucket_that_lags_counts_as_in_single_intervals() -> None:
    total = BinsTotal()
    steps = [HistogramColumns(p := [1, 2], [5, 5])]
    steps += [HistogramColumns(p, [4, 15]), HistogramColumns(p, [7, 20])]
    parts = [histogram.subtract(steps[0], {})]
    parts += [histogram.subtract(b, a) for a, b in pairwise(steps)]
    assert parts[1] == {2: 10}
    for part in parts:
        assert part is not None
        total.add(part)
    assert total.bins == {1: 8, 2: 20}
