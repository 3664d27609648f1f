"""Boxes around panels: the title and the current value on the border."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style

from iopstui.ui.draw.rows import Line, Piece, Row, cells
from iopstui.ui.draw.style import BOLD, BORDER, FOCUS, KEY, Charset

BORDER_COLUMNS = 4
"""The columns of both borders, with the blanks beside them."""
_CHARS = {"utf8": tuple("╭╮╰╯─│"), "console": tuple("┌┐└┘─│"), "ascii": tuple("++++-|")}


def border_style(focused: bool) -> Style:
    return FOCUS if focused else BORDER


def side_char(charset: Charset) -> str:
    """A piece with the character of the left or right border."""
    return _CHARS[charset.name][5]


def corners(charset: Charset) -> tuple[str, str]:
    """The corners of the lower border."""
    left, right = _CHARS[charset.name][2:4]
    return charset.text(left), charset.text(right)


def top(
    width: int, charset: Charset, number: str, title: Sequence[Piece], value: Sequence[Piece] = (),
    focused: bool = False,
) -> Row:  # fmt: skip
    """The upper border: the panel's number (its key), its title, and the current value at the right
    if it fits."""
    left, right, _, _, line, _ = _CHARS[charset.name]
    style = border_style(focused)
    border = Line(width - 2, charset).add(f"{left}{line} ", style)
    border.add(f"{number} " if number else "", KEY)
    for text, looks in title:
        border.add(text, looks)
    border.add(" ", style)
    space = width - 2 - border.used
    groups = list(value)
    while groups and sum(cells(text) for text, _ in groups) + 3 > space:
        groups = _without_last_group(groups)
    size = sum(cells(text) for text, _ in groups)
    if groups:
        border.fill_to(width - 4 - size, line, style).add(" ", style).extend(groups).add(" ", style)
    border.fill_to(width - 2, line, style)
    return (*border.build(), (charset.text(line + right), style))


def _without_last_group(value: list[Piece]) -> list[Piece]:
    """The pieces without the last group; each group begins with two blanks."""
    at = next((n for n in range(len(value) - 1, 0, -1) if value[n][0].startswith("  ")), 0)
    return value[:at]


def bottom(width: int, charset: Charset, foot: Row = (), focused: bool = False) -> Row:
    """The lower border, with the pieces of ``foot`` on it."""
    _, _, left, right, line, _ = _CHARS[charset.name]
    style = border_style(focused)
    border = Line(width - 1, charset).add(left + line, style)
    foot_pieces = strip_blanks(foot)
    if foot_pieces:
        border.add(" ", style)
        space = width - 4 - border.used
        inner = Line(space, charset).extend(foot_pieces)
        border.extend(inner._pieces).add(" ", style)
    border.fill_to(width - 1, line, style)
    return (*border.build(), (charset.text(right), style))


def strip_blanks(row: Row) -> list[Piece]:
    """Return the pieces without the blanks at both ends."""
    pieces = list(row)
    while pieces and not pieces[-1][0].strip():
        pieces.pop()
    while pieces and not pieces[0][0].strip():
        pieces.pop(0)
    if pieces:
        pieces[-1] = (pieces[-1][0].rstrip(), pieces[-1][1])
        pieces[0] = (pieces[0][0].lstrip(), pieces[0][1])
    return pieces


def box_rows(
    first: Row, body: Sequence[Row], last: Row, charset: Charset, focused: bool
) -> list[Row]:
    """A box around ``body``, whose rows are ``BORDER_COLUMNS`` narrower than the box."""
    line, style = charset.text(side_char(charset)), border_style(focused)
    return [first, *(((f"{line} ", style), *row, (f" {line}", style)) for row in body), last]


def title_pieces(title: str) -> tuple[Piece, ...]:
    return ((title, BOLD),)


def head_value(head: Row) -> list[Piece]:
    """The value at the right end of a panel's first row."""
    pieces = list(head)[1:]
    fills = [n for n, (text, _) in enumerate(pieces) if len(text) > 2 and not text.strip("─- ")]
    return strip_blanks(tuple(pieces[fills[0] + 1 : -1])) if fills else []


def head_title(head: Row) -> list[Piece]:
    """The title in a panel's first row, which is a horizontal line."""
    title: list[Piece] = []
    pieces = list(head)
    if pieces and not pieces[0][0].strip(" ─-"):
        pieces = pieces[1:]
    for text, style in pieces:
        if text.strip(" ─-") == "":
            break
        title.append((text, style))
    return title
