"""The answer as one row."""

from __future__ import annotations

import re

from rich.cells import cell_len

from iopstui.model.answer.answer import CRITICAL, GOOD, SIGNS, WARNING, Answer
from iopstui.text import printable
from iopstui.ui.draw.rows import Line, Row, message
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FINDING, Charset
from iopstui.ui.draw.style import WARNING as WARNING_STYLE

STYLES = {GOOD: FINDING, WARNING: WARNING_STYLE, CRITICAL: ERROR}
_WHO = re.compile(r"(\S+).*?( \(\d+\)|\(\d+ processes\)).* does (all|\d+ %) of its bytes")


def answer_row(answer: Answer | None, width: int, charset: Charset) -> Row:
    """State, what, and who; where there is no room for all of it, who in fewer words."""
    if answer is None:
        return message(width, charset, "")
    text, who = printable(answer.text), printable(answer.who)
    if who and cell_len(f" x {text} · {who}") > width:
        who = short_who(who)
    line = Line(width, charset).add(f" {SIGNS[answer.state]} ", STYLES[answer.state])
    line.add(text, None if answer.state == GOOD else BOLD)
    if who:
        line.add(f" · {who}", DIM if answer.state == GOOD else None)
    return line.build()


def short_who(who: str) -> str:
    """ "fio --name=hog (965) does 64 % of its bytes" -> "fio (965) 64 %"."""
    match = _WHO.fullmatch(who)
    if match is None:
        return who
    share = "100 %" if match[3] == "all" else match[3]
    return f"{match[1]} {match[2].strip()} {share}"
