"""Reports have the right figures, and no recorded text can act in a page or a terminal."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import stat
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import recordings as made
from disks import changed
from fio_recordings import KINDS, statuses
from hypothesis import given
from hypothesis import strategies as st
from session_frames import kernel, with_share, with_smb

from iopstui import events
from iopstui.errors import UsageError
from iopstui.features.reports import comparisons, series
from iopstui.features.reports import words as report_words
from iopstui.features.reports.content import markdown
from iopstui.features.reports.files import kind_of, rendered, report
from iopstui.features.reports.formats import TEXTS
from iopstui.features.reports.report_data import load_report_data
from iopstui.features.reports.run import Run
from iopstui.features.reports.series import points
from iopstui.format import MISSING, number
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.diagnosis import Finding
from iopstui.model.metrics.slow.stalls import Stall
from iopstui.model.metrics.summary import fio_summary
from iopstui.output.page.svg import (
    HEIGHT,
    WIDTH,
    Curve,
    Scale,
    Times,
    chart,
    heat,
    linear,
    logarithmic,
)
from iopstui.recording import layout as form
from iopstui.recording.reader import recording_path
from iopstui.recording.writer import Recorder, RecordingBuffer
from iopstui.session.run_rows import RUN_COLUMNS

LOADS = {"src", "href", "srcset", "data", "action", "poster", "background", "formaction", "style"}
HOSTILE = (
    '"><script>alert(1)</script><img src=x onerror=alert(1)>&amp;</style>`|\x1b[2J\x00\udcff\u202e'
)


def page(path: Path, *more: Path) -> ET.Element:
    """Parse the page as XML. Fail if anything in it could load something."""
    text = rendered([path, *more], "html")
    text.encode("utf-8")
    root = ET.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    for element in root.iter():
        assert element.tag not in ("script", "link", "iframe", "object", "embed", "img", "image")
        assert not LOADS & set(element.attrib), element.attrib
        assert not [name for name in element.attrib if name.startswith("on")]
        assert not any("://" in value for value in element.attrib.values())
    style = "".join(element.text or "" for element in root.iter("style"))
    assert "url(" not in style and "@import" not in style
    policy = [e.get("content", "") for e in root.iter("meta") if e.get("http-equiv")]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]
    return root


def text_of(element: ET.Element) -> str:
    return " ".join(" ".join(element.itertext()).split())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.iops"


def test_a_captured_job_is_compared_with_its_run(path: Path) -> None:
    recorded_of = "3.42-j-rateiops"
    before, after = made.others(recorded_of)
    job = fio_summary(statuses(recorded_of)[-1])["rows"][0]
    name, (direction, figures) = job["name"], next(iter(job["directions"].items()))
    text = f"# captured: {direction} 51.00/s, 4096 bytes each\n[{name}]\nrw=read\n"
    before[0] = replace(before[0], text=text)  # type: ignore[type-var]
    recorded = made.raws(recorded_of)
    tape = made.tape(path)
    made.tell(tape, [recorded[0], *before, *recorded[1:], *after])
    tape.close(events.SessionEnded(2.5, 0))
    table = rendered([path], "md")
    assert "captured IOPS" in table and f"| {name} | {direction} | 51.0 |" in table
    (run,) = json.loads(rendered([path], "json"))["recordings"][0]["runs"]
    (row,) = run["captured"]
    assert row["replayed"]["rate"] == figures["iops"]
    assert row["replayed"]["size"] == figures["io_bytes"] / figures["total_ios"]


@pytest.mark.parametrize("name", KINDS)
def test_every_format_of_every_run_can_be_written(name: str, path: Path) -> None:
    made.write(path, name)
    body = text_of(page(path))
    final = fio_summary(statuses(name)[-1])
    for row in final["rows"]:
        for figures in row["directions"].values():
            assert f"{figures['iops']:.1f}" in body
            assert str(figures["completed"]) in body
    verdicts = ("up to fio's own total", "fio counted", "Not verified")
    assert any(verdict in body for verdict in verdicts)
    text = rendered([path], "md")
    data = json.loads(rendered([path], "json"))
    # rates of the whole time have more digits than fio's own
    rounded = json.loads(json.dumps(final), parse_float=lambda digits: round(float(digits), 6))
    assert data["recordings"][0]["runs"][0]["summary"] == rounded
    assert data["recordings"][0]["runs"][0]["reconciled"] in body
    assert data["recordings"][0]["runs"][0]["reconciled"].replace("_", " ") in text.replace(
        "_", " "
    )


def test_the_page_has_figures_charts_and_the_command_to_repeat_it(path: Path) -> None:
    made.write(path)
    root = page(path)
    body = text_of(root)
    for expected in (
        "randread-4k on /srv/data", "mark <1>", "rq_affinity of vda: 1 → 2", "try 2",
        "all I/O completes on CPU 1", "iopstui run /srv/data --job randread-4k --set iodepth=8",
        "fio j", "[a] name=ä", "hctx 0 CPU 0,1, 256 tags", "vda",
    ):  # fmt: skip
        assert expected in body, expected
    assert "SECRET" not in body
    titles = [e.get("aria-label", "") for e in root.iter("svg")]
    assert [t.split(",")[0].split(":")[0] for t in titles] == [
        "IOPS",
        "Latency of all I/Os (logarithmic)",
        "Latency of every I/O (stronger colour",
        "CPU load and fio's CPU use (percent of one CPU)",
        "Requests in flight at the device (aqu-sz)",
        "Where the I/Os wait (I/Os in flight)",
    ]


def test_outcomes_of_expectations_are_in_the_report(path: Path) -> None:
    buffer = made.tape(path)
    samples = made.raws(made.RUN)
    before, after = made.others(made.RUN)
    judged = events.ExpectationChecked(
        1.9, 1, "iops>=5000", "iops", "1/s", ">=", 5000.0, 4500.0, 4321.5, False, 0.4
    )
    steady = events.SteadyState(1.9, 1, None, 0.0, 0.0, 1.0, "too short to tell if it was steady")
    made.tell(buffer, [samples[0], *before, *samples[1:], judged, steady, *after])
    buffer.close(events.SessionEnded(2.5, 0))
    for kind in ("html", "md"):
        text = rendered([path], kind).replace("\\", "").replace("&gt;", ">")
        assert "FAIL" in text and "iops >= 5000 (4500 with 10 % tolerance): measured 4322" in text
        assert "met in 40 % of the seconds" in text
        assert "too short to tell" in text


def write_hostile(path: Path) -> None:
    target = replace(made.TARGET, path="/srv/" + HOSTILE)
    device = replace(made.VDA, model=HOSTILE, layer=HOSTILE, irqs=())
    buffer = RecordingBuffer(target, lambda: {"vda": device}, 1.0, True, (), Recorder(path))
    samples = made.raws(made.RUN)
    status = samples[-1].fio
    assert status is not None
    renamed = replace(status, jobs=tuple(replace(job, name=HOSTILE) for job in status.jobs))
    made.tell(buffer, [
        samples[0],
        form.JobRun(1, HOSTILE, {HOSTILE: HOSTILE}, HOSTILE, False, HOSTILE + "\n```\n````x",
                    (target.path,)),
        events.StepStarted(0.0, 1, HOSTILE, HOSTILE, (HOSTILE,), True, "run", HOSTILE),
        *samples[1:],
        events.Mark(1.0, HOSTILE), events.TunableChanged(1.0, HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        events.FindingReported(1.5, Finding(HOSTILE, HOSTILE, HOSTILE)),
        events.Notice(1.6, "error", HOSTILE),
        events.StepFinished(2.0, 1, 1, HOSTILE, False, fio_summary(renamed), (HOSTILE,), HOSTILE),
    ])  # fmt: skip
    buffer.close(events.SessionEnded(2.5, 0))


def test_the_end_of_a_finding_is_in_the_report(path: Path) -> None:
    def busy(since_s: float) -> events.FindingReported:
        return events.FindingReported(
            since_s + 3, Finding("busy", "it is busy", since=since_s, until=since_s + 3)
        )

    def over(since_s: float, until_s: float) -> events.FindingEnded:
        return events.FindingEnded(until_s + 10, "busy", "it is busy", since_s, until_s)

    reports = [busy(2.0), over(2.0, 12.0), busy(30.0), over(30.0, 34.0), busy(60.0)]
    endings = ["", " (ended at 0:12, after 10 s)",
             " (ended at 0:12, after 10 s, then again)",
             " (ended 2 times, the last at 0:34, after 14 s in total)",
             " (ended 2 times, the last at 0:34, after 14 s in total, then again)"]  # fmt: skip
    for count, end in enumerate(endings, 1):
        path.unlink(missing_ok=True)
        buffer = made.tape(path)
        made.tell(
            buffer,
            [made.raws(made.RUN)[0], *reports[:count], events.FindingEnded(0, "else", "", 0, 1)],
        )
        buffer.close(events.SessionEnded(99.0, 0))
        assert [
            line.split(" ", 1)[1].strip() for line in report_words.findings(load_report_data(path))
        ] == ["it is busy" + end]
    assert json.loads(rendered([path], "json"))["recordings"][0]["findings"][0]["ceased"] == {
        "times": 2, "held_s": 14.0, "until": 34.0, "why": "",
    }  # fmt: skip


def test_a_finding_of_several_runs_is_listed_once_with_its_count(path: Path) -> None:
    buffer = made.tape(path)
    first, *later = made.raws(made.RUN)
    begin, end = made.others(made.RUN)
    said = [
        ("depth", "depth 4 → 32: 4.01k IOPS, latency 984 µs → 7.70 ms"),
        ("depth", "depth 4 → 32: 3.1k IOPS, latency 1.2 ms → 7.9 ms"),
        ("depth", "depth 4 → 32: 3.1k IOPS, latency 1.2 ms → 7.9 ms"),
        ("busy", "nvme0n1 is 93 % busy"), ("busy", "nvme1n1 is 95 % busy"),
    ]  # fmt: skip
    happenings: list[object] = [first, *begin, *later]
    for step, (rule, text) in enumerate(said, 1):
        happenings += [
            events.StepStarted(float(step), step, "j", "t", ("fio",), True),
            events.FindingReported(step + 0.2, Finding(rule, text)),
        ]
    made.tell(buffer, [*happenings, *end[2:]])
    buffer.close(events.SessionEnded(9.0, 0))
    assert [*report_words.findings(load_report_data(path))] == [
        f"0:03 {said[2][1]} (3 times since 0:01; the figures are of the last time)",
        "0:04 nvme0n1 is 93 % busy",
        "0:05 nvme1n1 is 95 % busy",
    ]


def test_a_finding_that_another_one_explains_is_not_listed(path: Path) -> None:
    buffer = made.tape(path)
    happenings: list[object] = [made.raws(made.RUN)[0]]
    for rule, since in (("disagree", 2.0), ("cpu-wait", 4.0), ("neighbour", 4.5), ("disagree", 50)):
        step = round(since)
        happenings += [
            events.StepStarted(since, step, "j", "t", ("fio",), True),
            events.FindingReported(since + 3, Finding(rule, rule, since=since, until=since + 3)),
        ]
    made.tell(buffer, happenings)
    buffer.close(events.SessionEnded(99.0, 0))
    said = [line.split()[1] for line in report_words.findings(load_report_data(path))]
    assert said == ["cpu-wait", "neighbour", "disagree"]
    said_of_all = json.loads(rendered([path], "json"))["recordings"][0]["findings"]
    assert len(said_of_all) == 4


def test_stalls_are_listed_once_and_drawn(path: Path) -> None:
    started = Stall("vda", 2.0, 3.0, None, 7, ended=False)
    ended_stall = replace(started, seconds=4.5, at_most=6.0, ended=True)
    buffer = made.tape(path)
    first, *later = made.raws(made.RUN)
    made.tell(
        buffer,
        [first, *later, *(events.StallFound(9.0, stall) for stall in (started, ended_stall))],
    )
    buffer.close(events.SessionEnded(99.0, 0))
    assert list(report_words.event_lines(load_report_data(path))) == [
        "0:02 stall: vda completed nothing for 4.5 to 6.0 s from 0:02 on, 7 requests in flight"
    ]
    stalls = json.loads(rendered([path], "json"))["recordings"][0]["stalls"]
    assert [(stall["seconds"], stall["at_most"]) for stall in stalls] == [(4.5, 6.0)]
    assert "stall 4.5 s</text>" in rendered([path], "html")


def test_the_slowest_requests_are_a_table(path: Path) -> None:
    made.write(path, taken=made.raws(made.RUN, probed=True))
    [request, *_] = json.loads(rendered([path], "json"))["recordings"][0]["slowest"]
    assert (request["comm"], request["direction"], request["total"]) == ("fio", "read", 5_000_000)
    text = rendered([path], "md")
    assert "## Slowest requests" in text
    row = next(line for line in text.splitlines() if "fio (700)" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:] == ["vda", "read", "R", "2048", "1 MiB", "4 KiB", "fio (700)", "/", "0 → 1",
                         "5.00 ms", "–", "1.00 µs", "10.0 µs", "4.99 ms"]  # fmt: skip
    made.write(path.with_name("none.iops"))
    assert "Slowest requests" not in rendered([path.with_name("none.iops")], "md")


def test_the_slowest_i_os_of_fio_s_log_are_a_table(path: Path) -> None:
    slow_io = {"direction": "read", "t": 2.2, "latency_ns": 6_880_000, "size": 4096,
           "offset": 8 << 20, "job": 3}  # fmt: skip
    slow = {"ios": 9, "slowest": [slow_io], "in_common": ["9 of the 10 slowest reads are of 8 KiB"]}
    tape, samples = made.tape(path), made.raws(made.RUN)
    before, after = made.others(made.RUN)
    end = after.pop()
    assert isinstance(end, events.StepFinished)
    finished = replace(end, summary={**end.summary, "slowest_ios": slow})
    made.tell(tape, [samples[0], *before, *samples[1:], *after, finished])
    tape.close(events.SessionEnded(2.5, 0))
    text = rendered([path], "md")
    assert "## Slowest I/Os" in text and "the job's side only, not the kernel's" in text
    row = next(line for line in text.splitlines() if "6.88 ms" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["1", "read", "6.88 ms", "4 KiB", "8 MiB", "3", "2.200"]
    assert "- 9 of the 10 slowest reads are of 8 KiB." in text


def test_missing_device_figures_are_not_zero() -> None:
    measured = made.frames(made.raws(made.RUN))[1]
    disk = measured.disks["vda"]
    lost = changed(disk, aqu_sz=None, util=None, r_bytes_s=None, reads=None, writes=None,
                   discards=None, r_s=None, w_s=None, d_s=None)  # fmt: skip
    blind = replace(measured, disks={"vda": lost})
    run = Run(1)
    run.add(blind, made.TARGET.tree)
    row = next(report_words.device_rows(made.TARGET, [run]))
    assert row[1:4] == (MISSING,) * 3 and row[5:7] == (MISSING,) * 2, "neither is it 0"
    run.add(measured, made.TARGET.tree)
    alone = Run(1)
    alone.add(measured, made.TARGET.tree)
    assert (
        next(report_words.device_rows(made.TARGET, [run]))[1:7]
        == next(report_words.device_rows(made.TARGET, [alone]))[1:7]
    )


@pytest.mark.parametrize("started_at", [1e15, 1e20, 1e30, -1e20, math.inf, math.nan])
def test_an_impossible_time_is_refused(started_at: float, path: Path) -> None:
    samples = [replace(raw, wall_ms=started_at) for raw in made.raws(made.RUN)]
    buffer = made.tape(path)
    made.tell(buffer, samples)
    buffer.close(events.SessionEnded(2.5, 0))
    for kind in ("html", "md"):
        with pytest.raises(UsageError, match="it contains impossible figures"):
            rendered([path], kind)


def test_odd_names_of_machine_and_device_leave_the_page_well_formed(path: Path) -> None:
    samples = made.raws(made.RUN)
    target = replace(made.TARGET, device="v\x1bda", tree=("v\x1bda",))
    renamed = [
        replace(
            raw,
            kernel=replace(raw.kernel, disks={"v\x1bda": raw.kernel.disks["vda"]}),
        )
        for raw in samples
        if raw.kernel is not None
    ]
    buffer = RecordingBuffer(target, dict, 1.0, True, (), Recorder(path))
    made.tell(buffer, renamed)
    buffer.close(events.SessionEnded(2.5, 0))
    page(path)
    for kind in TEXTS:
        assert "\x1b" not in rendered([path], kind), kind


def test_hostile_names_are_escaped(path: Path) -> None:
    write_hostile(path)
    root = page(path)
    assert "alert(1)" in text_of(root)
    for kind in TEXTS:
        text = rendered([path], kind)
        visible = text.replace("\n", "").replace("\t", "")
        assert all(c.isprintable() for c in visible), kind
        text.encode("utf-8")
    outside = re.sub(r"(?ms)^(`{3,})\n.*?^\1$", "", rendered([path], "md"))
    assert not re.search(r"(?<!\\)<", outside), "no HTML in Markdown outside of its code"
    assert not re.search(r"(?<!\\)`", outside)
    for line in outside.split("\n"):
        if line.startswith("| "):
            cells = re.split(r"(?<!\\)\|", line)
            assert len(cells) in (4, 5, 7, 8, 13), "no cell is broken in two"


def test_a_recording_that_was_cut_off_says_so(path: Path) -> None:
    made.write(path, taken=made.raws(made.RUN)[:4])
    path.write_bytes(path.read_bytes()[:-900])
    for kind in ("html", "md"):
        text = rendered([path], kind)
        assert "damaged or cut off" in text or "no end" in text
        assert "The recording ends before the run" in text


def test_of_a_recording_damaged_before_its_run_none_is_denied(path: Path) -> None:
    buffer = made.tape(path)
    made.tell(buffer, [replace(r, fio=None, step=0) for r in made.raws(made.RUN)])
    buffer.close(events.SessionEnded(9.0, 0))
    path.write_bytes(path.read_bytes()[:-20])
    for kind in ("html", "md"):
        text = rendered([path], kind)
        assert "The readable part has no run" in text and "No job ran" not in text
        assert "not complete" in text


def test_a_recording_started_during_a_run_is_not_unverified(path: Path) -> None:
    samples = made.raws(made.RUN)
    before, after = made.others(made.RUN)
    buffer = made.tape(None)
    made.tell(buffer, [samples[0], *before, *samples[1:3]])
    buffer.start(Recorder(path))
    made.tell(buffer, [*samples[3:], *after])
    buffer.close(events.SessionEnded(9.0, 0))
    body = text_of(page(path))
    assert "starts during the run" in body and "fio counted" not in body


def test_a_recording_without_a_job_says_so(path: Path) -> None:
    buffer = made.tape(path)
    made.tell(buffer, [replace(r, fio=None, step=0) for r in made.raws(made.RUN)])
    buffer.close(events.SessionEnded(9.0, 0))
    assert "No job ran" in text_of(page(path))
    assert "No job ran" in rendered([path], "md")


def test_a_job_without_latencies_has_no_latency_chart_with_zeros(path: Path) -> None:
    name = "3.42-b-randrw-gtod"
    made.write(path, name)
    root = page(path)
    titles = [e.get("aria-label", "") for e in root.iter("svg")]
    assert not any(title.startswith("Latency of every I/O") for title in titles)
    latency = next(e for e in root.iter("svg") if "logarithmic" in e.get("aria-label", ""))
    assert not [p for p in latency.iter("path") if p.get("class", "").startswith("line")]


def test_the_comparison_has_fio_s_own_figures(path: Path) -> None:
    made.write(path, "3.42-j-rateiops")
    data = load_report_data(path)
    rows = {name: values for name, *values in comparisons.comparison([data, data]).rows}
    finished = data.runs[0].finished
    assert finished is not None and not data.runs[0].is_partial
    iops = sum(direction["iops"] for direction in finished.summary["total"].values())
    assert rows["fio IOPS"] == [number(iops), number(iops), "+0.0 %"]


def test_two_recordings_have_the_same_scales(path: Path, tmp_path: Path) -> None:
    made.write(path, "3.33-p-mixed")
    other_path = tmp_path / "other.iops"
    made.write(other_path, "3.42-j-rateiops")
    root = page(path, other_path)
    sections = list(root.iter("section"))
    assert len(sections) == 2
    axes = []
    for section in sections:
        svg = next(section.iter("svg"))
        axes.append([t.text for t in svg.iter("text") if t.get("text-anchor") == "end"])
    assert axes[0] == axes[1]
    table = text_of(next(root.iter("table")))
    assert "run.iops other.iops" in table and "fio IOPS" in table and "%" in table
    assert "cannot prove a difference" in text_of(root) and "cannot prove a difference" in rendered(
        [path, other_path], "md"
    )
    with pytest.raises(UsageError, match="not of 2"):
        rendered([path, other_path], "csv")


def test_csv_has_a_row_per_frame_and_json_no_nan(path: Path) -> None:
    samples = made.write(path)
    rows = list(csv.DictReader(io.StringIO(rendered([path], "csv"))))
    assert len(rows) == len(samples)
    total = sum(int(row["fio.total.ios"] or 0) for row in rows if "fio.total.ios" in row)
    assert total >= 0 and rows[-1]["kernel.disks.vda.r/s"]
    text = rendered([path], "json")
    assert "NaN" not in text and "Infinity" not in text
    series = json.loads(text)["recordings"][0]["series"]
    assert {len(values) for values in series.values()} == {len(samples)}


def test_a_long_recording_is_reduced_to_max_points(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "MAX_POINTS", 50)
    made.write(path, taken=made.long_run(260, made.RUN))
    data = load_report_data(path)
    mean, top = points(data.series, "device"), points(data.series, "device", top=True)
    assert len(mean) == len(top) == math.ceil(260 / 6)
    assert all(a[1] is None or a[1] <= (b[1] or 0) for a, b in zip(mean, top, strict=True))
    assert mean[10][1] == pytest.approx(1051.0), "1000 reads, 50 writes, 1 discard a second"
    page(path)


def test_impossible_figures_are_refused(path: Path, tmp_path: Path) -> None:
    buffer = made.tape(path)
    samples = made.raws(made.RUN)
    bad = {"rows": [{"name": 5, "directions": "x"}], "sums": 7, "total": []}
    made.tell(buffer, [*samples, events.StepFinished(2.0, 1, 0, "", False, bad)])  # type: ignore[arg-type]
    buffer.close(events.SessionEnded(2.5, 0))
    for kind in ("html", "md"):
        with pytest.raises(UsageError, match="it contains impossible figures"):
            rendered([path], kind)
    (tmp_path / "empty").write_bytes(b"")
    for kind in TEXTS:
        with pytest.raises(UsageError, match="is empty"):
            rendered([tmp_path / "empty"], kind)


# -- the output file


@pytest.mark.parametrize(
    ("name", "kind"),
    [("x.html", "html"), ("x.HTM", "html"), ("a/b.md", "md"), ("x.csv", "csv"), ("x.json", "json"),
     (None, "md"), ("-", "md")],
)  # fmt: skip
def test_the_suffix_selects_the_format(name: str | None, kind: str) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize("name", ["x", "run.iops", "x.pdf"])
def test_an_unknown_suffix_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="has no suffix"):
        kind_of(name)


def test_a_report_does_not_overwrite_its_recording(path: Path, tmp_path: Path) -> None:
    made.write(path)
    before = path.read_bytes()
    link = tmp_path / "x.md"
    link.symlink_to(path)
    for out in (path, link):
        with pytest.raises(UsageError, match=r"is the input\. A report does not overwrite it"):
            report([str(path)], str(out), "md")
    assert path.read_bytes() == before and link.is_symlink()


def test_a_report_does_not_replace_a_device_or_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "x.html"
    os.mkfifo(pipe)
    link = tmp_path / "link.html"
    link.symlink_to("/dev/null")
    # in /dev not even a free name: root would create a file there
    for out in (pipe, link, Path("/dev/null"), Path("/dev/stdout"), Path("/dev/none.html"),
                Path("/dev/fd/1"), Path("/proc/self/fd/1")):  # fmt: skip
        before = file_kind(out)
        with pytest.raises(UsageError, match="is not a file and cannot be overwritten by a report"):
            report(["demo"], str(out), "html")
        assert file_kind(out) == before


def file_kind(path: Path) -> tuple[int, int] | None:
    """The file's type and device number, or ``None``."""
    if not os.path.lexists(path):
        return None
    info = os.lstat(path)
    return stat.S_IFMT(info.st_mode), info.st_rdev


