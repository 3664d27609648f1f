"""The runs of the session: what was changed for each, and its result.

The newest run is the first row, so that it is always in the same place. If newer runs push the base
run out, it is shown as the last row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from iopstui.model.metrics.run_history import FAILED, RUNS, RunRow
from iopstui.session.run_rows import (
    LATENCIES,
    RTT,
    RUN_COLUMNS,
    against_base,
    disturbed_mark,
    run_number,
)
from iopstui.tables import Column
from iopstui.text import printable
from iopstui.ui.draw.rows import Piece, Row, Table, pad, rule, wrap
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FIO, KEY, MARK, Charset
from iopstui.ui.state.live import LiveState

HEIGHT = 8
MIN_WHAT, LEAST_WHAT, MAX_WHAT = 33, 27, 66
FULL_WHAT_FROM = 68
"""From this width on, the first column has room for a job such as "randread 4k QD 32 × 1 job"."""
_WIDTHS = {"iops": 6, "bw": 6, **dict.fromkeys(LATENCIES, 7), "util": 5, "seconds": 4}
_TITLES = {"to_before": "before", "util": "util%"}
_STYLES = {"iops": FIO, "to_before": BOLD}


def _ending(outcome: str) -> str:
    return "runs now" if outcome == RUNS else outcome


def _columns(base: int | None, shared: bool) -> list[Column]:
    """The columns. ``shared``: the runs are on NFS, which has a round-trip time and no device
    queue."""
    *columns, ended = (
        replace(column, width=_WIDTHS.get(column.id, column.width), style=_STYLES.get(column.id),
                title=_TITLES.get(column.id, column.title))
        for column in RUN_COLUMNS[2:]
    )  # fmt: skip
    columns = [RTT if shared and column.id == "aqu_sz" else column for column in columns]
    to_base = [] if base is None else [against_base(base)]
    return [*columns[:2], *to_base, *columns[2:], replace(ended, form=_ending)]


@lru_cache(8)
def _table(base: int | None, shared: bool, width: int, charset: Charset) -> Table[RunRow]:
    """The table; its columns depend on the width and on whether the runs are on NFS."""
    columns = _columns(base, shared)
    spare = width - sum(column.cells for column in columns)
    least = MIN_WHAT if width >= FULL_WHAT_FROM else LEAST_WHAT
    return Table(columns, min(MAX_WHAT, max(least, spare)), width, charset)


def _body(state: LiveState, rows: Sequence[RunRow], width: int, charset: Charset) -> list[Row]:
    base = state.runs.base
    table = _table(base, any(row.rtt_ms is not None for row in rows), width, charset)
    body = [table.header(" run  what was changed")]
    for row in rows:
        style = MARK if row.step == base else ERROR if row.ended == FAILED else None
        label = f"{run_number(row):>4}  {printable(row.what_and_point)}"
        body.append(table.row(label, row, label_style=style))
    return body


def rows(state: LiveState, width: int, height: int, charset: Charset, next_job: str) -> list[Row]:
    """The panel: the newest runs, and the base run."""
    newest_first = state.runs.rows[::-1]
    space = max(0, height - 2)
    runs_shown = newest_first[:space]
    base = next((row for row in newest_first if row.step == state.runs.base), None)
    if base is not None and base not in runs_shown and space:
        runs_shown[-1] = base
    more = f"v: all {len(newest_first)}" if len(newest_first) > len(runs_shown) else "v: all"
    more = f"{disturbed_mark(runs_shown)}  {more}".strip()
    title = rule(width, charset, ("Runs", BOLD), right=((more, DIM),))
    if not newest_first:
        text = (
            f"none yet: r runs {printable(next_job)}; each change with [ ] {{ }} b starts another"
        )
        text = text if next_job else "none so far"
        return pad([title, *wrap(width, charset, text)], height, width)
    return pad([title, *_body(state, runs_shown, width, charset)], height, width)


def value(state: LiveState) -> list[Piece]:
    """The text for the border of its box: the number of runs, and the keys."""
    count = len(state.runs.rows)
    pieces: list[Piece] = [(f"{count} in all", DIM), ("  ", None)] if count else []
    return [*pieces, ("v", KEY), (" list", DIM)]
