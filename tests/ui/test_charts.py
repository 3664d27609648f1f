from __future__ import annotations

import itertools
import math
import os
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iopstui.ui.draw.charts import chart, plotting
from iopstui.ui.draw.charts.plotting import AREA, LINE, POINTS, Scale, Section, Series
from iopstui.ui.draw.style import ASCII, UTF8, Charset

FLAT = Scale(0.0, 100.0)


def row_texts(rows: list[plotting.Row]) -> list[str]:
    """The rows without the grid, whose characters depend on the charset."""
    lines = ["".join(text for text, _ in row) for row in rows]
    return [line.replace(UTF8.grid, " ").replace(ASCII.grid, " ") for line in lines]


def draw(
    values: list[float | None], kind: str = LINE, columns: int = 6, rows: int = 4
) -> list[str]:
    series = [Series(values, kind, "*", None)]
    return row_texts(plotting.draw_tile(series, Section(0, columns, rows, FLAT, ASCII)))


def test_a_line_is_drawn_in_the_row_of_its_value() -> None:
    assert draw([10, 10, 40, 60, 90, 90]) == ["    **", "   *  ", "  *   ", "**    "]


def test_a_gap_stays_a_gap() -> None:
    assert draw([10, 10, None, None, 10, 10])[3] == "**  **"


def test_a_value_between_gaps_is_visible() -> None:
    assert draw([None, 60, None, None, None, None])[1] == " *    "


def test_an_area_reaches_from_the_axis_to_its_value_and_shows_zero() -> None:
    assert draw([100, 50, 0, None], AREA, 4) == [":   ", ":   ", "::  ", "::: "]


def test_a_line_is_visible_over_an_area_of_the_same_value() -> None:
    series = [Series([50.0] * 4, AREA, "*", None), Series([50.0] * 4, LINE, "*", None)]
    drawn = row_texts(plotting.draw_tile(series, Section(0, 4, 4, FLAT, ASCII)))
    assert "****" in drawn and "::::" in drawn


def test_marks_are_vertical_lines_under_the_curves() -> None:
    series = [Series([10.0] * 4, LINE, "*", None)]
    drawn = row_texts(plotting.draw_tile(series, Section(0, 4, 4, FLAT, ASCII), marks=[2, 9]))
    assert drawn == ["  | ", "  | ", "  | ", "****"]


@pytest.mark.parametrize(("charset", "dots"), [(UTF8, 2), (ASCII, 1)])
def test_tiles_join_to_the_same_picture_as_one_large_tile(charset: Charset, dots: int) -> None:
    values = [50 + 45 * math.sin(index / 4) for index in range(24 * dots)]
    values[7] = None
    series = [Series(values, LINE, charset.line, None)]
    expected = row_texts(plotting.draw_tile(series, Section(0, 24, 8, FLAT, charset)))
    parts = [
        row_texts(plotting.draw_tile(series, Section(first, 8, 8, FLAT, charset)))
        for first in (0, 8, 16)
    ]
    joined = ["".join(row) for row in zip(*parts, strict=True)]
    assert joined == expected


def test_a_picture_wider_than_the_terminal_is_not_cut() -> None:
    values: list[float | None] = [50.0] * 600
    drawn = row_texts(
        plotting.draw_tile([Series(values, LINE, "braille", None)], Section(0, 300, 3, FLAT, UTF8))
    )
    assert {len(row) for row in drawn} == {300}
    assert drawn[1].count(" ") == 0


def test_crossing_braille_lines_share_a_cell() -> None:
    up = Series([10, 20], POINTS, "braille", None)
    down = Series([20, 10], POINTS, "braille", None)
    drawn = row_texts(plotting.draw_tile([up, down], Section(0, 1, 4, Scale(0, 100), UTF8)))
    assert sum(bin(ord(char) - 0x2800).count("1") for char in "".join(drawn) if char != " ") == 4


