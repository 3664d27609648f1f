"""The words of marks over a chart."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.ui.core.options import mark_text
from iopstui.ui.draw.charts.chart import FLAGS_FROM, Chart, ChartSpec
from iopstui.ui.draw.charts.mark_labels import ARROW, mark_label_rows
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.style import UTF8

AXIS = 8
WORDS = ("QD 32", "jobs 4", "rq_affinity 1 → 2", "mixed-4k", "mark 1", "QD 64, jobs 2", "direct=0")


def shown(marks: Sequence[tuple[int, str]], columns: int = 60, rows: int = 2) -> list[str]:
    found = mark_label_rows(marks, AXIS, columns, AXIS + columns, rows, UTF8, {})
    return ["".join(text for text, _ in row) for row in found]


def test_marks_close_together_stand_on_two_rows() -> None:
    lines = shown([(0, "mixed-4k"), (6, "QD 32"), (11, "QD 64")])
    assert lines[0].split() == ["▾mixed-4k", "▾QD", "64"] and lines[1].split() == ["▾QD", "32"]
    assert lines[0].index("▾QD") == AXIS + 11 and lines[1].index("▾") == AXIS + 6


def test_without_room_the_value_stands_alone_and_then_the_arrow() -> None:
    marks = [(2 * n, f"QD {1 << n}") for n in range(3)]
    assert shown(marks, rows=1)[0].split() == ["▾1▾2▾QD", "4"]
    assert shown(marks) == ["        ▾1  ▾QD 4".ljust(68), "          ▾QD 2".ljust(68)]
    assert "▾50" in shown([(0, "rwmixread=50"), (4, "x")], rows=1)[0]
    assert "▾64 2 ▾x" in shown([(0, "QD 64, jobs 2"), (6, "x")], rows=1)[0]


def test_at_the_right_end_words_stand_before_their_arrow() -> None:
    assert shown([(58, "mixed-4k")])[0].endswith("mixed-4k▾ ")
    assert shown([(59, "mixed-4k"), (59, "QD 32")])[1].endswith("QD 32▾")


def test_a_sentence_is_told_by_its_first_words() -> None:
    words = "the cache of the controller is off, for now"
    assert (
        shown([(0, words), (30, "x")], rows=1)[0].split(" ▾x")[0].strip()
        == "▾the cache of the controller…"
    )
    assert "▾the cache of… " in shown([(0, words), (20, "x")], rows=1)[0]
    assert shown([(0, words), (3, "x")], rows=1)[0].split() == ["▾", "▾x"]


@given(
    st.lists(st.tuples(st.integers(0, 59), st.sampled_from(WORDS)), max_size=12).map(sorted),
    st.integers(1, 2),
)
def test_no_word_is_ever_cut(marks: list[tuple[int, str]], rows: int) -> None:
    lines = shown(marks, rows=rows)
    assert [len(line) for line in lines] == [AXIS + 60] * rows
    values = {"32", "4", "2", "mixed-4k", "1", "64 2", "0", "1 → 2", "rq_affinity 2"}
    whole = {*WORDS, *values, ""}
    for line in lines:
        assert line[:AXIS].strip() == ""
        assert {part.strip() for part in re.split(f"{ARROW}|  +", line)} <= whole
    assert sum(line.count(ARROW) for line in lines) <= len(marks)
    assert not marks or ARROW in "".join(lines)


@pytest.mark.parametrize("height", [5, FLAGS_FROM - 1, FLAGS_FROM, 30])
def test_a_low_chart_has_one_row_for_them(height: int) -> None:
    one = Chart(ChartSpec("rates", "IOPS", (), False, str, 0), UTF8)
    one.place(Box(0, 0, 60, height))
    rows = len(one._flag_lines([(0, "QD 32")]))
    assert rows == (2 if height >= FLAGS_FROM else 1)
    assert one.title.box.height + one.axis.box.height + one.time.box.height == height
    assert one.axis.box.y == one.title.box.height == 1 + rows


def test_a_mark_of_a_key_begins_with_what_is_short() -> None:
    assert mark_text("iodepth", "iodepth 64") == "QD 64"
    assert mark_text("bs", "block size 4k") == "bs 4k"
    assert mark_text("numjobs", "numjobs 4") == "jobs 4"
    assert mark_text("rwmixread", "rwmixread=50") == "rwmixread=50"
    # typed, and taken back
    assert mark_text("bs", "bs=8k") == "bs 8k" and mark_text("iodepth", "iodepth=8") == "QD 8"
    assert mark_text("iodepth", "iodepth as the job has it") == "iodepth as the job has it"
