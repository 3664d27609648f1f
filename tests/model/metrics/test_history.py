from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.metrics.history import MAX, MEAN, History

values = st.one_of(st.none(), st.floats(0, 1e9, allow_subnormal=False))


def filled(samples: list[float | None], seconds: float = 1.0, **sizes: int) -> History:
    history = History(("a",), **sizes)
    for index, value in enumerate(samples):
        history.add((index + 1) * seconds, seconds, {"a": value})
    return history


@given(st.lists(values, min_size=1, max_size=60))
def test_a_column_of_one_second_is_the_sample_itself(samples: list[float | None]) -> None:
    assert filled(samples).window("a", 0.0, 1.0, len(samples)) == samples


@given(st.lists(values, min_size=1, max_size=60))
def test_narrow_columns_repeat_the_sample_and_invent_nothing(samples: list[float | None]) -> None:
    found = filled(samples).window("a", 0.0, 0.5, 2 * len(samples))
    assert found == [value for value in samples for _ in range(2)]


@given(st.lists(values, min_size=4, max_size=80), st.integers(2, 7))
def test_wide_columns_hold_mean_and_maximum_of_their_samples(
    samples: list[float | None], width: int
) -> None:
    history, columns = filled(samples), math.ceil(len(samples) / width)
    means = history.window("a", 0.0, float(width), columns, MEAN)
    tops = history.window("a", 0.0, float(width), columns, MAX)
    for column in range(columns):
        part = [v for v in samples[column * width : (column + 1) * width] if v is not None]
        if not part:
            assert means[column] is None and tops[column] is None
        else:
            assert means[column] == pytest.approx(sum(part) / len(part), rel=1e-9)
            assert tops[column] == max(part)


@given(
    st.lists(st.tuples(st.floats(0.05, 3.0), values), min_size=1, max_size=60),
    st.floats(0.1, 5.0),
    st.integers(1, 90),
)
def test_irregular_samples_stay_inside_what_was_measured(
    steps: list[tuple[float, float | None]], column_s: float, columns: int
) -> None:
    history, t = History(("a",)), 0.0
    for seconds, value in steps:
        t += seconds
        history.add(t, seconds, {"a": value})
    known = [value for _, value in steps if value is not None]
    for how in (MEAN, MAX):
        found = history.window("a", 0.0, column_s, columns, how)
        assert len(found) == columns
        for value in found:
            assert value is None or min(known) * 0.999999 <= value <= max(known) * 1.000001


@given(st.lists(st.floats(-0.004, 0.004), min_size=20, max_size=60))
def test_jitter_of_the_ticks_makes_no_gap(jitter: list[float]) -> None:
    history, before = History(("a",)), 0.0
    for index, off in enumerate(jitter):
        t = index + 1 + off
        history.add(t, t - before, {"a": 7.0})
        before = t
    assert history.window("a", 0.0, 1.0, len(jitter) - 1) == pytest.approx(
        [7.0] * (len(jitter) - 1)
    )


def test_samples_out_of_order_and_of_no_length_are_dropped() -> None:
    history = filled([5.0])
    history.add(1.0, 1.0, {"a": 9.0})
    history.add(2.0, 0.0, {"a": 9.0})
    assert history.window("a", 0.0, 1.0, 2) == [5.0, None]


@given(st.integers(1, 400))
def test_memory_is_bounded_and_old_samples_are_folded(count: int) -> None:
    history = filled([float(i) for i in range(count)], raw_samples=20, folded_samples=15)
    assert len(history) == min(count, 20)
    # ten samples to a fold: the first one's mean is 4.5
    old = history.window("a", 0.0, 10.0, max(1, count // 10))
    if 30 <= count <= 150:
        assert old[0] == pytest.approx(4.5)
    if count > 170:
        assert old[0] is None


def test_a_day_of_seconds_costs_little() -> None:
    history = History(tuple("abcde"))
    for second in range(1, 86_401):
        history.add(float(second), 1.0, {"a": 1.0, "b": float(second)})
    arrays = (history._raw, history._folded)
    held = sum(
        column.itemsize * len(column)
        for level in arrays
        for column in (level.starts, level.ends, *level.means, *level.maxima)
    )
    assert held < 4 << 20
    assert history.window("b", 0.0, 3600.0, 24)[0] == pytest.approx(1800.5, rel=0.01)


def test_marks_are_found_by_time_and_bounded() -> None:
    history = History(("a",))
    for index in range(1000):
        history.mark(float(index), f"m{index}")
    assert [mark.text for mark in history.marks(997.0, 999.0)] == ["m997", "m998"]
    assert len(list(history.marks(0.0, 1e9))) == 500


def test_a_band_takes_the_columns_of_its_seconds_and_the_last_words_of_its_beginning() -> None:
    history = History(("a",))
    history.mark(1.5, "off")
    history.band(4.0, 5.0, "stall 1.0 s")
    history.band(4.0, 7.5, "stall 3.5 s")
    assert history.flagged_columns(0.0, 1.0, 6) == [(1, "off"), (4, "stall 3.5 s"), (5, None)]
    assert history.flagged_columns(6.0, 0.5, 9) == [
        (0, "stall 3.5 s"), (1, None), (2, None), (3, None),
    ]  # fmt: skip
    assert history.flagged_columns(7.5, 0.5, 9) == []
