"""Rows of a fixed width, made of styled pieces, and tables with fixed columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

from rich.cells import cached_cell_len, cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from iopstui.model.answer.answer import (
    CRITICAL,
    ELLIPSIS,
    GOOD,
    MEAN,
    SIGNS,
    Answer,
    says_what_waits,
    short_who,
    shortened,
)
from iopstui.model.answer.answer import WARNING as WARNING_ANSWER
from iopstui.tables import Column, in_order, sortable
from iopstui.text import printable, with_breaks, without_breaks
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FINDING, PLAIN, WARNING, Charset

Piece = tuple[str, Style | None]
Row = tuple[Piece, ...]
T = TypeVar("T")


def cells(text: str) -> int:
    """The width of a text in terminal cells. ASCII text, the usual case, needs no lookup."""
    return len(text) if text.isascii() else _wide(text)


# half of the texts are the same borders, bars and dots as a second ago; not rich's own cache, which
# would keep 4096 rows of charts that never occur again
_wide = lru_cache(512)(cached_cell_len.__wrapped__)


def fit(text: str, width: int) -> str:
    """``text`` cut (with an ellipsis) or filled to exactly ``width`` cells."""
    if width <= 0:
        return ""
    size = cells(text)
    if size > width:
        return set_cell_size(text, width - 1) + "…"
    return text + " " * (width - size)


def part(row: Row, begin: int, end: int) -> list[Piece]:
    """Cells ``begin`` to ``end`` of a row, with blanks after its end."""
    pieces: list[Piece] = []
    at = 0
    for text, style in row:
        size = len(text) if text.isascii() else _wide(text)
        if begin <= at and at + size <= end:
            if size:
                pieces.append((text, style))
        else:
            first, last = max(0, begin - at), min(size, end - at)
            if first < last:
                pieces.append((_cells_of(text, first, last), style))
        at += size
        if at >= end:
            return pieces
    return [*pieces, (" " * (end - max(at, begin)), None)]


def _cells_of(text: str, first: int, last: int) -> str:
    if len(text) == cells(text):
        return text[first:last]
    # if a wide character is cut in half, split_cells leaves a blank
    return Segment(text).split_cells(last)[0].split_cells(first)[1].text


class Line:
    """Builds a row from left to right. ``build`` pads it to the width."""

    def __init__(self, width: int, charset: Charset) -> None:
        self._width = width
        self._charset = charset
        self._pieces: list[Piece] = []
        self.used = 0

    @property
    def free(self) -> int:
        """Cells that are still free."""
        return max(0, self._width - self.used)

    def add(self, text: str, style: Style | None = PLAIN) -> Line:
        """Append as much of ``text`` as fits."""
        # called hundreds of times a second: avoid properties and function calls in the usual case
        space = self._width - self.used
        if not text or space <= 0:
            return self
        size = len(text) if text.isascii() else _wide(text)
        if size > space:
            text, size = fit(text, space), space
        self._pieces.append((self._charset.text(text), style))
        self.used += size
        return self

    def try_add(self, *pieces: Piece) -> bool:
        """Append all ``pieces``, or nothing if they do not fit together."""
        if sum(cells(text) for text, _ in pieces) > self.free:
            return False
        for text, style in pieces:
            self.add(text, style)
        return True

    def add_words(self, text: str) -> Line:
        """Append as many whole words of ``text`` as fit."""
        if cells(text) > self.free:
            words = text.split(" ")
            while len(words) > 1 and cells(" ".join(words)) + 1 > self.free:
                words.pop()
            text = " ".join(words).rstrip(",;:") + "…"
        return self.add(text)

    def extend(self, pieces: Iterable[Piece]) -> Line:
        for text, style in pieces:
            self.add(text, style)
        return self

    def fill_to(self, column: int, fill: str = " ", style: Style | None = PLAIN) -> Line:
        missing = min(column, self._width) - self.used
        return self.add(fill * missing, style) if missing > 0 else self

    def add_right(self, *pieces: Piece) -> Line:
        """Add ``pieces`` at the right end if they fit."""
        size = sum(cells(text) for text, _ in pieces)
        if size <= self.free:
            self.fill_to(self._width - size)
            for text, style in pieces:
                self.add(text, style)
        return self

    def build(self) -> Row:
        """The finished row, exactly ``width`` cells."""
        self.fill_to(self._width)
        return tuple(self._pieces)


def capital(title: str) -> str:
    """The title with a capital letter; "fio" stays as it is."""
    return title if title.startswith("fio") else title[:1].upper() + title[1:]


def rule(width: int, charset: Charset, *pieces: Piece, right: Sequence[Piece] = ()) -> Row:
    """A panel's title in a horizontal line: ``── title ─────── note ─``."""
    return _rule(width, charset, pieces, tuple(right))


