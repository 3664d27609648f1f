"""Input that no iopstui sends: from hosts, to an agent, in files. Nothing crashes, and the counts
of other hosts stay."""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import START_MS, Row, frame, frames, stream

from iopstui import __version__
from iopstui.errors import UsageError
from iopstui.features.fleet.fleet import start_spread_ms
from iopstui.features.fleet.fleet_events import FleetRunStarted
from iopstui.features.fleet.hosts import member as members
from iopstui.features.fleet.hosts.conversation import ClockOffset, is_order
from iopstui.features.fleet.hosts.host_disks import disk_conflicts
from iopstui.features.fleet.hosts.member import MAX_TEXT, Member
from iopstui.features.fleet.hosts.nodes import Node
from iopstui.features.fleet.merging import merger as mergers
from iopstui.features.fleet.merging.merger import Merger, certify_merge
from iopstui.features.fleet.merging.sums import MalformedRow
from iopstui.features.fleet.output.labelled_rows import line_rows, merged_streams
from iopstui.features.fleet.output.sinks import totals_sink
from iopstui.features.fleet.program.run_planner import FleetRecorder, RecordFile, RunPrinter
from iopstui.features.fleet.session import PlannedRun

HUGE = 10**400
ODD = (
    st.none() | st.booleans() | st.integers(-HUGE, HUGE) | st.floats() | st.text(max_size=5)
    | st.lists(st.integers(), max_size=2) | st.dictionaries(st.text(max_size=3), st.none())
)  # fmt: skip


@pytest.fixture
def member() -> Iterator[Member]:
    """A host that sends nothing by itself."""
    found = Member(Node("h", "h"), [sys.executable, "-c", "input()"], {})
    found.offset.make_ping()
    yield found
    found.link.kill()
    found.link.close()


@pytest.mark.parametrize(("mono", "wall"), [
    (HUGE, 1.0), (-HUGE, 1.0), (1, float("nan")), (1, float("inf")), (1, HUGE), (1, -5.0),
])  # fmt: skip
def test_a_clock_that_is_none_is_not_believed(mono: int, wall: float) -> None:
    offset = ClockOffset()
    number = offset.make_ping()["id"]
    assert not offset.take_answer({"id": number, "mono_ns": mono, "wall_ms": wall}, 5)
    assert offset.answers == 0


@pytest.mark.parametrize("row", [
    {"event": "armed", "disks": 5}, {"event": "armed", "disks": {"wwid": 1}},
    {"event": "armed", "disks": [5, None]}, {"event": "executed", "monotonic_ns": HUGE},
    {"event": "executed", "monotonic_ns": -1}, {"event": "executed", "monotonic_ns": "x"},
    {"event": "planned"}, {"event": "planned", "needs": 7}, {"event": "pong", "id": HUGE},
])  # fmt: skip
def test_what_no_agent_says_is_nothing(row: Row, member: Member) -> None:
    member._handle_host_event(row)
    assert member.disks == [] and start_spread_ms({"h": member}) is None


@pytest.mark.parametrize(("hello", "beats"), [
    ({}, 0), ({"speaks": 5}, 0), ({"speaks": "beat"}, 0), ({"speaks": [["beat"], {}]}, 0),
    ({"speaks": ["beat", "more"]}, 1),
])  # fmt: skip
def test_an_agent_that_knows_no_beat_is_asked(hello: Row, beats: int, member: Member) -> None:
    member._handle_host_event({"event": "hello", "iopstui": __version__, **hello})
    sent: list[bytes] = []
    member.link.send = sent.append  # type: ignore[method-assign]
    member.send_heartbeat()
    assert [json.loads(one)["op"] for one in sent] == ["beat" if beats else "ping"]
    # a silent host gets pings, too
    member.last_row_ns -= 2 * 10**9
    member.send_heartbeat()
    assert json.loads(sent[-1])["op"] == "ping"


def test_uses_that_are_no_list_are_none() -> None:
    writer = {"wwid": "w", "writes": "/dev/sda", "uses": 5}
    assert not list(disk_conflicts({"a": [writer], "b": [{"wwid": "w", "uses": 7}]}))


def test_what_a_host_says_is_cut(member: Member) -> None:
    member._handle_host_event({"event": "failed", "error": "x" * 10**6, "hint": "y" * 10**6})
    assert len(member.error) == len(member.hint) == MAX_TEXT
    member._handle_host_event({"event": "no_probe", "why": "\x1b[2J" + "x" * 10**6})
    assert len(member.probe_problem) <= MAX_TEXT + 3 and "\x1b" not in member.probe_problem


def test_a_host_that_says_it_is_another_one_is_itself() -> None:
    merger = Merger()
    for row in stream("other", 1, 3):
        merger.feed("itself", {**row, "host": "other"})
    list(merger.finish())
    assert list(merger.hosts) == ["itself"]


