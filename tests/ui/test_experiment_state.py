"""The state of a sweep and of a comparison, built from their events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from disks import changed
from experiment_fakes import (
    COMPARE,
    CURVES,
    SWEEP,
    frame_event,
    point_finished,
    point_started,
    run_events,
)
from made_sweeps import device, finished

from iopstui.events import (
    Event,
    ExperimentFinished,
    ExperimentStarted,
    FrameReady,
    PointFailed,
    PointFinished,
)
from iopstui.model.experiment.plan import Plan, parse_axis
from iopstui.output.experiment.sweep import sweep_results
from iopstui.ui.draw.style import UTF8
from iopstui.ui.experiment.compare_view import runs_pane
from iopstui.ui.experiment.sweep_view import points_pane
from iopstui.ui.state.experiment import ExperimentState
from iopstui.ui.state.live import DEVICE_IOPS, LiveState

Pane = Callable[..., list[list[tuple[str, object]]]]


def state_after(events: list[Event]) -> ExperimentState:
    state = LiveState()
    for event in events:
        state.apply(event)
    assert state.experiment is not None
    return state.experiment


def test_progress_and_remaining_time() -> None:
    state = state_after([*run_events(SWEEP, 2), point_started(SWEEP, 2, 30.0)])
    assert state.progress() == "sweep: point 3 of 7, 0:58 left"
    assert state.progress(short=True) == "sweep 3/7, 0:58 left"
    assert state.activity_text() == "fio is starting"
    state.apply(frame_event(31.0, 1000.0))
    assert state.activity_text() == "settling, 1 of 2 s" and state.iops == 1000.0
    for n in range(3):
        state.apply(frame_event(32.0 + n, 1000.0))
    assert state.activity_text() == "measuring, 2 of 8 s"
    assert state.progress() == "sweep: point 3 of 7, 0:54 left", "a second is a second"


def test_a_sweep_that_recommends_another_load_says_what_the_one_before_did() -> None:
    def events(depths: str, at_once: int) -> list[Event]:
        plan = Plan(("randread-4k",), {}, (parse_axis(f"iodepth={depths}"),))
        points = [
            replace(event, point=device(int(event.settings[0][1]), 1, at_once))
            for event in finished(plan)
        ]
        return [ExperimentStarted(0.0, plan), *points, ExperimentFinished(9.0, len(points), 0)]

    first = events("1,2,4..64", 12)
    assert not any("before" in line for line in state_after(first).sentences())
    assert not any("before" in line for line in state_after([*first, *first]).sentences())
    other = state_after([*first, *events("1,2,4..64", 3)])
    assert other.sentences()[0].startswith("Take iodepth=4 ")
    assert other.sentences()[1] == "The sweep before this one recommended iodepth=16."
    largest = events("1,2,4,8", 12)
    assert state_after(largest).next_fields["axis"] == "iodepth=4,8,16,32"
    assert "axis" not in state_after([*first, *largest]).next_fields, "they were measured before"


@pytest.mark.parametrize(("plan", "count"), [(SWEEP, "7 points"), (COMPARE, "8 runs")])
def test_the_message_counts_the_planned_runs(plan: Plan, count: str) -> None:
    state = LiveState()
    for event in [*run_events(plan, 2), ExperimentFinished(99.0, 2, plan.points, interrupted=True)]:
        state.apply(event)
    assert state.log.entries[-1].text == f"interrupted: 2 of {count} measured in 1 min 39 s"


def test_repeats_share_one_row_and_failures_are_counted() -> None:
    plan = replace(SWEEP, repeats=2, seed=7)
    events: list[Event] = run_events(plan, plan.points - 1)
    last = point_finished(plan, plan.points - 1)
    events.append(
        PointFailed(1.0, last.index, 14, last.label, last.job, last.settings, 1, "no such size")
    )
    state = state_after([*events, ExperimentFinished(9.0, 13, 14, failed=1)])
    assert len(state.rows) == 7 and sorted(state.points_by_place()) == list(range(7))
    assert sorted(points.point.runs for points in state.points_by_place().values()) == [1] + [2] * 6
    assert state.progress() == "sweep: done, 14 points, 1 of them failed"
    assert any(
        line.startswith("failed: #") and "no such size" in line for line in state.sentences()
    )
    assert [p.point.runs for p in state.curves()[0].points].count(2) == 6
    text = "\n".join("".join(t for t, _ in row) for row in points_pane(state, 100, 12, UTF8, None))
    assert "95 %" in text and "120k-120k" in text, text


@pytest.mark.parametrize(("plan", "pane"), [(SWEEP, points_pane), (COMPARE, runs_pane)])
def test_a_disturbed_run_has_a_mark_and_a_reason(plan: Plan, pane: Pane) -> None:
    why = ("54.6k of 82.2k I/Os a second on vda were not this job's (reads)",)
    events: list[Event] = [
        replace(event, point=replace(event.point, disturbed=why, others=0.66))
        if isinstance(event, PointFinished) and event.index == 1
        else event
        for event in run_events(plan, plan.points)
    ]
    state = state_after([*events, ExperimentFinished(9.0, plan.points, plan.points)])
    rows = ["".join(text for text, _ in row) for row in pane(state, 100, 12, UTF8, None)]
    assert [row.split()[:2] for row in rows if row.startswith("~")] == [["~", "2"]]
    assert any(why[0] in line for line in state.sentences())


def test_frames_between_runs_belong_to_no_point() -> None:
    state = state_after([*run_events(SWEEP, 1), point_started(SWEEP, 1)])
    state.apply(frame_event(3.0, 5.0, step=0))
    assert state.elapsed == 0 and state.iops is None


@pytest.mark.parametrize(
    ("outcome", "progress"),
    [
        ({}, "sweep: done, 7 points"),
        ({"interrupted": True}, "sweep: stopped after 2 of 7 points"),
        ({"error": "fio was killed."}, "sweep: failed after 2 of 7 points"),
    ],
)
def test_the_end_is_described(outcome: dict[str, object], progress: str) -> None:
    completed = 7 if not outcome else 2
    state = state_after(run_events(SWEEP, completed))
    state.apply(ExperimentFinished(99.0, completed, 7, **outcome, kept="/state/x"))  # type: ignore[arg-type]
    assert state.progress() == progress and not state.active and state.activity_text() == ""
    text = "\n".join(state.sentences())
    assert ("/state/x" in text) == bool(outcome)
    assert str(outcome.get("error", "")) in text


def test_the_knee_is_named_when_the_curve_is_complete() -> None:
    state = state_after(run_events(SWEEP, 7))
    assert not any("ake iodepth" in line for line in state.sentences())
    assert any("7 of 7 points" in line for line in state.sentences())
    state.apply(ExperimentFinished(99.0, 7, 7))
    points = [event for event in run_events(SWEEP, 7) if isinstance(event, PointFinished)]
    first, *_ = sweep_results(SWEEP, points).lines
    assert state.sentences()[0] == first and first.startswith("Take iodepth=16 (best ratio"), first


def test_a_line_for_every_other_combination() -> None:
    state = state_after(run_events(CURVES, 9))
    assert [dict(curve.fixed) for curve in state.curves()] == [
        {"numjobs": "1"}, {"numjobs": "2"}, {"numjobs": "4"},
    ]  # fmt: skip
    assert [len(curve.points) for curve in state.curves()] == [3, 3, 3]


def test_an_axis_without_numbers_has_its_own_order() -> None:
    plan = Plan(("a", "b"), {}, (parse_axis("bs=64k,4k,16k"),))
    state = ExperimentState(plan, 0.0)
    assert state.axis.name == "bs" and state.axis.values == ("64k", "4k", "16k")
    assert ExperimentState(Plan(("a", "b")), 0.0).axis.values == ("a", "b")


def test_the_seconds_of_each_run_of_a_comparison() -> None:
    state = state_after(run_events(COMPARE, 0))
    for index in range(3):
        state.apply(point_started(COMPARE, index, 10.0 * index))
        for n in range(5):
            state.apply(frame_event(10.0 * index + n, 100.0 * index + n))
        state.apply(point_finished(COMPARE, index, 10.0 * index + 6))
    assert [trace.variant for trace in state.traces] == [0, 1, 1]
    assert [y for _, y in state.traces[1].seconds] == [100.0, 101.0, 102.0, 103.0, 104.0]
    assert state.traces[0].settled_s == pytest.approx(1.0, abs=0.2)


def test_a_repeated_point_event_replaces_the_earlier_one() -> None:
    state = state_after([*run_events(COMPARE, 1), point_started(COMPARE, 1), frame_event(1.0, 5.0)])
    state.apply(point_started(COMPARE, 1))
    state.apply(frame_event(2.0, 7.0))
    assert [[y for _, y in trace.seconds] for trace in state.traces] == [[], [7.0]]


def test_no_verdict_before_the_end() -> None:
    state = state_after(run_events(COMPARE, 4))
    results = state.results()
    assert results is not None and results.complete == 2
    assert state.sentences() == ["2 of 4 repeats are complete; the result follows at the end"]
    state = state_after([*run_events(COMPARE, 8), ExperimentFinished(99.0, 8, 8)])
    assert any(
        "at least 5 repeats are needed to claim a difference; measured: IOPS +" in line
        for line in state.sentences()
    ), state.sentences()
    stopped = state_after([*run_events(COMPARE, 2), ExperimentFinished(99.0, 2, 8, True)])
    assert "stopped after 2 of 8 runs" in stopped.sentences()[0]
    assert any("not enough: 1 complete repeat" in line for line in stopped.sentences())


def test_the_job_is_not_called_finished_in_mid_sweep() -> None:
    from iopstui.events import StepFinished

    state = LiveState()
    for event in run_events(SWEEP, 1):
        state.apply(event)
    state.apply(StepFinished(3.0, 1, 0, "", False))
    assert not any("press r" in entry.text for entry in state.log.entries)
    state.apply(StepFinished(4.0, 2, 1, "fio failed.", False))
    assert state.log.notice is not None and "fio failed" in state.log.notice.text


def test_a_missing_device_figure_is_a_gap() -> None:
    state = LiveState(("nvme0n1",))
    for n, lost in ((1, False), (2, True), (3, False)):
        frame = frame_event(float(n), 1000.0).frame
        if lost:
            disk = changed(frame.disks["nvme0n1"], r_s=None, w_s=None, d_s=None)
            frame = replace(frame, disks={"nvme0n1": disk})
        state.apply(FrameReady(frame.t, frame))
    values = state.history.window(DEVICE_IOPS, 0.0, 1.0, 3)
    assert values[1] is None and values[0] and values[2]
