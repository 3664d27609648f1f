"""The runs of the session: the change made for each, and its result.

The newest run is first, so a speaker always looks at one place. The base stays visible as the last
row when newer runs would push it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from iopstui import format as f
from iopstui.model.metrics.run_history import FAILED, RUNS, RunRow
from iopstui.session.run_rows import measured_seconds_text
from iopstui.text import printable
from iopstui.ui.draw.rows import Column, Piece, Row, Table, pad, rule, wrap
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FIO, KEY, MARK, SELECTED, Charset
from iopstui.ui.state.live import LiveState

HEIGHT = 8
MIN_WHAT, MAX_WHAT = 27, 66
_STATE_TEXTS = {RUNS: "runs now"}


def _columns(base: int | None, shared: bool) -> tuple[Column[RunRow], ...]:
    """``shared``: the runs are on NFS, which has a round-trip time and no device queue."""

    def to_base(row: RunRow) -> str:
        if base is None:
            return ""
        return "base" if row.step == base else f.change(row.to_base)

    return (
        Column("IOPS", 7, lambda r: f.number(r.iops), style=FIO),
        Column("before", 9, lambda r: f.change(r.to_before), style=BOLD),
        Column("base", 9, to_base),
        Column("MiB/s", 7, lambda r: f.mib(r.bw), drop=1),
        Column("p50", 8, lambda r: f.latency(r.p50_ns, ""), drop=5),
        Column("p99", 8, lambda r: f.latency(r.p99_ns, "")),
        Column("RTT", 7, lambda r: f.milliseconds(r.rtt_ms, ""), drop=3)
        if shared
        else Column("aqu-sz", 7, lambda r: f.number(r.aqu_sz), drop=3),
        Column("util%", 6, lambda r: f.percent(r.util), drop=4),
        Column("s", 5, measured_seconds_text, drop=2),
        Column("ended", 9, lambda r: _STATE_TEXTS.get(r.ended, r.ended), drop=6),
    )


@lru_cache(8)
def _table(base: int | None, shared: bool, width: int, charset: Charset) -> Table[RunRow]:
    """Return the table; its columns depend on the width, and whether the runs are on NFS."""
    columns = _columns(base, shared)
    spare = width - sum(column.width for column in columns)
    return Table(columns, min(MAX_WHAT, max(MIN_WHAT, spare)), width, charset)


def _row(row: RunRow, base: int | None, table: Table[RunRow]) -> Row:
    style = MARK if row.step == base else ERROR if row.ended == FAILED else None
    return table.row(f"{row.step:>4}  {printable(row.what)}", row, label_style=style)


def _body(
    state: LiveState,
    rows: Sequence[RunRow],
    width: int,
    charset: Charset,
    cursor: int | None = None,
    chosen: Sequence[int] = (),
) -> list[Row]:
    shared = any(row.rtt_ms is not None for row in rows)
    table = _table(state.runs.base, shared, width, charset)
    body = [_row(row, state.runs.base, table) for row in rows]
    for at, row in enumerate(rows):
        if row.step in chosen:
            body[at] = _with_sign(body[at], charset)
    if cursor is not None and cursor < len(body):
        body[cursor] = tuple((text, SELECTED) for text, _ in body[cursor])
    return [table.header(" run  what was changed"), *body]


def rows(state: LiveState, width: int, height: int, charset: Charset, next_job: str) -> list[Row]:
    """The panel: the newest runs, and the base."""
    newest_first = state.runs.rows[::-1]
    space = max(0, height - 2)
    runs_shown = newest_first[:space]
    base = next((row for row in newest_first if row.step == state.runs.base), None)
    if base is not None and base not in runs_shown and space:
        runs_shown[-1] = base
    more = f"v: all {len(newest_first)}" if len(newest_first) > len(runs_shown) else "v: all"
    title = rule(width, charset, ("Runs", BOLD), right=((more, DIM),))
    if not newest_first:
        text = (
            f"none yet: r runs {printable(next_job)}; each change with [ ] {{ }} b starts another"
        )
        text = text if next_job else "none: no job was given"
        return pad([title, *wrap(width, charset, text)], height, width)
    return pad([title, *_body(state, runs_shown, width, charset)], height, width)


def value(state: LiveState) -> list[Piece]:
    """Return the text for the border of its box: number of runs, and the keys."""
    count = len(state.runs.rows)
    pieces: list[Piece] = [(f"{count} in all", DIM), ("  ", None)] if count else []
    return [*pieces, ("v", KEY), (" list", DIM)]


def _with_sign(row: Row, charset: Charset) -> Row:
    (text, style), *other_pieces = row
    return ((charset.text("●") + text[1:], style), *other_pieces)


def list_rows(
    state: LiveState,
    width: int,
    charset: Charset,
    cursor: int | None = None,
    chosen: Sequence[int] = (),
) -> list[Row]:
    """All kept runs, the newest first; the one at ``cursor`` is highlighted, and those numbered
    ``chosen`` have a mark."""
    newest_first = state.runs.rows[::-1]
    if not newest_first:
        return wrap(width, charset, "No job has run yet in this session.")
    return _body(state, newest_first, width, charset, cursor, chosen)