@lru_cache(64)
def _rule(width: int, charset: Charset, pieces: tuple[Piece, ...], right: tuple[Piece, ...]) -> Row:
    line = Line(width, charset).add(charset.rule * 2 + " ", DIM)
    for text, style in pieces:
        line.add(text, style)
    line.add(" ")
    size = sum(cells(text) for text, _ in right)
    if right and line.free > size + 4:
        line.fill_to(width - size - 4, charset.rule, DIM).add(" ")
        for text, style in right:
            line.add(text, style)
        line.add(" ")
    return line.fill_to(width, charset.rule, DIM).build()


def message(width: int, charset: Charset, text: str, style: Style | None = DIM) -> Row:
    """A row of text, indented by one cell."""
    return Line(width, charset).add(" ").add(charset.sentence(text), style).build()


def wrap(width: int, charset: Charset, text: str, style: Style | None = DIM) -> list[Row]:
    """``text`` as rows, broken between words."""
    return list(_wrapped(width, charset, text, style))


# cached, because most texts are the same as a second ago
@lru_cache(64)
def _wrapped(width: int, charset: Charset, text: str, style: Style | None) -> tuple[Row, ...]:
    rows: list[Row] = []
    current = ""
    for word in map(
        with_breaks, without_breaks(" ".join(charset.sentence(text).split())).split(" ")
    ):
        candidate = f"{current} {word}" if current else word
        if current and cells(candidate) > width - 2:
            rows.append(message(width, charset, current, style))
            current = word
        else:
            current = candidate
    if current:
        rows.append(message(width, charset, current, style))
    return tuple(rows)


