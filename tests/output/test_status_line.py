"""Progress: one line that is overwritten on a terminal, lines for a log elsewhere."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from fio_recordings import NAMES
from session_frames import whole_frames

from iopstui.events import (
    Event,
    ExperimentStarted,
    FrameReady,
    LayoutProgress,
    Notice,
    PointFinished,
    PointStarted,
    StepStarted,
)
from iopstui.model.block.target import Target
from iopstui.model.experiment.plan import Plan, Variant
from iopstui.output.experiment.sinks import ProgressReporter
from iopstui.output.narration import Narrator, ProgressShare, StatusLine, run_progress_text
from iopstui.output.sinks import StatusSink, make_sink

MIB = 1 << 20


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def visible_lines(self) -> list[str]:
        """The lines on the screen at the end."""
        rows = []
        for row in self.getvalue().split("\n"):
            cells: list[str] = []
            for part in row.split("\r"):
                cells[: len(part)] = part
            rows.append("".join(cells).rstrip())
        return rows


def layout_progress(t: float, done: int, total: int | None = 64 * MIB) -> LayoutProgress:
    return LayoutProgress(t, 1, "creating the scratch file", done, total)


FRAME = next(frame for frame in whole_frames(NAMES[0]) if frame.fio is not None)
TARGET = Target("file", "/data/file", "vda", ("vda",))


def frame_at(number: int, job: bool = True) -> FrameReady:
    """The frame at second ``number`` of a run of one minute."""
    assert FRAME.fio is not None
    total = replace(FRAME.fio.total, iops=47000.0)
    fio = replace(FRAME.fio, seconds=1.0, total=total, progress=number / 60, eta_s=60 - number)
    return FrameReady(number, replace(FRAME, fio=fio if job else None))


def test_a_shorter_line_erases_a_longer_one() -> None:
    stream = Terminal()
    line = StatusLine(stream)
    line.draw("a long one")
    line.draw("short")
    assert stream.visible_lines() == ["short"]
    line.clear()
    assert stream.visible_lines() == [""]
    before = stream.getvalue()
    line.clear()
    assert stream.getvalue() == before


def test_there_is_no_status_line_if_the_output_is_a_pipe(tmp_path: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w") as out:
        assert not StatusLine(Terminal(), out).alive
    with open(tmp_path / "rows", "w") as out:
        assert StatusLine(Terminal(), out).alive
    assert StatusLine(Terminal(), io.StringIO()).alive


def test_control_characters_are_removed() -> None:
    stream = Terminal()
    StatusLine(stream).draw("a\x1b[2Jb\nc")
    assert "\x1b" not in stream.getvalue() and "\n" not in stream.getvalue()


def test_the_time_left_of_laying_out_follows_its_speed() -> None:
    share = ProgressShare()
    action = "creating the scratch file"
    assert share.text(layout_progress(5.0, 0)) == f"{action}: 0 %, 0 B of 64 MiB"
    assert (
        share.text(layout_progress(7.0, 16 * MIB)) == f"{action}: 25 %, 16 MiB of 64 MiB, 0:06 left"
    )
    assert share.text(layout_progress(13.0, 64 * MIB)).endswith(
        "100 %, 64 MiB of 64 MiB, 0:00 left"
    )
    # the next file to lay out
    assert share.text(layout_progress(20.0, 0)).endswith("0 %, 0 B of 64 MiB")
    assert share.text(layout_progress(20.0, 7, None)) == f"{action}: 7 B"


def test_layout_progress_is_overwritten_on_a_terminal() -> None:
    stream = Terminal()
    narrator = Narrator(stream)
    for tenth in range(11):
        narrator.handle(layout_progress(tenth, tenth * MIB, 10 * MIB))
    assert stream.visible_lines() == [
        "[0:10] creating the scratch file: 100 %, 10 MiB of 10 MiB, 0:00 left"
    ]
    narrator.handle(Notice(11, "info", "hello"))
    assert stream.visible_lines() == ["[0:11] hello", ""]


def test_layout_progress_is_a_line_per_tenth_in_a_file() -> None:
    stream = io.StringIO()
    narrator = Narrator(stream)
    for step in range(41):
        narrator.handle(layout_progress(step, step * MIB, 40 * MIB))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11 and "\r" not in stream.getvalue()
    assert lines[1] == "[0:04] creating the scratch file: 4 MiB of 40 MiB"


def test_the_progress_of_a_run_as_text() -> None:
    assert run_progress_text(frame_at(34).frame) == "57 %, 0:26 left, 47.0k IOPS"
    assert run_progress_text(frame_at(34, job=False).frame) == ""
    frame = frame_at(34).frame
    assert frame.fio is not None
    unknown = replace(frame, fio=replace(frame.fio, progress=None, eta_s=None))
    assert run_progress_text(unknown) == "47.0k IOPS"


@pytest.mark.parametrize("kind", ["table", "csv", "jsonl"])
def test_a_run_s_status_line_is_below_its_rows_until_the_end(kind: str) -> None:
    terminal, data = Terminal(), io.StringIO()
    sink = StatusSink(make_sink(kind, data, terminal, TARGET, "host"), terminal)
    events: list[Event] = [
        StepStarted(0, 1, "x", "randread", ("fio",), False),
        frame_at(1),
        frame_at(2),
    ]
    for event in events:
        sink.handle(event)
    assert terminal.visible_lines()[-1] == "3 %, 0:58 left, 47.0k IOPS"
    sink.close()
    assert terminal.visible_lines()[-1] == "" and data.getvalue()


def test_a_run_in_a_file_has_no_status_line() -> None:
    err, without = io.StringIO(), io.StringIO()
    with_progress = StatusSink(make_sink("csv", io.StringIO(), err, TARGET, "host"), err)
    plain_sink = make_sink("csv", io.StringIO(), without, TARGET, "host")
    for sink in (with_progress, plain_sink):
        sink.handle(StepStarted(0, 1, "x", "randread", ("fio",), False))
        sink.handle(frame_at(1))
        sink.close()
    assert err.getvalue() == without.getvalue()


def report_points(stream: io.StringIO) -> ProgressReporter:
    reporter = ProgressReporter(stream, 10.0)
    reporter.handle(PointStarted(0, 0, 4, "iodepth=1", 40.0))
    reporter.handle(frame_at(1))
    reporter.handle(cast(PointFinished, None))
    reporter.handle(PointStarted(10, 1, 4, "iodepth=2", 30.0))
    reporter.handle(frame_at(11))
    reporter.handle(frame_at(12))
    return reporter


def test_an_experiment_shows_its_progress_and_the_time_left() -> None:
    stream = Terminal()
    reporter = report_points(stream)
    assert stream.visible_lines() == [
        "30 %, 0:28 left: point 2 of 4: iodepth=2, 2 of 10 s, 47.0k IOPS"
    ]
    reporter.clear()
    assert stream.visible_lines() == [""]


def test_an_experiment_in_a_file_has_a_line_per_point() -> None:
    stream = io.StringIO()
    report_points(stream)
    assert stream.getvalue().splitlines() == [
        "[0:00] point 1 of 4: iodepth=1, 0:40 left",
        "[0:10] point 2 of 4: iodepth=2, 0:30 left",
    ]


def test_a_comparison_counts_runs_like_its_table() -> None:
    stream = io.StringIO()
    reporter = ProgressReporter(stream, 10.0)
    reporter.handle(ExperimentStarted(0.0, Plan(("j",), variants=(Variant(()), Variant(())))))
    reporter.handle(PointStarted(0, 0, 4, "A: as it is", 40.0))
    assert stream.getvalue() == "[0:00] run 1 of 4: A: as it is, 0:40 left\n"
