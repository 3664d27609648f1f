"""Runs as rows, from a session's events and from a recording of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import recordings as made
from session_frames import session

from iopstui import events
from iopstui.model.metrics.run_history import DONE, FAILED, STOPPED, RunHistory, RunRow
from iopstui.recording.reader import Recording, recording_path
from iopstui.recording.replay import replay_events
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


def test_a_recording_gives_the_rows_of_the_live_session(tmp_path: Path) -> None:
    live: list[events.Event] = []
    path = tmp_path / "two.iops"
    tape = made.tape(path)
    taken = made.raws(made.RUN)
    later = made.raws(made.RUN)
    shift = taken[-1].arrived_ns - taken[0].arrived_ns + 10**9
    second = [
        made.replace(
            raw, seq=raw.seq + len(taken), step=2, arrived_ns=raw.arrived_ns + shift,
            kernel=made.kernel(len(taken) + n, raw.arrived_ns + shift, raw.wall_ms),
            jobs=(), probe=None,
        )
        for n, raw in enumerate(later)
    ]  # fmt: skip
    start = [
        events.StepStarted(
            9.0 * n, n, "j", TITLE.format(8 * n), (), True, options={"direct": str(n)}
        )
        for n in (1, 2)
    ]
    end = [events.StepFinished(9.0 * n, n, 0, "", n == 1) for n in (1, 2)]
    turn = events.TunableChanged(8.0, "vda", "nomerges", "0", "2")
    builder = made.FrameBuilder(opened=made.TARGET.opened)
    for what in (start[0], *taken, end[0], turn, start[1], *second, end[1]):
        if isinstance(what, made.RawSample):
            tape.sample(what)
            one = builder.feed(what)
            live.append(events.FrameReady(one.t, one))
        else:
            tape.event(what)
            live.append(what)
    assert tape.close(events.SessionEnded(30.0, 0)) == ""
    with Recording(path) as recording:
        found = rows_of(replay_events(recording))
    assert found == rows_of(live)
    assert [row.ended for row in found] == [STOPPED, DONE]
    assert found[1].changed == ("iodepth 8 → 16", "direct 1 → 2", "nomerges 0 → 2")
    assert found[1].to_before is not None


def test_the_demo_has_a_row_for_each_run() -> None:
    with Recording(recording_path("demo")) as recording:
        found = rows_of(replay_events(recording))
    assert len(found) > 1 and all(row.iops and row.p99_ns and row.seconds for row in found)
    assert "iodepth" in found[1].what or "numjobs" in found[1].what or "rq" in found[1].what


def test_the_table_has_at_most_80_columns() -> None:
    wide = RunRow(999, "j" * 40, LONG, None, FAILED, 86400.0, 1.23e6, 99999 * 2.0**20, 999e6, 9.9e9,
                  "clat", 100.0, 4096.0, -99.9, 1e7)  # fmt: skip
    most = RunRow(1000, "j", LONG, ("x" * 90,), DONE, to_before=12345678.0)
    lines = list(run_table_rows([wide, most, RunRow(3, "j", "t\x1b[31m", None)]))
    assert {len(line) for line in lines} == {WIDTH}
    assert lines[1].startswith(" 999 failed: randrw 512k") and "\x1b" not in lines[3]
    assert lines[3].split()[2:] == ["–"] * 7
