from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iopstui.ui.draw import charts
from iopstui.ui.draw.charts import AREA, LINE, POINTS, Scale, Series
from iopstui.ui.draw.style import ASCII, UTF8, Charset

charts.load()

FLAT = Scale(0.0, 100.0)


def words(rows: list[charts.Row]) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


def draw(
    values: list[float | None], kind: str = LINE, columns: int = 6, rows: int = 4
) -> list[str]:
    series = [Series(values, kind, "*", None)]
    return words(charts.draw_tile(series, 0, columns, rows, FLAT, ASCII))


def test_a_line_stands_in_the_row_of_its_value() -> None:
    assert draw([10, 10, 40, 60, 90, 90]) == ["    **", "   *  ", "  *   ", "**    "]


def test_a_gap_stays_a_gap() -> None:
    assert draw([10, 10, None, None, 10, 10])[3] == "**  **"


def test_a_value_between_gaps_is_still_seen() -> None:
    assert draw([None, 60, None, None, None, None])[1] == " *    "


def test_an_area_reaches_from_the_axis_to_its_value_and_shows_zero() -> None:
    assert draw([100, 50, 0, None], AREA, 4) == [":   ", ":   ", "::  ", "::: "]


def test_a_line_is_seen_over_an_area_of_the_same_value() -> None:
    both = [Series([50.0] * 4, AREA, "*", None), Series([50.0] * 4, LINE, "*", None)]
    drawn = words(charts.draw_tile(both, 0, 4, 4, FLAT, ASCII))
    assert "****" in drawn and "::::" in drawn


def test_marks_are_vertical_lines_under_the_curves() -> None:
    series = [Series([10.0] * 4, LINE, "*", None)]
    drawn = words(charts.draw_tile(series, 0, 4, 4, FLAT, ASCII, marks=[2, 9]))
    assert drawn == ["  | ", "  | ", "  | ", "****"]


@pytest.mark.parametrize(("charset", "dots"), [(UTF8, 2), (ASCII, 1)])
def test_tiles_join_to_the_picture_that_one_large_tile_gives(charset: Charset, dots: int) -> None:
    values = [50 + 45 * math.sin(index / 4) for index in range(24 * dots)]
    values[7] = None
    series = [Series(values, LINE, charset.line, None)]
    whole = words(charts.draw_tile(series, 0, 24, 8, FLAT, charset))
    parts = [words(charts.draw_tile(series, first, 8, 8, FLAT, charset)) for first in (0, 8, 16)]
    joined = ["".join(row) for row in zip(*parts, strict=True)]
    # plotext rounds the dots between two samples by where the tile begins: one dot, no more
    differing = [
        (row, column)
        for row, (one, other) in enumerate(zip(joined, whole, strict=True))
        for column, (a, b) in enumerate(zip(one, other, strict=True))
        if a != b
    ]
    assert len(differing) <= 12
    assert {column for row in joined for column, c in enumerate(row) if c != " "} == {
        column for row in whole for column, c in enumerate(row) if c != " "
    }


def test_a_picture_wider_than_the_terminal_is_not_cut() -> None:
    values: list[float | None] = [50.0] * 600
    drawn = words(charts.draw_tile([Series(values, LINE, "braille", None)], 0, 300, 3, FLAT, UTF8))
    assert {len(row) for row in drawn} == {300}
    assert drawn[1].count(" ") == 0


def test_crossing_braille_lines_share_a_cell() -> None:
    up = Series([10, 20], POINTS, "braille", None)
    down = Series([20, 10], POINTS, "braille", None)
    drawn = words(charts.draw_tile([up, down], 0, 1, 4, Scale(0, 100), UTF8))
    assert sum(bin(ord(char) - 0x2800).count("1") for char in "".join(drawn) if char != " ") == 4


def test_styles_are_kept_in_runs() -> None:
    rows = charts.draw_tile([Series([10.0] * 40, LINE, "braille", None)], 0, 20, 4, FLAT, UTF8)
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
    known = [value for value in values if value is not None]
    scale = (charts.log_scale if log else charts.linear_scale)(known, None, True)
    for charset in (UTF8, ASCII):
        series = [Series(values, kind, charset.line, None)]
        drawn = words(charts.draw_tile(series, 0, columns, rows, scale, charset))
        assert [len(row) for row in drawn] == [columns] * rows


def test_plotext_does_not_abort_the_process() -> None:
    """Its compiled kernel asserts; what it is given here must never make it do so."""
    code = (
        "import random\n"
        "from iopstui.ui.draw import charts\n"
        "charts.load()\n"
        "rng = random.Random(7)\n"
        "for _ in range(1500):\n"
        "    log = rng.random() < .5\n"
        "    scale = charts.Scale(1e4, 1e8, True) if log else charts.Scale(0, 1e6)\n"
        "    values = [rng.choice([None, 0, 1e4, 1e6, 1e12, 10 ** rng.uniform(3, 9)])\n"
        "              for _ in range(rng.randint(0, 60))]\n"
        "    marker = rng.choice(['braille', '*'])\n"
        "    kinds = rng.choices([charts.LINE, charts.POINTS], k=rng.randint(1, 3))\n"
        "    series = [charts.Series(values[i:], k, marker, None) for i, k in enumerate(kinds)]\n"
        "    charts.draw_lines(series, rng.choice([0, 12, 24]), rng.randint(1, 24),\n"
        "                      rng.randint(1, 30), scale, 2 if marker == 'braille' else 1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr


@given(st.floats(1e-3, 1e15))
def test_nice_numbers_are_1_2_5(value: float) -> None:
    above, below = charts.nice_above(value), charts.nice_below(value)
    assert below <= value * (1 + 1e-9) and above >= value * (1 - 1e-9)
    for nice in (above, below):
        mantissa = nice / 10 ** math.floor(math.log10(nice) + 1e-9)
        assert any(math.isclose(mantissa, step, rel_tol=1e-6) for step in (1, 2, 5, 10))


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=30))
def test_the_linear_scale_holds_all_values_and_little_more(values: list[float]) -> None:
    scale = charts.linear_scale(values, None, True)
    assert scale.low == 0 and scale.high >= max(values)
    assert scale.high <= max(1.0, max(values) * 1.05) * 2
    labels = charts.ticks(scale, 30).values()
    assert 3 <= len(labels) <= 6 and scale.high in labels and 0 in labels


def test_the_scale_grows_at_once_and_shrinks_only_when_it_may() -> None:
    scale = charts.linear_scale([90.0], None, True)
    grown = charts.linear_scale([300.0], scale, False)
    assert grown.high >= 300
    assert charts.linear_scale([10.0], grown, False) == grown
    assert charts.linear_scale([10.0], grown, True).high < 20


@given(st.lists(st.floats(1, 1e11), min_size=1, max_size=30))
def test_the_log_scale_holds_all_values(values: list[float]) -> None:
    scale = charts.log_scale(values, None, True)
    assert scale.low <= min(values) * (1 + 1e-9) and scale.high >= max(values)
    assert scale.high / scale.low >= 9.9


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 9, 30])
@pytest.mark.parametrize("scale", [Scale(0, 60_000), Scale(1e4, 5e7, True), Scale(0, 1)])
def test_labels_do_not_stand_in_each_others_rows(rows: int, scale: Scale) -> None:
    labelled = charts.ticks(scale, rows)
    assert labelled and all(0 <= row < rows for row in labelled)
    ordered = sorted(labelled)
    assert all(b - a >= 2 for a, b in itertools.pairwise(ordered))
