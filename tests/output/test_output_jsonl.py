from __future__ import annotations

import io
import json
import math
from typing import Any

import pytest
from fio_recordings import KINDS, statuses
from hypothesis import given
from hypothesis import strategies as st
from json_schema import check_line
from session_frames import session, whole_frames

from iopstui.events import Event, Mark
from iopstui.model.block.target import Target
from iopstui.model.histogram import merge
from iopstui.output.jsonl import JsonlSink, clean, dumps, event_object, frame_object

TARGET = Target("file", "/data/a file", "sda1", ("sda1", "sda"), "", "ext4", "/data")


def json_rows(events: list[Event], target: Target | None = None) -> list[dict[str, Any]]:
    stream = io.StringIO()
    sink = JsonlSink(stream, "host-1", target)
    for event in events:
        sink.handle(event)
    sink.close()
    lines = stream.getvalue().splitlines()
    rows = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    for row in rows:
        check_line(row)
    return rows


def test_every_line_carries_event_and_host() -> None:
    rows = json_rows(session("3.42-a-randread-grp"), TARGET)
    assert {row["host"] for row in rows} == {"host-1"}
    assert [row["event"] for row in rows] == [
        "session", "step_started", *["frame"] * 5, "step_finished", "ended",
    ]  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_the_frames_of_every_recording_are_ascii_lines_without_nan(name: str) -> None:
    for row in map(frame_object, whole_frames(name)):
        line = dumps(row)
        assert line.isascii() and line.isprintable()
        assert json.loads(line, parse_constant=pytest.fail) == row


def test_disk_figures_in_iostat_units() -> None:
    disk = frame_object(whole_frames("3.42-a-randread-grp")[1])["kernel"]["disks"]["vda"]
    seconds = frame_object(whole_frames("3.42-a-randread-grp")[1])["seconds"]
    assert disk["r/s"] == pytest.approx(1000 / seconds)
    assert disk["rMB/s"] == pytest.approx(8000 * 512 / 2**20 / seconds, rel=1e-5)
    assert disk["rareq-sz"] == 4.0
    assert disk["r_await"] == 0.5
    assert disk["w_await"] == 2.0
    assert disk["dareq-sz"] == 1024.0
    assert disk["in-flight"] == 7
    assert (disk["reads"], disk["writes"], disk["discards"]) == (1000, 50, 1)


def test_ios_of_all_frames_add_up_to_fio_s_count() -> None:
    for name in ("3.42-a-randread-grp", "3.1-p-mixed", "3.42-c-numjobs4-nogroup"):
        rows = [row for row in json_rows(session(name)) if row["event"] == "frame"]
        final = statuses(name)[-1]
        stated = sum(d.completed or 0 for job in final.jobs for d in job.directions.values())
        assert sum(row["fio"]["total"]["ios"] for row in rows) == stated
        assert sum(row["fio"]["total"]["iops"] * row["fio"]["seconds"] for row in rows) == (
            pytest.approx(stated, rel=1e-6)
        )


def test_histograms_of_all_lines_add_up_to_fio_s() -> None:
    rows = [row for row in json_rows(session("3.42-a-randread-grp")) if row["event"] == "frame"]
    parts = [{int(k): n for k, n in row["fio"]["read"]["bins"].items()} for row in rows]
    assert merge(parts) == statuses("3.42-a-randread-grp")[-1].jobs[0].directions["read"].bins


def test_control_characters_are_escaped() -> None:
    line = dumps(event_object(Mark(0, "\x1b[2J\x7f\x9b\ud800\u202e[red]\n")))
    assert line.isascii() and line.isprintable()
    assert json.loads(line)["text"] == "\x1b[2J\x7f\x9b\ud800\u202e[red]\n"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.frozensets(st.text())
    ),
    max_leaves=10,
)


@given(values)
def test_any_value_can_be_written_as_json(value: Any) -> None:
    json.loads(dumps({"x": value}), parse_constant=pytest.fail)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_numbers_keep_six_decimals(value: float) -> None:
    assert math.isclose(clean(value), value, abs_tol=5.1e-7, rel_tol=1e-15)


class ClosedPipe(io.StringIO):
    """A pipe that its reader has closed."""

    def flush(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")


def test_a_closed_pipe_raises() -> None:
    with pytest.raises(BrokenPipeError):
        JsonlSink(ClosedPipe(), "h").handle(Mark(0, "x"))


def test_each_line_is_flushed() -> None:
    class Buffered(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed = len(self.getvalue())

    stream = Buffered()
    sink = JsonlSink(stream, "h")
    sink.handle(Mark(0, "x"))
    assert stream.flushed == len(stream.getvalue()) > 0
