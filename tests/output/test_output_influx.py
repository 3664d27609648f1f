"""InfluxDB's line protocol, read by a strict reader written from its description."""

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
known = cache(find_field)


def plain(text: str) -> str:
    return re.sub(r"\\([,= ])", r"\1", text)


def parsed(text: str) -> Row:
    match = LINE.fullmatch(text)
    assert match, text
    name, tags, rest, at = match.groups()
    fields: dict[str, float | str] = {}
    while rest:
        one = FIELD.match(rest)
        assert one, rest
        key, value, more = one.groups()
        quoted = value.startswith('"')
        fields[plain(key)] = re.sub(r"\\(.)", r"\1", value[1:-1]) if quoted else float(value)
        rest = rest[one.end() :]
        assert bool(more) == bool(rest)
    pairs = (pair.groups() for pair in re.finditer(rf",({PART})=({PART})", tags))
    return plain(name), {plain(key): plain(value) for key, value in pairs}, fields, int(at)


def rows(events: list[Event], path: str = "/data/a") -> list[Row]:
    stream = io.StringIO()
    sink = InfluxSink(stream, "host-1", Target("file", path, "vda", ("vda",)))
    for event in events:
        sink.handle(event)
    sink.close()
    return [parsed(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(("name", "smb"), [*((name, False) for name in KINDS), (KINDS[0], True)])
def test_every_number_is_the_json_lines_one(name: str, smb: bool) -> None:
    frames = whole_frames(name, probed=True, smb=smb)
    found = rows(session(name, probed=True, smb=smb))
    assert sum(row[0] == "frame" for row in found) == len(frames)
    places = {"fio": ("fio",), "fio_run": ("fio",), "frame": (), "disk": ("kernel", "disks"),
              "cpu": ("kernel", "cpus"), "pressure": ("kernel", "pressure"),
              "memory": ("kernel", "memory"), "power": ("kernel", "power"),
              "nfs": ("kernel", "nfs"), "smb": ("kernel", "smb"), "device": ("device", "disks"),
              "nvme": ("nvme", "drives")}  # fmt: skip
    objects = {round(frame.wall_ms * 1e6): frame_object(frame) for frame in frames}
    for measurement, tags, fields, at in found:
        if measurement == "event":
            continue
        own = [tags[key] for key in ("device", "direction", "cpu", "drive") if key in tags]
        for key, value in fields.items():
            path = [*places[measurement], *own, *re.split(r"\.(?!\d)", key)]
            if key == "flags":
                continue
            assert known(tuple(path)) is not None, path
            there = objects[at]
            for step in path:
                there = there[step]
            assert value == there


def test_the_words_are_lines_of_their_own_at_their_time() -> None:
    frames = whole_frames("3.42-a-randread-grp")
    marked = [*session("3.42-a-randread-grp")[:-1], Mark(frames[-1].t, 'a "b" \\ c'),
              Notice(1.0, "info", "not a figure")]  # fmt: skip
    words = [(tags["kind"], fields["text"], at) for name, tags, fields, at in rows(marked)
             if name == "event"]  # fmt: skip
    start = round((frames[0].wall_ms - 1000 * frames[0].t) * 1e6)
    assert [word[:2] for word in words] == [
        ("step_started", "randread 4k"), ("step_finished", "done"), ("mark", 'a "b" \\ c'),
    ]  # fmt: skip
    assert words[0][2] == pytest.approx(start, abs=1e6)
    assert words[2][2] == pytest.approx(frames[-1].wall_ms * 1e6, abs=1e6)


@pytest.mark.parametrize("path", ["/a b,c=d", "/ends with\\", '/q"\n/x', "/ä\x1b[31m"])
def test_no_path_breaks_a_line(path: str) -> None:
    found = rows(session("3.42-a-randread-grp"), path)
    assert len({row[1]["target"] for row in found}) == 1
    assert all("\n" not in row[1]["target"] for row in found)
