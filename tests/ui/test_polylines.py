"""Curves without plotext: our own implementation of the same interface."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.ui.draw.charts import plotting

Points = list[tuple[float, float]]
WAVE: Points = [(n / 48, 0.5 + 0.45 * math.sin(n / 6)) for n in range(49)]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plotting, "_plotext", None)
    monkeypatch.setattr(plotting, "_import_tried", True)


def draw(points: Points, marker: str, columns: int = 24, rows: int = 4) -> list[str]:
    (drawn,) = plotting.draw_polylines([points], columns, rows, marker)
    return drawn


def test_a_wave_in_braille(without: None) -> None:
    drawn = draw(WAVE, "braille")
    assert [len(row) for row in drawn] == [24] * 4
    # the wave begins and ends at middle height, has its top before its bottom, and no gap
    columns = ["".join(column) for column in zip(*drawn, strict=True)]
    assert all(column.strip() for column in columns)
    assert drawn[0].strip() and drawn[3].strip()
    assert len(drawn[0].rstrip()) == 24 or drawn[0].index("⠒") < drawn[3].index("⠤")


def test_a_curve_over_another_has_its_own_band(without: None) -> None:
    up, down = plotting.draw_polylines([[(0, 0), (1, 1)], [(0, 1), (1, 0)]], 4, 4, "*")
    assert up == ["   *", "  * ", " *  ", "*   "]
    assert down == up[::-1]


@given(
    st.lists(st.lists(st.tuples(st.floats(), st.floats()), max_size=30), min_size=1, max_size=3),
    st.integers(-1, 12), st.integers(-1, 12), st.sampled_from(["braille", "*"]),
)  # fmt: skip
def test_any_points_give_a_picture_of_the_right_size(
    lines: list[Points], columns: int, rows: int, marker: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plotting, "_plotext", None)
        patch.setattr(plotting, "_import_tried", True)
        drawn = plotting.draw_polylines(lines, columns, rows, marker)
    assert len(drawn) == len(lines)
    if columns >= 1 and rows >= 1:
        assert all([len(row) for row in line] == [columns] * rows for line in drawn)


def test_it_draws_what_plotext_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not dot by dot, because slopes are rounded differently. But at least 90 % of the cells are
    equal."""
    assert plotting.load_plotext() is not None
    theirs = draw(WAVE, "*")
    monkeypatch.setattr(plotting, "_plotext", None)
    actual = draw(WAVE, "*")
    equal = [a == b for expected_row, actual_row in zip(theirs, actual, strict=True)
             for a, b in zip(expected_row, actual_row, strict=True)]  # fmt: skip
    assert sum(equal) >= 0.9 * len(equal)


def test_drawing_works_without_plotext() -> None:
    code = (
        "import sys\n"
        "sys.modules['plotext'] = None\n"
        "from iopstui.ui.draw.charts import plotting\n"
        "print(plotting.draw_polylines([[(0, 0), (1, 1)]], 2, 2, '*'))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "[[' *', '* ']]\n", result.stderr
