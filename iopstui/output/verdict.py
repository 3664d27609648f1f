"""Describe the outcomes of expectations and steady state in words, with any sink."""

from __future__ import annotations

from typing import TextIO

from iopstui import format as units
from iopstui.events import Event, ExpectationChecked, SteadyState, StepFinished
from iopstui.output.sinks import EventSink
from iopstui.session.tick.outcomes import outcome_event_text
from iopstui.text import wrapped


class VerdictSink:
    """Passes a session's events on, and prints a run's outcomes to ``stream`` once all are known.
    ``judged`` are the outcomes of the last run."""

    def __init__(self, inner: EventSink, stream: TextIO) -> None:
        self._inner = inner
        self._stream = stream
        self._interrupted = False
        self.judged: list[ExpectationChecked] = []

    def handle(self, event: Event) -> None:
        self._inner.handle(event)
        match event:
            case StepFinished():
                self.judged, self._interrupted = [], event.interrupted
            case ExpectationChecked():
                self.judged.append(event)
            case SteadyState():
                self._report_steadiness(event)

    def close(self) -> None:
        self._inner.close()

    def _report_steadiness(self, steady: SteadyState) -> None:
        if steady.steady is None and not self.judged:
            return  # the run is too short, and no verdict was requested
        span = "the time until the interruption" if self._interrupted else "the whole run"
        lines = [f"Expectations for {span}:"] if self.judged else []
        lines += [wrapped(outcome_event_text(judged), 2, 8) for judged in self.judged]
        lines.append(wrapped(steady.text, 0, 2))
        self._stream.write(
            units.replace_unprintable("\n" + "\n".join(lines) + "\n", self._stream.encoding)
        )
        self._stream.flush()
