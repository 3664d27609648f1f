"""Runs as rows, from a session's events and from a recording of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import fio_recordings
import made_sweeps
import pytest
from session_frames import session

from iopstui import events
from iopstui.model import histogram
from iopstui.model.experiment.plan import Plan, parse_axis
from iopstui.model.metrics.run_figures import RunFigures
from iopstui.model.metrics.run_history import DONE, FAILED, STOPPED, RunHistory, RunRow
from iopstui.session.run_rows import (
    LATENCIES,
    WIDTH,
    add_run_event,
    run_figures,
    run_number,
    run_table_rows,
)

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


@pytest.mark.parametrize("name", fio_recordings.NAMES)
@pytest.mark.parametrize("joined", [False, True])
def test_a_run_s_latencies_are_those_of_fio_s_final_json(name: str, joined: bool) -> None:
    """Also if the frames come in several parts, as a report's do."""
    history = RunHistory()
    history.start_run(1, "job", "title", {})
    for frame in fio_recordings.frames(name):
        if joined:
            part = RunFigures()
            part.add(frame)
            history.add_figures(1, part)
        else:
            history.add_frame(frame)
    (row,) = history.rows
    parts = [direction for job in fio_recordings.statuses(name)[-1].jobs
             for direction in job.directions.values()]  # fmt: skip
    all_of_kind = [getattr(part, row.bins_of) for part in parts]
    known = [latency for latency in all_of_kind if latency is not None and latency.count]
    if not known:
        assert (row.mean_ns, row.p99_ns, row.p999_ns) == (None, None, None)
        return
    ios = sum(latency.count for latency in known)
    mean = sum(latency.mean_ns * latency.count for latency in known) / ios
    assert row.mean_ns == pytest.approx(mean, rel=1e-9)
    bins = histogram.merge(part.bins or {} for part in parts)
    ranks = histogram.percentiles(bins, (50.0, 99.0, 99.9))
    assert (row.p50_ns, row.p99_ns, row.p999_ns) == tuple(ranks.values())
    assert ", mean " in run_figures(row, LATENCIES) and ", p99.9 " in run_figures(row, LATENCIES)


def test_how_a_run_ended_is_told() -> None:
    told = session("3.33-p-mixed")[:-2]
    for error, interrupted, ended in (("", True, STOPPED), ("no room", False, FAILED)):
        (row,) = rows_of([*told, events.StepFinished(9.0, 1, 1, error, interrupted)])
        assert row.ended == ended


def test_a_run_beside_other_load_has_a_mark_and_says_by_what_it_was_disturbed() -> None:
    told = session("3.33-p-mixed")[:-2]
    why = ("at least 94.6 MiB of 278 MiB a second on vda were not this job's (reads)", "CPU 1 was")
    (row,) = rows_of([*told, events.StepFinished(9.0, 1, 0, "", False, disturbed=why)])
    (calm,) = rows_of([*told, events.StepFinished(9.0, 1, 0, "", False)])
    assert run_figures(row) == f"{run_figures(calm)}, disturbed; {why[0]}; {why[1]}"
    assert (run_number(row), run_number(calm)) == ("~1", "1")
    *_, last, note, more = run_table_rows([calm, row])
    assert last.split()[0] == "~1" and max(map(len, (note, more))) <= WIDTH
    assert " ".join((note + more).split()) == f"~ run 1 was disturbed: {'; '.join(why)}"
    # twenty of these sentences pushed the table off a newcomer's terminal
    several = [replace(row, step=step) for step in range(1, 21)]
    told_of_all = " ".join(" ".join(list(run_table_rows(several))[21:]).split())
    assert told_of_all.startswith("~ run 20 was disturbed: ") and "run 8 and 11 more" in told_of_all


def test_the_change_to_another_run_names_what_was_changed() -> None:
    """-25.4 % to a run with eight times as many in flight looked like a fault."""
    row = RunRow(12, "j", "t", (), DONE, 8.0, 1000.0, 4e6, to_before=-25.4, before=11, before_s=8.0)
    ending = {
        (): "-25.4 % to run 11",
        ("runtime 10s → 60s", "time_based unset"): "-25.4 % to run 11",
        ("iodepth 256 → 32",): "-25.4 % to run 11 (iodepth 256 → 32)",
        ("bs 4k → 8k", "iodepth 256 → 32", "runtime 10s → 60s", "rate 9"):
            "-25.4 % to run 11 (bs 4k → 8k, iodepth 256 → 32 and 1 more)",
    }  # fmt: skip
    for changed, end in ending.items():
        assert run_figures(replace(row, changed=changed)).endswith(f"MiB/s, {end}")


def test_points_of_a_sweep_are_named_in_the_table_and_by_the_next_run() -> None:
    plan = Plan(("randread-4k",), {}, (parse_axis("iodepth=1,4"),))
    history = RunHistory()
    told: list[events.Event] = [
        *_run(1), events.ExperimentStarted(1.0, plan),
        events.PointStarted(1.0, 0, 2, "iodepth=1", 0.0), *_run(2),
        events.PointStarted(2.0, 1, 2, "iodepth=4", 0.0), *_run(3),
        events.ExperimentFinished(3.0, 2, 2), *_run(4), *_run(5),
    ]  # fmt: skip
    for event in told:
        add_run_event(history, event)
        if isinstance(event, events.StepFinished) and event.step == 3:
            (made, *_) = made_sweeps.finished(plan)
            noisy = replace(made.point, disturbed=("CPU 1 was full",))
            add_run_event(history, replace(made, point=noisy))
    assert [run_number(row) for row in history.rows] == ["1", "2", "~3", "4", "5"]
    points = ["", "sweep 1/2", "sweep 2/2", "", ""]
    assert [row.point for row in history.rows] == points
    names = [history.name_of(row) for row in history.rows]
    assert names == ["run 1", "run 2", "run 3", "run 4 (2 to 3: sweep)", "run 5"]
    lines = list(run_table_rows(history.rows))[1:6]
    assert ["sweep" in line for line in lines] == [bool(point) for point in points]


def _run(step: int) -> list[events.Event]:
    """A run that failed before it measured anything."""
    return [
        events.StepStarted(step, step, "randread-4k", TITLE.format(8), (), True),
        events.StepFinished(step, step, 1, "no room", False),
    ]


def test_the_table_has_at_most_80_columns() -> None:
    wide = RunRow(999, "j" * 40, LONG, None, FAILED, 86400.0, 1.23e6, 99999 * 2.0**20, 999e6, 9.9e9,
                  "clat", 100.0, 4096.0, -99.9, 1e7)  # fmt: skip
    most = RunRow(1000, "j", LONG, ("x" * 90,), DONE, to_before=12345678.0)
    lines = list(run_table_rows([wide, most, RunRow(3, "j", "t\x1b[31m", None)]))
    assert {len(line) for line in lines} == {WIDTH}
    assert lines[1].startswith(" 999 failed: randrw 512k") and "\x1b" not in lines[3]
    assert lines[3].split()[2:] == ["–"] * 7
