"""Labels of marks over a chart."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.ui.core.options import mark_text
from iopstui.ui.draw.charts.axis_rows import ARROW, mark_label_rows
from iopstui.ui.draw.charts.chart import FLAGS_FROM, Chart, ChartSpec
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.style import UTF8

AXIS = 8
WORDS = ("QD 32", "jobs 4", "rq_affinity 1 → 2", "mixed-4k", "mark 1", "QD 64, jobs 2", "direct=0")


def render_labels(marks: Sequence[tuple[int, str]], columns: int = 60, rows: int = 2) -> list[str]:
    label_rows = mark_label_rows(marks, AXIS, columns, AXIS + columns, rows, UTF8, {})
    return ["".join(text for text, _ in row) for row in label_rows]


def test_marks_close_together_use_two_rows() -> None:
    lines = render_labels([(0, "mixed-4k"), (6, "QD 32"), (11, "QD 64")])
    assert lines[0].split() == ["▾mixed-4k", "▾QD", "64"] and lines[1].split() == ["▾QD", "32"]
    assert lines[0].index("▾QD") == AXIS + 11 and lines[1].index("▾") == AXIS + 6


def test_labels_shrink_to_the_value_and_then_to_the_arrow() -> None:
    marks = [(2 * n, f"QD {1 << n}") for n in range(3)]
    assert render_labels(marks, rows=1)[0].split() == ["▾1▾2▾QD", "4"]
    assert render_labels(marks) == ["        ▾1  ▾QD 4".ljust(68), "          ▾QD 2".ljust(68)]
    assert "▾50" in render_labels([(0, "rwmixread=50"), (4, "x")], rows=1)[0]
    assert "▾64 2 ▾x" in render_labels([(0, "QD 64, jobs 2"), (6, "x")], rows=1)[0]


def test_labels_at_the_right_edge_are_left_of_their_arrow() -> None:
    assert render_labels([(58, "mixed-4k")])[0].endswith("mixed-4k▾ ")
    assert render_labels([(59, "mixed-4k"), (59, "QD 32")])[1].endswith("QD 32▾")


def test_a_sentence_is_shortened_to_its_first_words() -> None:
    label = "the cache of the controller is off, for now"
    assert (
        render_labels([(0, label), (30, "x")], rows=1)[0].split(" ▾x")[0].strip()
        == "▾the cache of the controller…"
    )
    assert "▾the cache of the…  ▾x" in render_labels([(0, label), (20, "x")], rows=1)[0]
    assert render_labels([(0, label), (3, "x")], rows=1)[0].split() == ["▾", "▾x"]


@given(
    st.lists(st.tuples(st.integers(0, 59), st.sampled_from(WORDS)), max_size=12).map(sorted),
    st.integers(1, 2),
)
def test_no_word_is_cut(marks: list[tuple[int, str]], rows: int) -> None:
    lines = render_labels(marks, rows=rows)
    assert [len(line) for line in lines] == [AXIS + 60] * rows
    values = {"32", "4", "2", "mixed-4k", "1", "64 2", "0", "1 → 2", "rq_affinity 2"}
    allowed = {*WORDS, *values, ""}
    for line in lines:
        assert line[:AXIS].strip() == ""
        assert {part.strip() for part in re.split(f"{ARROW}|  +", line)} <= allowed
    assert sum(line.count(ARROW) for line in lines) <= len(marks)
    assert not marks or ARROW in "".join(lines)


@pytest.mark.parametrize("height", [5, FLAGS_FROM - 1, FLAGS_FROM, 30])
def test_a_low_chart_has_one_row_for_them(height: int) -> None:
    chart = Chart(ChartSpec("rates", "IOPS", (), False, str, 0), UTF8)
    chart.place(Box(0, 0, 60, height))
    rows = len(chart._flag_lines([(0, "QD 32")]))
    assert rows == (2 if height >= FLAGS_FROM else 1)
    assert chart.title.box.height + chart.axis.box.height + chart.time.box.height == height
    assert chart.axis.box.y == chart.title.box.height == 1 + rows


def test_a_mark_of_a_key_has_a_short_label() -> None:
    assert mark_text("iodepth", "iodepth 64") == "QD 64"
    assert mark_text("bs", "block size 4k") == "bs 4k"
    assert mark_text("numjobs", "numjobs 4") == "jobs 4"
    assert mark_text("rwmixread", "rwmixread=50") == "rwmixread=50"
    # typed, and taken back
    assert mark_text("bs", "bs=8k") == "bs 8k" and mark_text("iodepth", "iodepth=8") == "QD 8"
    assert mark_text("iodepth", "iodepth as the job has it") == "iodepth as the job has it"
