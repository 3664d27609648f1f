"""The seconds of a recording as rows, in CSV or Parquet.

Only this module uses pyarrow, which is an extra (`iopstui[parquet]`). It is imported when a table
is begun."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import isnan
from typing import Any, BinaryIO

from iopstui.errors import UsageError
from iopstui.events import FrameReady
from iopstui.features.reports.foreign import Source, load_foreign_report
from iopstui.features.reports.report_data import ReportData
from iopstui.format import utc, utc_datetime
from iopstui.linux.process.programs import missing_package_error, require_packages
from iopstui.model.block.tunable import TUNABLES
from iopstui.model.figures.figure import SCHEMA
from iopstui.model.metrics.fields import find_field
from iopstui.output.csv_out import CsvSink, Figures, cell_text, session_columns
from iopstui.output.replay import ReplayedExperiments, has_experiment
from iopstui.output.sinks import EventSink
from iopstui.output.summary import syncs_of
from iopstui.recording import layout as form
from iopstui.recording.layout import RecordedDevices
from iopstui.recording.partial_samples import ROWS_WITHOUT
from iopstui.recording.reader import Recording
from iopstui.recording.redact import opened
from iopstui.recording.replay import ReplayFold, replay_events, sysfs_text, why_incomplete
from iopstui.tables import FIGURE, TIME, WHOLE, WORDS, Column
from iopstui.text import printable


def csv_text(source: Source, redact: bool = False) -> str:
    """CSV with a row for every frame; the columns are those of `iopstui run --format csv`. An
    experiment has a row for every point, fio's logs have a row for every second, and fio's results
    without logs have a row for every job."""
    stream = io.StringIO()
    if not source.recorded:
        csv.writer(stream, lineterminator="\n").writerows(
            _rows(load_foreign_report(source, redact))
        )
        return stream.getvalue()
    with opened(source.path, redact) as recording:
        sink: EventSink
        if has_experiment(recording):
            sink = ReplayedExperiments("csv", recording.header, stream, io.StringIO())
        else:
            target = recording.header.target
            shares, nvme = target.share_source, target.on_nvme
            tunables = recorded_tunables(recording)
            sink = CsvSink(stream, target.devices_below, target.tree, shares, nvme, tunables)
            recording.skip_unneeded_fields(ROWS_WITHOUT)
        fold = ReplayFold(recording.header)
        for event in replay_events(recording, fold):
            sink.handle(event)
        sink.close()
        print_why_incomplete(recording, fold)
    return stream.getvalue()


def recorded_tunables(recording: Recording) -> dict[str, str]:
    """The tunables of the target's devices at the beginning, by "DEVICE.NAME"."""
    recorded = (record.value for _, record in recording.index().events)
    first = next((value for value in recorded if isinstance(value, RecordedDevices)), None)
    values = {
        f"{device.name}.{name}": getattr(device.queue, name, None)
        for device in (first.devices if first is not None else ())
        for name in TUNABLES
    }
    return {name: sysfs_text(value) for name, value in values.items() if value is not None}


def print_why_incomplete(recording: Recording, fold: ReplayFold) -> None:
    """Print on standard error why the recording is incomplete, because rows can't show that."""
    text = why_incomplete(recording, fold.has_end_marker)
    if text:
        print(f"iopstui: {text}", file=sys.stderr)


_SECONDS = {"t": "t", "seconds": "seconds", "fio": "iops", "bw": "bw_bytes", "mean": "mean_ns",
            "p50": "p50_ns", "p99": "p99_ns", "p99.9": "p99.9_ns"}  # fmt: skip
_FIGURES = ("completed", "iops", "bw_bytes", "runtime_ms", "clat_mean_ns", "lat_max_ns")
_PERCENTILES = ("p50", "p99", "p99.9", "p99.99")


