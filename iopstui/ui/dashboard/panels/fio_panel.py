"""Figures of fio in the last second."""

from __future__ import annotations

from dataclasses import replace

from iopstui import format as f
from iopstui.model.figures.figure import HIGHEST, RANKS
from iopstui.model.fio.interval import BW, IOPS, FioInterval
from iopstui.model.metrics import frame as flags
from iopstui.session.run_rows import LATENCIES, means_text
from iopstui.tables import Column
from iopstui.ui.draw.rows import Line, Piece, Row, pad, rule, table_for, wrap
from iopstui.ui.draw.style import BOLD, DIM, FIO, WARNING, Charset
from iopstui.ui.state.live import LiveState

LABEL = 5
RARE_IOS = 10_000


def value(state: LiveState) -> list[Piece]:
    """The text for the border of its box: IOPS and MiB/s, and when they were measured if that was
    earlier."""
    fio = state.fio.fio if state.fio else None
    if fio is None or state.fio is None:
        return []
    total = fio.total
    pieces = [(f.number(total.iops), FIO), (" IOPS", DIM), ("  ", None),
             (f.mib(total.bw), BOLD), (" MiB/s", DIM)]  # fmt: skip
    if not state.running:
        pieces += [("  ", None), (f"last second {f.clock(state.fio.t)}", WARNING)]
    return pieces


COLUMNS = (
    IOPS.screen_column(FIO),
    BW.screen_column(title="MiB/s"),
    Column("slat_ns", "slat", 6, f.dense, rank=4),
    Column("", "clat", 6, f.dense, read=lambda d: d.lat_ns if d.clat_ns is None else d.clat_ns),
    *(RANKS[name].screen_column(width=6, rank=rank)
      for name, rank in (("p50", 2), ("p90", 5), ("p95", 6), ("p99", 0), ("p99.9", 1),
                         ("p99.99", 3))),
    HIGHEST.screen_column(width=6, rank=1),
)  # fmt: skip


def rows(state: LiveState, width: int, height: int, charset: Charset, job: str) -> list[Row]:
    """The panel's rows. ``job`` is the job that the key r would run."""
    fio = state.fio.fio if state.fio else None
    text, loud = status(state, job)
    interval_text, name = "", "fio, this second"
    if fio is not None and fio.seconds:
        interval_text = f"over {fio.seconds:.2f} s"
    if fio is not None and state.fio is not None and not state.running:
        name = f"fio, its last second ({f.clock(state.fio.t)})"
    title = rule(
        width, charset, (name, BOLD), right=((interval_text, DIM),) if interval_text else ()
    )
    body: list[Row] = []
    if fio is not None:
        body += _table(fio, width, charset, dim=state.late or not state.running)
        # a fleet of hosts does not report it
        if fio.iodepth_level:
            body.append(_load_row(fio, width, charset))
    note = wrap(width, charset, text, WARNING if loud else DIM)
    space = height - 1
    if len(body) + len(note) > space and note:
        note = note[: max(1, space - len(body))]
        body = body[: space - len(note)]
    return pad([title, *body, *note], height, width)


def _table(fio: FioInterval, width: int, charset: Charset, dim: bool) -> list[Row]:
    table = table_for(COLUMNS, LABEL, width, charset)
    table_rows = [table.header()]
    for name, direction in fio.directions.items():
        table_rows.append(table.row(name, direction, dim))
    if len(fio.directions) > 1:
        table_rows.append(table.row("total", fio.total, dim))
    if fio.sync is not None:
        table_rows.append(table.row("sync", replace(fio.sync, bw=None), dim))
    return table_rows


