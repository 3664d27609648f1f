"""A report as CSV."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from math import isnan

from iopstui.features.reports.foreign import load_foreign_report
from iopstui.features.reports.redact import opened
from iopstui.features.reports.report_data import ReportData
from iopstui.features.reports.sources import Source
from iopstui.model.block.tunable import TUNABLES
from iopstui.output.csv_out import CsvSink, cell_text
from iopstui.output.replay import ReplayedExperiments, has_experiment
from iopstui.output.sinks import EventSink
from iopstui.output.summary import syncs_of
from iopstui.recording.layout import RecordedDevices
from iopstui.recording.partial_samples import ROWS_WITHOUT
from iopstui.recording.reader import Recording
from iopstui.recording.replay import ReplayFold, replay_events, sysfs_text, why_incomplete
from iopstui.text import printable


def csv_text(source: Source, redact: bool = False) -> str:
    """A row for every frame; columns as in `iopstui run --format csv`. Of experiments a row for
    every point; of fio's logs a row for every second, of its results without any for every job."""
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
    """Print on standard error that the recording is not complete: the rows can't show it."""
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
