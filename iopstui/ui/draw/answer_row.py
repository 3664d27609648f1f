"""The answer as one row."""

from __future__ import annotations

from rich.cells import cell_len

from iopstui.model.answer.answer import CRITICAL, GOOD, SIGNS, WARNING, Answer, shortened
from iopstui.text import printable
from iopstui.ui.draw.rows import Line, Row, message
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FINDING, Charset
from iopstui.ui.draw.style import WARNING as WARNING_STYLE

STYLES = {GOOD: FINDING, WARNING: WARNING_STYLE, CRITICAL: ERROR}
LEFT = 3
"""Columns of the sign."""


def answer_row(answer: Answer | None, width: int, charset: Charset) -> Row:
    """State, answer and user of the disk; in fewer words if they do not fit."""
    if answer is None:
        return message(width, charset, "")
    text, who = (charset.sentence(printable(part)) for part in (answer.text, answer.who))
    text, who = shortened(text, who, width - LEFT, cell_len)
    line = Line(width, charset).add(f" {SIGNS[answer.state]} ", STYLES[answer.state])
    line.add(text, None if answer.state == GOOD else BOLD)
    if who:
        line.add(f" · {who}", DIM if answer.state == GOOD else None)
    return line.build()
