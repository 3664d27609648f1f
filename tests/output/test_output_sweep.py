"""The output of a sweep: rows, the knee of each curve, Little's law."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from made_sweeps import PLAN, finished

from iopstui.cli.runs.experiment import confirm, failed_text
from iopstui.events import PointFailed
from iopstui.experiment.setup import _first_values, length_text
from iopstui.model.experiment.expectation import Outcome, parse_expectation
from iopstui.model.experiment.load_curve import (
    conclusions,
    curve_text,
    further_loads,
    load_curves,
)
from iopstui.model.experiment.plan import Plan, parse_axis
from iopstui.output.experiment.sink import ExperimentCsv, JsonLines
from iopstui.output.experiment.sweep import (
    SweepJson,
    SweepTable,
    pass_table,
    sweep_cells,
    sweep_results,
)


def test_the_knee_of_each_curve_is_named() -> None:
    events = finished()
    single, four = load_curves(PLAN, events)
    assert dict(single.fixed) == {"numjobs": "1"} and len(single.points) == 7
    # 10k IOPS for each I/O in flight (100 µs), up to 12 at a time
    assert curve_text(single) == (
        "With numjobs=1, take iodepth=16 (best ratio of IOPS to latency): 120k IOPS, 469 MiB/s at "
        "133 µs (mean); 12.0 times the IOPS and 1.3 times the latency of iodepth=1; iodepth=64: "
        "+0 % IOPS, 4.0 times the latency. Each point ran once: 3 repeats would show how sure this "
        "is."
    )
    assert curve_text(four).startswith("With numjobs=4, take iodepth=4 (best")


def test_a_knee_outside_the_range_is_reported() -> None:
    below = Plan(("j",), {}, (parse_axis("iodepth=1,2,4"),))
    assert "try larger values" in curve_text(load_curves(below, finished(below))[0])
    above = Plan(("j",), {}, (parse_axis("iodepth=64,128,256"),))
    assert "(the smallest measured: try smaller values)" in curve_text(
        load_curves(above, finished(above))[0]
    )
    assert further_loads(above, load_curves(above, finished(above))) == "iodepth=16,32,64,128"
    least = Plan(("j",), {}, (parse_axis("iodepth=1,2,4"),))
    assert further_loads(least, load_curves(least, finished(least))) == "iodepth=2,4,8,16"
    nearly = Plan(("j",), {}, (parse_axis("iodepth=4,8,16"),))
    events = finished(nearly)
    # the largest load has 7 % more IOPS than the one before, and the best ratio
    low = replace(events[1].point, iops=0.935 * events[2].point.iops, latency_ns=140_000.0)
    events[1] = replace(events[1], point=low)
    curves = load_curves(nearly, events)
    assert "(the largest measured): " in curve_text(curves[0])
    assert further_loads(nearly, curves) == "iodepth=8,16,32,64"
    # the best ratio is another, and the largest load has 6 % more IOPS than the one before
    events[0] = replace(events[0], point=replace(events[0].point, latency_ns=30_000.0))
    low = replace(events[1].point, iops=0.94 * events[2].point.iops, latency_ns=120_000.0)
    events[1] = replace(events[1], point=low)
    curves = load_curves(nearly, events)
    assert "(the largest measured: try larger values)" in curve_text(curves[0])
    assert further_loads(nearly, curves) == "iodepth=8,16,32,64"


def test_conclusions_count_the_points_by_little_s_law() -> None:
    lines = conclusions(finished(), [])
    assert any("14 of 14" in line for line in lines)


def test_the_table_fits_80_columns() -> None:
    out = io.StringIO()
    table = SweepTable(PLAN, out)
    for event in finished():
        table.point(event)
    table.end(sweep_results(PLAN, finished()))
    lines = out.getvalue().splitlines()
    assert len(lines) > 15
    assert max(map(len, lines)) <= 80, max(lines, key=len)


def test_json_lines_and_csv_have_every_point() -> None:
    out = io.StringIO()
    sink = SweepJson(PLAN, JsonLines(out, "h"))
    for event in finished():
        sink.point(event)
    sink.end(sweep_results(PLAN, finished()))
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    points = [row for row in rows if row["event"] == "point_finished"]
    assert len(points) == 14 and points[3]["settings"] == {"iodepth": "8", "numjobs": "1"}
    assert points[3]["point"]["in_flight"] == 8.0 and points[3]["little"]["holds"] is True
    assert [row["event"] for row in rows[-3:]] == ["curve", "curve", "sweep_finished"]
    out = io.StringIO()
    table = ExperimentCsv(sweep_cells(PLAN), out)
    for event in finished():
        table.point(event)
    csv_rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert (
        len(csv_rows) == 14
        and csv_rows[0]["iodepth"] == "1"
        and float(csv_rows[0]["iops"]) == 10_000
    )


def test_repeats_end_with_means_and_failures_with_messages() -> None:
    plan = replace(PLAN, repeats=3, seed=4)
    runs = finished(plan)
    broken = PointFailed(1.0, 0, 42, "x", "randread-4k", runs[5].settings, 1, "too deep")
    text, lines, cells = io.StringIO(), io.StringIO(), io.StringIO()
    sinks = [
        SweepTable(plan, text),
        SweepJson(plan, JsonLines(lines, "h")),
        ExperimentCsv(sweep_cells(plan), cells),
    ]
    for sink in sinks:
        for event in runs[:-1]:
            sink.point(event)
        sink.failed(broken)
        sink.end(sweep_results(plan, runs[:-1], [broken]))
    table = text.getvalue().splitlines()
    assert max(map(len, table)) <= 80, max(table, key=len)
    assert sum(" failed" in line for line in table) == 1 and "too deep" in table[-1]
    means = table[table.index("") + 2 :][:14]
    assert [line.split()[0] for line in means] == [str(n) for n in range(1, 15)]
    assert sorted(int(line.split()[3]) for line in means) == [2] + [3] * 13
    rows = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert sum(row["event"] == "point_mean" for row in rows) == 14
    curve = next(row for row in rows if row["event"] == "curve")
    assert curve["points"] == list(range(7)) and curve["knee_within"][0] <= curve["knee"]
    csv_rows = list(csv.DictReader(io.StringIO(cells.getvalue())))
    assert (
        len(csv_rows) == 42 and csv_rows[-1]["error"] == "too deep" and csv_rows[-1]["iops"] == ""
    )


def test_verdicts_of_several_jobs_are_a_table() -> None:
    plan = Plan(("vng-randread", "vng-randwrite"), {}, (parse_axis("iodepth=1,8"),))
    promise = parse_expectation("iops>=50k")
    events = [
        replace(event, outcomes=(Outcome(promise, event.point.iops, 1.0),))
        for event in finished(plan)
    ]
    assert pass_table(plan, events)[1:] == [
        "iops >= 50000",
        "               iodepth=1  iodepth=8",
        "vng-randread        FAIL       PASS",
        "vng-randwrite       FAIL       PASS",
    ]
    assert pass_table(PLAN, events[:2]) == [], "one job: the rows say it"
    assert pass_table(plan, finished(plan)) == [], "nothing was expected"


def test_the_estimated_length_is_shown() -> None:
    assert length_text(PLAN).startswith("14 points, about 2 min 55 s")
    confirm(PLAN, yes=False)


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        ("iodepth=32,64..256", "iodepth 32, 64, 128, 256"),
        ("iodepth=1,2,4..64", "iodepth 1, 2, 4 ... 64"),
        ("bs=4k", "bs 4k"),
    ],
)
def test_the_form_shows_the_values_that_a_range_stands_for(axis: str, text: str) -> None:
    assert _first_values(Plan(("j",), {}, (parse_axis(axis),))) == text
    assert _first_values(PLAN) == ""


@pytest.mark.parametrize(
    ("failed", "runs", "early", "text"),
    [
        (1, 1, False, "the run failed: nothing was measured"),
        (4, 4, False, "all 4 runs failed: nothing was measured"),
        (1, 4, False, "1 run of 4 failed; the others were measured"),
        (2, 4, True, "2 runs of 4 failed; not all others were measured"),
    ],
)
def test_failed_runs_are_counted(failed: int, runs: int, early: bool, text: str) -> None:
    assert failed_text(failed, runs, early) == text