def test_a_report_keeps_the_mode_of_the_file_it_replaces(tmp_path: Path) -> None:
    out, link = tmp_path / "x.md", tmp_path / "link.md"
    out.write_text("")
    out.chmod(0o600)
    link.symlink_to(out)
    for place, mode in ((out, 0o600), (link, 0o644 & ~umask())):
        report(["demo"], str(place))
        assert stat.S_IMODE(place.lstat().st_mode) == mode
    assert out.read_text() == link.read_text() != "" and not link.is_symlink()


def umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Cannot write the report"):
        report(["demo"], str(tmp_path / ("x" * 300 + ".html")))
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_written_completely_or_not_at_all(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.write(path)
    out = tmp_path / "x.html"
    out.write_text("old")
    assert report([str(path)], str(out)) == 0
    assert out.read_text().startswith("<!DOCTYPE html>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.iops", "x.html"]
    assert capsys.readouterr().out == ""
    assert report([str(path)], None) == 0
    assert capsys.readouterr().out.startswith("# iopstui")
    with pytest.raises(UsageError, match="does not exist"):
        report([str(path)], str(tmp_path / "none" / "x.html"))
    with pytest.raises(UsageError, match="is a directory"):
        report([str(path)], str(tmp_path), "html")
    for name in ("none.html/", "x.html/", "none.parquet/"):
        with pytest.raises(UsageError, match="names a directory, by the /") as caught:
            report([str(path)], f"{tmp_path}/{name}")
        assert caught.value.hint.endswith(name.rstrip("/"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.iops", "x.html"]
    with pytest.raises(UsageError, match="covers at most 26 recordings"):
        report([str(path)] * 27, None)


def test_the_demo_has_a_report() -> None:
    body = text_of(page(recording_path("demo")))
    assert "rq_affinity of nvme1n1: " in body and body.count("up to fio's own total") == 2
    assert markdown([load_report_data(recording_path("demo"))]).count("up to fio's own total") == 2


def test_several_runs_are_compared() -> None:
    demo = made.EARLIER_DEMO
    body = text_of(page(demo))
    assert report_words.SIDE_BY_SIDE in body and "iodepth 2 → 32, rq_affinity 2 → 1" in body
    assert body.index(report_words.SIDE_BY_SIDE) < body.index("Run 1: ")
    text = markdown([load_report_data(demo)])
    assert "| 2 | iodepth 2 → 32, rq_affinity 2 → 1 while it ran | 82.6k | +123.6 % |" in text
    rows = json.loads(rendered([demo], "json"))["recordings"][0]["side_by_side"]
    assert [row["step"] for row in rows] == [1, 2] and rows[0]["to_before"] is None
    assert rows[1]["to_before"] == pytest.approx(123.6, abs=0.1) and rows[1]["before"] == 1
    assert rows[1]["changed"][0] == "iodepth 2 → 32"


def test_the_device_s_means_equal_those_in_the_runs_table(path: Path) -> None:
    made.write(path)
    for data in map(load_report_data, (path, recording_path("demo"))):
        for row in data.rows:
            (run,) = [r for r in data.runs if r.step == row.step]
            device = run.measured.device
            means = device.mean(DiskRates.util), device.mean(DiskRates.aqu_sz)
            assert means == pytest.approx((row.util, row.aqu_sz)) and None not in means


def test_a_run_on_nfs_has_the_times_of_its_requests(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "kernel", lambda n, ns, ms: with_share(n, kernel(n, ns, ms)))
    made.write(path)
    assert "NFS mount" in text_of(page(path))
    (data,) = json.loads(rendered([path], "json"))["recordings"]
    reads = data["runs"][0]["nfs"]["read"]
    assert reads["ops/s"] > 0 and reads["rtt"] is not None
    table = rendered([path], "md").partition("## NFS mount")[2].split("##")[0]
    (row,) = [line for line in table.splitlines() if "| read" in line]
    assert row.split("|")[3].strip() == number(reads["ops/s"])


def test_a_run_on_smb_has_its_requests_without_times_of_nfs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "kernel", lambda n, ns, ms: with_smb(n, kernel(n, ns, ms)))
    made.write(path)
    (data,) = json.loads(rendered([path], "json"))["recordings"]
    assert data["runs"][0]["nfs"] is None
    reads = data["runs"][0]["smb"]["read"]
    assert reads["latency"] == 4.0 and reads["kB/op"] == 4.0
    text = rendered([path], "md")
    assert "NFS" not in text
    table = text.partition("## SMB mount")[2].split("##")[0]
    (row,) = [line for line in table.splitlines() if "| read" in line]
    assert [cell.strip() for cell in row.split("|")][3:8] == [
        number(reads["ops/s"]), number(reads["kB/s"]), "4.00", "100", "4.00 ms",
    ]  # fmt: skip


def test_a_single_run_has_no_comparison(path: Path) -> None:
    made.write(path)
    assert "side by side" not in text_of(page(path))
    assert "side by side" not in markdown([load_report_data(path)])
    (row,) = json.loads(rendered([path], "json"))["recordings"][0]["side_by_side"]
    assert row["ended"] == "done" and row["before"] is None
    assert row["changed"] == ["randread 4k", "rq_affinity 1 → 2 while it ran"]


def test_a_run_without_an_end_says_so(path: Path) -> None:
    made.write(path)
    data = load_report_data(path)
    data.rows = [replace(data.rows[0], ended="runs"), replace(data.rows[0], step=2)]
    ends = [RUN_COLUMNS[-1].text(row) for row in report_words.side_by_side(data)]
    assert ends == ["no end", "done"]


# -- charts


@given(st.lists(st.floats(0, 1e12), min_size=1))
def test_a_linear_scale_holds_all_and_has_round_ticks(values: list[float]) -> None:
    scale = linear(values)
    assert scale.low == 0 and scale.high >= max(values) * 0.999999
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 6 and all(0 <= scale.y(tick) <= HEIGHT for tick in ticks)


@given(st.lists(st.floats(1, 1e12), min_size=1))
def test_a_logarithmic_scale_holds_all(values: list[float]) -> None:
    scale = logarithmic(values)
    assert scale.low <= min(values) * 1.00001 and scale.high >= max(values) * 0.99999
    heights = [scale.y(value) for value in sorted(values)]
    assert heights == sorted(heights, reverse=True)
    assert scale.ticks()


@given(st.lists(st.tuples(st.floats(0, 100), st.none() | st.floats(0, 1e9)), max_size=20))
def test_a_gap_breaks_the_line(
    values: list[tuple[float, float | None]],
) -> None:
    values.sort(key=lambda value: value[0])
    text = chart("t", [Curve("a", "fio", values)], Scale(0, 1e9), str, Times(0.0, 100.0))
    root = ET.fromstring(text)
    lines = [p.get("d", "") for p in root.iter("path") if p.get("class", "").startswith("line")]
    measured = [value is not None for _, value in values]
    stretches = sum(
        now and not before for before, now in zip([False, *measured], measured, strict=False)
    )
    assert "".join(lines).count("M") == stretches
    for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", "".join(lines)):
        assert -2 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT


def test_a_heat_map_shows_the_one_slow_io_among_thousands() -> None:
    text = heat("t", {(3, 48): 100_000, (3, 56): 1}, (48, 56), 120, 8, str, Times(0.0, 10.0))
    classes = {p.get("class") for p in ET.fromstring(text).iter("path")}
    assert {"h0", "h5"} <= classes
    assert heat("t", {}, (0, 0), 120, 8, str, Times(0.0, 10.0)) == ""


def test_labels_of_marks_do_not_overlap() -> None:
    marks = [(float(t), "a long word or two") for t in range(10)]
    text = chart("t", [], Scale(0, 1), str, Times(0.0, 100.0), marks)
    flags = [e for e in ET.fromstring(text).iter("text") if e.get("class") == "flag"]
    starts = [float(e.get("x", "0")) for e in flags]
    size: Callable[[ET.Element], float] = lambda e: 5.5 * len(e.text or "")  # noqa: E731
    assert 1 <= len(flags) < 10
    assert all(a + size(e) <= b for a, b, e in zip(starts, starts[1:], flags, strict=False))
