"""Tables: columns with an id, a title, a width and a format.

A producer declares its columns once. They are shown as lines of text, as cells of a report's table
(``report/markup.py``), or as plain values of a CSV row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iopstui.format import cut, or_dash


@dataclass(frozen=True, slots=True)
class Column:
    """``id`` is the attribute or key of a row that is shown ("point/iops"), unless ``read`` gets
    the value; the value of a part that is ``None`` is ``None``. ``form`` makes its text for people,
    ``width`` is the least width in characters; words are aligned to the ``left``."""

    id: str
    title: str
    width: int = 0
    form: Callable[[Any], str] = or_dash
    left: bool = False
    read: Callable[[Any], Any] | None = None

    def value(self, row: Any) -> Any:
        """The value of a row."""
        if self.read is not None:
            return self.read(row)
        for name in self.id.split("/"):
            if row is None:
                return None
            row = row.get(name) if isinstance(row, Mapping) else getattr(row, name)
        return row

    def text(self, row: Any) -> str:
        """The value of a row for people."""
        return self.form(self.value(row))


def titles(columns: Iterable[Column]) -> tuple[str, ...]:
    """The head of a table."""
    return tuple(column.title for column in columns)


def texts(columns: Iterable[Column], row: Any) -> tuple[str, ...]:
    """The cells of a row."""
    return tuple(column.text(row) for column in columns)


def line(columns: Sequence[Column], cells: Iterable[str]) -> str:
    """The cells in their columns; longer words are cut, longer numbers stay whole."""
    aligned = (
        cut(cell, column.width).ljust(column.width) if column.left else cell.rjust(column.width)
        for column, cell in zip(columns, cells, strict=False)
    )
    return " ".join(aligned).rstrip()


def head_line(columns: Sequence[Column]) -> str:
    """The titles in their columns."""
    return line(columns, titles(columns))


def row_line(columns: Sequence[Column], row: Any) -> str:
    """A row in its columns."""
    return line(columns, texts(columns, row))
