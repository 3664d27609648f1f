from __future__ import annotations

import io
from dataclasses import replace

import pytest
from fio_recordings import KINDS, statuses
from hypothesis import given
from hypothesis import strategies as st
from session_frames import session, whole_frames
from test_output_jsonl import ClosedPipe

from iopstui.events import (
    Event,
    FrameReady,
    LayoutProgress,
    Mark,
    Notice,
    StepFinished,
    StepStarted,
)
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.metrics import frame as flags
from iopstui.output.table import TableSink, flag_text, shown_directions


def target_on(device: str | None) -> Target:
    return Target(DEVICE, f"/dev/{device}", device, (device,) if device else ())


def print_events(events: list[Event], device: str | None = "vda") -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    sink = TableSink(out, err, target_on(device))
    for event in events:
        sink.handle(event)
    sink.close()
    return out.getvalue(), err.getvalue()


def print_in_encoding(events: list[Event], encoding: str) -> str:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding)
    sink = TableSink(out, out, target_on("vda"))
    for event in events:
        sink.handle(event)
    sink.close()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("name", KINDS)
def test_every_recording_fits_80_columns(name: str) -> None:
    out, _ = print_events(session(name))
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("measured", "columns"),
    [
        ((), ("read", "write")),
        (("read",), ("read", "write")),
        (("write",), ("read", "write")),
        (("trim",), ("trim", "")),
        (("mixed",), ("mixed", "")),
        (("read", "write", "mixed"), ("read", "write")),
        (("read", "trim"), ("read", "trim")),
        (("read", "write", "trim"), ("read", "other")),
    ],
)
def test_which_directions_have_columns(measured: tuple[str, ...], columns: tuple[str, ...]) -> None:
    assert shown_directions(measured) == columns


def test_the_second_column_may_be_the_sum_of_the_others() -> None:
    frame = whole_frames("3.42-p-trim")[1]
    assert frame.fio is not None
    parts = frame.fio.directions
    three = {"read": parts["write"], **parts}
    events: list[Event] = [FrameReady(0, replace(frame, fio=replace(frame.fio, directions=three)))]
    row = print_events(events)[0].splitlines()[2].split()
    assert row[1:3] == ["20.0k", "40.0k"]


@given(st.sets(st.sampled_from([flags.RAMP, flags.PARTIAL, flags.LATE, flags.RESET, flags.NO_FIO])))
def test_flags_fit_their_column(present: set[str]) -> None:
    assert len(flag_text(frozenset(present))) <= 7


@pytest.mark.parametrize("device", ["vda", None])
def test_without_a_device_no_row_is_of_its_other_seconds(device: str | None) -> None:
    [first, *_] = [event for event in session(KINDS[0]) if isinstance(event, FrameReady)]
    frame = replace(first.frame, flags=frozenset({flags.APART}))
    out, err = print_events([FrameReady(1, frame)], device)
    assert [("~dev" in out), ("other seconds than fio's" in err)] == [device is not None] * 2


def test_messages_go_to_standard_error() -> None:
    out, err = print_events(
        [
            StepStarted(
                0, 1, "j", "randread 4k  QD 32 × 2 jobs", ("fio",), True, "run", "fio-3.42"
            ),
            Mark(3, "rq_affinity 1 -> 2"),
            Notice(4, "warning", "something"),
            Notice(5, "info", "by the way"),
            StepFinished(6, 1, 1, "It failed.", False, {}, ("by the way", "fio: pid=1, err=5")),
        ]
    )
    assert out == ""
    assert err.splitlines() == [
        "[0:00] start: randread 4k QD 32 × 2 jobs (fio-3.42)",
        "[0:03] mark: rq_affinity 1 -> 2",
        "[0:04] warning: something",
        "[0:05] by the way",
        "[0:06] fio says: fio: pid=1, err=5",
    ]


def test_layout_progress_is_printed_in_tenths() -> None:
    events: list[Event] = [
        LayoutProgress(0, 1, "laying out", done_mib << 20, 1000 << 20) for done_mib in range(1001)
    ]
    _, err = print_events(events)
    assert len(err.splitlines()) == 11
    _, err = print_events([LayoutProgress(0, 1, "laying out", 5 << 20, None)] * 3)
    assert err.splitlines() == ["[0:00] laying out: 5 MiB"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("name", ["3.42-d-stonewall", "3.42-b-randrw-gtod"])
def test_the_table_prints_in_any_encoding(name: str, encoding: str) -> None:
    text = print_in_encoding(session(name, "a × b – ä"), encoding)
    assert "aqu-sz" in text
    assert ("µs" in text) == (encoding != "ascii" and name == "3.42-d-stonewall")


def test_control_characters_in_names_are_removed() -> None:
    evil = "\x1b[2Jx\x9b\r\n\u202e"
    status = statuses("3.42-a-randread-grp")[-1]
    events = session("3.42-a-randread-grp", evil)
    finished = events[-2]
    assert isinstance(finished, StepFinished)
    summary = {**finished.summary, "fio_version": evil}
    summary["rows"] = [{**row, "name": evil, "error": 5} for row in finished.summary["rows"]]  # type: ignore[attr-defined]
    events[-2] = replace(finished, summary=summary, fio_log=(evil,), error="x")
    out, err = print_events([*events[:3], Mark(0, evil), Notice(0, evil, evil), events[-2]], evil)
    assert status.jobs
    for line in (out + err).split("\n"):
        assert line.isprintable(), line


def test_a_closed_pipe_raises() -> None:
    with pytest.raises(BrokenPipeError):
        TableSink(ClosedPipe(), io.StringIO(), None).handle(
            FrameReady(0, whole_frames("3.42-a-randread-grp")[0])
        )
