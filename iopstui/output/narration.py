"""Describe events in words for people, on standard error."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TextIO

from iopstui.events import (
    LAYOUT,
    AnswerGiven,
    Event,
    FindingEnded,
    FindingReported,
    LayoutProgress,
    Mark,
    Notice,
    StallFound,
    StepFinished,
    StepStarted,
)
from iopstui.format import clock, replace_unprintable, size
from iopstui.model.findings.finding import end_text, period_text
from iopstui.output.status_line import ProgressShare, StatusLine
from iopstui.output.summary import interruption
from iopstui.text import printable

LOG_LINES = 10


class Narrator:
    """Prints a line for every event that is not a frame. Progress is a ``line`` that is overwritten
    on a terminal; elsewhere it is a new line for each 10 %. Runs that are not ``measured`` have no
    figures."""

    def __init__(self, stream: TextIO, out: TextIO | None = None, measured: bool = True) -> None:
        self._stream = stream
        self._measured = measured
        self._tenth = -1
        self._answered: tuple[str, ...] = ()
        self._share = ProgressShare()
        self._recent_lines: deque[str] = deque(maxlen=10 * LOG_LINES)
        self.line = StatusLine(stream, out)

    def handle(self, event: Event) -> None:
        if isinstance(event, LayoutProgress) and self.line.alive:
            self.line.draw(f"[{clock(event.t)}] {self._share.text(event)}")
            return
        for text in self._lines(event):
            self.line.clear()
            line = replace_unprintable(
                f"[{clock(event.t)}] {printable(text)}", self._stream.encoding
            )
            self._stream.write(line + "\n")
            self._stream.flush()

    def close(self) -> None:
        self.line.clear()
        self._stream.flush()

    def _lines(self, event: Event) -> Iterator[str]:
        match event:
            case StepStarted():
                self._tenth = -1
                version = f" ({event.fio_version})" if event.fio_version else ""
                phase = "laying out" if event.phase == LAYOUT else "start"
                yield f"{phase}: {event.title}{version}"
            case LayoutProgress():
                yield from self._progress(event)
            case Mark():
                yield f"mark: {event.text}"
            case Notice():
                self._recent_lines.append(event.text)
                yield event.text if event.level == "info" else f"{event.level}: {event.text}"
            case FindingReported():
                advice = f" → {event.finding.advice}" if event.finding.advice else ""
                when = period_text(event.finding)
                yield f"finding{f' {when}' if when else ''}: {event.finding.text}{advice}"
            case FindingEnded():
                yield f"finding {end_text(event.since, event.until, event.why)}: {event.text}"
            case AnswerGiven(answer=answer) if answer.key != self._answered:
                self._answered = answer.key
                if not answer.repeats_finding:
                    yield answer.sentence
            case StallFound():
                yield f"stall: {event.stall.text}"
            case StepFinished():
                yield from self._finished(event)

    def _progress(self, event: LayoutProgress) -> Iterator[str]:
        tenth = 10 * event.done // event.total if event.total else 0
        if tenth > self._tenth:
            self._tenth = tenth
            total = f" of {size(event.total)}" if event.total else ""
            yield f"{event.what}: {size(event.done)}{total}"

    def _finished(self, event: StepFinished) -> Iterator[str]:
        """fio's messages about its failure; the failure itself is reported at the exit."""
        if event.error:
            for line in event.fio_log[-LOG_LINES:]:
                if line not in self._recent_lines:
                    yield f"fio says: {line}"
        elif event.interrupted and self._measured:
            yield interruption(event.summary)
