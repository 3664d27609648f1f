"""Runs as rows, from a session's events and from a recording of them."""

from __future__ import annotations

from collections.abc import Iterable

from session_frames import session

from iopstui import events
from iopstui.model.metrics.run_history import DONE, FAILED, STOPPED, RunHistory, RunRow
from iopstui.session.run_rows import WIDTH, add_run_event, run_table_rows

TITLE = "randread 4k  QD {} × 1 job"
LONG = "randrw 512k  QD 4096 × 512 jobs"


def rows_of(told: Iterable[events.Event]) -> list[RunRow]:
    history = RunHistory()
    for event in told:
        add_run_event(history, event)
    return history.rows


def test_a_session_s_events_make_its_rows() -> None:
    (row,) = rows_of(session("3.33-p-mixed", TITLE.format(8)))
    assert (row.step, row.title, row.ended) == (1, TITLE.format(8), DONE)
    assert row.iops is not None and row.p99_ns is not None and row.aqu_sz is not None


def test_how_a_run_ended_is_told() -> None:
    told = session("3.33-p-mixed")[:-2]
    for error, interrupted, ended in (("", True, STOPPED), ("no room", False, FAILED)):
        (row,) = rows_of([*told, events.StepFinished(9.0, 1, 1, error, interrupted)])
        assert row.ended == ended


def test_the_table_has_at_most_80_columns() -> None:
    wide = RunRow(999, "j" * 40, LONG, None, FAILED, 86400.0, 1.23e6, 99999 * 2.0**20, 999e6, 9.9e9,
                  "clat", 100.0, 4096.0, -99.9, 1e7)  # fmt: skip
    most = RunRow(1000, "j", LONG, ("x" * 90,), DONE, to_before=12345678.0)
    lines = list(run_table_rows([wide, most, RunRow(3, "j", "t\x1b[31m", None)]))
    assert {len(line) for line in lines} == {WIDTH}
    assert lines[1].startswith(" 999 failed: randrw 512k") and "\x1b" not in lines[3]
    assert lines[3].split()[2:] == ["–"] * 7
