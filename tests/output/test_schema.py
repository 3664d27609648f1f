"""The published JSON Schema matches the program's output, key by key."""

from __future__ import annotations

import copy
import json
import typing
from pathlib import Path
from typing import Any

import pytest
from fio_recordings import KINDS
from json_schema import check, check_line, errors, strict
from session_frames import session

from iopstui.events import Event, FrameReady
from iopstui.features.reports.files import rendered
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.output.jsonl import event_object, frame_object
from iopstui.output.replay import replay_headless
from iopstui.output.schema import of_type, schema, schema_text

RECORDINGS = ("compare", "first-demo", "places", "run", "sweep")


def parse_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_events_of_every_fio_recording_match_the_schema(name: str, probed: bool) -> None:
    for event in session(name, probed=probed):
        row = json.loads(json.dumps(event_object(event)))
        check_line({"event": row["event"], "host": "host-1", **row})


@pytest.mark.parametrize("name", [*RECORDINGS, "demo"])
def test_every_line_of_a_replay_matches_the_schema(
    name: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root / "tests" / "fixtures" / "recordings" / f"{name}.iops"
    replay_headless("demo" if name == "demo" else str(path), "jsonl")
    rows = parse_lines(capsys.readouterr().out)
    for row in rows:
        check_line(row)
    kinds = {row["event"] for row in rows}
    assert "session" in kinds
    if name in ("sweep", "compare"):
        assert {name, f"{name}_finished", "point_finished", "frame"} <= kinds


@pytest.mark.parametrize("arguments, name", [
    (("devices",), "document.devices"), (("jobs",), "document.jobs"),
    (("jobs", "randread-4k"), "document.jobs"), (("fields",), "document.fields"),
])  # fmt: skip
def test_every_document_matches_the_schema(
    arguments: tuple[str, ...], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from iopstui.cli.program import main

    assert main([*arguments, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    check(document, name)
    if name == "document.devices":
        assert len(document["devices"]) == len(read_devices(Roots()))


def test_reports_match_the_schema(root: Path) -> None:
    for name in RECORDINGS:
        path = root / "tests" / "fixtures" / "recordings" / f"{name}.iops"
        check(json.loads(rendered([path], "json")), "document.report")


def test_every_event_has_a_schema() -> None:
    definitions = strict()["$defs"]
    assert {event_class.kind for event_class in typing.get_args(Event)} <= set(definitions)
    assert {ref["$ref"].removeprefix("#/$defs/") for ref in strict()["anyOf"]} == {
        name for name in definitions if not name.startswith("document.")
    }


def frame_row() -> dict[str, Any]:
    (first, *_) = (e for e in session("3.42-a-randread-grp") if isinstance(e, FrameReady))
    row: dict[str, Any] = json.loads(json.dumps(frame_object(first.frame)))
    return {"event": row.pop("event"), "host": "host-1", **row}


@pytest.mark.parametrize("path, value", [
    (("t",), None), (("t",), "1"), (("fio", "read", "iops"), "many"), (("flags",), "RAMP"),
    (("kernel",), None), (("kernel", "disks"), []), (("event",), "frames"), (("new",), 1),
    (("fio", "jobs"), {}), (("fio", "read", "clat", "p50"), True),
])  # fmt: skip
def test_invalid_rows_are_rejected(path: tuple[str, ...], value: object) -> None:
    row = copy.deepcopy(frame_row())
    check_line(row)
    place = row
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert list(errors(row, strict()["$defs"]["frame"], strict()))


def test_a_missing_key_is_rejected_and_a_new_key_is_allowed() -> None:
    row = frame_row()
    row["more"] = 1
    assert not list(errors(row, schema()["$defs"]["frame"], schema()))
    row["fio"] = {key: value for key, value in frame_row()["fio"].items() if key != "ctx/s"}
    assert list(errors(row, schema()["$defs"]["frame"], schema()))


def test_the_schema_is_json_and_names_its_draft() -> None:
    document = json.loads(schema_text())
    assert document == schema() and document["$schema"].startswith("https://json-schema.org/draft/")


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(TypeError, match="no schema for"):
        of_type(complex, strict=True)
