"""The mode for screen readers: a line for each change, and none where nothing has changed."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from session_frames import whole_frames
from watch_frames import frame, rates, watched

from iopstui.events import (
    LAYOUT,
    Event,
    FindingEnded,
    FindingReported,
    FrameReady,
    LayoutProgress,
    Mark,
    Notice,
    PointFailed,
    StallFound,
    StepFinished,
    StepStarted,
)
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import LATE, Frame
from iopstui.model.metrics.slow.stalls import Stall
from iopstui.model.watch.totals import WatchTotals
from iopstui.output.plain import PlainSink
from iopstui.output.replay import replay_headless
from iopstui.output.watch.summary import watch_sentences

VDA = Target(DEVICE, "/dev/vda", "vda", ("vda",))
BEGIN = StepStarted(0.0, 1, "mixed-4k", "randrw 4k  QD 32 × 4 jobs", ("fio",), False)


def said(*events: Event, every_s: float = 10.0) -> list[str]:
    out = io.StringIO()
    sink = PlainSink(out, VDA, every_s)
    for event in events:
        sink.handle(event)
    sink.close()
    return out.getvalue().splitlines()


def frames(found: list[Frame]) -> list[Event]:
    return [FrameReady(one.t, one) for one in found]


def test_steady_figures_are_told_once() -> None:
    assert said(*frames(watched([rates(100, 50, 2)] * 60))) == [
        "0:01 vda 100 reads/s, 50.0 writes/s, 0.59 MiB/s, util 30 %."
    ]


def test_a_change_is_told_with_the_next_status_line_and_as_a_mean_until_then() -> None:
    found = said(*frames(watched([rates(100)] * 5 + [rates(300)] * 30)))
    assert [line.split(",")[0] for line in found] == [
        "0:01 vda 100 reads/s",
        # four seconds of 100 and six of 300
        "0:11 vda 220 reads/s",
        "0:21 vda 300 reads/s",
    ]


@pytest.mark.parametrize(("every_s", "lines"), [(1.0, 20), (5.0, 4), (60.0, 1)])
def test_as_often_as_was_asked_for(every_s: float, lines: int) -> None:
    growing = [rates(100 * 2**n) for n in range(20)]
    assert len(said(*frames(watched(growing)), every_s=every_s)) == lines


def test_what_was_not_measured_is_left_out() -> None:
    without = replace(frame(1.0, {"vda": rates(10)}), disks={})
    assert said(FrameReady(1.0, without)) == []


def test_a_run_begins_has_figures_and_ends() -> None:
    seen = whole_frames("3.33-p-mixed")
    end = StepFinished(seen[-1].t, 1, 0, "", False)
    first, *status, last = said(BEGIN, *frames(seen), end)
    assert first == "0:00 Run 1 starts: mixed-4k, randrw 4k QD 32 x 4 jobs on vda."
    assert any(re.search(r"fio \S+ IOPS, \S+ MiB/s, p99 up to \S+ [mu]?s\.", one) for one in status)
    assert re.search(r"Run 1 ended after \d+ s: \S+ IOPS, ", last)


def test_a_run_that_fails_says_why() -> None:
    failed = StepFinished(3.0, 1, 1, "fio cannot open the file", False, fio_log=("no such file",))
    found = said(BEGIN, failed)
    assert "failed" in found[1] and found[1].endswith("no results.")
    assert found[2:] == ["0:03 fio: no such file.", "0:03 error: fio cannot open the file."]


def test_a_finding_has_its_headline_evidence_and_next_step() -> None:
    finding = Finding("saturated", "depth 32 → 64: IOPS 65k", "go back to 32", "[")
    [found] = said(FindingReported(5.0, finding))
    assert found == (
        "0:05 Finding: The queue is deep enough. depth 32 to 64: IOPS 65k. Next: go back to 32."
    )
    [ended] = said(FindingEnded(36.0, "saturated", finding.text, 12.0, 36.0))
    assert ended.startswith("0:36 Finding ended after 24 s: ")


def test_a_stall_is_a_sentence() -> None:
    [found] = said(StallFound(9.0, Stall("vda", 4.0, 2.0, 3.9, 32)))
    assert found == (
        "0:09 Stall: vda completed nothing for 2.0 to 3.9 s from 0:04 on, 32 requests in flight."
    )


def test_marks_notices_and_progress() -> None:
    progress = [LayoutProgress(1.0, 1, "laying out", n, 100) for n in range(0, 101, 5)]
    begin = replace(BEGIN, phase=LAYOUT)
    found = said(begin, *progress, Mark(2.0, "cache off"), Notice(3.0, "warning", "hot"))
    assert [line.partition(" ")[2] for line in found] == [
        "Creating the files for mixed-4k.",
        "laying out: 25 % of 100 B.", "laying out: 50 % of 100 B.",
        "laying out: 75 % of 100 B.", "laying out: 100 % of 100 B.",
        "Mark: cache off.", "warning: hot.",
    ]  # fmt: skip


def test_a_fio_that_is_silent_is_told_once_and_that_it_is_back() -> None:
    whole = whole_frames("3.33-p-mixed")[1]
    late = replace(whole, flags=whole.flags | {LATE}, fio=None)
    found = said(*frames([late, late, whole]))
    assert sum("has not reported" in line for line in found) == 1
    assert sum("fio reports again" in line for line in found) == 1


def test_a_point_of_a_sweep_that_fails_is_told() -> None:
    [found] = said(PointFailed(4.0, 0, 3, "bs=3k", "mixed-4k", (("bs", "3k"),), 0, "not aligned"))
    assert found == "0:04 error: bs=3k failed: not aligned."


def test_no_event_of_a_recording_is_unknown_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    replay_headless("demo", "plain", 10.0)
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if line]
    assert "\x1b" not in out and "\r" not in out
    assert sum(" starts: " in line for line in lines) == sum(
        bool(re.search(r"Run \d (ended|stopped)", line)) for line in lines
    )
    assert any(" Mark: " in line for line in lines)
    assert any(" Finding: " in line for line in lines)
    assert out.isascii()


def test_the_end_of_a_watch_in_sentences() -> None:
    totals = WatchTotals(("vda", "vdb"), 1.0)
    totals.fired["r_await>20ms for 3s"] = 0
    for one in watched([rates(10), rates(30)]):
        totals.add(one)
    totals.found(2.0, Finding("busy", "vda is busy"))
    assert list(watch_sentences(totals)) == [
        "Watched for 2 s.",
        "vda: 20.0 reads/s (at most 30.0), 0 writes/s (at most 0), 0.08 MiB/s, util 0 %.",
        "vdb: not measured.",
        "Trigger r_await>20ms for 3s never fired.",
        "Finding, 0:02 to 0:02: vda is busy.",
    ]
