"""The registry of frame fields: name, unit, source and meaning of every value.

A field's id is its path in a frame event (``--format jsonl``), joined by dots; ``*`` stands for a
key that is data (a device, a CPU, a job's position). Disk fields have iostat's own names and units.
An unknown value is null, never 0. The fields come from the tree in frame_figures.py."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iopstui.model.figures.figure import ANY, SCHEMA, walk
from iopstui.model.metrics.frame_figures import EVENT
from iopstui.tables import FIGURE, Column

FRAME_SOURCE = "iopstui"


@dataclass(frozen=True, slots=True)
class Field:
    """A value of a frame event. ``path`` is its place in the object, ``title`` a column heading,
    ``unit`` "" for plain counts and texts, ``source`` the file or program that it comes from."""

    path: tuple[str, ...]
    title: str
    unit: str
    source: str
    meaning: str

    @property
    def id(self) -> str:
        """The path joined by dots."""
        return ".".join(self.path)

    def column(self, name: str, type_: str = FIGURE) -> Column:
        """The field as a column of a flat file."""
        return Column(name, type=type_, unit=self.unit, source=self.source,
                      meaning=self.meaning.strip())  # fmt: skip

    def covers(self, path: Sequence[str]) -> bool:
        """True if a value at ``path`` of a frame object is this field."""
        return len(path) == len(self.path) and all(
            part in (ANY, key) for part, key in zip(self.path, path, strict=True)
        )


def _fields() -> Iterator[Field]:
    for path, row, meaning, source in walk(EVENT, source=FRAME_SOURCE):
        yield Field(path, row.title or row.name, row.unit, source, meaning)


FIELDS: tuple[Field, ...] = tuple(_fields())
BY_ID = {field.id: field for field in FIELDS}


def find_field(path: Sequence[str]) -> Field | None:
    return next((field for field in FIELDS if field.covers(path)), None)


def fields_json() -> str:
    """The registry as one JSON object: ``schema`` and ``fields``."""
    names = ("id", "title", "unit", "source", "meaning")
    rows = [{name: getattr(field, name) for name in names} for field in FIELDS]
    return json.dumps({"schema": SCHEMA, "fields": rows}, indent=1)


def fields_table(width: int = 80) -> str:
    """The registry as text, one field a line where ``width`` allows (at least 60 is used)."""
    import textwrap

    rows = [(field.id, field.unit, field.source, field.meaning) for field in FIELDS]
    rows.insert(0, ("FIELD", "UNIT", "SOURCE", "MEANING"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    meaning_width = max(width, 60) - sum(widths) - 6
    if meaning_width < 30:
        return "\n".join(_stacked(row, max(width, 60)) for row in rows[1:])
    lines = []
    for *short, meaning in rows:
        head = "  ".join(text.ljust(size) for text, size in zip(short, widths, strict=True))
        first, *rest = textwrap.wrap(meaning, meaning_width)
        lines += [f"{head}  {first}", *(" " * (len(head) + 2) + line for line in rest)]
    return "\n".join(lines)


def _stacked(row: tuple[str, str, str, str], width: int) -> str:
    import textwrap

    name, unit, source, meaning = row
    tail = f"{meaning} ({source})"
    head = f"{name} [{unit}]" if unit else name
    text = textwrap.fill(tail, width, initial_indent="    ", subsequent_indent="    ")
    return f"{head}\n{text}"
