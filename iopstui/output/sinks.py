"""Choose the output format of a headless session."""

from __future__ import annotations

from typing import Protocol, TextIO

from iopstui.events import AnswerGiven, Event, FrameReady, StepFinished, StepStarted
from iopstui.format import replace_unprintable
from iopstui.model.answer.answer import Answer
from iopstui.model.block.target import Target
from iopstui.model.metrics.run_figures import RunFigures
from iopstui.model.metrics.summary import FramesTotal
from iopstui.output.narration import Narrator, StatusLine, run_progress_text
from iopstui.output.summary import summary_text


class EventSink(Protocol):
    """A sink for a session's events. Passes ``BrokenPipeError`` of the data stream on."""

    def handle(self, event: Event) -> None:
        """Process one event."""

    def close(self) -> None:
        """End the output: nothing more will come."""


class NarratedSink:
    """A data sink combined with messages on ``err``: narration and fio's final figures."""

    def __init__(self, data: EventSink, err: TextIO) -> None:
        self._data = data
        self._err = err
        self._narrator = Narrator(err)
        self._total = FramesTotal()
        self._run = RunFigures()
        self._answer: Answer | None = None

    def handle(self, event: Event) -> None:
        """Pass the event to the data sink; also to the narration unless it is a frame."""
        self._data.handle(event)
        self._narrator.handle(event)
        match event:
            case StepStarted():
                self._total, self._run, self._answer = FramesTotal(), RunFigures(), None
            case AnswerGiven():
                self._answer = event.answer
            case FrameReady():
                self._total.add_frame(event.frame)
                self._run.add(event.frame)
            case StepFinished() if event.summary:
                figures = self._total, self._run.waits.value, self._answer
                text = summary_text(event.summary, *figures, event.disturbed)
                text = replace_unprintable(text, self._err.encoding)
                self._err.write(f"\n{text}\n")

    def close(self) -> None:
        self._data.close()
        self._narrator.close()


class StatusSink:
    """Wraps ``sink`` and shows the run's progress in a line below its rows."""

    def __init__(self, sink: EventSink, err: TextIO, out: TextIO | None = None) -> None:
        self._sink = sink
        self._line = StatusLine(err, out)

    def handle(self, event: Event) -> None:
        """Pass the event on, and after a frame draw the run's progress."""
        self._line.clear()
        self._sink.handle(event)
        if isinstance(event, FrameReady):
            self._line.draw(run_progress_text(event.frame))

    def close(self) -> None:
        self._line.clear()
        self._sink.close()


PLAIN = "plain"
"""The format with one line for each change (output/plain.py), chosen by --plain."""


def make_sink(
    kind: str, out: TextIO, err: TextIO, target: Target, host: str, every_s: float = 0.0
) -> EventSink:
    """The sink for --format ``kind`` ("table", "jsonl", "csv" or "influx") or PLAIN (with a status
    line every ``every_s`` seconds)."""
    # import only the requested one
    if kind == PLAIN:
        from iopstui.output.plain import PlainSink

        return PlainSink(out, target, every_s)
    if kind == "jsonl":
        from iopstui.output.jsonl import JsonlSink

        return NarratedSink(JsonlSink(out, host, target), err)
    if kind == "influx":
        from iopstui.output.influx import InfluxSink

        return NarratedSink(InfluxSink(out, host, target), err)
    if kind == "csv":
        from iopstui.output.csv_out import CsvSink

        return NarratedSink(
            CsvSink(out, target.devices_below, target.tree, target.share_source, target.on_nvme),
            err,
        )
    from iopstui.output.table import TableSink

    return TableSink(out, err, target)


def make_watch_sink(
    kind: str, out: TextIO, err: TextIO, target: Target, host: str, probed: bool,
    every_s: float = 0.0,
) -> EventSink:  # fmt: skip
    """The sink of a watch, which runs no job; otherwise like ``make_sink``. ``probed``: the kernel
    probe runs."""
    if kind == "table" and target.only_shares:
        from iopstui.output.watch import ShareTable

        return ShareTable(out, err, target)
    if kind == "table":
        from iopstui.output.watch import WatchTable

        return WatchTable(out, err, target, probed)
    return make_sink(kind, out, err, target, host, every_s)