class Table(Generic[T]):
    """A table whose columns depend only on its width, so that a figure never moves others."""

    def __init__(self, columns: Sequence[Column], label: int, width: int, charset: Charset) -> None:
        self._width = width
        self._charset = charset
        fitting = list(columns)
        while label + sum(column.cells for column in fitting) > width:
            worst = max(fitting, key=lambda column: column.rank)
            if worst.rank == 0:
                break
            fitting.remove(worst)
        spare = max(0, width - label - sum(column.cells for column in fitting))
        extra = min(3, spare // (len(fitting) + 1)) if fitting else 0
        self._label = label + extra
        self.columns = [(column, column.cells + extra) for column in fitting]
        """Visible columns with their widths."""
        self.titles = {column.title for column in fitting}
        self._headers: dict[tuple[str, str], Row] = {}

    @property
    def used_width(self) -> int:
        """The width of the label and the columns together."""
        return self._label + sum(width for _, width in self.columns)

    def header(self, label: str = "", strong: str = "") -> Row:
        """The column titles; ``strong`` is the one that the rows are sorted by."""
        header = self._headers.get((label, strong))
        if header is None:
            header = self._headers[label, strong] = self._header(label, strong)
        return header

    def _header(self, label: str, strong: str) -> Row:
        line = Line(self._width, self._charset)
        line.add(fit(label, self._label), BOLD if strong and label == strong else DIM)
        for column, width in self.columns:
            line.add(column.title.rjust(width), BOLD if column.title == strong else DIM)
        return line.build()

    def spans(self, label: str) -> list[tuple[int, int, str]]:
        """(begin, end, title) of the label and of each column that is shown."""
        spans = [(0, self._label, label)]
        for column, width in self.columns:
            spans.append((spans[-1][1], spans[-1][1] + width, column.title))
        return spans

    def row(self, label: str, item: T, dim: bool = False, label_style: Style | None = BOLD) -> Row:
        """A row of values, each right-aligned in its column."""
        line = Line(self._width, self._charset).add(fit(label, self._label), label_style)
        run, style = "", PLAIN
        for column, width in self.columns:
            style_of = column.style_of
            cell_style = DIM if dim else column.style if style_of is None else style_of(item)
            text = column.text(item)
            size = cells(text)
            cell = " " * (width - size) + text if size <= width else fit(text, width)
            # neighbours with the same style become one piece, which needs fewer escape sequences
            if cell_style != style and run:
                line.add(run, style)
                run = ""
            run, style = run + cell, cell_style
        return line.add(run, style).build()


@lru_cache(32)
def table_for(columns: Sequence[Column], label: int, width: int, charset: Charset) -> Table[Any]:
    """The table for these arguments; made once and kept, with its head."""
    return Table(columns, label, width, charset)


def order_text(columns: Iterable[Column], order: str) -> str:
    """How a list is sorted, in words. ``order`` is the title of a column."""
    return f"sorted by {order}" if order in sortable(columns) else "busiest first"


def list_title(
    title: str, columns: Iterable[Column], order: str, frozen: bool, width: int,
    charset: Charset,
) -> Row:  # fmt: skip
    """A list's title and order. ``frozen``: the screen shows an earlier second, which the list does
    not."""
    note = ": current ones, not those of the frozen second" if frozen else ""
    right = ((order_text(columns, order), DIM),)
    return rule(width, charset, (title, BOLD), (note, WARNING), right=right)


def listing(
    columns: Sequence[Column], items: Sequence[Any], width: int, charset: Charset,
    most: int, order: str = "",
) -> list[Row]:  # fmt: skip
    """A table of items; the first column is the label. At most ``most`` items have a row. ``order``
    is the title of the column by which they are sorted; "" keeps their order."""
    label, *others = columns
    order = order if order in sortable(columns) else ""
    table: Table[Any] = Table(others, label.width, width, charset)
    rows = [table.header(label.title, order)]
    rows += [table.row(label.text(item), item) for item in
             in_order(items, columns, order)[:most]]  # fmt: skip
    if len(items) > most:
        rows.append(message(width, charset, f"and {len(items) - most} more"))
    return rows


def has_words(words: str, *texts: str) -> bool:
    """Whether the ``texts`` together contain all ``words`` of a filter, ignoring case."""
    text = " ".join(texts).lower()
    return all(word in text for word in words.lower().split())


def no_match(what: str, words: str, width: int, charset: Charset) -> Row:
    text = f"no {what} matches '{printable(words.strip())}'; Esc clears the filter"
    return message(width, charset, text)


def pad(rows: Iterable[Row], height: int, width: int) -> list[Row]:
    """Exactly ``height`` rows: the first ones, filled up with blank ones."""
    padded = list(rows)[:height]
    blank: Row = ((" " * width, PLAIN),)
    return padded + [blank] * (height - len(padded))


def rows_text(rows: Iterable[Row]) -> str:
    """Rows as lines of text, without the blanks at their ends."""
    return "\n".join("".join(text for text, _ in row).rstrip() for row in rows).strip("\n")


ANSWER_STYLES = {GOOD: FINDING, WARNING_ANSWER: WARNING, CRITICAL: ERROR}
SIGN_COLUMNS = 3


def answer_row(answer: Answer | None, width: int, charset: Charset, more: str = "") -> Row:
    """State, answer and user of the disk, and the time that they are of: the figures below are of
    the last second. All in fewer words if they do not fit; ``more`` is the key that then shows
    all."""
    if answer is None:
        return message(width, charset, "")
    whole, person = (charset.sentence(printable(part)) for part in (answer.text, answer.who))
    room = width - SIGN_COLUMNS
    text, who, span = _with_span(answer, whole, person, room)
    key = f"  {more} "
    if (
        more
        and text != whole
        and shortened(whole, person, room - len(key), cell_len) == (text, who)
    ):
        span = key
    line = Line(width, charset).add(f" {SIGNS[answer.state]} ", ANSWER_STYLES[answer.state])
    line.add(text, None if answer.state == GOOD else BOLD)
    if who:
        line.add(f" · {who}", DIM if answer.state == GOOD else None)
    if span:
        line.add_right((span, DIM))
    return line.build()


def _with_span(answer: Answer, whole: str, person: str, room: int) -> tuple[str, str, str]:
    """Text, user and time. The time matters more than the user's whole command; where all is well
    also more than the last parts of the text, but never more than who it is, and what waits."""
    text, who = shortened(whole, person, room, cell_len)
    spans = [f"  {answer.span} ", f" in {answer.over_s} s "] if answer.span else []
    beside = [(*shortened(whole, person, room - len(span), cell_len), span) for span in spans]
    for name in (who, short_who(person)):
        for less in beside:
            if less[:2] == (text, name):
                return less
    if beside and answer.state == GOOD:
        fewer, name, span = beside[0]
        is_mean = MEAN not in text or MEAN in fewer
        is_mean &= says_what_waits(fewer) or not says_what_waits(text)
        if name in (who, short_who(person)) and is_mean and not fewer.endswith(ELLIPSIS):
            return fewer, name, span
    return text, who, ""
