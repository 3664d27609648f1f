"""The animation says on each screen what that screen said."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from moving import CELL_H, CELL_W, MARGIN, parts, shown, svg
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME as THEME

WIDTH = 40
SAID = (
    ("IOPS 10 & <more>  ", "second row"),
    ("IOPS 20 & <more>  ", "second row"),
    ("IOPS 20 & <more>  ", "   ⠒⠒░ 3µs          at the far end"),
    ("IOPS 10 & <more>  ", ""),
)
NS = "{http://www.w3.org/2000/svg}"


def made() -> str:
    style = Style(color="cyan", bold=True)
    screens = [
        [parts([Segment(row[:5], style), Segment(row[5:])], WIDTH, THEME) for row in rows]
        for rows in SAID
    ]
    return svg(screens, WIDTH, 1.5, THEME, "a & b")


def seen(text: str, at: float) -> list[str]:
    """What a browser shows at this share of the animation, by the keyframes."""
    hidden = set()
    for name, frames in re.findall(r"@keyframes (k\d+)\{((?:[^{}]*\{[^{}]*\})*)\}", text):
        state = "hidden"
        for steps, value in re.findall(r"([\d.%,]+)\{visibility:(\w+)\}", frames):
            if float(steps.split("%")[0]) <= 100 * at:
                state = value
        hidden |= {name} if state == "hidden" else set()
    rows = [[" "] * WIDTH for _ in SAID[0]]
    for above in ET.fromstring(text).iter():
        if above.tag == NS + "g" and above.get("class") in hidden:
            continue
        for one in above.findall(NS + "text"):
            row = int((float(one.get("y", "")) - MARGIN) / CELL_H)
            column = round((float(one.get("x", "")) - MARGIN) / CELL_W)
            rows[row][column : column + len(one.text or "")] = one.text or ""
    return ["".join(row).rstrip() for row in rows]


def test_each_screen_says_what_it_said() -> None:
    text = made()
    for number, rows in enumerate(SAID):
        found = seen(text, (number + 0.5) / len(SAID))
        assert found == [row.rstrip() for row in rows]
        # blanks are left out, so a run begins where its text does
        assert [one.replace(" ", "") for one in found] == [one.replace(" ", "") for one in rows]


def test_what_stays_is_written_once_and_nothing_is_loaded() -> None:
    text = made()
    assert text.count("d row</text>") == 1 and text.count("&lt;more&gt;") == 1
    assert "<script" not in text and "url(" not in text and "href" not in text


def test_a_part_that_comes_back_is_another_one() -> None:
    row = [parts([Segment(said)], WIDTH, THEME) for said in ("a", "b", "a")]
    assert [(one.first, one.after) for one in shown([[one] for one in row])] == [
        (0, 1), (1, 2), (2, 3),
    ]  # fmt: skip


def test_reversed_text_has_its_colours_exchanged() -> None:
    (run,), *_ = parts([Segment(" x ", Style(reverse=True))], 8, THEME)
    assert run[1] == " x" and run[2].startswith("background:#")
