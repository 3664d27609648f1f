"""The animation shows the text of each screen."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from moving import CELL_H, CELL_W, MARGIN, find_spans, parts, svg
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME as THEME

WIDTH = 40
SCREEN_ROWS = (
    ("IOPS 10 & <more>  ", "second row"),
    ("IOPS 20 & <more>  ", "second row"),
    ("IOPS 20 & <more>  ", "   ⠒⠒░ 3µs          at the far end"),
    ("IOPS 10 & <more>  ", ""),
)
NS = "{http://www.w3.org/2000/svg}"


def make_svg() -> str:
    style = Style(color="cyan", bold=True)
    screens = [
        [parts([Segment(row[:5], style), Segment(row[5:])], WIDTH, THEME) for row in rows]
        for rows in SCREEN_ROWS
    ]
    return svg(screens, WIDTH, 1.5, THEME, "a & b")


def visible_rows(text: str, at: float) -> list[str]:
    """Rows that a browser shows at this fraction of the animation, according to the keyframes."""
    hidden = set()
    for name, frames in re.findall(r"@keyframes (k\d+)\{((?:[^{}]*\{[^{}]*\})*)\}", text):
        state = "hidden"
        for steps, value in re.findall(r"([\d.%,]+)\{visibility:(\w+)\}", frames):
            if float(steps.split("%")[0]) <= 100 * at:
                state = value
        hidden |= {name} if state == "hidden" else set()
    rows = [[" "] * WIDTH for _ in SCREEN_ROWS[0]]
    for above in ET.fromstring(text).iter():
        if above.tag == NS + "g" and above.get("class") in hidden:
            continue
        for element in above.findall(NS + "text"):
            row = int((float(element.get("y", "")) - MARGIN) / CELL_H)
            column = round((float(element.get("x", "")) - MARGIN) / CELL_W)
            rows[row][column : column + len(element.text or "")] = element.text or ""
    return ["".join(row).rstrip() for row in rows]


def test_each_screen_of_the_animation_shows_its_text() -> None:
    text = make_svg()
    for number, rows in enumerate(SCREEN_ROWS):
        lines = visible_rows(text, (number + 0.5) / len(SCREEN_ROWS))
        assert lines == [row.rstrip() for row in rows]
        # blanks are left out, so a text element begins at its first character
        assert [line.replace(" ", "") for line in lines] == [row.replace(" ", "") for row in rows]


def test_unchanged_parts_are_written_once_and_nothing_is_loaded() -> None:
    text = make_svg()
    assert text.count("d row</text>") == 1 and text.count("&lt;more&gt;") == 1
    assert "<script" not in text and "url(" not in text and "href" not in text


def test_a_part_that_returns_is_written_again() -> None:
    row = [parts([Segment(text)], WIDTH, THEME) for text in ("a", "b", "a")]
    assert [(span.first, span.after) for span in find_spans([[part] for part in row])] == [
        (0, 1), (1, 2), (2, 3),
    ]  # fmt: skip


def test_reversed_text_has_its_colours_exchanged() -> None:
    (run,), *_ = parts([Segment(" x ", Style(reverse=True))], 8, THEME)
    assert run[1] == " x" and run[2].startswith("background:#")