def test_styles_are_kept_in_runs() -> None:
    rows = plotting.draw_tile(
        [Series([10.0] * 40, LINE, "braille", None)], Section(0, 20, 4, FLAT, UTF8)
    )
    assert all(len(row) == 1 for row in rows)


@settings(max_examples=200)
@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1e12, allow_subnormal=False)), max_size=60),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from([LINE, POINTS, AREA]),
    st.booleans(),
)
def test_any_values_give_a_picture_of_the_right_size(
    values: list[float | None], columns: int, rows: int, kind: str, log: bool
) -> None:
    numbers = [value for value in values if value is not None]
    scale = (plotting.log_scale if log else plotting.linear_scale)(numbers, None, True)
    for charset in (UTF8, ASCII):
        series = [Series(values, kind, charset.line, None)]
        drawn = row_texts(plotting.draw_tile(series, Section(0, columns, rows, scale, charset)))
        assert [len(row) for row in drawn] == [columns] * rows


def by_plotext(heights: list[float], joined: bool, rows: int) -> list[str]:
    """The same drawn by plotext: the dots of one column of characters."""
    plotext = plotting.load_plotext()
    figure = plotext.figure
    figure.clear.data()
    figure.plot_size(1, rows)
    signal = figure.signal([0, 1], heights, marker="braille")
    if joined:
        signal.lines()
    figure.draw(signal)
    figure.ruler("x").lim(-0.5, 1.5)
    figure.ruler("y").lim(0, 1)
    drawn = figure.build().string(colorless=True).split("\n")
    return [line.ljust(1)[:1] for line in drawn[:rows]]


def dot_rows(picture: list[str]) -> set[int]:
    """Rows of dots with at least one dot, from the top."""
    pairs = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
    return {
        4 * row + number
        for row, char in enumerate(picture)
        for number, (left, right) in enumerate(pairs)
        if char != " " and ord(char) - 0x2800 & (left | right)
    }


def test_dots_match_plotext_and_lines_pass_the_same_rows() -> None:
    rng = random.Random(7)
    for _ in range(300):
        rows = rng.randint(1, 24)
        # not on the border of two rows, where both rows are right
        heights = [(rng.randrange(4 * rows) + 0.5) / (4 * rows) for _ in range(2)]
        drawn = [
            plotting.draw(dict(enumerate(heights)), 0, 1, rows, "braille", joined)
            for joined in (False, True)
        ]
        assert drawn[0] == by_plotext(heights, False, rows)
        assert dot_rows(drawn[1]) == dot_rows(by_plotext(heights, True, rows))


def test_a_line_of_half_a_step_is_drawn_at_both_ends() -> None:
    assert plotting.draw({0: 0.0, 1: 0.99}, 0, 2, 6, "*", True) == [
        " *", " *", " *", "* ", "* ", "* ",
    ]  # fmt: skip
    assert plotting.draw({0: 0.0, 1: 0.99}, 0, 1, 2, "braille", True) == ["\u28b8", "\u2847"]


def test_a_line_that_leaves_the_picture_is_drawn_to_the_edge() -> None:
    heights = {0: 0.99, 1: 0.0, 2: 0.99}
    assert plotting.draw(heights, 1, 1, 5, "*", True) == [" ", " ", "*", "*", "*"]
    assert plotting.draw(heights, 1, 1, 5, "*", False) == [" ", " ", " ", " ", "*"]


def test_plotext_does_not_abort_the_process() -> None:
    """Its compiled kernel aborts on failed assertions, which input from here must never cause."""
    code = (
        "import random\n"
        "from iopstui.ui.draw.charts import plotting\n"
        "rng = random.Random(7)\n"
        "for _ in range(300):\n"
        "    some = [0, 1, 2, 1e308, float('inf'), float('nan'), rng.random(), rng.random()]\n"
        "    lines = [[(rng.choice(some), rng.choice(some)) for _ in range(rng.randint(0, 30))]\n"
        "             for _ in range(rng.randint(1, 3))]\n"
        "    plotting.draw_polylines(lines, rng.randint(1, 24), rng.randint(1, 30),\n"
        "                          rng.choice(['braille', '*']))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}
    )
    assert result.returncode == 0, result.stderr


