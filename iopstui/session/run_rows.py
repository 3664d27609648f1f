"""The runs of a session as rows, from its events, and as a table of text.

Screen, report and replay tell the same: live events and recorded ones give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iopstui import format as f
from iopstui.events import Event, FrameReady, Mark, StepFinished, StepStarted, TunableChanged
from iopstui.model.metrics.mark_intervals import MarkInterval, MarkIntervals
from iopstui.model.metrics.run_history import DONE, FAILED, RUNS, STOPPED, RunHistory, RunRow
from iopstui.text import printable

WIDTH = 80
_WHAT = 28
_MARKED = 32
_HEAD = ("IOPS", "change", "MiB/s", "p50", "p99", "aqu-sz", "s")
_WIDTHS = (6, 9, 6, 7, 7, 7, 5)
_MARKS = {DONE: "", RUNS: "", STOPPED: "", FAILED: "failed: "}


def add_run_event(history: RunHistory, event: Event) -> None:
    """One event of the session."""
    match event:
        case FrameReady():
            history.frame(event.frame)
        case StepStarted():
            history.started(event.step, event.job, event.title, event.options)
        case TunableChanged():
            history.turned(event.device, event.name, event.before, event.now)
        case StepFinished():
            ended = FAILED if event.error else STOPPED if event.interrupted else DONE
            history.finished(event.step, ended)


def add_mark_event(stretches: MarkIntervals, event: Event) -> None:
    """One event of the session, for what is told by marks."""
    match event:
        case FrameReady():
            stretches.frame(event.frame)
        case Mark():
            stretches.mark(event.t, event.text)
        case StepStarted(phase="run"):
            stretches.started(event.t, event.title or event.job)


def mark_interval_rows(stretches: Sequence[MarkInterval]) -> Iterator[str]:
    """A table of at most 80 columns, the oldest stretch first; IOPS and MiB/s are means."""
    heads = ("IOPS", "MiB/s", "p99", "s")
    widths = (8, 8, 9, 6)
    cells = (cell.rjust(width) for cell, width in zip(heads, widths, strict=True))
    yield f" {'time':<14} {'from this mark on':{_MARKED}}{''.join(cells)}"
    for one in stretches:
        time = f"{f.clock(one.start)}-{f.clock(one.end)}"
        values = mark_interval_cells(one)
        cells = (cell.rjust(width) for cell, width in zip(values, widths, strict=True))
        yield f" {time:<14} {f.cut(printable(one.text), _MARKED):{_MARKED}}{''.join(cells)}"
    if not all(one.by_fio for one in stretches):
        yield " d: of the device, as no job ran"


def mark_interval_cells(one: MarkInterval) -> tuple[str, str, str, str]:
    """IOPS, MiB/s, p99 and seconds; the device's, where no job ran, are told so by a "d"."""
    iops = f.number(one.iops) + ("" if one.by_fio else " d")
    return iops, f.mib(one.bw), f.latency(one.p99_ns, ""), f"{one.seconds:.0f}"


def run_outcome(row: RunRow) -> str:
    """What came of a run, in half a line."""
    how = "" if row.ended == DONE else f" {row.ended}"
    if row.iops is None:
        return f"run {row.step}{how} without results"
    words = f"run {row.step}{how}: {f.number(row.iops)} IOPS, {f.mib(row.bw)} MiB/s"
    if row.p99_ns is not None:
        words += f", p99 {f.latency(row.p99_ns)}"
    if row.to_before is not None:
        words += f", {f.change(row.to_before)} to run {row.before}"
    return words


def text_rows(rows: Sequence[RunRow]) -> Iterator[str]:
    """A table of at most 80 columns, the oldest run first; ``change`` is that of IOPS to the run
    before."""
    cells = (cell.rjust(width) for cell, width in zip(_HEAD, _WIDTHS, strict=True))
    yield f" run {'what was changed':{_WHAT}}{''.join(cells)}"
    for row in rows:
        values = (
            f.number(row.iops), f.change(row.to_before), f.mib(row.bw), f.latency(row.p50_ns, ""),
            f.latency(row.p99_ns, ""), f.number(row.aqu_sz), seconds(row),
        )  # fmt: skip
        what = f.cut(printable(_MARKS[row.ended] + row.what), _WHAT)
        cells = (cell.rjust(width) for cell, width in zip(values, _WIDTHS, strict=True))
        yield f"{row.step:>4} {what:{_WHAT}}{''.join(cells)}"


def seconds(row: RunRow) -> str:
    """How many seconds were measured."""
    return f.MISSING if row.seconds is None else f"{row.seconds:.0f}"
