"""Tables: columns with an id, a title, a width and a format.

A producer declares its columns once. They are shown as lines of text, as rows of the screen
(``ui/draw/rows.py``), as HTML or Markdown (``output/page/markup.py``), or written to flat
files (CSV, Parquet)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar

from iopstui.format import cells as cells_of
from iopstui.format import cut, left, or_dash

Row = TypeVar("Row")
UP, DOWN = 1, -1
TIME, WHOLE, WORDS, FIGURE = "time", "whole", "words", "figure"
"""Types in a flat file: a time (UTC, ms), a whole number, a text, and any number."""


def path_reader(path: str, or_none: bool = False) -> Callable[[Any], Any]:
    """The function that reads an attribute of a row, or the key of a mapping. A path with slashes
    leads into nested objects; if one of them is ``None``, so is the result. A row without the
    attribute is an error, unless ``or_none`` allows it."""
    names = path.split("/")

    def walk(row: Any) -> Any:
        for name in names:
            if row is None:
                return None
            if isinstance(row, Mapping):
                row = row.get(name)
            else:
                row = getattr(row, name, None) if or_none else getattr(row, name)
        return row

    if "." in path:
        return walk
    attributes = attrgetter(".".join(names))

    def read(row: Any) -> Any:
        # usually this works, and it is three times as fast; it fails if a part is a mapping or
        # ``None``
        try:
            return attributes(row)
        except AttributeError:
            return walk(row)

    return read


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table. ``id`` is the path of the attribute or key of a row that is shown
    ("point/iops"), unless ``read`` gets the value; if a part of the path is ``None``, so is the
    value. ``form`` makes the value's text for people, ``width`` is the least width in characters;
    ``left``: the column has words and is aligned to the left. On the screen it has a ``style``, or
    the one that ``style_of`` returns for a row, and a narrow table leaves out the highest ``rank``
    first (0: never). A list can be sorted by it if ``sorts`` is ``UP`` (names from A on) or
    ``DOWN`` (the largest first), by its value or by what ``key`` returns for a row. In a flat file
    its name is the ``id``, and it has a ``type``; ``unit``, ``source`` and ``meaning`` are those of
    a field (model/metrics/fields.py)."""

    id: str
    title: str = ""
    width: int = 0
    form: Callable[[Any], str] = or_dash
    left: bool = False
    read: Callable[[Any], Any] | None = None
    rank: int = 0
    style: Any = None
    style_of: Callable[[Any], Any] | None = None
    sorts: int = 0
    key: Callable[[Any], Any] | None = None
    type: str = FIGURE
    unit: str = ""
    source: str = "iopstui"
    meaning: str = ""

    get: Callable[[Any], Any] = field(init=False, repr=False)
    """The value of a row."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "get", self.read or path_reader(self.id))

    def text(self, row: Any) -> str:
        return self.form(self.get(row))

    def place(self, row: Any) -> Any:
        """The value by which a list is sorted."""
        return (self.key or self.get)(row)

    @property
    def cells(self) -> int:
        """The column's width on the screen, including the blank before it."""
        return max(self.width, len(self.title)) + 1


@dataclass(frozen=True, slots=True)
class Table:
    """Cells below a head; the first ``left_columns`` columns have words, the others numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_columns: int = 1

    @classmethod
    def from_rows(
        cls, columns: Sequence[Column], rows: Iterable[object], left_columns: int = 1
    ) -> Table:
        return cls(titles(columns), [texts(columns, row) for row in rows], left_columns)

    def lines(self) -> Iterator[str]:
        return aligned((self.head, *self.rows), range(self.left_columns, len(self.head)))


def sortable(columns: Iterable[Column]) -> tuple[str, ...]:
    """The titles of the columns by which a list can be sorted."""
    return tuple(column.title for column in columns if column.sorts)


def in_order(
    rows: Sequence[Row], columns: Iterable[Column], title: str, reverse: bool = False
) -> Sequence[Row]:
    """The rows sorted by the column with this title (unsorted if no sortable column has it); rows
    without a value come last."""
    column = next((column for column in columns if column.sorts and column.title == title), None)
    if column is None:
        return rows
    known = [row for row in rows if column.place(row) is not None]
    known.sort(key=column.place, reverse=reverse != (column.sorts == DOWN))
    return [*known, *(row for row in rows if column.place(row) is None)]


def titles(columns: Iterable[Column]) -> tuple[str, ...]:
    return tuple(column.title for column in columns)


def texts(columns: Iterable[Column], row: Any) -> tuple[str, ...]:
    return tuple(column.text(row) for column in columns)


def line(columns: Sequence[Column], cells: Iterable[str]) -> str:
    """The cells as a line in columns; words that are too long are cut, numbers are not."""
    aligned = (
        left(cut(cell, column.width), column.width) if column.left else cell.rjust(column.width)
        for column, cell in zip(columns, cells, strict=False)
    )
    return " ".join(aligned).rstrip()


def head_line(columns: Sequence[Column]) -> str:
    return line(columns, titles(columns))


def row_line(columns: Sequence[Column], row: Any) -> str:
    return line(columns, texts(columns, row))


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """Lines with the cells in columns as wide as their longest cell; the ``right`` columns have
    numbers."""
    widths = [max(map(cells_of, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (cell.rjust(width) if n in right else left(cell, width)
                  for n, (cell, width) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        yield "  ".join(padded).rstrip()