def _rows(data: ReportData) -> Iterator[list[str]]:
    if data.samples:
        yield list(_SECONDS.values())
        for values in zip(*(data.series[name] for name in _SECONDS), strict=True):
            if not isnan(values[0]) and not all(isnan(value) for value in values[2:]):
                yield ["" if isnan(value) else f"{value:.10g}" for value in values]
        return
    yield ["job", "direction", *_FIGURES, *(f"{name}_ns" for name in _PERCENTILES)]
    for run in data.runs:
        for row in run.summary.get("rows", ()):
            for direction, figures in {**row["directions"], **syncs_of(row)}.items():
                numbers = [figures.get(name) for name in _FIGURES]
                numbers += [figures["percentiles"].get(name) for name in _PERCENTILES]
                cells = ["" if value is None else f"{value:.10g}" for value in numbers]
                yield [cell_text(printable(str(row["name"]))), direction, *cells]


PACKAGE = "pyarrow"
ROWS = 3600
"""The rows in a row group: an hour of seconds, about 20 MB before they are written."""
_FLAGS = ("flags",)


class ParquetTable:
    """Writes rows to ``out``, an hour of seconds at a time. Raises Missing (exit 5) without
    pyarrow. Each column has its ``unit``, ``source`` and ``meaning``; ``about`` describes the table
    as a whole. Unknown values are null. Exceptions of ``out`` are passed on. The types do not
    depend on the values: TIME (UTC, ms), WHOLE, WORDS, and FIGURE, a double."""

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
        """Add a row, which has a value for each column."""
        for cell, column in zip(cells, self._rows, strict=True):
            column.append(cell)
        if len(self._rows[0]) >= ROWS:
            self._write_rows()

    def __enter__(self) -> ParquetTable:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        """Write the remaining rows and the end of the table."""
        try:
            if failed is None:
                if self._rows[0]:
                    self._write_rows()
                self._writer.close()
        finally:
            # close a broken table now, so that pyarrow doesn't try it later
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
        """The schema. The descriptions are stored with each column, where readers of Arrow find
        them, and also as one JSON object for the whole table, for other readers."""
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


def instant(wall_ms: float) -> datetime:
    """A wall-clock time, rounded in the same way as by ``utc`` (format.py)."""
    return utc_datetime(round(wall_ms))


_TYPES: Mapping[tuple[str, ...], str] = {("utc",): TIME, _FLAGS: WORDS, ("step",): WHOLE}


def _column(path: tuple[str, ...]) -> Column:
    field = find_field((*path, "*") if path == _FLAGS else path)
    assert field is not None, path
    return field.column(printable(".".join(path)), _TYPES.get(path, FIGURE))


def _cell(path: tuple[str, ...], value: Any, wall_ms: float) -> Any:
    if path == ("utc",):
        # rounded like the text column; null if the text is null
        return None if value is None else instant(wall_ms)
    return " ".join(value) if path == _FLAGS else value


def write_parquet(source: Source, redact: bool, out: BinaryIO) -> None:
    """Write a row for every frame. The column ``step`` distinguishes an experiment's runs. Raises
    Missing (exit 5) without pyarrow, UsageError for a result of fio."""
    require_packages(PACKAGE)
    if not source.recorded:
        name = printable(str(source.path))
        raise UsageError(
            f"Parquet holds the seconds of a recording, but {name} is a fio result.",
            f"For CSV: iopstui report {name} -o {source.path.stem}.csv",
        )
    with opened(source.path, redact) as recording:
        recording.skip_unneeded_fields(ROWS_WITHOUT)
        header, target = recording.header, recording.header.target
        paths = list(session_columns(target.devices_below, target.tree, target.share_source,
                                     target.on_nvme))  # fmt: skip
        figures, fold = Figures(paths), ReplayFold(header)
        with ParquetTable(out, [*map(_column, paths)], _about(header)) as table:
            for event in replay_events(recording, fold):
                if isinstance(event, FrameReady):
                    values = zip(paths, figures.from_frame(event.frame), strict=True)
                    table.row(_cell(path, value, event.frame.wall_ms) for path, value in values)
        print_why_incomplete(recording, fold)


def _about(header: form.Header) -> dict[str, str]:
    """Metadata of the table: who measured what, and when."""
    metadata = {
        "version": header.iopstui,
        "host": header.host,
        "kernel": header.kernel,
        "target": header.target.path,
        "started": utc(header.started_ms) or "",
    }
    return {key: printable(value) for key, value in metadata.items()}
