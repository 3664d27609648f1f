"""A host's line gives back the event from which it was made."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import recordings as made

from iopstui.events import (
    Event,
    FindingReported,
    FrameReady,
    Mark,
    StallFound,
    StepStarted,
)
from iopstui.features.fleet.merging.row_events import event_of, target_of
from iopstui.features.fleet.program.agent import compact_frame, trim_frame
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.slow.stalls import Stall
from iopstui.output.jsonl import event_object
from iopstui.recording.reader import Recording
from iopstui.recording.replay import replay_events


@pytest.fixture(scope="module")
def demo() -> tuple[list[Event], tuple[str, ...]]:
    with Recording(made.EARLIER_DEMO) as recording:
        return list(replay_events(recording)), recording.header.target.opened


def line(event: Event, made: Any = dict) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(made(event_object(event))))
    return found


def frame(event: Event | None) -> Frame:
    assert isinstance(event, FrameReady)
    return event.frame


def test_a_line_of_a_stall_gives_the_stall() -> None:
    for stall in (Stall("vda", 4.0, 2.0, 3.5, 32), Stall("vda", 4.0, 3.0, None, 1, False)):
        row = line(StallFound(9.0, stall))
        assert event_of(row, ()) == StallFound(9.0, stall)
        for name, wrong in (("start", "x"), ("in_flight", None), ("at_most", [])):
            assert event_of({**row, "stall": {**row["stall"], name: wrong}}, ()) is None


def test_a_whole_line_gives_the_frame(demo: tuple[list[Event], tuple[str, ...]]) -> None:
    events, opened = demo
    for event in (one for one in events if isinstance(one, FrameReady)):
        found, was = frame(event_of(line(event), opened)), event.frame
        # made into a line again it is the same, so nothing was lost or moved
        again, before = line(FrameReady(found.t, found)), line(event)
        for name in ("irqs", "jobs"):
            again["kernel"].pop(name, None), before["kernel"].pop(name, None)
        for name, disk in before["kernel"]["disks"].items():
            # a line's seconds are rounded to microseconds, which matters in short ones
            assert again["kernel"]["disks"][name] == pytest.approx(disk, rel=1e-4)
        assert again["kernel"]["cpus"] == before["kernel"]["cpus"]
        if was.fio is not None:
            own, theirs = again["fio"], before["fio"]
            for name in ("read", "write", "seconds", "iodepth_level", "usr_cpu", "eta_s"):
                assert _without_n(own[name]) == _without_n(theirs[name])
            assert found.fio is not None and found.fio.total.bins == was.fio.total.bins


def _without_n(value: Any) -> Any:
    """A value without "n", the number of I/Os of a mean: frames keep it, lines don't have it."""
    if isinstance(value, dict):
        return {name: _without_n(part) for name, part in value.items() if name != "n"}
    return value


@pytest.mark.parametrize("made", [trim_frame, compact_frame])
def test_a_lean_line_has_the_histogram_and_the_device(
    demo: tuple[list[Event], tuple[str, ...]], made: Any
) -> None:
    events, opened = demo
    whole = next(
        e for e in events if isinstance(e, FrameReady) and e.frame.fio and not e.frame.flags
    )
    row = line(whole, made)
    assert ("sums" in row) == (made is compact_frame)
    found = frame(event_of(row, opened))
    assert found.fio is not None and whole.frame.fio is not None
    for name, part in {**found.fio.directions, "total": found.fio.total}.items():
        was_part = {**whole.frame.fio.directions, "total": whole.frame.fio.total}[name]
        assert (part.bins, part.max_ns) == (was_part.bins, was_part.max_ns)
        assert part.percentiles == was_part.percentiles
        assert part.clat_ns == pytest.approx(was_part.clat_ns, abs=1e-3)
    (disk,), (was,) = found.disks.values(), [whole.frame.total]
    assert was is not None and disk.util == pytest.approx(was.util, abs=1e-6)
    assert disk.r_await == (was.r_await and pytest.approx(was.r_await, abs=1e-6))
    assert found.cpus == {}


def test_other_lines_are_events_again() -> None:
    step = StepStarted(1.0, 2, "job", "title", ("fio",), True, "run", "fio-3.33", {"bs": "4k"})
    finding = Finding("rule", "text", "advice", test=(("bs", "8k"),), since=1.0, until=2.0)
    for event in (step, Mark(2.0, "here"), FindingReported(3.0, finding)):
        assert event_of(line(event), ()) == event


STARTED = {"event": "step_started", "t": 1.0, "step": 1, "job": "a", "title": "b", "command": [],
           "read_only": True}  # fmt: skip


def test_options_of_a_run_are_texts() -> None:
    step = event_of({**STARTED, "options": {"runtime": 60}}, ())
    assert isinstance(step, StepStarted) and step.options == {"runtime": "60"}


@pytest.mark.parametrize("row", [
    {}, {"event": "frame"}, {"event": "frame", "t": "x", "wall_ms": 0},
    {"event": "frame", "t": 1, "wall_ms": 1, "fio": [1]},
    {"event": "frame", "t": 1, "wall_ms": 1, "kernel": {"total": {"util": "much"}}},
    {"event": "found", "t": 1, "finding": {"rule": "x"}}, {"event": "mark", "t": "soon"},
    {"event": "frame", "t": 1, "wall_ms": 1, "seconds": 1, "sums": "eJwTYw"},
    {"event": "mark", "t": None, "text": 1}, {"event": "mark", "t": 1.0, "text": 1},
    {**STARTED, "title": None}, {**STARTED, "options": ["bs"]},
    {"event": "found", "t": 1, "finding": 7},
])  # fmt: skip
def test_what_is_no_line_is_no_event(row: dict[str, Any]) -> None:
    assert event_of(row, ("vda",)) is None


def test_the_target_of_a_host_is_what_its_first_line_says() -> None:
    session = {"target": "/dev/nvme0n1", "device": "nvme0n1", "devices": ["nvme0n1"]}
    target = target_of(session)
    assert (target.path, target.devices_below, target.opened) == (
        "/dev/nvme0n1",
        ("nvme0n1",),
        ("nvme0n1",),
    )
    assert target_of(None).devices_below == () and target_of(None).no_device
    assert replace(target, kind="x") != target
