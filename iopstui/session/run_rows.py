"""The runs of a session as rows, from its events, and as a table of text.

Live and recorded events give the same rows on the screen, in reports and in replays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from iopstui import format as f
from iopstui.events import (
    Event,
    ExperimentFinished,
    ExperimentStarted,
    FrameReady,
    Mark,
    PointFinished,
    PointStarted,
    RunAddedUp,
    StepFinished,
    StepStarted,
    TunableChanged,
)
from iopstui.model.experiment.point import POINT
from iopstui.model.fio.interval import MEANS
from iopstui.model.metrics.run_figures import MarkInterval, MarkIntervals
from iopstui.model.metrics.run_history import DONE, FAILED, RUNS, STOPPED, RunHistory, RunRow
from iopstui.tables import Column, head_line, row_line
from iopstui.text import printable, wrapped

WIDTH = 80


def _figure(name: str, width: int, rank: int = 0) -> Column:
    """The column of a figure that runs have in common with points."""
    return POINT[name].screen_column(width=width, rank=rank, read=None)


def _seconds(count: float | None) -> str:
    return f.or_dash(count, "{:.0f}")


def _ending(outcome: str) -> str:
    return "no end" if outcome == RUNS else outcome


COMPARED_S = 1.5
"""A sentence does not compare with a run that measured less, as a point of a sweep may have."""
MOST_DIFFERENCES = 2
_TIMES = ("runtime", "timeout", "ramp_time", "startdelay", "time_based")
"""How long a run measures, which changes nothing in what it measures."""
_OTHERS_DID = r"others did at least (\S+(?: [KMGT]?i?B)?) of .*?( I/Os)? a second on ([^ ,]+)"
_FULL_CPU = r"CPU [\d, -]+ (?:was|were) full"
MOST_NAMED = 8
DISTURBED = "~"
"""Mark before a run, or a point, that was disturbed; its outcome says by what."""
MEAN = MEANS["clat"].screen_column(id="mean_ns", width=6, rank=7, read=None)
P999 = _figure("p999_ns", 6, 8)
RUN_COLUMNS = (
    Column("step", "run", 4, read=lambda row: run_number(row),
           key=lambda row: row.step),
    Column("what", "what was changed", 27, printable, left=True,
           read=lambda row: row.what_and_point),
    _figure("iops", 5), Column("to_before", "change", 8, f.change), _figure("bw", 5, 1),
    MEAN, _figure("p50_ns", 6, 5), _figure("p99_ns", 6), P999, _figure("aqu_sz", 6, 3),
    _figure("util", 6, 4),
    Column("seconds", "s", 5, _seconds, rank=2),
    Column("ended", "ended", 8, _ending, left=True, rank=6),
)  # fmt: skip
TAIL = ("p99_ns",)
LATENCIES = ("mean_ns", "p50_ns", "p99_ns", "p999_ns")
RTT = Column("rtt_ms", "RTT", 6, f.dense_ms, rank=3)
_TEXT_COLUMNS = (
    RUN_COLUMNS[0],
    Column("", "what was changed", 27, left=True, read=lambda row: printable(
        f"{'failed: ' if row.ended == FAILED else ''}{row.what_and_point}")),
    *(column for column in RUN_COLUMNS[2:]
      if column.id not in ("mean_ns", "p999_ns", "util", "ended")),
)  # fmt: skip
MARK_COLUMNS = (
    Column("", " time", 15, left=True,
           read=lambda interval: f" {f.clock(interval.start)}-{f.clock(interval.end)}"),
    Column("text", "from this mark on", 32, printable, left=True),
    Column("", "IOPS", 7,
           read=lambda interval: f.number(interval.iops) + ("" if interval.by_fio else " d")),
    _figure("bw", 7), _figure("p99_ns", 8), RUN_COLUMNS[-2],
)  # fmt: skip
"""IOPS and MiB/s are means. If no job ran, they are the device's and marked with a "d"."""


def run_number(row: RunRow) -> str:
    """The number of a run, with a mark if it was disturbed."""
    return f"{DISTURBED * bool(row.disturbed)}{row.step}"


def disturbed_mark(rows: Sequence[RunRow]) -> str:
    """What the mark of a disturbed run means; "" if none of these has it."""
    return f"{DISTURBED} disturbed" if any(row.disturbed for row in rows) else ""


def run_columns(rows: Sequence[RunRow], columns: Sequence[Column] = RUN_COLUMNS) -> list[Column]:
    """The columns of these runs; runs on NFS have the time of an answer in place of a device's
    queue."""
    if all(row.rtt_ms is None for row in rows):
        return [*columns]
    return [RTT if column.id == "aqu_sz" else column for column in columns if column.id != "util"]


def against_base(base: int | None) -> Column:
    """The column with the change of each run's IOPS from those of run ``base``."""

    def text(row: RunRow) -> str:
        return "" if base is None else "base" if row.step == base else f.change(row.to_base)

    return Column("to_base", "base", 8, read=text)