@given(st.floats(1e-3, 1e15))
def test_nice_numbers_are_1_2_5(value: float) -> None:
    above, below = plotting.nice_above(value), plotting.nice_below(value)
    assert below <= value * (1 + 1e-9) and above >= value * (1 - 1e-9)
    for nice in (above, below):
        mantissa = nice / 10 ** math.floor(math.log10(nice) + 1e-9)
        assert any(math.isclose(mantissa, step, rel_tol=1e-6) for step in (1, 2, 5, 10))


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=30))
def test_the_linear_scale_holds_all_values_and_little_more(values: list[float]) -> None:
    scale = plotting.linear_scale(values, None, True)
    assert scale.low == 0 and scale.high >= max(values)
    assert scale.high <= max(1.0, max(values) * 1.05) * 2
    labels = plotting.ticks(scale, 30).values()
    assert 3 <= len(labels) <= 6 and scale.high in labels and 0 in labels


def test_the_scale_grows_at_once_but_shrinks_only_when_allowed() -> None:
    scale = plotting.linear_scale([90.0], None, True)
    larger = plotting.linear_scale([300.0], scale, False)
    assert larger.high >= 300
    assert plotting.linear_scale([10.0], larger, False) == larger
    assert plotting.linear_scale([10.0], larger, True).high < 20


@given(st.lists(st.floats(1, 1e11), min_size=1, max_size=30))
def test_the_log_scale_holds_all_values(values: list[float]) -> None:
    scale = plotting.log_scale(values, None, True)
    assert scale.low <= min(values) * (1 + 1e-9) and scale.high >= max(values)
    assert scale.high / scale.low >= 9.9


@pytest.mark.parametrize("top", [1.0, 20.0, 60.0, 100.0, 150.0])
def test_the_steps_of_a_linear_axis_are_equal(top: float) -> None:
    scale = plotting.linear_scale([top * 0.9], None, True)
    for rows in range(3, 40):
        labels = sorted(plotting.ticks(scale, rows).values())
        steps = {round(b - a, 6) for a, b in itertools.pairwise(labels)}
        assert labels[0] == 0 and labels[-1] == scale.high and len(steps) == 1, (rows, labels)
    assert len(labels) > 3


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 9, 30])
@pytest.mark.parametrize("scale", [Scale(0, 60_000), Scale(1e4, 5e7, True), Scale(0, 1)])
def test_labels_do_not_share_a_row(rows: int, scale: Scale) -> None:
    labelled = plotting.ticks(scale, rows)
    assert labelled and all(0 <= row < rows for row in labelled)
    ordered = sorted(labelled)
    assert all(b - a >= 2 for a, b in itertools.pairwise(ordered))


@pytest.mark.parametrize(
    ("positions", "rows"),
    [
        ([5, 5, 9], [4, 5, 9]),
        # the highest curve's name stays the highest
        ([2, 2, 2], [0, 1, 2]),
        ([0, 0, 3], [0, 1, 3]),
        ([1, 1, 1, 1], [0, 1, 2, 3]),
        ([], []),
    ],
)
def test_names_of_curves_with_equal_values_keep_their_order(
    positions: list[int], rows: list[int]
) -> None:
    assert chart.rows_apart(positions) == rows


def test_the_time_axis_has_no_times_to_come() -> None:
    window = chart.TimeWindow(0.0, 12.0)
    wide = "".join(text for text, _ in chart.time_labels(window, 40, 80, UTF8))
    assert wide.split() == ["0:00", "0:05", "0:10"], "nothing below the names of curves"