@pytest.mark.parametrize("change", [
    {"wall_ms": HUGE}, {"t": HUGE}, {"t": -HUGE}, {"seconds": HUGE, "fio": None}, {"wall_ms": -1},
])  # fmt: skip
def test_times_that_are_impossible(change: Row) -> None:
    merger = Merger()
    with pytest.raises(MalformedRow):
        merger.feed("a", {**frame("a", random.Random(1), 1.0, START_MS), **change})


def test_frames_that_come_again_are_not_counted_again() -> None:
    rows = stream("a", 1, 4)
    merger, again = Merger(), 0
    for row in [*rows[:4], *frames(rows[:4]), *rows[4:]]:
        try:
            merger.feed("a", row)
        except MalformedRow:
            again += 1
    list(merger.finish())
    assert again == 3 and certify_merge(merger).exact == 1


def test_what_another_schema_says_is_left_out() -> None:
    merger, left_out = Merger(), 0
    for host, schema in (("a", 1), ("b", 99)):
        for row in stream(host, 1, 3):
            schemas = {"schema": schema} if row["event"] == "session" else {}
            try:
                merger.feed(host, {**row, **schemas})
            except MalformedRow as error:
                assert "another version" in str(error)
                left_out += 1
    assert [one.expected for one in merger.finish()] == [1] * 4
    assert left_out == len(stream("b", 1, 3))


def test_a_row_that_is_nested_too_deep_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "record"
    out, recorder = io.StringIO(), FleetRecorder(str(path))
    started = FleetRunStarted(1, ("h",), 0.0)
    planned = PlannedRun(Mock(), Merger(1.0), started, recorder.write_host_row, Mock(), Mock())
    printer = RunPrinter("jsonl", planned, out, io.StringIO())
    deep: Row = {}
    for _ in range(sys.getrecursionlimit()):
        deep = {"a": deep}
    for row in ({"event": "executed", "a": deep}, {"event": "executed", "b": 1}):
        planned.on_row("h", row)
        printer.row("h", row)
    recorder.close()
    assert [json.loads(line)["b"] for line in path.read_text().splitlines()] == [1]
    assert [json.loads(line)["event"] for line in out.getvalue().splitlines()] == [
        "session", "executed"
    ]  # fmt: skip


@pytest.mark.parametrize("lines", [3, 1])
def test_a_record_that_can_t_be_written_any_more_ends_and_is_said(
    lines: int, tmp_path: Path
) -> None:
    told: list[str] = []
    record = RecordFile(tmp_path / "record", told.append)
    assert record._file is not None
    record._file.close()
    # a single line is written when the file is closed, several before that
    with open("/dev/full", "w", encoding="ascii") as full:
        record._file = full
        for _ in range(lines):
            record.write("y" * 4000 * lines + "\n")
        record.close()
    (words,) = told
    assert "No space left on device. The run continues" in words
    with pytest.raises(UsageError, match="No such file or directory"):
        RecordFile(tmp_path / "none" / "record", told.append)


def test_a_second_session_of_a_host_begins_anew() -> None:
    merger = Merger()
    for begin in (START_MS, START_MS + 20_000):
        for row in stream("a", 1, 3, begin, last=0):
            merger.feed("a", row)
    assert len([one for one in merger.finish() if one.counted]) == 6


@pytest.mark.parametrize("row", [
    {"event": "merged", "hosts": {"failed": 5}}, {"event": "merged", "count": {"differs": "abc"}},
    {"event": "merged", "count": {"fio_ios": -4}}, {"event": "merged", "hosts": {"total": HUGE}},
    {"event": "merged", "lost": {"a": 1}}, {"event": "merged", "count": {"ios": float("nan")}},
    {"event": "total", "interval_s": 1.0, "second": 1 << 59},
    {"event": "total", "interval_s": 1.0, "second": 5, "fio": {"read": {"ios": 1, "clat": {
        "n": 1, "bins": {"5": 1 << 60}}}}},
])  # fmt: skip
def test_another_merger_s_row_that_is_none_changes_nothing(row: Row) -> None:
    merger, rows = Merger(), stream("a", 1, 3)
    for one in rows:
        merger.feed("a", one)
    with pytest.raises(MalformedRow):
        merger.feed("b", row)
    seconds = list(merger.finish())
    for kind in ("table", "jsonl", "csv"):
        sink = totals_sink(kind, io.StringIO(), io.StringIO(), "all")
        for second in seconds:
            sink.second(second)
        sink.end(merger)
    assert certify_merge(merger).exact == 1


