"""`iopstui report --expect`: did a recorded run keep what was expected?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import recordings as made
from fio_recordings import statuses
from test_fleet_report import finished, two_runs, write_recording

from iopstui import events
from iopstui.cli.program import main
from iopstui.features.reports.files import rendered

FIXTURES = Path(__file__).parents[1] / "fixtures"
PLAIN = FIXTURES / "fiologs" / "avg.json"
Report = Callable[..., tuple[int, str]]


@pytest.fixture
def report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Report:
    """Judge these expectations. Returns the exit code and the messages."""

    def judge(*arguments: object, out: str = "out.json") -> tuple[int, str]:
        code = main(["report", *map(str, arguments), "-o", str(tmp_path / out)])
        return code, capsys.readouterr().err

    return judge


def recorded(path: Path, *later: object, end: bool = True) -> Path:
    one = made.tape(path)
    first, *others = made.raws(made.RUN)
    before, after = made.others(made.RUN)
    closing = [each for each in after if end or not isinstance(each, events.StepFinished)]
    made.tell(one, [first, *before, *others, *later, *closing])
    one.close(events.SessionEnded(2.5, 0))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return recorded(tmp_path / "run.iops")


def final_iops() -> float:
    final = statuses(made.RUN)[-1]
    return sum(part.iops for job in final.jobs for part in job.directions.values())


def test_a_recorded_run_is_judged_by_fio_s_own_total(path: Path, report: Report) -> None:
    below, above = int(final_iops()) - 1, int(final_iops()) + 2
    code, text = report(path, "--expect", f"iops>={below}")
    assert code == 0 and f"PASS  iops >= {below}: measured " in text
    code, text = report(path, "--expect", f"iops>={above}", "--expect", f"iops>={below}")
    assert code == 4 and f"FAIL  iops >= {above}" in text and "PASS" in text
    code, _ = report(path, "--expect", f"iops>={above}", "--tolerance", "10%")
    assert code == 0


def test_the_first_screen_has_the_outcome(path: Path, tmp_path: Path, report: Report) -> None:
    assert report(path, "--expect", "iops>=900m")[0] == 4
    (data,) = json.loads((tmp_path / "out.json").read_text())["recordings"]
    assert data["overview"]["state"] == "critical"
    assert data["overview"]["compared"].startswith("FAIL iops >= 900000000: measured ")
    assert [one["passed"] for one in data["runs"][0]["verdicts"]] == [False]


def test_an_outcome_that_was_recorded_is_not_said_twice(tmp_path: Path, report: Report) -> None:
    before = events.ExpectationChecked(
        1.9, 1, "iops>=5", "fio.total.iops", "1/s", ">=", 5.0, 5.0, 9.0, True, 1.0
    )
    path = recorded(tmp_path / "judged.iops", before)
    for text, count in (("iops>=5", 1), ("iops>=6", 2)):
        assert report(path, "--expect", text)[0] == 0
        (data,) = json.loads((tmp_path / "out.json").read_text())["recordings"]
        assert len(data["runs"][0]["verdicts"]) == count


@pytest.mark.parametrize(
    ("expected", "why"),
    [
        ("trim.iops<=5", "the job does no trims"),
        ("nonsense>=1", "no figure of a whole run is called 'nonsense'"),
        ("iops>=95%", "there is no baseline"),
    ],
)
def test_what_was_not_measured_is_not_judged(
    expected: str, why: str, path: Path, report: Report
) -> None:
    code, text = report(path, "--expect", expected)
    assert code == 2 and why in text and "PASS" not in text and "FAIL" not in text


def test_a_run_without_an_end_is_not_judged(tmp_path: Path, report: Report) -> None:
    path = recorded(tmp_path / "cut.iops", end=False)
    code, text = report(path, "--expect", "iops>=1")
    assert code == 2 and "NOT MEASURED  iops >= 1: the recording ends before the run" in text


def test_a_sweep_and_a_recording_without_a_run_are_refused(tmp_path: Path, report: Report) -> None:
    code, text = report(FIXTURES / "recordings" / "sweep.iops", "--expect", "iops>=1")
    assert code == 2 and "holds a sweep" in text
    idle = made.tape(tmp_path / "idle.iops")
    made.tell(idle, [replace(raw, step=0, fio=None) for raw in made.raws(made.RUN)[:2]])
    idle.close(events.SessionEnded(2.5, 0))
    code, text = report(tmp_path / "idle.iops", "--expect", "iops>=1")
    assert code == 2 and "holds no run" in text


def test_a_result_of_fio_is_judged_by_what_it_has(report: Report) -> None:
    measured = json.loads(rendered([PLAIN], "json"))["recordings"][0]["runs"][0]["summary"]
    iops = measured["all"]["iops"]
    code, text = report(PLAIN, "--expect", f"iops>={int(iops)}")
    assert code == 0 and "of the seconds" not in text
    assert report(PLAIN, "--expect", f"iops>={int(iops) + 2}")[0] == 4
    code, text = report(PLAIN, "--expect", "util<=90%")
    assert code == 2 and "NOT MEASURED  util <= 90 %: a result of fio has no" in text


def test_several_files_are_named(path: Path, report: Report) -> None:
    code, text = report(path, PLAIN, "--expect", "iops>=1")
    assert code == 0 and "run.iops: PASS" in text and "avg.json: PASS" in text


def test_many_hosts_are_judged_by_their_totals_or_each(tmp_path: Path, report: Report) -> None:
    path = write_recording(tmp_path, finished("b", 200))
    code, text = report(path, "--expect", "iops>=150", "--expect", "each.read.p99<=1ms")
    assert code == 4 and "PASS  iops >= 150: measured 150" in text
    assert "FAIL  each.read.p99 <= 1.00 ms: measured 8.98 ms; the worst of 2 hosts" in text
    assert "not met by b" in text
    document: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    assert document["overview"]["reason"] == "1 of 2 expectations not met"
    assert report(path, "--expect", "each.read.p99<=1ms", "--redact")[0] == 4
    assert "not met by" not in (tmp_path / "out.json").read_text()
    code, text = report(path, "--expect", "util<=90%")
    assert code == 2 and "cannot be measured" in text


def test_the_recorded_outcome_of_many_hosts_is_shown_once(tmp_path: Path, report: Report) -> None:
    over = {"event": "fleet_over", "host": "fleet", "how": "done", "code": 4,
            "said": ["FAIL  iops >= 900: measured 150", "fio started within 1 ms"]}  # fmt: skip
    path = write_recording(tmp_path, finished("b", 200), over)
    for asked, count in (("iops>=900", "1 of 1 expectation"), ("iops>=901", "2 of 2 expectations")):
        assert report(path, "--expect", asked)[0] == 4
        overview = json.loads((tmp_path / "out.json").read_text())["overview"]
        assert overview["reason"] == f"{count} not met"
    compared = json.loads(rendered([path], "json"))["overview"]["compared"]
    assert compared == "FAIL iops >= 900: measured 150."


def test_a_failed_host_and_each_of_several_runs(tmp_path: Path, report: Report) -> None:
    code, text = report(write_recording(tmp_path), "--expect", "iops>=1")
    assert code == 1 and "PASS" in text and "1 of 2 hosts failed or were lost" in text
    code, text = report(two_runs(tmp_path), "--expect", "iops>=150", out="out.csv")
    assert code == 4 and "run 1: FAIL" in text and "run 2: PASS" in text
