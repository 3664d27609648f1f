"""Frames as Parquet: the columns of CSV, with a type, a unit and a meaning each.

The only user of pyarrow, which is an extra (`iopstui[parquet]`) and loaded when a table is begun.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, BinaryIO

from iopstui.events import Event, FrameReady
from iopstui.format import EPOCH
from iopstui.linux.process.packages import no_package
from iopstui.model.metrics.fields import SCHEMA, Field, find
from iopstui.output.csv_out import session_columns, value_at
from iopstui.output.jsonl import frame_object
from iopstui.text import printable

PACKAGE = "pyarrow"
ROWS = 3600
"""Of a row group: an hour of seconds, about 20 MB before they are written."""
_FLAGS = ("flags",)
_WHOLE = (("step",),)


class ParquetSink:
    """Writes a row a frame to ``out``, an hour of seconds at a time; Missing (exit 5) without
    pyarrow. ``about`` is kept beside the columns, each of which has ``unit``, ``source`` and
    ``meaning`` of its field. What is not known is null. What ``out`` raises is passed on.

    The types do not depend on the values: ``utc`` is a time (UTC, ms), ``step`` a whole number,
    ``flags`` a text as in CSV ("" for none), anything else a double.
    """

    def __init__(
        self, out: BinaryIO, devices: Sequence[str] = (), about: Mapping[str, str] | None = None
    ) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise no_package(PACKAGE) from error
        self._arrow: Any = pyarrow
        self._paths = list(session_columns(devices))
        self._schema = self._described(about or {})
        self._rows: list[list[Any]] = [[] for _ in self._paths]
        self._writer: Any = pyarrow.parquet.ParquetWriter(out, self._schema, compression="zstd")

    def handle(self, event: Event) -> None:
        """Take a row if the event is a frame."""
        if not isinstance(event, FrameReady):
            return
        row = frame_object(event.frame)
        for path, column in zip(self._paths, self._rows, strict=True):
            column.append(_cell(path, row))
        if len(self._rows[0]) >= ROWS:
            self._put()

    def close(self) -> None:
        """Nothing more will come: write what is left, and the table's end."""
        if self._rows[0]:
            self._put()
        self._writer.close()

    def abandon(self) -> None:
        """End a table that is no good, so that pyarrow doesn't try to later."""
        with contextlib.suppress(OSError, ValueError):
            self._writer.close()

    def _put(self) -> None:
        arrays = [
            self._arrow.array(column, field.type)
            for column, field in zip(self._rows, self._schema, strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        for column in self._rows:
            column.clear()

    def _described(self, about: Mapping[str, str]) -> Any:
        """The schema. Its words stand with each column, where Arrow's readers find them, and as
        one JSON object beside all columns, for the others."""
        told = {_name(path): _words(path) for path in self._paths}
        columns = [
            self._arrow.field(name, self._type(path), metadata=words)
            for path, (name, words) in zip(self._paths, told.items(), strict=True)
        ]
        beside = {"schema": str(SCHEMA), "fields": json.dumps(told), **about}
        return self._arrow.schema(columns, {f"iopstui.{key}": beside[key] for key in beside})

    def _type(self, path: tuple[str, ...]) -> Any:
        if path == ("utc",):
            return self._arrow.timestamp("ms", tz="UTC")
        if path == _FLAGS:
            return self._arrow.string()
        return self._arrow.int64() if path in _WHOLE else self._arrow.float64()


def _name(path: Sequence[str]) -> str:
    return printable(".".join(path))


def _words(path: tuple[str, ...]) -> dict[str, str]:
    field: Field | None = find((*path, "*") if path == _FLAGS else path)
    assert field is not None, path
    return {"unit": field.unit, "source": field.source, "meaning": field.meaning.strip()}


def _cell(path: tuple[str, ...], row: Any) -> Any:
    value = value_at(row, path)
    if path == ("utc",):
        # the same rounding as of the text, which is null for what is no time
        return None if value is None else EPOCH + timedelta(milliseconds=round(row["wall_ms"]))
    return " ".join(value) if path == _FLAGS else value
