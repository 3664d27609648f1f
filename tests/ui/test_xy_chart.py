"""Charts over any x: positions, axes, labels at points; never too wide."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from iopstui import format as f
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.xy_chart import (
    Flag,
    XAxis,
    XYChart,
    XYLine,
    XYSpec,
    chart_rows,
    linear_axis,
    values_axis,
)
from iopstui.ui.draw.style import ASCII, UTF8, Charset

TENTHS = XAxis(0.0, 10.0, ((0.0, "0"), (5.0, "5"), (10.0, "10")))


def spec(*lines: XYLine, flags: tuple[Flag, ...] = (), verticals: tuple[float, ...] = ()) -> XYSpec:
    names = (("a one   ", None), ("b two", None))
    return XYSpec("title", TENTHS, plotting.Scale(0.0, 100.0), f.axis_number, lines, names,
                  flags, verticals)  # fmt: skip


def texts(rows: list[object]) -> list[str]:
    lines = ["".join(text for text, _ in row) for row in rows]  # type: ignore[attr-defined]
    return [line.replace(UTF8.grid, " ") for line in lines]


def test_points_are_drawn_at_their_positions() -> None:
    line = XYLine("a", ((0.0, 0.0), (10.0, 100.0), (5.0, 50.0)), None, joined=False)
    rows = texts(chart_rows(spec(line), 49, 23, ASCII))
    plot = [row[8:48] for row in rows[2:22]]
    assert plot[19][0] == "a" and plot[0][39] == "a" and plot[9][20] == "a"
    assert rows[0].startswith("-- Title") and "a one   b two" in rows[1]
    assert rows[22].split() == ["0", "5", "10"]


def test_lines_join_points_in_their_order_even_backwards() -> None:
    line = XYLine("o", ((1.0, 10.0), (8.0, 50.0), (6.0, 90.0)), None)
    rows = texts(chart_rows(spec(line), 49, 23, ASCII))
    assert sum(row.count("*") for row in rows) > 20
    assert sum(row.count("o") for row in rows[2:22]) == 3


def test_labels_at_a_point_stay_inside() -> None:
    line = XYLine("o", ((10.0, 100.0), (0.0, 0.0)), None, joined=False)
    flags = (Flag((10.0, 100.0), "knee 64"), Flag((0.0, 0.0), "first"))
    rows = texts(chart_rows(spec(line, flags=flags), 49, 12, UTF8))
    assert "knee 64 o" in rows[2] and "o first" in rows[10]


def test_only_the_point_of_a_label_is_reversed_and_no_blank_beside_it() -> None:
    line = XYLine("o", ((2.0, 20.0), (8.0, 80.0)), None, joined=False)
    drawn = chart_rows(spec(line, flags=(Flag((8.0, 80.0), "knee"),)), 49, 12, UTF8)
    reversed_texts = [text for row in drawn for text, style in row if style and style.reverse]
    assert reversed_texts == ["o"]


def test_a_vertical_line_is_drawn_under_the_points() -> None:
    line = XYLine("o", ((5.0, 50.0),), None)
    rows = texts(chart_rows(spec(line, verticals=(5.0,)), 49, 13, ASCII))
    assert [row[28] for row in rows[2:12]].count("|") == 9 and rows[6][28] == "o"


def test_numbers_far_apart_use_a_logarithmic_axis() -> None:
    axis, places = values_axis(("1", "2", "4", "256"))
    assert axis.log and axis.fraction(places["1"]) < 0.1 and axis.fraction(places["256"]) > 0.9
    assert axis.fraction(16.0) == pytest.approx(0.5)
    linear_axis, _ = values_axis(("1", "2", "3", "4"))
    assert not linear_axis.log


def test_values_without_numbers_are_placed_side_by_side() -> None:
    axis, places = values_axis(("64k", "4k", "none"))
    assert list(places) == ["64k", "4k", "none"]
    assert [label for _, label in axis.ticks] == ["64k", "4k", "none"]
    alone, place = values_axis(("7",))
    assert alone.fraction(place["7"]) == 0.5


def test_the_axis_ends_at_a_round_number() -> None:
    axis = linear_axis(66_500, f.axis_number)
    assert axis.high == 80_000 and axis.ticks[-1][1] == "80k"
    assert linear_axis(0.0, f.axis_number).high > 0


def test_labels_do_not_touch() -> None:
    values = tuple(str(2**n) for n in range(17))
    axis, places = values_axis(values)
    line = XYLine("o", tuple((places[v], 50.0) for v in values), None, joined=False)
    chart_spec = XYSpec("t", axis, plotting.Scale(0.0, 100.0), f.axis_number, (line,))
    labels = texts(chart_rows(chart_spec, 50, 10, UTF8))[-1].split()
    assert labels[0] == "1" and labels[-1] == "65536" and set(labels) <= set(values)


def test_the_same_chart_is_drawn_once() -> None:
    chart = XYChart(UTF8)
    line = XYLine("o", ((1.0, 1.0),), None)
    first = chart.rows(spec(line), 60, 12)
    assert chart.rows(spec(line), 60, 12) is first
    assert chart.rows(spec(line), 61, 12) is not first


coordinates = st.tuples(st.floats(-5, 15), st.floats(-50, 500))


@settings(deadline=None)
@given(
    st.lists(st.lists(coordinates, max_size=5), max_size=3), st.integers(1, 90),
    st.integers(1, 25), st.sampled_from([UTF8, ASCII]),
)  # fmt: skip
def test_every_row_has_its_width(
    lines: list[list[tuple[float, float]]], width: int, height: int, charset: Charset
) -> None:
    curves = [XYLine("abc"[n], tuple(points), None) for n, points in enumerate(lines)]
    flags = tuple(Flag(points[0], "a long name of a point") for points in lines if points)
    rows = texts(chart_rows(spec(*curves, flags=flags), width, height, charset))
    assert len(rows) == height and {cell_len(row) for row in rows} == {width}
    assert charset is UTF8 or all(row.isascii() for row in rows)
