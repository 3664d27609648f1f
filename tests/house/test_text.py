from __future__ import annotations

import pytest

from iopstui.features.lessons.output import flowed
from iopstui.features.lessons.screen.rows import wrap_words
from iopstui.text import printable, with_breaks, without_breaks, wrapped
from iopstui.ui.draw.rows import wrap
from iopstui.ui.draw.style import UTF8


@pytest.mark.parametrize(
    ("text", "ties"),
    [
        ("0.0 % with 1, 100 % with 2", 2),
        ("89.5 µs, 2 ms; 64 KiB", 3),
        ("CPU 3, 4 CPUs, 5 steps, 2 sections", 0),
        ("14.9k IOPS", 0),
        ("measure longer (--measure 120); --destroy-data /dev/vdb", 2),
        ("--record writes a file", 0),
    ],
)
def test_figures_and_options_are_not_separated_from_units_and_values(text: str, ties: int) -> None:
    assert without_breaks(text).count("\N{NO-BREAK SPACE}") == ties
    assert with_breaks(without_breaks(text)) == text


def test_no_line_ends_between_a_figure_and_its_unit() -> None:
    text = "of all the completions 100 % ran there"
    for width in range(14, 40):
        rows = ["".join(str(span[0]) for span in row).strip() for row in wrap(width, UTF8, text)]
        for lines in (wrap_words(text, width), wrapped(text, 0, 0, width).splitlines(), rows):
            assert " ".join(lines) == text
            assert not any(line.endswith("100") for line in lines), lines
    for before in range(60, 80):
        first = flowed("x" * before + " 100 % of all of them there are", "")[0]
        assert not first.endswith("100")


def test_printable_text_is_one_line_without_control_characters() -> None:
    assert printable(" a\tb\n\x1b[31mc\u202e ") == "a b ?[31mc?"