def test_lines_with_odd_ends_and_times_are_still_put_in_order() -> None:
    rows = [{"event": "x", "wall_ms": wall} for wall in (5.0, HUGE, float("nan"), "y", None)]
    text = "\ufeff" + "".join(json.dumps(row) + "\r\n" for row in rows)
    deep = b'{"a":' * 50_000 + b"\n"
    told: list[str] = []
    read = line_rows(io.BytesIO(text.encode() + deep + b"\xff\xfe\n"), "f", told.append)
    other = [("g", {"event": "z", "wall_ms": 7.0})]
    found = list(merged_streams([read, other], told.append))
    assert [row["event"] for _, row in found] == ["x"] * 5 + ["z"]
    assert told == ["f: skipping lines that are not JSON objects"]


BEGIN = {"op": "begin", "arguments": ["/srv"], "job": "randread-4k", "host": "a"}


@pytest.mark.parametrize("order", [
    BEGIN, {"op": "begin"}, {**BEGIN, "job": {"name": "x.fio", "text": "[x]\n\udcff"}},
    {"op": "go", "at_ns": 5, "offset_ms": -1.5, "error_ms": None}, {"op": "stop"}, {"op": "ping"},
    {"op": "look", "names": []},
    {"op": "turn", "id": 1, "name": "nomerges", "value": "2"}, {"op": "tunables"},
    {**BEGIN, "tunables": [["scheduler", "none"]]},
])  # fmt: skip
def test_what_an_order_is(order: Row) -> None:
    assert is_order(order)


@pytest.mark.parametrize("order", [
    {}, {"op": 5}, {**BEGIN, "arguments": 5}, {**BEGIN, "arguments": {"a": 1}},
    {**BEGIN, "arguments": [5]}, {**BEGIN, "arguments": ["a\0"]}, {**BEGIN, "job": 5},
    {**BEGIN, "job": {"name": "x"}}, {**BEGIN, "job": {"name": "a\0", "text": ""}},
    {**BEGIN, "job": {"name": "a", "text": "\ud800"}}, {**BEGIN, "host": {}},
    {"op": "look"}, {"op": "look", "names": "x"}, {"op": "look", "names": [1]},
    {"op": "go"}, {"op": "go", "at_ns": "x"}, {"op": "go", "at_ns": 1 << 63},
    {"op": "go", "at_ns": -1}, {"op": "go", "at_ns": True}, {"op": "go", "at_ns": float("nan")},
    {"op": "go", "at_ns": 1, "offset_ms": float("nan")}, {"op": "go", "at_ns": 1, "error_ms": HUGE},
    {"op": "turn"}, {"op": "turn", "id": 1, "name": "nomerges", "value": "3"},
    {"op": "turn", "id": "1", "name": "nomerges", "value": "2"},
    {"op": "turn", "id": 1, "name": "../nomerges", "value": "2"},
    {"op": "turn", "id": 1, "name": "irq/30", "value": "0"},
    {"op": "turn", "id": 1, "name": "nomerges", "value": "2@5"},
    {"op": "turn", "id": 1, "name": "scheduler", "value": "a\0"},
    {**BEGIN, "tunables": {}}, {**BEGIN, "tunables": [["scheduler"]]},
    {**BEGIN, "tunables": [["nomerges", 2]]}, {"op": "ping", "id": [[]]}, {"op": "ping", "id": "1"},
])  # fmt: skip
def test_what_no_order_is(order: Row) -> None:
    assert not is_order(order)


KEYS = ("arguments", "job", "host", "at_ns", "offset_ms", "error_ms", "tunables", "id", "name",
        "value")  # fmt: skip


@given(st.sampled_from(["begin", "go", "turn", "x"]), st.dictionaries(st.sampled_from(KEYS), ODD))
def test_any_order_is_one_or_is_none(op: str, more: dict[str, Any]) -> None:
    assert is_order({"op": op, **more}) in (True, False)


def test_rows_of_whoever_adds_hosts_up_are_no_host_s(member: Member) -> None:
    # in a recording these would be taken for our own lines: a million hosts that do not exist
    for kind in ("fleet", "fleet_over", "total", "merged"):
        line = json.dumps({"event": kind, "hosts": {"total": 10**6}}).encode()
        assert member.take_rows(line + b"\n") == []
    assert member.invalid_lines == 4
    (kept,) = member.take_rows(b'{"event":"notice","text":"x"}\n')
    assert kept["event"] == "notice"


def test_a_host_that_never_stops_talking_is_given_up(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "MAX_BURST_BYTES", 100)
    monkeypatch.setattr(members, "MAX_BYTES_PER_S", 0)
    line = b'{"event":"notice","text":"x"}\n'
    assert len(member.take_rows(line * 3)) == 3 and not member.error
    assert member.take_rows(line) == [] and member.take_rows(line) == []
    assert member.error.startswith("it sends too much") and member.state == members.OVER


def test_hosts_without_number_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mergers, "MAX_HOSTS", 3)
    merger = Merger()
    with pytest.raises(UsageError, match="more than 3 hosts"):
        for number in range(4):
            merger.feed(f"h{number}", {"event": "session"})
    assert len(merger.hosts) == 3
