"""An experiment of another kind: it decides what runs next, and its conclusion."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from iopstui.cli.program import main
from iopstui.errors import EXIT_VERDICT
from iopstui.events import Event, ExperimentFinished, PointFailed, PointFinished
from iopstui.experiment import runner
from iopstui.experiment.runner import ExperimentRunner, PlanEvents
from iopstui.features.reports.files import rendered
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.kernel_files import Roots
from iopstui.model.experiment.expectation import parse_expectation
from iopstui.model.experiment.plan import Plan, PlannedPoint, parse_axis
from iopstui.model.experiment.run_request import RunRequest
from iopstui.output.experiment.sink import JsonLines
from iopstui.output.experiment.sweep import SweepJson, sweep_results
from iopstui.session.live import LiveSession
from iopstui.session.tick.context import NOBODY


class FirstMiss(Plan):
    """Ends with the first point that fails an expectation."""

    __slots__ = ()
    name = "first-miss"

    def next(self, done: Sequence[Any], left: Sequence[PlannedPoint]) -> PlannedPoint | None:
        missed = bool(done) and any(outcome.passed is False for outcome in done[-1].outcomes)
        return None if missed else super().next(done, left)

    def conclude(self, points: Sequence[Any]) -> tuple[str, ...]:
        return (f"The first miss is {points[-1].label}.",)


AXIS = (parse_axis("bs=4k,16k,64k"),)


def ended(
    tmp_path: Path, options: dict[str, str], axis: str
) -> tuple[ExperimentRunner, list[Event]]:
    place = tmp_path / "data"
    place.mkdir()
    target = resolve_target(str(place), tmp_path, Roots(), read_devices(Roots()))
    request = RunRequest(size="4m", interval_s=0.25, record=str(tmp_path / "made.iops"))
    session = LiveSession(target, read_devices(Roots()), target, request, NOBODY)
    told: list[Event] = []
    plan = FirstMiss(("randread-4k",), options, (parse_axis(axis),), settle=0.3, measure=0.5)
    expected = parse_expectation("iops<=1", (), 0.0, ())
    experiment = ExperimentRunner(session, plan, target, request, told.append, None, (expected,))
    experiment.run()
    assert list(place.iterdir()) == []
    return experiment, told


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_it_ends_when_it_says_so_and_concludes_itself(tmp_path: Path) -> None:
    experiment, told = ended(tmp_path, {"rate_iops": "50"}, "bs=4k,16k,64k")
    points = [event for event in told if isinstance(event, PointFinished)]
    (finished,) = [event for event in told if isinstance(event, ExperimentFinished)]
    assert [point.label for point in points] == ["bs=4k"]
    assert finished.enough and not finished.interrupted
    assert finished.said == ("The first miss is bs=4k.",)
    assert list(sweep_results(experiment.plan, points, (), finished.said).lines) == [*finished.said]
    assert experiment.verdict().exit_code == EXIT_VERDICT


def test_a_point_reads_its_job_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shape and its blocks are those of the same file, also if that changes meanwhile."""
    read: list[str] = []
    before: list[int] = []
    original, begin = runner.point_job_text, PlanEvents.begin_point

    def text_of(plan: Plan, step: PlannedPoint) -> str:
        read.append(step.label)
        return original(plan, step)

    def begin_point(*args: Any) -> None:
        before.append(len(read))
        begin(*args)

    monkeypatch.setattr(runner, "point_job_text", text_of)
    monkeypatch.setattr(PlanEvents, "begin_point", begin_point)
    ended(tmp_path, {"rate_iops": "50"}, "bs=4k,16k")
    assert read[before[0] :] == ["bs=4k"]


def test_json_lines_and_a_report_of_the_recording_name_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment, _ = ended(tmp_path, {"rate_iops": "50"}, "bs=4k,16k,64k")
    out = io.StringIO()
    SweepJson(experiment.plan, JsonLines(out, "h"))
    assert json.loads(out.getvalue().splitlines()[-1])["plan"] == "first-miss"
    recording = [tmp_path / "made.iops"]
    (found,) = json.loads(rendered(recording, "json"))["recordings"][0]["experiments"]
    assert (found["kind"], found["plan"]) == ("sweep", "first-miss")
    text = rendered(recording, "md")
    assert "## first-miss: Sweep over bs" in text and "iopstui first-miss " in text
    for kind in ("table", "jsonl"):
        assert main(["replay", *map(str, recording), "--format", kind]) == 0
        assert "The first miss is bs=4k." in capsys.readouterr().out


def test_a_point_that_fails_has_missed_nothing(tmp_path: Path) -> None:
    _, told = ended(tmp_path, {"rate_iops": "50"}, "bs=1000,4k,16k")
    tried = [event for event in told if isinstance(event, PointFinished | PointFailed)]
    assert [type(event) for event in tried] == [PointFailed, PointFinished]


def test_its_progress_is_not_that_of_a_sweep_with_the_same_points() -> None:
    assert FirstMiss(("randread-4k",), {}, AXIS).key() != Plan(("randread-4k",), {}, AXIS).key()