def add_run_event(history: RunHistory, event: Event) -> None:
    match event:
        case FrameReady():
            history.add_frame(event.frame)
        case StepStarted():
            history.start_run(event.step, event.job, event.title, event.options)
        case ExperimentStarted():
            history.start_experiment("comparison" if event.plan.variants else "sweep")
        case PointStarted():
            history.start_point(event.index, event.total)
        case ExperimentFinished():
            history.end_experiment()
        case TunableChanged():
            history.note_tunable_change(event.device, event.name, event.before, event.now)
        case RunAddedUp():
            history.add_total(event.step, event.total)
        case StepFinished():
            outcome = FAILED if event.error else STOPPED if event.interrupted else DONE
            history.finish_run(event.step, outcome, event.disturbed)
        case PointFinished() if not event.earlier:
            history.disturb_point(event.point.disturbed)


def add_mark_event(mark_intervals: MarkIntervals, event: Event) -> None:
    match event:
        case FrameReady():
            mark_intervals.add_frame(event.frame)
        case Mark():
            mark_intervals.add_mark(event.t, event.text)
        case StepStarted(phase="run"):
            mark_intervals.start_run(event.t, event.title or event.job)


def mark_interval_rows(intervals: Sequence[MarkInterval]) -> Iterator[str]:
    """A table of at most 80 columns, the oldest interval first."""
    yield head_line(MARK_COLUMNS)
    for mark_interval in intervals:
        yield row_line(MARK_COLUMNS, mark_interval)
    if not all(interval.by_fio for interval in intervals):
        yield " d: of the device, as no job ran"


def run_outcome(row: RunRow, name: str = "", latencies: Sequence[str] = TAIL) -> str:
    """The outcome of a run, in half a line, with these ``latencies``. ``name`` is what
    ``RunHistory.name_of`` calls it."""
    name = name or f"run {row.step}"
    outcome = "" if row.ended == DONE else f" {row.ended}"
    if row.iops is None:
        return f"{name}{outcome} without results"
    return f"{name}{outcome}: {run_figures(row, latencies)}"


def run_figures(row: RunRow, latencies: Sequence[str] = TAIL) -> str:
    """The figures of a run that measured something, with these ``latencies``, the change from the
    run before, and what disturbed it."""
    text = ", ".join(filter(None, (means_text(row, latencies), change_text(row))))
    return f"{text}, disturbed; {'; '.join(row.disturbed)}" if row.disturbed else text


def means_text(row: RunRow, latencies: Sequence[str] = TAIL) -> str:
    """The means of a run that measured something, with these ``latencies``."""
    text = f"{f.number(row.iops)} IOPS, {f.mib(row.bw)} MiB/s"
    for column in RUN_COLUMNS:
        if column.id in latencies and (ns := getattr(row, column.id)) is not None:
            text += f", {column.title} {f.latency(ns)}"
    return text


def brief_reason(disturbed: Sequence[str]) -> str:
    """The first reason (model/experiment/disturbance.py) in a few words that follow the IOPS: "
    (beside ≥ 40 MiB/s of others on vda)"; ", disturbed" if there are none for it; "" without a
    reason."""
    for reason in disturbed:
        if match := re.match(_OTHERS_DID, reason):
            amount, ios, disk = match.groups(default="")
            return f" (beside ≥ {amount}{ios}/s of others on {disk})"
        if re.match(_FULL_CPU, reason):
            return " with CPUs full of other programs"
    return ", disturbed" if disturbed else ""


def change_text(row: RunRow) -> str:
    """The change of a run's IOPS from those of the run before, and what it did otherwise: "-25 % to
    run 11 (iodepth 256 → 32)"; "" where there is nothing to compare."""
    if row.to_before is None or min(row.seconds or 0.0, row.before_s or 0.0) < COMPARED_S:
        return ""
    differences = [text for text in row.changed or () if text.partition(" ")[0] not in _TIMES]
    which = printable(f.first_of(differences, MOST_DIFFERENCES))
    return f"{f.change(row.to_before)} to run {row.before}{f' ({which})' if which else ''}"


def run_table_rows(rows: Sequence[RunRow]) -> Iterator[str]:
    """A table of at most 80 columns, the oldest run first; ``change`` is the change of IOPS from
    the run before."""
    columns = run_columns(rows, _TEXT_COLUMNS)
    yield head_line(columns)
    for row in rows:
        yield row_line(columns, row)
    disturbed = [row for row in rows if row.disturbed]
    for row in disturbed[-1:]:
        text = f"{DISTURBED} run {row.step} was disturbed: {'; '.join(row.disturbed)}"
        if others := [f"run {row.step}" for row in disturbed[:-1]]:
            text += f". So were {f.first_of(others, MOST_NAMED)}"
        yield from wrapped(printable(text), 1, 3, WIDTH).split("\n")
