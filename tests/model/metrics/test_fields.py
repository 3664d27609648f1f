from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path as FilePath
from typing import Any

import pytest
from fio_recordings import ALL, NAMES
from hypothesis import given
from hypothesis import strategies as st
from session_frames import session

from iopstui.model.figures.figure import SCHEMA
from iopstui.model.metrics.fields import BY_ID, FIELDS, fields_json, fields_table, find_field
from iopstui.output.jsonl import JsonlSink

Path = tuple[str, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from leaves(part, (*path, str(number)))
    else:
        yield path, value


def emitted(name: str, smb: bool = False) -> list[dict[str, Any]]:
    """The frame events exactly as they are written."""
    stream = io.StringIO()
    sink = JsonlSink(stream, "host")
    for event in session(name, probed=True, smb=smb):
        sink.handle(event)
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [row for row in rows if row["event"] == "frame"]


# most recordings have the same paths
known = cache(find_field)


@cache
def is_a_part(path: Path) -> bool:
    """True for an object that is null as a whole, such as the fio of a frame without fio."""
    return any(
        len(field.path) > len(path)
        and all(own in ("*", key) for own, key in zip(field.path, path, strict=False))
        for field in FIELDS
    )


@cache
def paths(name: str, smb: bool = False) -> tuple[frozenset[Path], frozenset[Path]]:
    """Paths that have a value in some frame of a recording, and paths that have none in some
    frame."""
    found = {(path, value is None) for frame in emitted(name, smb) for path, value in leaves(frame)}
    return (
        frozenset(path for path, missing in found if not missing),
        frozenset(path for path, missing in found if missing),
    )


@pytest.mark.parametrize(("name", "smb"), [*((name, False) for name in NAMES), (NAMES[0], True)])
def test_every_value_of_a_frame_is_in_the_registry(name: str, smb: bool) -> None:
    values, missing = paths(name, smb)
    for path in values | {path for path in missing if not is_a_part(path)}:
        assert known(path) is not None, ".".join(path)


def test_every_field_of_the_registry_is_emitted() -> None:
    seen = set()
    both, trim, ramp, syncs = "3.42-p-both", "3.42-p-trim", "3.42-e-ramp", "3.42-p-fsync"
    for name, smb in ((both, False), (trim, False), (ramp, False), (syncs, False), (both, True)):
        values, missing = paths(name, smb)
        seen |= {known(path) for path in values | missing}
    assert set(FIELDS) - seen == set()


def test_every_measured_field_has_a_value_somewhere() -> None:
    """Fields that are always null would be promises without data."""
    values = (paths("3.42-p-both", smb=True)[0], *(paths(name)[0] for name in ALL))
    seen = {known(path) for path in frozenset().union(*values)}
    empty = {field.id for field in FIELDS if field not in seen}
    # latencies of which no recording has a histogram, and what only a live session has
    percentiles = ("p50", "p90", "p95", "p99", "p99.9", "p99.99", "max")
    no_lat = {f"fio.{part}.lat.{p}" for part in ("write", "trim", "mixed") for p in percentiles}
    of_jobs = ("cpu_wait", "workers_wait", "nice", "policy", "state")
    # no drive of these sessions refuses to answer, none sends a request back
    live = {
        "own_cpu",
        "wait.cpu",
        "nvme.drives.*.problem",
        "device.slowest.*.tried",
        *(f"jobs.*.{one}" for one in of_jobs),
    }
    assert empty - no_lat <= {*live, "fio.trim.slat.mean", "fio.trim.slat.n"}


def test_ids_are_unique_and_no_two_fields_cover_one_value() -> None:
    assert len(BY_ID) == len(FIELDS)
    for field in FIELDS:
        path = tuple("x" if key == "*" else key for key in field.path)
        assert [other.id for other in FIELDS if other.covers(path)] == [field.id]


def test_every_field_is_explained() -> None:
    for field in FIELDS:
        assert field.title and field.source and field.meaning, field.id
        assert field.id.isascii() and field.unit.isascii() and field.meaning.isascii(), field.id


def test_disk_fields_have_iostat_names() -> None:
    for name in ("r/s", "w/s", "d/s", "f/s", "rMB/s", "wMB/s", "dMB/s", "rrqm/s", "wrqm/s",
                 "drqm/s", "r_await", "w_await", "d_await", "f_await", "rareq-sz", "wareq-sz",
                 "dareq-sz", "aqu-sz", "util"):  # fmt: skip
        assert f"kernel.disks.*.{name}" in BY_ID


def test_finding() -> None:
    found = find_field(("kernel", "disks", "sda", "r/s"))
    assert found is BY_ID["kernel.disks.*.r/s"]
    assert find_field(("fio", "read", "clat", "p99.9")) is BY_ID["fio.read.clat.p99.9"]
    assert find_field(("fio", "read")) is None
    assert find_field(()) is None


def test_json() -> None:
    data = json.loads(fields_json())
    assert data["schema"] == SCHEMA
    assert [row["id"] for row in data["fields"]] == list(BY_ID)
    assert all(set(row) == {"id", "title", "unit", "source", "meaning"} for row in data["fields"])


@given(st.integers(0, 300))
def test_the_table_keeps_to_its_width_and_names_every_field(width: int) -> None:
    lines = fields_table(width).splitlines()
    assert max(map(len, lines)) <= max(width, 60)
    firsts = {line.split()[0] for line in lines if line and not line.startswith(" ")}
    assert set(BY_ID) <= firsts


def test_each_field_is_in_the_reference_as_it_is(root: FilePath) -> None:
    """docs/reference/fields.md is what a user reads: id, heading, unit, source and meaning."""
    lines = (root / "docs/reference/fields.md").read_text().splitlines()
    told = {}
    for line in lines:
        if line.startswith("| `"):
            name, *cells = [cell.strip() for cell in line.strip("|").split("|", 5)]
            told[name.strip("`")] = cells[:3]
    assert told == {one.id: [one.title, one.unit, one.source] for one in FIELDS}
