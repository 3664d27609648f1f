"""From captured streams to the values of fio's options."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.capture.model.phases import kolmogorov
from iopstui.features.capture.model.shape import (
    MAX_SPLIT,
    pause_of,
    percentages,
    percentile_depth,
    random_percentage,
    split,
    zones,
)
from iopstui.features.capture.model.workload import Arrivals, Stream

COUNTS = st.dictionaries(st.integers(1, 200).map(lambda n: 512 * n), st.integers(1, 1000),
                         min_size=1, max_size=60)  # fmt: skip
STREAM = Stream("db", "read", 10.0, 1000, 4_096_000)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=60))
def test_percentages_are_all_of_it(weights: list[int]) -> None:
    found = percentages(weights)
    assert sum(found) == 100
    assert all(abs(part - 100 * one / sum(weights)) < 1 for part, one in
               zip(found, weights, strict=True))  # fmt: skip


@given(COUNTS)
def test_a_split_is_what_fio_takes(sizes: dict[int, int]) -> None:
    found = split(sizes)
    assert sum(part for _, part in found) == 100 and all(part > 0 for _, part in found)
    assert len(found) <= MAX_SPLIT and {size for size, _ in found} <= set(sizes)
    assert [size for size, _ in found] == sorted(size for size, _ in found)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=8))
def test_a_split_of_few_sizes_is_close(weights: list[int]) -> None:
    sizes = {4096 * (n + 1): weight for n, weight in enumerate(weights)}
    distance = kolmogorov(sizes, dict(split(sizes)))
    assert distance is not None and distance <= 0.05


def test_a_split_of_fio_s_own_is_given_back() -> None:
    assert split({4096: 601, 16384: 301, 65536: 98}) == [(4096, 60), (16384, 30), (65536, 10)]
    # a very rare size is left out
    assert split({512: 1, 4096: 9999}) == [(4096, 100)]


@pytest.mark.parametrize(
    ("sequential", "percent"),
    [(0, 100), (999, 0), (1000, 0), (700, 30), (15, 100), (985, 0), (40, 96)],
)
def test_random_percentage(sequential: int, percent: int) -> None:
    assert random_percentage(replace(STREAM, sequential=sequential)) == percent


@given(st.dictionaries(st.integers(0, 5000), st.integers(1, 5000), max_size=300))
def test_zones_are_all_of_both(regions: dict[int, int]) -> None:
    found = zones(regions)
    assert not found or sum(part for part, _ in found) == sum(size for _, size in found) == 100
    assert all(part > 0 and size > 0 for part, size in found)


def test_hot_regions_make_zones() -> None:
    hot = {n: 400 if n < 20 else 25 for n in range(100)}
    found = zones(hot)
    upto_20 = 0
    covered = 0
    for part, size in found:
        if covered < 20:
            upto_20 += part
        covered += size
    assert upto_20 == 80
    # sequential requests come in runs: these zones differ no more than by chance
    assert zones(hot, random=10) == [] and zones({n: 100 + 50 * (n % 2) for n in range(100)},
                                                 random=30) == []  # fmt: skip
    assert zones({n: 100 + 50 * (n % 2) for n in range(100)})
    # the same everywhere; too few requests
    assert zones(dict.fromkeys(range(100), 50)) == zones({n: 1 + n % 3 for n in range(100)}) == []


def arrivals(squares: int, windows: int = 100, active: int = 0, bursts: int = 0) -> Stream:
    return replace(STREAM, arrivals=Arrivals(windows, squares, 0, active, bursts))


def test_bursts_and_pauses() -> None:
    # 20 bursts of 50 requests in 5 windows of 10 ms each, of which one is idle at their edges
    found = pause_of(arrivals(0, active=100, bursts=20))
    assert found is not None
    assert (found.ios, found.rate, found.pause_us) == (50, 1250, 460_000)
    assert pause_of(arrivals(0, active=950, bursts=20)) is None, "hardly a pause"
    assert pause_of(arrivals(0, active=400, bursts=400)) is None, "single requests"
    assert pause_of(arrivals(0)) is None
    assert pause_of(arrivals(0, active=100, bursts=4)) is None, "no pause is known"


def test_depths() -> None:
    stream = replace(STREAM, depths={1: 50, 2: 40, 9: 10})
    assert [percentile_depth(stream, share) for share in (0.5, 0.9, 0.99)] == [1, 2, 9]
    assert stream.depth == pytest.approx(2.2) and STREAM.depth is None
