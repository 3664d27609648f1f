"""How far something is: on a terminal one line that is drawn over, elsewhere lines for a log."""

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
from iopstui.output.experiment.progress import ProgressReporter
from iopstui.output.narration import Narrator
from iopstui.output.sinks import StatusSink, make_sink
from iopstui.output.status_line import ProgressShare, StatusLine, run_progress_text

MIB = 1 << 20


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def shown(self) -> list[str]:
        """The lines that are seen at the end."""
        rows = []
        for row in self.getvalue().split("\n"):
            cells: list[str] = []
            for part in row.split("\r"):
                cells[: len(part)] = part
            rows.append("".join(cells).rstrip())
        return rows


def laying_out(t: float, done: int, total: int | None = 64 * MIB) -> LayoutProgress:
    return LayoutProgress(t, 1, "creating the scratch file", done, total)


FRAME = next(one for one in whole_frames(NAMES[0]) if one.fio is not None)
TARGET = Target("file", "/data/file", "vda", ("vda",))


def second(number: int, job: bool = True) -> FrameReady:
    """One of a run that takes a minute."""
    assert FRAME.fio is not None
    total = replace(FRAME.fio.total, iops=47000.0)
    fio = replace(FRAME.fio, seconds=1.0, total=total, progress=number / 60, eta_s=60 - number)
    return FrameReady(number, replace(FRAME, fio=fio if job else None))


def test_a_shorter_line_leaves_nothing_of_a_longer_one() -> None:
    stream = Terminal()
    line = StatusLine(stream)
    line.draw("a long one")
    line.draw("short")
    assert stream.shown() == ["short"]
    line.clear()
    assert stream.shown() == [""]
    before = stream.getvalue()
    line.clear()
    assert stream.getvalue() == before


def test_it_fits_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatusLine, "_columns", lambda self: 20)
    stream = Terminal()
    StatusLine(stream).draw("x" * 50)
    assert stream.shown() == ["x" * 19]


def test_there_is_none_in_a_file() -> None:
    stream = io.StringIO()
    line = StatusLine(stream)
    line.draw("57 %")
    line.clear()
    assert not line.alive and not stream.getvalue()


def test_there_is_none_where_a_pipe_s_reader_may_write_between(tmp_path: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w") as out:
        assert not StatusLine(Terminal(), out).alive
    with open(tmp_path / "rows", "w") as out:
        assert StatusLine(Terminal(), out).alive
    assert StatusLine(Terminal(), io.StringIO()).alive


def test_control_characters_do_nothing() -> None:
    stream = Terminal()
    StatusLine(stream).draw("a\x1b[2Jb\nc")
    assert "\x1b" not in stream.getvalue() and "\n" not in stream.getvalue()


def test_the_time_that_laying_out_takes_is_that_of_its_pace() -> None:
    share = ProgressShare()
    words = "creating the scratch file"
    assert share.text(laying_out(5.0, 0)) == f"{words}: 0 %, 0 B of 64 MiB"
    assert share.text(laying_out(7.0, 16 * MIB)) == f"{words}: 25 %, 16 MiB of 64 MiB, 0:06 left"
    assert share.text(laying_out(13.0, 64 * MIB)).endswith("100 %, 64 MiB of 64 MiB, 0:00 left")
    # the next file
    assert share.text(laying_out(20.0, 0)).endswith("0 %, 0 B of 64 MiB")
    assert share.text(laying_out(20.0, 7, None)) == f"{words}: 7 B"


def test_laying_out_is_drawn_over_on_a_terminal() -> None:
    stream = Terminal()
    narrator = Narrator(stream)
    for tenth in range(11):
        narrator.handle(laying_out(tenth, tenth * MIB, 10 * MIB))
    assert stream.shown() == [
        "[0:10] creating the scratch file: 100 %, 10 MiB of 10 MiB, 0:00 left"
    ]
    narrator.handle(Notice(11, "info", "hello"))
    assert stream.shown() == ["[0:11] hello", ""]


def test_laying_out_is_a_line_for_each_tenth_in_a_file() -> None:
    stream = io.StringIO()
    narrator = Narrator(stream)
    for step in range(41):
        narrator.handle(laying_out(step, step * MIB, 40 * MIB))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11 and "\r" not in stream.getvalue()
    assert lines[1] == "[0:04] creating the scratch file: 4 MiB of 40 MiB"


def test_what_a_run_says_of_itself() -> None:
    assert run_progress_text(second(34).frame) == "57 %, 0:26 left, 47.0k IOPS"
    assert run_progress_text(second(34, job=False).frame) == ""
    frame = second(34).frame
    assert frame.fio is not None
    unknown = replace(frame, fio=replace(frame.fio, progress=None, eta_s=None))
    assert run_progress_text(unknown) == "47.0k IOPS"


@pytest.mark.parametrize("kind", ["table", "csv", "jsonl"])
def test_a_run_is_drawn_below_its_rows_and_goes_with_its_end(kind: str) -> None:
    terminal, data = Terminal(), io.StringIO()
    sink = StatusSink(make_sink(kind, data, terminal, TARGET, "host"), terminal)
    events: list[Event] = [
        StepStarted(0, 1, "x", "randread", ("fio",), False),
        second(1),
        second(2),
    ]
    for event in events:
        sink.handle(event)
    assert terminal.shown()[-1] == "3 %, 0:58 left, 47.0k IOPS"
    sink.close()
    assert terminal.shown()[-1] == "" and data.getvalue()


def test_a_run_in_a_file_says_no_more_than_before() -> None:
    err, without = io.StringIO(), io.StringIO()
    one = StatusSink(make_sink("csv", io.StringIO(), err, TARGET, "host"), err)
    other = make_sink("csv", io.StringIO(), without, TARGET, "host")
    for sink in (one, other):
        sink.handle(StepStarted(0, 1, "x", "randread", ("fio",), False))
        sink.handle(second(1))
        sink.close()
    assert err.getvalue() == without.getvalue()


def points(stream: io.StringIO) -> ProgressReporter:
    teller = ProgressReporter(stream, 10.0)
    teller.handle(PointStarted(0, 0, 4, "iodepth=1", 40.0))
    teller.handle(second(1))
    teller.handle(cast(PointFinished, None))
    teller.handle(PointStarted(10, 1, 4, "iodepth=2", 30.0))
    teller.handle(second(11))
    teller.handle(second(12))
    return teller


def test_an_experiment_says_its_share_and_the_time_left() -> None:
    stream = Terminal()
    teller = points(stream)
    assert stream.shown() == ["30 %, 0:28 left: point 2 of 4: iodepth=2, 2 of 10 s, 47.0k IOPS"]
    teller.clear()
    assert stream.shown() == [""]


def test_an_experiment_in_a_file_has_a_line_a_point() -> None:
    stream = io.StringIO()
    points(stream)
    assert stream.getvalue().splitlines() == [
        "[0:00] point 1 of 4: iodepth=1, 0:40 left",
        "[0:10] point 2 of 4: iodepth=2, 0:30 left",
    ]


def test_a_comparison_has_runs_as_its_table_does() -> None:
    stream = io.StringIO()
    teller = ProgressReporter(stream, 10.0)
    teller.handle(ExperimentStarted(0.0, Plan(("j",), variants=(Variant(()), Variant(())))))
    teller.handle(PointStarted(0, 0, 4, "A: as it is", 40.0))
    assert stream.getvalue() == "[0:00] run 1 of 4: A: as it is, 0:40 left\n"
