"""The mode for screen readers: a line for each change, none without a change."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from session_frames import whole_frames
from watch_frames import rates, watched

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
from iopstui.output.watch import watch_sentences

VDA = Target(DEVICE, "/dev/vda", "vda", ("vda",))
BEGIN = StepStarted(0.0, 1, "mixed-4k", "randrw 4k  QD 32 × 4 jobs", ("fio",), False)


def plain_lines(*events: Event, every_s: float = 10.0) -> list[str]:
    out = io.StringIO()
    sink = PlainSink(out, VDA, every_s)
    for event in events:
        sink.handle(event)
    sink.close()
    return out.getvalue().splitlines()


def frame_events(frames: list[Frame]) -> list[Event]:
    return [FrameReady(frame_.t, frame_) for frame_ in frames]


def test_steady_figures_are_printed_once() -> None:
    assert plain_lines(*frame_events(watched([rates(100, 50, 2)] * 60))) == [
        "0:01 vda 100 reads/s, 50.0 writes/s, 0.59 MiB/s, util 30 %."
    ]


def test_a_change_is_printed_as_a_mean_with_the_next_status_line() -> None:
    lines = plain_lines(*frame_events(watched([rates(100)] * 5 + [rates(300)] * 30)))
    assert [line.split(",")[0] for line in lines] == [
        "0:01 vda 100 reads/s",
        # four seconds of 100 and six of 300
        "0:11 vda 220 reads/s",
        "0:21 vda 300 reads/s",
    ]


def test_a_run_has_a_start_figures_and_an_end() -> None:
    run_frames = whole_frames("3.33-p-mixed")
    end = StepFinished(run_frames[-1].t, 1, 0, "", False)
    first, *status, last = plain_lines(BEGIN, *frame_events(run_frames), end)
    assert first == "0:00 Run 1 starts: mixed-4k, randrw 4k QD 32 x 4 jobs on vda."
    assert any(
        re.search(r"fio \S+ IOPS, \S+ MiB/s, p99 up to \S+ [mu]?s\.", line) for line in status
    )
    assert re.search(r"Run 1 ended after \d+ s: \S+ IOPS, ", last)


def test_a_failed_run_gives_the_reason() -> None:
    failed = StepFinished(3.0, 1, 1, "fio cannot open the file", False, fio_log=("no such file",))
    lines = plain_lines(BEGIN, failed)
    assert "failed" in lines[1] and lines[1].endswith("no results.")
    assert lines[2:] == ["0:03 fio: no such file.", "0:03 error: fio cannot open the file."]


def test_a_finding_has_its_headline_evidence_and_next_step() -> None:
    finding = Finding("saturated", "depth 32 → 64: IOPS 65k", "go back to 32", "[")
    [line] = plain_lines(FindingReported(5.0, finding))
    assert line == (
        "0:05 Finding: The queue is deep enough. depth 32 to 64: IOPS 65k. Next: go back to 32."
    )
    [end_line] = plain_lines(FindingEnded(36.0, "saturated", finding.text, 12.0, 36.0))
    assert end_line.startswith("0:36 Finding ended after 24 s: ")


def test_a_stall_is_a_sentence() -> None:
    [line] = plain_lines(StallFound(9.0, Stall("vda", 4.0, 2.0, 3.9, 32)))
    assert line == (
        "0:09 Stall: vda completed nothing for 2.0 to 3.9 s from 0:04 on, 32 requests in flight."
    )


def test_marks_notices_and_progress() -> None:
    progress = [LayoutProgress(1.0, 1, "laying out", n, 100) for n in range(0, 101, 5)]
    begin = replace(BEGIN, phase=LAYOUT)
    lines = plain_lines(begin, *progress, Mark(2.0, "cache off"), Notice(3.0, "warning", "hot"))
    assert [line.partition(" ")[2] for line in lines] == [
        "Creating the files for mixed-4k.",
        "laying out: 25 % of 100 B.", "laying out: 50 % of 100 B.",
        "laying out: 75 % of 100 B.", "laying out: 100 % of 100 B.",
        "Mark: cache off.", "warning: hot.",
    ]  # fmt: skip


def test_a_silent_fio_is_reported_once_and_again_when_it_reports() -> None:
    on_time = whole_frames("3.33-p-mixed")[1]
    late = replace(on_time, flags=on_time.flags | {LATE}, fio=None)
    lines = plain_lines(*frame_events([late, late, on_time]))
    assert sum("has not reported" in line for line in lines) == 1
    assert sum("fio reports again" in line for line in lines) == 1


def test_a_failed_point_of_a_sweep_is_printed() -> None:
    [line] = plain_lines(
        PointFailed(4.0, 0, 3, "bs=3k", "mixed-4k", (("bs", "3k"),), 0, "not aligned")
    )
    assert line == "0:04 error: bs=3k failed: not aligned."


def test_every_event_of_a_recording_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_watch_ends_with_a_summary_in_sentences() -> None:
    totals = WatchTotals(("vda", "vdb"), 1.0)
    totals.fired["r_await>20ms for 3s"] = 0
    for watch_frame in watched([rates(10), rates(30)]):
        totals.add(watch_frame)
    totals.found(2.0, Finding("busy", "vda is busy"))
    assert list(watch_sentences(totals)) == [
        "Watched for 2 s.",
        "vda: 20.0 reads/s (at most 30.0), 0 writes/s (at most 0), 0.08 MiB/s, util 0 %.",
        "vdb: not measured.",
        "Trigger r_await>20ms for 3s never fired.",
        "Finding, 0:02 to 0:02: vda is busy.",
    ]
