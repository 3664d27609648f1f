"""An experiment in a session that continues after it, with real fio."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from iopstui.events import (
    Event,
    ExperimentFinished,
    ExperimentStarted,
    FrameReady,
    Notice,
    PointFinished,
    PointStarted,
    StepStarted,
)
from iopstui.experiment.background import BackgroundExperiments, RunningExperiment
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.target import Target
from iopstui.model.experiment.plan import Plan, parse_axis, parse_variant
from iopstui.model.experiment.run_request import RunRequest
from iopstui.preflight.staging import LentScratch
from iopstui.session.live import LiveSession

# pauses: at full speed fio takes a CPU from parallel tests
PACED = {"thinktime": "20000", "thinktime_blocks": "20", "clocksource": "clock_gettime",
         "disk_util": "0"}  # fmt: skip
PLAN = Plan(("randread-4k",), PACED, (parse_axis("iodepth=1,4"),), settle=0.0, measure=0.6)


class Screen:
    """Receives all events, and passes on the session's, as the application does."""

    def __init__(self, here: Path) -> None:
        devices = read_devices(Roots())
        self.target: Target = resolve_target(str(here), here, Roots(), devices)
        self.session = LiveSession(
            self.target, devices, self.target, RunRequest(size="16m", interval_s=0.25)
        )
        self.background = BackgroundExperiments(self.session, self.target, RunRequest(size="16m"))
        self.own: list[Event] = []
        self.seen: list[Event] = []
        self.over = threading.Event()
        self.in_run = threading.Event()
        self.running = None

    def sink(self, event: Event) -> None:
        if self.running is not None:
            self.running.feed(event)
        self.seen.append(event)
        if isinstance(event, FrameReady) and event.frame.fio is not None:
            self.in_run.set()

    def tell(self, event: Event) -> None:
        self.own.append(event)
        if isinstance(event, ExperimentFinished):
            self.over.set()

    def begin(self, plan: Plan) -> None:
        self.running = self.background.start(self.background.preview(plan), self.tell, 0.0)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def test_a_form_is_told_no_option_of_the_command_line(here: Path) -> None:
    look = Screen(here).background.preview
    shuffled = "\n".join(look(replace(PLAN, shuffle=True, seed=42)).lines)
    assert "Order: random, seed 42" in shuffled and shuffled.startswith("2 points, about ")
    variants = (parse_variant("iodepth=1"), parse_variant("iodepth=4"))
    compared = look(replace(PLAN, axes=(), variants=variants, repeats=2)).lines
    assert "Order: random within each repeat" in compared
    assert any(line.startswith("Repeats: With 2 repeats") for line in compared)
    assert not [line for line in (*compared, shuffled) if "--" in line]


def test_a_job_under_way_gives_way_and_the_session_stays(here: Path) -> None:
    screen = Screen(here)
    screen.session.start(screen.sink)
    try:
        screen.session.run_job("randread-4k", {"runtime": "60", **PACED})
        assert screen.in_run.wait(45)
        screen.begin(PLAN)
        assert screen.over.wait(45)
        assert screen.running is not None
        screen.running.wait(45)
        assert not screen.running.active
        kinds = [type(event) for event in screen.own]
        assert kinds == [ExperimentStarted, *(PointStarted, PointFinished) * 2, ExperimentFinished]
        done = screen.own[-1]
        assert isinstance(done, ExperimentFinished)
        assert (done.done, done.error, done.interrupted) == (2, "", False)
        steps = [event.step for event in screen.seen if isinstance(event, StepStarted)]
        points = [event for event in screen.own if isinstance(event, PointFinished)]
        assert len(set(steps)) == 3, "the job that ran before, then two points"
        assert [event.little.asked for event in points] == [1, 4], "none of them of the old job"
        assert list(here.iterdir()) == [], "the experiment's scratch files are gone"
        count = len(screen.seen)
        while len(screen.seen) < count + 2:
            time.sleep(0.05)
            assert screen.session.runs == 3, "the session goes on, with nothing to run"
    finally:
        screen.session.close()
    assert list(here.iterdir()) == []


def test_each_point_reads_other_random_blocks(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, asked = Screen(here), list[RunRequest]()
    ask = screen.session.run_request

    def note(request: RunRequest, lent: LentScratch | None = None) -> None:
        asked.append(request)
        ask(request, lent)

    monkeypatch.setattr(screen.session, "run_request", note)
    screen.session.start(screen.sink)
    try:
        screen.begin(PLAN)
        assert screen.over.wait(45)
    finally:
        screen.session.close()
    assert [request.overrides["randrepeat"] for request in asked] == ["0", "0"]
    assert len({request.overrides["randseed"] for request in asked}) == 2


def test_stopped_while_the_job_before_still_ends(here: Path) -> None:
    screen = Screen(here)
    screen.session.start(screen.sink)
    try:
        screen.session.run_job("randread-4k", {"runtime": "60", **PACED})
        assert screen.in_run.wait(45)
        begun = threading.Event()
        ask = screen.session.run_request

        def ask_and_stop(request: RunRequest, lent: LentScratch | None = None) -> None:
            ask(request, lent)
            assert begun.wait(45) and screen.running is not None
            screen.running.stop()

        screen.session.run_request = ask_and_stop  # type: ignore[method-assign]
        screen.begin(PLAN)
        begun.set()
        assert screen.over.wait(45), "it does not wait for a run that never comes"
        done = screen.own[-1]
        assert isinstance(done, ExperimentFinished) and done.interrupted and done.done == 0
        assert screen.running is not None
        screen.running.wait(45)
    finally:
        screen.session.close()
    assert list(here.iterdir()) == []


def test_events_after_its_end_are_not_kept() -> None:
    class Over:
        progress = None
        interrupted = False
        fed: ClassVar[list[Event]] = []

        def run(self) -> None:
            """Ends at once."""

        def feed(self, event: Event) -> None:
            self.fed.append(event)

    running = RunningExperiment(Over(), lambda event: None)  # type: ignore[arg-type]
    running.start()
    running.wait(45)
    running.feed(Notice(0.0, "info", "a session goes on for days"))
    assert Over.fed == []


def test_stopped_in_mid_run_it_keeps_what_it_has_for_the_next_time(here: Path) -> None:
    screen = Screen(here)
    screen.session.start(screen.sink)
    try:
        screen.begin(PLAN)
        assert screen.running is not None
        while sum(isinstance(event, PointStarted) for event in screen.own) < 2:
            assert not screen.over.wait(0.02)
        screen.running.stop()
        assert screen.over.wait(45)
        screen.running.wait(45)
        done = screen.own[-1]
        assert isinstance(done, ExperimentFinished) and done.interrupted and done.done == 1
        assert Path(done.kept).exists()
        again = screen.background.preview(PLAN)
        assert "1 of 2 points done" in again.resume_note
        assert list(here.iterdir()) == []
    finally:
        screen.session.close()
