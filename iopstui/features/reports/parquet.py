"""Seconds as Parquet: the columns of CSV, each with type, unit and meaning.

The only user of pyarrow, which is an extra (`iopstui[parquet]`) and loaded when a table is begun.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO

from iopstui.errors import UsageError
from iopstui.events import Event, FrameReady
from iopstui.features.reports.redact import opened
from iopstui.features.reports.sources import Source
from iopstui.features.reports.table import print_why_incomplete
from iopstui.format import utc, utc_datetime
from iopstui.linux.process.packages import missing_package_error, require_packages
from iopstui.model.metrics.fields import find_field
from iopstui.model.metrics.paths import SCHEMA
from iopstui.output.csv_out import Figures, session_columns
from iopstui.recording import layout as form
from iopstui.recording.partial_samples import ROWS_WITHOUT
from iopstui.recording.replay import ReplayFold, replay_events
from iopstui.tables import FIGURE, TIME, WHOLE, WORDS, Column
from iopstui.text import printable

PACKAGE = "pyarrow"
ROWS = 3600
"""Of a row group: an hour of seconds, about 20 MB before they are written."""
_FLAGS = ("flags",)


class ParquetTable:
    """Writes rows to ``out``, an hour of seconds at a time; Missing (exit 5) without pyarrow. Each
    column has its ``unit``, ``source`` and ``meaning``; ``about`` is kept beside all of them. What
    is not known is null. What ``out`` raises is passed on.

    The types do not depend on the values: TIME (UTC, ms), WHOLE, WORDS, and FIGURE, a double.
    """

    def __init__(self, out: BinaryIO, columns: Sequence[Column], about: Mapping[str, str]) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise missing_package_error(PACKAGE) from error
        self._arrow: Any = pyarrow
        self._schema = self._described(columns, about)
        self._rows: list[list[Any]] = [[] for _ in columns]
        self._writer: Any = pyarrow.parquet.ParquetWriter(out, self._schema, compression="zstd")

    def row(self, cells: Iterable[Any]) -> None:
        """Take a value for each column."""
        for cell, column in zip(cells, self._rows, strict=True):
            column.append(cell)
        if len(self._rows[0]) >= ROWS:
            self._write_rows()

    def close(self) -> None:
        """Write the remaining rows and the end of the table."""
        if self._rows[0]:
            self._write_rows()
        self._writer.close()

    def abandon(self) -> None:
        """End a table that is no good, so that pyarrow doesn't try to later."""
        with contextlib.suppress(OSError, ValueError):
            self._writer.close()

    def _write_rows(self) -> None:
        arrays = [
            self._arrow.array(column, field.type)
            for column, field in zip(self._rows, self._schema, strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        for column in self._rows:
            column.clear()

    def _described(self, columns: Sequence[Column], about: Mapping[str, str]) -> Any:
        """The schema. Its words stand with each column, where Arrow's readers find them, and as
        one JSON object beside all columns, for the others."""
        descriptions = {
            column.id: {"unit": column.unit, "source": column.source, "meaning": column.meaning}
            for column in columns
        }
        types = {
            TIME: self._arrow.timestamp("ms", tz="UTC"), WHOLE: self._arrow.int64(),
            WORDS: self._arrow.string(), FIGURE: self._arrow.float64(),
        }  # fmt: skip
        fields = [
            self._arrow.field(column.id, types[column.type], metadata=descriptions[column.id])
            for column in columns
        ]
        beside = {"schema": str(SCHEMA), "fields": json.dumps(descriptions), **about}
        return self._arrow.schema(fields, {f"iopstui.{key}": beside[key] for key in beside})


class ParquetSink:
    """Writes a row a frame of these devices to ``out``, as ParquetTable does: ``utc`` is a time,
    ``step`` a whole number, ``flags`` a text as in CSV ("" for none). ``layers``,
    ``share_source`` and ``on_nvme`` as of session_columns."""

    def __init__(
        self,
        out: BinaryIO,
        devices: Sequence[str] = (),
        about: Mapping[str, str] | None = None,
        layers: Sequence[str] = (),
        share_source: str = "",
        on_nvme: bool = False,
    ) -> None:
        self._paths = list(session_columns(devices, layers, share_source, on_nvme))
        self._figures = Figures(self._paths)
        self._table = ParquetTable(out, [*map(_column, self._paths)], about or {})

    def handle(self, event: Event) -> None:
        """Take a row if the event is a frame."""
        if isinstance(event, FrameReady):
            frame = event.frame
            values = zip(self._paths, self._figures.from_frame(frame), strict=True)
            self._table.row(_cell(path, value, frame.wall_ms) for path, value in values)

    def close(self) -> None:
        """Write the remaining rows and the end of the table."""
        self._table.close()

    def abandon(self) -> None:
        """End a table that is no good."""
        self._table.abandon()


def instant(wall_ms: float) -> datetime:
    """Time by a clock that ``utc`` (format.py) formats; rounded as there."""
    return utc_datetime(round(wall_ms))


_TYPES: Mapping[tuple[str, ...], str] = {("utc",): TIME, _FLAGS: WORDS, ("step",): WHOLE}


def _column(path: tuple[str, ...]) -> Column:
    field = find_field((*path, "*") if path == _FLAGS else path)
    assert field is not None, path
    return field.column(printable(".".join(path)), _TYPES.get(path, FIGURE))


def _cell(path: tuple[str, ...], value: Any, wall_ms: float) -> Any:
    if path == ("utc",):
        # rounded like the text column; null where the text is null
        return None if value is None else instant(wall_ms)
    return " ".join(value) if path == _FLAGS else value


def write_parquet(source: Source, redact: bool, out: BinaryIO) -> None:
    """A row for every frame, those of an experiment's runs too: ``step`` tells them apart. Missing
    (exit 5) without pyarrow, UsageError for a result of fio."""
    require_packages(PACKAGE)
    if not source.recorded:
        name = printable(str(source.path))
        raise UsageError(
            f"Parquet holds the seconds of a recording, but {name} is a fio result.",
            f"For CSV: iopstui report {name} -o {source.path.stem}.csv",
        )
    with opened(source.path, redact) as recording:
        recording.skip_unneeded_fields(ROWS_WITHOUT)
        target = recording.header.target
        about = _about(recording.header)
        shares, nvme = target.share_source, target.on_nvme
        sink = ParquetSink(out, target.devices_below, about, target.tree, shares, nvme)
        fold = ReplayFold(recording.header)
        try:
            for event in replay_events(recording, fold):
                sink.handle(event)
            sink.close()
        except BaseException:
            sink.abandon()
            raise
        print_why_incomplete(recording, fold)


def _about(header: form.Header) -> dict[str, str]:
    """Title: whose seconds these are."""
    metadata = {
        "version": header.iopstui,
        "host": header.host,
        "kernel": header.kernel,
        "target": header.target.path,
        "started": utc(header.started_ms) or "",
    }
    return {key: printable(value) for key, value in metadata.items()}
