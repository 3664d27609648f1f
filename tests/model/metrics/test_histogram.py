from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.histogram import (
    MAX_RELATIVE_ERROR,
    PERCENTILES,
    bucket_bounds,
    bucket_key,
    maximum,
    merge,
    percentiles,
    subtract,
)

latencies = st.integers(min_value=0, max_value=17_000_000_000)
samples = st.lists(latencies, min_size=1, max_size=300)


def histogram(values: list[int]) -> dict[int, int]:
    bins: dict[int, int] = {}
    for value in values:
        bins[bucket_key(value)] = bins.get(bucket_key(value), 0) + 1
    return bins


def fio_key(latency: int) -> int:
    """fio's own arithmetic (stat.c: plat_val_to_idx and plat_idx_to_val), as documented."""
    if latency < 128:
        return latency
    error_bits = latency.bit_length() - 1 - 6
    index = ((error_bits + 1) << 6) + ((latency >> error_bits) & 63)
    return (1 << (error_bits + 6)) + int((index % 64 + 0.5) * (1 << error_bits))


@given(latencies)
def test_key_is_the_one_fio_prints(latency: int) -> None:
    assert bucket_key(latency) == fio_key(latency)


@given(latencies)
def test_bounds_hold_the_latency_and_the_key(latency: int) -> None:
    key = bucket_key(latency)
    low, high = bucket_bounds(key)
    assert low <= latency <= high
    assert low <= key <= high
    assert bucket_key(low) == bucket_key(high) == key
    assert bucket_key(high + 1) != key
    assert low == 0 or bucket_key(low - 1) != key


@given(latencies)
def test_error_is_within_the_stated_bound(latency: int) -> None:
    assert abs(bucket_key(latency) - latency) <= MAX_RELATIVE_ERROR * latency


def test_fio_top_bucket() -> None:
    assert bucket_key(17_112_760_319) == 17_112_760_320
    assert bucket_bounds(17_112_760_320)[1] == (1 << 34) - 1


def test_negative_latency_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        bucket_key(-1)


@given(samples)
def test_percentiles_are_the_bucket_of_the_nearest_rank(values: list[int]) -> None:
    ordered = sorted(values)
    for p, found in percentiles(histogram(values)).items():
        rank = max(1, math.ceil(p / 100.0 * len(ordered)))
        assert found == bucket_key(ordered[rank - 1]), p


@given(samples)
def test_all_percentiles_are_given_in_order_and_at_most_the_maximum(values: list[int]) -> None:
    bins = histogram(values)
    found = percentiles(bins)
    assert tuple(found) == PERCENTILES
    assert list(found.values()) == sorted(found.values())
    assert found[99.99] <= (maximum(bins) or 0)
    assert maximum(bins) == bucket_key(max(values))


def test_percentiles_of_nothing() -> None:
    assert percentiles({}) == {}
    assert percentiles({100: 0}) == {}
    assert maximum({}) is None
    assert maximum({100: 0}) is None


@given(samples, samples)
def test_subtracting_what_was_before_leaves_the_interval(old: list[int], new: list[int]) -> None:
    before = histogram(old)
    now = histogram(old + new)
    assert subtract(now, before) == histogram(new)
    assert merge((before, histogram(new))) == now


@given(samples)
def test_subtracting_from_a_fresh_counter_is_a_reset(values: list[int]) -> None:
    assert subtract({}, histogram(values)) is None
    assert subtract(histogram(values), histogram(values)) == {}
