"""Recorded sweeps and comparisons: replay and report."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import made_comparisons
import made_sweeps
import pytest
import recordings as made
from hypothesis import given
from hypothesis import strategies as st
from test_report import HOSTILE, page, text_of

from iopstui import events
from iopstui.errors import UsageError
from iopstui.features.reports.files import rendered
from iopstui.features.reports.report_data import load_report_data
from iopstui.model.block.topology import Binding, Topology
from iopstui.model.experiment.expectation import Outcome, parse_expectation
from iopstui.model.experiment.plan import Axis, Plan, Setting, Variant, parse_axis
from iopstui.output.page.svg import HEIGHT, STYLES, WIDTH, Scale, XYCurve, places, xy_chart
from iopstui.output.replay import replay_headless
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording
from iopstui.recording.replay import ReplaySession, replay_events
from iopstui.recording.writer import Recorder, RecordingBuffer

SWEEP = Plan(("randread-4k",), {"bs": "8k"}, (parse_axis("iodepth=1,4,16"),), measure=3.0)
EXPECTED = parse_expectation("iops>=50000", (), 0.1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.iops"


def sweep(plan: Plan = SWEEP) -> list[events.PointFinished]:
    points = made_sweeps.finished(plan)
    return [replace(e, outcomes=(Outcome(EXPECTED, e.point.iops, 1.0),)) for e in points]


def comparison(repeats: int = 3) -> tuple[Plan, list[events.PointFinished]]:
    plan = replace(made_comparisons.plan(repeats, "iodepth=1", "iodepth=16"), measure=3.0)
    runs = made_comparisons.runs(random.Random(3), repeats, 1e4, 6e4)
    return plan, made_comparisons.finished(plan, runs)


def write_experiment(
    path: Path | None, plan: Plan, points: list[events.PointFinished], complete: bool = True
) -> RecordingBuffer:
    """Record an experiment. The run of its first point has all samples."""
    samples = made.raws(made.RUN)
    before, after = made.others(made.RUN)
    buffer = made.tape(path, idle_frames=False)
    buffer.event(events.ExperimentStarted(0.0, plan))
    buffer.event(events.PointStarted(0.0, 0, plan.points, points[0].label, 9.0))
    made.tell(buffer, [samples[0], *before, *samples[1:], *after[2:]])
    for point in points:
        buffer.event(replace(point, t=2.0))
    if complete:
        buffer.event(events.ExperimentFinished(2.2, len(points), plan.points))
        buffer.close(events.SessionEnded(2.5, 0))
    return buffer


def replayed_events(path: Path) -> list[events.Event]:
    with Recording(path) as recording:
        return list(replay_events(recording))


def test_a_sweep_of_several_runs_has_intervals_and_its_failures(path: Path) -> None:
    plan = replace(SWEEP, repeats=3, seed=2)
    runs = [
        replace(run, point=replace(run.point, iops=run.point.iops * (1 + 0.01 * run.repeat)))
        for run in made_sweeps.finished(plan)
    ]
    buffer = write_experiment(path, plan, runs[:-1], complete=False)
    last = runs[-1]
    failure = events.PointFailed(2.0, 8, 9, last.label, last.job, last.settings, 2, "<too deep>")
    buffer.event(failure)
    buffer.event(events.ExperimentFinished(2.2, 8, 9, failed=1))
    buffer.close(events.SessionEnded(2.5, 0))
    assert failure in replayed_events(path)
    texts = {kind: rendered([path], kind) for kind in ("html", "md", "json")}
    assert "&lt;too deep&gt;" in texts["html"] and "failed: #" in texts["html"]
    assert 'class="line fio" d="M' in texts["html"] and "IOPS, 95 %" in texts["html"]
    data = json.loads(texts["json"])
    assert "too deep" in texts["md"] and "--repeats 3 --seed 2" in texts["md"]
    assert "interrupted" not in texts["md"]
    assert "iops_within" in json.dumps(data)


# -- recorded and replayed


def test_a_replay_has_all_events_of_an_experiment(path: Path) -> None:
    points = sweep()
    write_experiment(path, SWEEP, points)
    replayed = replayed_events(path)
    kinds = [type(e) for e in replayed]
    assert replayed[0] == events.ExperimentStarted(0.0, SWEEP), "told before there was a sample"
    assert kinds[1] is events.PointStarted
    points_replayed = [e for e in replayed if isinstance(e, events.PointFinished)]
    assert points_replayed == [replace(point, t=2.0) for point in points]
    plan, runs = comparison()
    write_experiment(path.with_name("c.iops"), plan, runs)
    replayed = replayed_events(path.with_name("c.iops"))
    assert replayed[0] == events.ExperimentStarted(0.0, plan)
    assert [e for e in replayed if isinstance(e, events.PointFinished)] == [
        replace(run, t=2.0) for run in runs
    ]


def test_a_recording_started_in_the_middle_has_earlier_points(path: Path) -> None:
    points = sweep()
    buffer = write_experiment(None, SWEEP, points[:2], complete=False)
    buffer.event(events.PointStarted(2.0, 2, 3, points[2].label, 3.0))
    buffer.start(Recorder(path))
    buffer.event(replace(points[2], t=3.0))
    buffer.event(events.ExperimentFinished(3.0, 3, 3))
    buffer.close(events.SessionEnded(3.0, 0))
    replayed = [
        e for e in replayed_events(path) if not isinstance(e, events.FrameReady | events.Notice)
    ]
    assert isinstance(replayed[0], events.ExperimentStarted)
    assert [e.index for e in replayed if isinstance(e, events.PointFinished)] == [0, 1, 2]
    assert sum(isinstance(e, events.PointStarted) for e in replayed) == 1, "of those done, none"
    assert not any(isinstance(e, events.Notice) for e in replayed_events(path)), (
        "the run before was over"
    )
    # a later recording does not have an experiment that has ended
    buffer = write_experiment(None, SWEEP, points, complete=False)
    buffer.event(events.ExperimentFinished(3.0, 3, 3))
    buffer.start(Recorder(path.with_name("later.iops")))
    buffer.close(events.SessionEnded(3.0, 0))
    assert not any(
        isinstance(e, events.ExperimentStarted)
        for e in replayed_events(path.with_name("later.iops"))
    )


def test_topology_and_binding_are_recorded(path: Path) -> None:
    topology = Topology((0, 1), (0, 1, 2), (), {0: 0, 1: 1}, {0: 0, 1: 0}, True)
    binding = Binding((0, 1), ((0, 0, 0), (1, 1, 0)), ("jobs share a queue",))
    buffer = RecordingBuffer(
        made.TARGET, lambda: {"vda": made.VDA}, 1.0, True, (), Recorder(path), lambda: topology,
        own_files=False,
    )  # fmt: skip
    before, after = made.others(made.RUN)
    job = replace(before[0], binding=binding, knobs=(("rq_affinity", "2"),))  # type: ignore[type-var]
    made.tell(
        buffer, [*made.raws(made.RUN)[:1], job, *before[1:], *made.raws(made.RUN)[1:], *after]
    )
    buffer.close(events.SessionEnded(2.5, 0))
    session = ReplaySession(path)
    try:
        assert session.topology() == topology and session.header.own_files is False
    finally:
        session.close()
    body = text_of(page(path))
    assert "CPUs 2, 1 last-level cache, 2 NUMA nodes" in body
    assert "Bound to hardware queues: job 0 on CPU 0 (hctx 0), job 1 on CPU 1" in body
    assert "jobs share a queue" in body and "--knob rq_affinity=2" in body


@pytest.mark.parametrize(
    ("own_files", "files", "has_target"),
    [(True, ("/srv/data/x",), False), (False, (), True), (None, ("/srv/data",), True)],
)
def test_a_job_with_its_own_files_is_repeated_without_a_target(
    own_files: bool | None, files: tuple[str, ...], has_target: bool, path: Path
) -> None:
    buffer = RecordingBuffer(
        replace(made.TARGET, kind="file"), lambda: {"vda": made.VDA}, 1.0, True, (),
        Recorder(path), own_files=own_files,
    )  # fmt: skip
    before, after = made.others(made.RUN)
    job = replace(before[0], files=files)  # type: ignore[type-var]
    made.tell(
        buffer, [*made.raws(made.RUN)[:1], job, *before[1:], *made.raws(made.RUN)[1:], *after]
    )
    buffer.close(events.SessionEnded(2.5, 0))
    body = text_of(page(path))
    assert ("iopstui run /srv/data --job" in body) == has_target
    assert has_target or "iopstui run --job randread-4k" in body


def test_fields_missing_in_older_recordings_have_defaults(path: Path) -> None:
    with Recording(made.EARLIER_DEMO) as demo:
        fields = {name for names in demo._decode._layouts.values() for name in names}
        assert demo.header.target.device and len(list(demo.records())) > 40
    # the recording is older than these fields
    assert "own_files" not in fields and "topology" not in fields
    session = ReplaySession(made.EARLIER_DEMO)
    assert session.topology() == Topology() and session.header.own_files is None
    session.close()


# -- reports


def test_a_sweep_s_page_has_points_curves_and_how_to_repeat_it(path: Path) -> None:
    write_experiment(path, SWEEP, sweep())
    root = page(path)
    body = text_of(root)
    for expected in (
        "Sweep over iodepth", "Little's law", "3 of 3 points", "expectations:", "N=X*R",
        "iopstui sweep /srv/data --job randread-4k --axis iodepth=1,4,16 --settle 2 --measure 3 "
        "--set bs=8k --expect 'iops>=50000' --tolerance 10%",
        "#1 iodepth=1: FAIL", "#2 iodepth=4: FAIL", "#3 iodepth=16: PASS",
        "Run 1: randread-4k, iodepth=1",
    ):  # fmt: skip
        assert expected in body, expected
    titles = [e.get("aria-label", "") for e in root.iter("svg")]
    assert titles[0] == "IOPS against iodepth" and titles[1].startswith("Latency against IOPS")
    knees = [e for e in root.iter("circle") if e.get("class") == "knee"]
    assert len(knees) == 2
    text = rendered([path], "md")
    assert "## Sweep over iodepth" in text and text.count("| PASS |") == 1
    assert "iopstui run" not in body, "the points are repeated by the sweep"
    share = {0: 0.75, 1: 0.25, 2: 0.001}
    with_cpus = [
        replace(point, point=replace(point.point, completions=share, busy={0: 9.0, 1: 66.0}))
        for point in sweep()
    ]
    write_experiment(path.with_name("cpus.iops"), SWEEP, with_cpus)
    cells = "| CPU 0 75 %, CPU 1 25 % | CPU 1 66 %, CPU 0 9 % |"
    assert rendered([path.with_name("cpus.iops")], "md").count(cells) == 3
    assert "CPU 0 75 %, CPU 1 25 %" in text_of(page(path.with_name("cpus.iops")))
    rows = list(csv.DictReader(io.StringIO(rendered([path], "csv"))))
    assert [row["iodepth"] for row in rows] == ["1", "4", "16"]
    data = json.loads(rendered([path], "json"))["recordings"][0]["experiments"][0]
    assert [p["settings"]["iodepth"] for p in data["points"]] == ["1", "4", "16"]
    assert data["axes"] == {"iodepth": ["1", "4", "16"]} and data["curves"][0]["knee"] is not None
    assert [p["outcomes"][0]["passed"] for p in data["points"]] == [False, False, True]


def test_a_comparison_s_page_has_differences_and_overlaid_runs(path: Path) -> None:
    plan, runs = comparison()
    write_experiment(path, plan, runs)
    root = page(path)
    body = text_of(root)
    for expected in (
        "Comparison of A: iodepth=1, B: iodepth=16", "B (iodepth=16) against A", "IOPS",
        "busiest CPU's completions", "paired t",
        "iopstui compare /srv/data --job", "--variant iodepth=1 --variant iodepth=16 --repeats 3",
    ):  # fmt: skip
        assert expected in body, expected
    titles = [e.get("aria-label", "") for e in root.iter("svg")]
    assert titles[:2] == ["IOPS of every run over time",
                          "Latency percentiles of every run (logarithmic)"]  # fmt: skip
    second = list(root.iter("svg"))[1]
    lines = [p.get("class") for p in second.iter("path") if "line" in p.get("class", "")]
    assert lines.count("line fio") == lines.count("line device") == 4, "three runs and the legend"
    data = json.loads(rendered([path], "json"))["recordings"][0]["experiments"][0]
    assert len(data["differences"]) == 7 and data["incomplete"] is None
    assert "shown" in rendered([path], "md") and len(rendered([path], "csv").splitlines()) == 7


def test_an_interrupted_experiment_says_what_is_missing(path: Path) -> None:
    plan, runs = comparison()
    buffer = write_experiment(path, plan, runs[:1], complete=False)
    buffer.event(events.ExperimentFinished(2.2, 1, 6, interrupted=True))
    buffer.close(events.SessionEnded(2.5, 0))
    for kind in ("html", "md"):
        text = rendered([path], kind)
        assert "interrupted: 1 of 6 runs measured" in text and "not enough" in text
    other_path = path.with_name("killed.iops")
    write_experiment(other_path, SWEEP, sweep()[:2], complete=False).stop()
    assert "the recording ends early: 2 of 3 points" in rendered([other_path], "md")
    none = path.with_name("none.iops")
    buffer = made.tape(none)
    buffer.event(events.ExperimentStarted(0.0, plan))
    made.tell(buffer, made.raws(made.RUN))
    buffer.event(events.ExperimentFinished(2.2, 0, 6, error="No room.", hint="Make some."))
    buffer.close(events.SessionEnded(2.5, 0))
    for kind in ("html", "md", "json", "csv"):
        text = rendered([none], kind)
        assert kind == "csv" or "failed after 0 of 6 runs: No room." in text


def test_a_recording_cut_off_after_any_record_can_be_reported(path: Path) -> None:
    plan, runs = comparison(2)
    write_experiment(path, plan, runs)
    data = path.read_bytes()
    place = len(form.MAGIC)
    while place < len(data):
        place += form.HEAD.size + form.HEAD.unpack_from(data, place)[2]
        path.write_bytes(data[:place])
        for kind in ("md", "csv"):
            try:
                assert rendered([path], kind)
            except UsageError as error:
                assert "is empty" in error.message


def test_an_axis_of_names_has_one_chart_and_hostile_names_are_escaped(path: Path) -> None:
    axis = Axis("option", HOSTILE, (HOSTILE, "b"))
    plan = Plan((HOSTILE,), {HOSTILE: HOSTILE}, (axis,))
    points = [
        replace(point, index=n, job=HOSTILE, label=HOSTILE, settings=((HOSTILE, value),))
        for n, (point, value) in enumerate(zip(sweep(), axis.values, strict=False))
    ]
    write_experiment(path, plan, points)
    root = page(path)
    titles = [e.get("aria-label", "") for e in root.iter("svg")]
    assert titles[0].startswith("IOPS against") and not titles[1].startswith("Latency against IOPS")
    variants = (Variant((Setting("option", HOSTILE, HOSTILE),)), Variant(()))
    compared = Plan((HOSTILE,), {}, variants=variants, repeats=2)
    renamed = [replace(e, label=HOSTILE) for e in comparison(2)[1]]
    write_experiment(path.with_name("c.iops"), compared, renamed)
    page(path.with_name("c.iops"))
    for file in (path, path.with_name("c.iops")):
        for kind in ("html", "md", "csv", "json"):
            text = rendered([file], kind)
            assert all(c.isprintable() for c in text.replace("\n", "")), kind
        outside = re.sub(r"(?ms)^(`{3,})\n.*?^\1$", "", rendered([file], "md"))
        assert not re.search(r"(?<!\\)<", outside)


def test_runs_of_recordings_with_experiments_are_not_compared(path: Path) -> None:
    write_experiment(path, SWEEP, sweep())
    other_path = path.with_name("other.iops")
    made.write(other_path)
    assert "cannot prove a difference" not in text_of(page(path, other_path))
    assert "cannot prove a difference" not in rendered([path, other_path], "md")


def test_the_chart_says_how_many_curves_are_left_out(path: Path) -> None:
    plan = Plan(("j",), {}, (parse_axis("iodepth=1,2"), parse_axis("numjobs=1..9")))
    write_experiment(path, plan, sweep(plan))
    titles = [e.get("aria-label", "") for e in page(path).iter("svg")]
    assert titles[0] == f"IOPS against iodepth (the first {len(STYLES)} of 9 curves)"


def test_lines_break_between_two_runs(path: Path) -> None:
    samples = made.raws(made.RUN)
    later_samples = [
        replace(raw, seq=raw.seq + 50, arrived_ns=raw.arrived_ns + 60 * 10**9, step=2)
        for raw in samples
    ]
    buffer = made.tape(path, idle_frames=False)
    made.tell(buffer, [samples[0], *made.others(made.RUN)[0], *samples[1:], *later_samples])
    buffer.close(events.SessionEnded(99.0, 0))
    series = load_report_data(path).series
    gaps = [t for t, value in zip(series["t"], series["fio"], strict=True) if value != value]
    assert any(samples[-1].arrived_ns < samples[0].arrived_ns + t * 1e9 for t in gaps)


def test_an_impossible_variant_is_refused(path: Path) -> None:
    points = [replace(point, variant=7) for point in comparison()[1]]
    write_experiment(path, comparison()[0], points)
    for kind in ("html", "md", "json", "csv"):
        with pytest.raises(UsageError, match="it contains impossible figures"):
            rendered([path], kind)
    for kind in ("table", "jsonl", "csv"):
        with pytest.raises(UsageError, match="it contains impossible figures"):
            replay_headless(str(path), kind)


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1e9)), max_size=12),
       st.lists(st.text(max_size=30), min_size=10, max_size=10))  # fmt: skip
def test_a_chart_stays_within_its_frame(
    values: list[tuple[float, float]], names: list[str]
) -> None:
    curve = XYCurve(
        "a", "fio", values, [name for name in names for _ in "ab"], 0 if values else None
    )
    text = xy_chart("t", places(names), Scale(0, 1e9), str, [curve, replace(curve, label="b")])
    assert bool(text) == bool(values)
    if not text:
        return
    for element in ET.fromstring(text).iter():
        for name, most in (("x", WIDTH), ("cx", WIDTH), ("y", HEIGHT), ("cy", HEIGHT)):
            assert 0 <= float(element.get(name, "0")) <= most


def test_knobs_that_do_not_vary_are_in_the_command(path: Path) -> None:
    plan = Plan(("randread-4k",), {}, (parse_axis("iodepth=1,4,16"), parse_axis("rq_affinity=1,2")))
    buffer = RecordingBuffer(made.TARGET, dict, 1.0, False, (), Recorder(path))
    before, after = made.others(made.RUN)
    job = replace(before[0], knobs=(("nomerges", "2"), ("rq_affinity", "1")))  # type: ignore[type-var]
    point = replace(sweep()[0], settings=(("iodepth", "1"), ("rq_affinity", "1")))
    buffer.event(events.ExperimentStarted(0.0, plan))
    buffer.event(events.PointStarted(0.0, 0, plan.points, point.label, 9.0))
    samples = made.raws(made.RUN)
    made.tell(buffer, [samples[0], job, *before[1:], *samples[1:], *after, replace(point, t=2.0)])
    buffer.close(events.SessionEnded(2.5, 0))
    body = text_of(page(path))
    assert "--axis rq_affinity=1,2" in body and "--knob nomerges=2" in body
    assert "--knob rq_affinity" not in body, "that one is varied"


def test_an_axis_that_is_no_load_has_no_knee(path: Path) -> None:
    axis = parse_axis("bs=4k,8k,16k")
    plan = Plan(("randread-4k",), {}, (axis,))
    points = [
        replace(point, settings=(("bs", value),))
        for point, value in zip(sweep(), axis.values, strict=True)
    ]
    write_experiment(path, plan, points)
    assert not [e for e in page(path).iter("circle") if e.get("class") == "knee"]
