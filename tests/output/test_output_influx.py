"""InfluxDB's line protocol, checked by a strict parser written from its specification."""

from __future__ import annotations

import io
import re
from functools import cache

import pytest
from fio_recordings import KINDS
from session_frames import session, whole_frames

from iopstui.events import Event, Mark, Notice
from iopstui.model.block.target import Target
from iopstui.model.metrics.fields import find_field
from iopstui.output.influx import InfluxSink
from iopstui.output.jsonl import frame_object

PART = r"(?:[^,= \\]|\\[,= ])+"
LINE = re.compile(
    rf'({PART})((?:,{PART}={PART})*) ((?:{PART}=(?:"(?:[^"\\]|\\["\\])*"|[^", ]+),?)+) (\d{{19}})'
)
FIELD = re.compile(rf'({PART})=("(?:[^"\\]|\\["\\])*"|[^",]+)(,|$)')
Row = tuple[str, dict[str, str], dict[str, "float | str"], int]


# most recordings have the same paths
cached_find_field = cache(find_field)


def unescape(text: str) -> str:
    return re.sub(r"\\([,= ])", r"\1", text)


def parse_line(text: str) -> Row:
    match = LINE.fullmatch(text)
    assert match, text
    name, tags, unparsed, at = match.groups()
    fields: dict[str, float | str] = {}
    while unparsed:
        field = FIELD.match(unparsed)
        assert field, unparsed
        key, value, more = field.groups()
        quoted = value.startswith('"')
        fields[unescape(key)] = re.sub(r"\\(.)", r"\1", value[1:-1]) if quoted else float(value)
        unparsed = unparsed[field.end() :]
        assert bool(more) == bool(unparsed)
    pairs = (pair.groups() for pair in re.finditer(rf",({PART})=({PART})", tags))
    return unescape(name), {unescape(key): unescape(value) for key, value in pairs}, fields, int(at)


def rows(events: list[Event], path: str = "/data/a") -> list[Row]:
    stream = io.StringIO()
    sink = InfluxSink(stream, "host-1", Target("file", path, "vda", ("vda",)))
    for event in events:
        sink.handle(event)
    sink.close()
    return [parse_line(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(("name", "smb"), [*((name, False) for name in KINDS), (KINDS[0], True)])
def test_every_number_equals_that_of_json_lines(name: str, smb: bool) -> None:
    frames = whole_frames(name, probed=True, smb=smb)
    found_rows = rows(session(name, probed=True, smb=smb))
    assert sum(row[0] == "frame" for row in found_rows) == len(frames)
    assert (
        smb or len(frames) < 2 or any(row[0] == "aws" and "r_p50" in row[2] for row in found_rows)
    )
    places = {"fio": ("fio",), "fio_run": ("fio",), "frame": (), "disk": ("kernel", "disks"),
              "cpu": ("kernel", "cpus"), "pressure": ("kernel", "pressure"),
              "memory": ("kernel", "memory"), "power": ("kernel", "power"),
              "nfs": ("kernel", "nfs"), "smb": ("kernel", "smb"), "device": ("device", "disks"),
              "nvme": ("nvme", "drives"), "aws": ("kernel", "aws"),
              "nvme_diag": ("kernel", "nvme_diag")}  # fmt: skip
    objects = {round(frame.wall_ms * 1e6): frame_object(frame) for frame in frames}
    for measurement, tags, fields, at in found_rows:
        if measurement == "event":
            continue
        keys = ("device", "direction", "cpu", "drive", "object")
        instances = [tags[key] for key in keys if key in tags]
        for key, value in fields.items():
            path = [*places[measurement], *instances, *re.split(r"\.(?!\d)", key)]
            if key == "flags":
                continue
            assert cached_find_field(tuple(path)) is not None, path
            place = objects[at]
            for step in path:
                place = place[step]
            assert value == place


def test_events_are_lines_with_their_own_time() -> None:
    frames = whole_frames("3.42-a-randread-grp")
    marked = [*session("3.42-a-randread-grp")[:-1], Mark(frames[-1].t, 'a "b" \\ c'),
              Notice(1.0, "info", "not a figure")]  # fmt: skip
    events = [(tags["kind"], fields["text"], at) for name, tags, fields, at in rows(marked)
             if name == "event"]  # fmt: skip
    start = round((frames[0].wall_ms - 1000 * frames[0].t) * 1e6)
    assert [event[:2] for event in events] == [
        ("step_started", "randread 4k"), ("step_finished", "done"), ("mark", 'a "b" \\ c'),
    ]  # fmt: skip
    assert events[0][2] == pytest.approx(start, abs=1e6)
    assert events[2][2] == pytest.approx(frames[-1].wall_ms * 1e6, abs=1e6)


@pytest.mark.parametrize("path", ["/a b,c=d", "/ends with\\", '/q"\n/x', "/ä\x1b[31m"])
def test_no_path_breaks_a_line(path: str) -> None:
    written_rows = rows(session("3.42-a-randread-grp"), path)
    assert len({row[1]["target"] for row in written_rows}) == 1
    assert all("\n" not in row[1]["target"] for row in written_rows)
