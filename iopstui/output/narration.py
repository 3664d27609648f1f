"""Describe events in words for people, on standard error."""

from __future__ import annotations

import os
import stat
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
from iopstui.format import clock, number, print_sentence, replace_unprintable, size
from iopstui.model.findings.finding import end_text, period_text
from iopstui.model.metrics.frame import Frame
from iopstui.output.summary import interruption
from iopstui.text import printable


class StatusLine:
    """A progress line. Call ``clear`` before writing anything else to the same terminal. Nothing is
    drawn if ``stream`` is not a terminal, or if the data goes to ``out`` and that is a pipe, whose
    reader may write to the same terminal."""

    def __init__(self, stream: TextIO, out: TextIO | None = None) -> None:
        self._stream = stream
        self._drawn = 0
        self.alive = stream.isatty() and not (out is not None and _is_pipe(out))

    def draw(self, text: str) -> None:
        """Show ``text`` instead of the previous text, cut to the terminal's width."""
        if not self.alive:
            return
        line = replace_unprintable(printable(text), self._stream.encoding)[: self._columns() - 1]
        self._stream.write("\r" + line.ljust(self._drawn))
        self._stream.flush()
        self._drawn = len(line)

    def clear(self) -> None:
        if self._drawn:
            # no more blanks than fit in a row: a wrapped line can't be overwritten
            blanks = " " * min(self._drawn, self._columns() - 1)
            self._stream.write(f"\r{blanks}\r")
            self._stream.flush()
            self._drawn = 0

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except OSError:
            return 80


def _is_pipe(stream: TextIO) -> bool:
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class ProgressShare:
    """The completed share of some work, and the remaining time estimated from the rate so far."""

    def __init__(self) -> None:
        self._first: LayoutProgress | None = None

    def text(self, event: LayoutProgress) -> str:
        """ "creating the scratch file: 43 %, 28 MiB of 64 MiB, 0:03 left"."""
        first = self._first
        if first is None or event.step != first.step or event.done < first.done:
            first = self._first = event
        if not event.total:
            return f"{event.what}: {size(event.done)}"
        text = f"{event.what}: {_percent(event.done / event.total)}, "
        text += f"{size(event.done)} of {size(event.total)}"
        done, passed = event.done - first.done, event.t - first.t
        if done > 0 and passed > 0:
            text += f", {clock(max(0, event.total - event.done) * passed / done)} left"
        return text


def run_progress_text(frame: Frame) -> str:
    """ "57 %, 0:26 left, 47.0k IOPS", without the parts that fio does not report."""
    fio = frame.fio
    if fio is None:
        return ""
    parts = [] if fio.progress is None else [_percent(fio.progress)]
    if fio.eta_s is not None:
        parts.append(f"{clock(fio.eta_s)} left")
    return ", ".join([*parts, f"{number(fio.total.iops)} IOPS"])


def _percent(share: float) -> str:
    return f"{100 * min(1.0, max(0.0, share)):.0f} %"


def share_progress_text(share: float, left_s: float) -> str:
    """ "57 %, 0:26 left"."""
    return f"{_percent(share)}, {clock(left_s)} left"


class RunProgress:
    """Prints the progress of a command that runs several jobs in turn, on ``err``: one line per
    run, warnings, and the progress of a layout."""

    def __init__(self, err: TextIO, out: TextIO) -> None:
        self._err = err
        self._share = ProgressShare()
        self._line = StatusLine(err, out)

    def handle(self, event: Event) -> None:
        if isinstance(event, LayoutProgress) and self._line.alive:
            self._line.draw(f"[{clock(event.t)}] {self._share.text(event)}")
        elif isinstance(event, Notice) and event.level != "info":
            self.write_note(f"{event.level}: {event.text}")

    def write_note(self, message: str) -> None:
        """Print ``message`` on a line of its own."""
        self._line.clear()
        print_sentence(printable(message), self._err)


LOG_LINES = 10


class Narrator:
    """Prints lines about the events that are not frames. Progress is shown in ``line``, which is
    overwritten, on a terminal; elsewhere in a new line for each 10 %. Runs that are not
    ``measured`` have no figures."""

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
            print_sentence(f"[{clock(event.t)}] {printable(text)}", self._stream)

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