def _load_row(fio: FioInterval, width: int, charset: Charset) -> Row:
    line = Line(width, charset)
    line.add("depth", DIM)
    levels = [(depth, share) for depth, share in fio.iodepth_level.items() if share >= 0.5]
    for depth, share in levels[-4:]:
        line.add(f"  {depth}:", DIM).add(f"{f.percent(share):>4} %")
    if not levels:
        line.add("  no I/O was issued", DIM)
    if fio.usr_cpu is not None and fio.sys_cpu is not None:
        line.try_add(
            ("   job CPU usr", DIM), (f"{f.percent(fio.usr_cpu):>4} %", None),
            ("  sys", DIM), (f"{f.percent(fio.sys_cpu):>4} %", None),
        )  # fmt: skip
    if fio.ctx_s is not None:
        line.try_add(("   ctx/s", DIM), (f"{f.number(fio.ctx_s):>6}", None))
    return line.build()


def status(state: LiveState, job: str) -> tuple[str, bool]:
    """A note about these figures, and whether it is a warning."""
    if state.step is None:
        if state.finished is not None and state.finished.error:
            keys = f"; press r to run {job} again, j to choose" if job else ""
            return f"the job did not start{keys}", True
        if not job:
            return "no job runs", False
        if state.next_run.requested:
            return f"{job} is being prepared", False
        return f"no job: press r to run {job}, j to choose", False
    if state.creating_file:
        return layout_text(state), False
    frame = state.fio
    if frame is None or frame.fio is None:
        if not state.running:
            return "the job ended before fio reported any figures", True
        return "fio is starting; first figures in one second", False
    if state.late:
        age = state.frame.fio_age_s if state.frame else None
        duration = f" for {age:.1f} s" if age is not None else ""
        is_stopped = any(job.is_stopped for job in state.frame.jobs) if state.frame else False
        why = "A signal has stopped it." if is_stopped else "One stuck job delays all reports."
        return f"late: no report from fio{duration}; these are its last figures. {why}", True
    return _interval_note(frame.fio, frame.flags, state)


def _ended_text(state: LiveState) -> str:
    """The figures of the whole run: the table above has those of its last second."""
    row = state.ended_run
    if row is None or row.iops is None:
        return "no job is running; figures of its last second"
    return f"whole run: {means_text(row, LATENCIES[1:])}"


def layout_text(state: LiveState) -> str:
    """Progress of the creation of the job's file."""
    progress = state.progress
    if progress is None:
        return "fio is creating the scratch file; not measuring yet"
    text = f"{progress.what}: {f.size(progress.done)}"
    if progress.total:
        share = min(100.0, 100 * progress.done / progress.total)
        text += f" of {f.size(progress.total)} ({share:.0f} %)"
    return text + "; not measuring yet"


def _interval_note(
    fio: FioInterval, frame_flags: frozenset[str], state: LiveState
) -> tuple[str, bool]:
    if not state.running:
        return _ended_text(state), False
    shown, run = state.fio, state.step
    if shown is not None and run is not None and shown.step < run.step:
        return f"figures of run {shown.step}; run {run.step} reports within a second", False
    if flags.NO_LATENCY in frame_flags:
        return "this job measures no latency (gtod_reduce)", False
    if flags.RAMP in frame_flags:
        return "ramp: fio is warming up; no latencies yet", False
    if flags.SOME_LATENCY in frame_flags:
        return "latencies cover only some I/Os: not all sections measure them", False
    if flags.WRONG_LATENCY in frame_flags:
        return "impossible latencies: too long for these IOPS and this depth", True
    if flags.SUBMITTED in frame_flags:
        return "IOPS counts submissions: block sizes vary, and there is no latency", False
    if flags.RESET in frame_flags:
        return "fio reset its counters (end of the ramp)", False
    if flags.HANDOVER in frame_flags:
        return "change of runs: both did I/O in this second; it is in no mean", False
    if {flags.APPROX_IOPS, flags.APPROX_BW} & frame_flags:
        return "I/Os or bytes are of other seconds: fio waited for its slowest job", False
    if flags.PARTIAL in frame_flags:
        return "a short interval, or a job ended in it", False
    if fio.total.bins_of == "lat" and fio.total.clat_ns is None:
        return "clat is off in this job: column and percentiles show lat", False
    if 0 < fio.total.ios < RARE_IOS:
        return f"p99.99 is uncertain: only {fio.total.ios} I/Os in this second", False
    return "", False
