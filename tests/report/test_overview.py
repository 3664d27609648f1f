"""The first screen of a report says what was measured, the answer, and what it is compared with."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import recordings as made
from fio_recordings import statuses
from test_report import page, text_of

from iopstui import events
from iopstui.features.reports.files import rendered
from iopstui.format import number
from iopstui.model.answer.answer import CRITICAL, GOOD, OF_A_SECOND, UNKNOWN, WAITS, WARNING, Answer
from iopstui.output.csv_out import RUN_COLUMNS
from iopstui.recording.reader import recording_path

FIXTURES = Path(__file__).parents[1] / "fixtures"
BUSY = Answer("vda", "queue", WARNING, "vda is busy", WAITS, "hog (9) does all of its bytes")
QUIET = Answer("vda", "quiet", GOOD, "vda is idle")
FOUND = Answer("vda", "finding-tags", CRITICAL, "no tags are left", WAITS)
LIMIT = Answer("vda", "limit", WARNING, "Not the disk: /work is at its limit on vda; 9", WAITS)
TIMED = Answer(
    "vda", "finding-cpu", WARNING, "The job waits for a CPU (0:02-0:05): 2.4 of 4", UNKNOWN
)
UNSTEADY = Answer("vda", "unsteady", GOOD, "vda comes and goes", UNKNOWN)


def given(t: float, answer: Answer) -> events.AnswerGiven:
    return events.AnswerGiven(t, answer)


def judged(passed: bool | None) -> events.ExpectationChecked:
    measured = None if passed is None else 4321.5
    return events.ExpectationChecked(
        1.9, 1, "iops>=5000", "iops", "1/s", ">=", 5000.0, 5000.0, measured, passed, 0.4
    )


def record(path: Path, *happenings: object) -> dict[str, Any]:
    """The overview, as JSON, of a recorded run with these additional events."""
    one = made.tape(path)
    first, *later = made.raws(made.RUN)
    before, after = made.others(made.RUN)
    made.tell(one, [first, *before, *later, *happenings, *after])
    one.close(events.SessionEnded(2.5, 0))
    overview: dict[str, Any] = overview_of(path)
    return overview


def overview_of(path: Path) -> dict[str, Any]:
    document = json.loads(rendered([path], "json"))
    overview: dict[str, Any] = document["recordings"][0]["overview"]
    return overview


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.iops"


def test_page_and_markdown_begin_with_a_light_three_sentences_and_one_chart(path: Path) -> None:
    overview = record(path, given(1.0, BUSY), given(1.8, QUIET), judged(False))
    body = page(path).find("body")
    assert body is not None
    section = next(body.iter("section"))
    heading, light, *sentences, chart = list(section)[:6]
    assert heading.tag == "h1" and light.get("class") == "light critical"
    assert text_of(light) == "■ Critical: 1 of 1 expectation not met."
    assert [text_of(one) for one in sentences] == [
        overview["measured"],
        "Warning at 0:01: vda is busy; hog (9) does all of its bytes. Answer at 0:02: vda is idle.",
        "FAIL iops >= 5000: measured 4322; met in 40 % of the seconds.",
    ]
    (drawn,) = chart.iter("svg")
    assert drawn.get("aria-label", "").startswith("IOPS")
    lines = [line for line in rendered([path], "md").replace("\\", "").split("\n") if line]
    assert lines[1:5] == [f"**{text_of(light)}**", *(text_of(one) for one in sentences)]


def test_the_first_sentence_has_fio_s_own_total(path: Path) -> None:
    final = statuses(made.RUN)[-1]
    rate = sum(part.iops for job in final.jobs for part in job.directions.values())
    measured = record(path)["measured"]
    assert f": {number(rate)} IOPS, " in measured and "on /srv/data for " in measured


@pytest.mark.parametrize(
    ("happenings", "state", "reason"),
    [
        ([given(1.0, BUSY), given(1.8, QUIET)], WARNING, "vda is busy (at 0:01)"),
        ([given(1.0, LIMIT)], WARNING, "Not the disk: /work is at its limit on vda (at 0:01)"),
        ([given(1.0, TIMED)], WARNING, "The job waits for a CPU (at 0:01)"),
        ([given(1.0, QUIET)], GOOD, "no answer about the disk is a warning"),
        ([given(1.0, UNSTEADY), given(1.8, QUIET)], None, "could not tell"),
        ([given(1.0, FOUND), given(1.8, QUIET)], CRITICAL, "no tags are left (at 0:01)"),
        ([given(1.0, QUIET), judged(True), judged(None)], WARNING, "1 of 2 expectations not meas"),
        ([judged(True)], GOOD, "1 of 1 expectation met"),
        ([], None, "no answer about the disk and no expectation; 1 finding below"),
    ],
)
def test_the_light_is_that_of_the_gravest_reason(
    happenings: list[object], state: str | None, reason: str, path: Path
) -> None:
    overview = record(path, *happenings)
    assert (overview["state"], reason in overview["reason"]) == (state, True), overview


def test_an_answer_that_was_withdrawn_accuses_nobody(path: Path) -> None:
    over = events.FindingEnded(1.5, "tags", "no tags are left", 0.5, 1.0, "tags were free")
    overview = record(path, given(1.0, FOUND), over, given(1.8, QUIET))
    assert overview["state"] == GOOD and "no tags" not in overview["answer"]


def test_figures_of_one_second_are_not_the_answer_of_a_run(path: Path) -> None:
    overview = record(path, given(1.0, Answer("vda", OF_A_SECOND, GOOD, "fio does 9 IOPS")))
    assert overview["answer"] == "At 0:01 no request was stuck, and no finding needed attention."


def test_a_result_of_fio_says_what_is_unknown() -> None:
    source = FIXTURES / "fiologs" / "avg.json"
    overview = overview_of(source)
    assert overview["answer"] is None and overview["compared"] is None
    assert overview["measured"].startswith("By fio's JSON")
    assert "who else used the disk, is unknown" in rendered([source], "md")


def test_an_earlier_recording_without_an_answer_says_so() -> None:
    overview = overview_of(made.EARLIER_DEMO)
    assert overview["answer"] is None and "fio ran 2 times on" in overview["measured"]
    assert "The recording has no answer about the disk" in rendered([made.EARLIER_DEMO], "md")


def test_only_boxes_scroll_sideways_on_a_phone() -> None:
    root = page(recording_path("demo"))
    assert [e.get("content") for e in root.iter("meta") if e.get("name") == "viewport"] == [
        "width=device-width, initial-scale=1"
    ]
    parents = {child: parent for parent in root.iter() for child in parent}
    assert {box(parents, one) for one in root.iter("table")} == {("div", "wide")}
    assert {box(parents, one) for one in root.iter("svg")} == {("figure", None)}
    style = "".join("".join(one.itertext()) for one in root.iter("style"))
    assert ".wide, figure { overflow-x: auto; }" in style and "overflow-wrap: anywhere" in style


def box(parents: dict[ET.Element, ET.Element], element: ET.Element) -> tuple[str, str | None]:
    return parents[element].tag, parents[element].get("class")


def test_rows_of_a_recording_have_their_run_tunables_and_marks() -> None:
    demo = recording_path("demo")
    rows = list(csv.DictReader(io.StringIO(rendered([demo], "csv"))))
    recorded = json.loads(rendered([demo], "json"))["recordings"][0]
    assert tuple(rows[0])[-7:] == RUN_COLUMNS and tuple(rows[0])[:2] == ("t", "wall_ms")
    for run in recorded["runs"]:
        step, asked = str(run["step"]), run["overrides"]
        cells = {tuple(row.values())[-7:-2] for row in rows if row["step"] == step}
        assert cells == {(step, run["job"], asked["iodepth"], asked["numjobs"], "4k")}
    assert {row["run"] + row["job"] for row in rows if row["step"] == "0"} == {""}
    (change,) = recorded["changes"]
    for row in rows:
        value = change["before"] if float(row["t"]) < change["t"] else change["now"]
        assert f"nvme1n1.rq_affinity={value}" in row["tunables"].split()
    marked = [(float(row["t"]), row["marks"]) for row in rows if row["marks"]]
    assert [text for _, text in marked] == [mark["text"] for mark in recorded["marks"]]
    assert all(
        0 <= t - mark["t"] < 1.1 for (t, _), mark in zip(marked, recorded["marks"], strict=True)
    )


def test_a_sweep_is_one_sentence_with_its_result_and_its_curve_is_the_first_chart() -> None:
    path = FIXTURES / "recordings" / "sweep.iops"
    overview = overview_of(path)
    assert (
        "2 of 2 points measured. Take iodepth=4 (the smallest value with 95 % of the highest "
        "IOPS): 29.9k IOPS" in overview["measured"]
    )
    assert overview["compared"].startswith("PASS 2 of 2: iops >= 1: ")
    root = page(path)
    titles = [one.get("aria-label", "").split(",")[0] for one in root.iter("svg")]
    assert titles[0].startswith("IOPS against iodepth") and len(set(titles)) == len(titles)


def test_a_comparison_is_compared_with_its_first_variant() -> None:
    overview = overview_of(FIXTURES / "recordings" / "compare.iops")
    assert "IOPS" not in overview["measured"]
    assert overview["compared"].startswith(
        "B (iodepth=2) against A (iodepth=1): at least 5 repeats"
    )


def test_the_first_sentence_has_the_job_s_own_limits_and_both_directions(path: Path) -> None:
    started = made.others(made.RUN)[0]
    (start,) = [each for each in started if isinstance(each, events.StepStarted)]
    assert "limits itself" not in record(path)["measured"]
    path.unlink()
    limited = dataclasses.replace(start, options={"rate_iops": "900", "thinktime": "0"})
    assert "p99 " in (measured := record(path, limited)["measured"])
    assert measured.endswith(". The job limits itself: rate_iops=900.")
    mix = overview_of(FIXTURES / "recordings" / "run.iops")["measured"]
    assert ": 46.8k IOPS (32.8k read, 14.0k write), 183 MiB/s" in mix


def test_a_recording_without_a_job_says_what_others_did() -> None:
    source = FIXTURES / "recordings" / "busy.iops"
    measured = overview_of(source)["measured"]
    rows = [*csv.DictReader(io.StringIO(rendered([source], "csv")))]
    figures = [(float(row["kernel.disks.vda.r/s"]) + float(row["kernel.disks.vda.w/s"]),
                float(row["seconds"])) for row in rows if row["kernel.disks.vda.r/s"]]  # fmt: skip
    mean = sum(rate * s for rate, s in figures) / sum(s for _, s in figures)
    assert f"were recorded, {number(mean)} I/Os a second on average." in measured
