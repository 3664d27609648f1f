"""A report as CSV."""

from __future__ import annotations

import io
from pathlib import Path

from iopstui.output.csv_out import CsvSink
from iopstui.output.replay import ReplayedExperiments, has_experiment
from iopstui.output.sinks import EventSink
from iopstui.recording.replay import replayed
from iopstui.report.redact import opened


def csv_text(path: Path, redact: bool = False) -> str:
    """A row for every frame; columns as in `iopstui run --format csv`. Of experiments a row for
    every point."""
    stream = io.StringIO()
    with opened(path, redact) as recording:
        sink: EventSink = CsvSink(stream, recording.header.target.on)
        if has_experiment(recording):
            sink = ReplayedExperiments("csv", recording.header, stream, io.StringIO())
        for event in replayed(recording):
            sink.handle(event)
        sink.close()
    return stream.getvalue()
