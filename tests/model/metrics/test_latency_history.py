from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.histogram import bucket_key
from iopstui.model.metrics.latency_history import (
    STEPS_PER_DECADE,
    LatencyHistory,
    middle_of,
    step_of,
)


@given(st.integers(1, 10**12))
def test_a_step_is_near_its_latency(latency: int) -> None:
    ratio = middle_of(step_of(latency)) / latency
    width = 10 ** (1 / STEPS_PER_DECADE)
    assert 1 / width <= ratio <= width


@given(st.dictionaries(st.integers(1, 10**10).map(bucket_key), st.integers(1, 10**6), min_size=1))
def test_no_io_is_lost(bins: dict[int, int]) -> None:
    history = LatencyHistory()
    history.add(1.0, 1.0, bins)
    column = history.column(0.0, 1.0)
    assert column is not None and sum(column.values()) == sum(bins.values())


def test_gaps_stay_gaps_and_an_empty_histogram_is_one() -> None:
    history = LatencyHistory()
    history.add(1.0, 1.0, {1000: 1})
    history.add(2.0, 1.0, {})
    history.add(4.0, 1.0, {1000: 1})
    assert [history.column(t, t + 1.0) is None for t in range(5)] == [
        False, True, True, False, True,
    ]  # fmt: skip


def test_what_is_not_later_is_dropped() -> None:
    history = LatencyHistory()
    history.add(2.0, 1.0, {1000: 1})
    history.add(2.0, 1.0, {1000: 5})
    assert history.end == 2.0 and history.column(1.0, 2.0) == {step_of(1000): 1}


def test_it_never_grows_and_old_seconds_are_kept_by_the_minute() -> None:
    history = LatencyHistory(raw_samples=100, fold_s=10.0, folded_samples=50)
    for t in range(1, 1001):
        history.add(float(t), 1.0, {1000: 1})
    assert len(history._raw.starts) <= 113 and len(history._folded.starts) <= 57
    assert history.column(0.0, 10.0) is None
    assert history.column(600.0, 700.0) == {step_of(1000): 100}
    assert history.column(995.0, 1000.0) == {step_of(1000): 5}


COUNTS = st.integers(1, 1000) | st.integers((1 << 32) - 2, 1 << 33) | st.just((1 << 64) - 1)


@given(st.lists(st.dictionaries(st.integers(1, 10**9).map(bucket_key), COUNTS, min_size=1),
                min_size=1, max_size=40), st.integers(1, 12))  # fmt: skip
def test_each_second_that_is_kept_is_whole(seconds: list[dict[int, int]], capacity: int) -> None:
    """However many went before it, and however large their counts were."""
    history = LatencyHistory(raw_samples=capacity)
    early = None
    for t, bins in enumerate(seconds, 1):
        history.add(float(t), 1.0, bins)
        early = history.copy() if t == 1 else early
    for t in range(len(seconds), max(0, len(seconds) - capacity), -1):
        expected: dict[int, int] = {}
        for key, count in seconds[t - 1].items():
            expected[step_of(key)] = expected.get(step_of(key), 0) + count
        expected = {step: min(count, (1 << 64) - 1) for step, count in expected.items()}
        assert history.column(t - 1.0, float(t)) == expected
    # a copy does not change with the original
    assert early is not None and early.end == 1.0


def test_the_first_second_of_a_copy_is_what_it_was() -> None:
    history = LatencyHistory(raw_samples=8)
    history.add(1.0, 1.0, {1000: 3})
    kept = history.copy()
    for t in range(2, 30):
        history.add(float(t), 1.0, {2000: 1 << 40})
    assert kept.column(0.0, 1.0) == {step_of(1000): 3}
