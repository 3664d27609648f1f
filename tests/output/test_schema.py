"""The published JSON Schema is what the program writes, key by key."""

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
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.roots import Roots
from iopstui.output.jsonl import event_object, frame_object
from iopstui.output.replay import replay_headless
from iopstui.output.schema.document import schema, schema_text
from iopstui.output.schema.notation import of_type
from iopstui.report.files import rendered

RECORDINGS = ("compare", "first-demo", "places", "run", "sweep")


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_what_every_recording_of_fio_becomes(name: str, probed: bool) -> None:
    for event in session(name, probed=probed):
        row = json.loads(json.dumps(event_object(event)))
        check_line({"event": row["event"], "host": "host-1", **row})


@pytest.mark.parametrize("name", [*RECORDINGS, "demo"])
def test_every_line_of_a_replay(name: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "tests" / "fixtures" / "recordings" / f"{name}.iops"
    replay_headless("demo" if name == "demo" else str(path), "jsonl")
    found = lines(capsys.readouterr().out)
    for row in found:
        check_line(row)
    kinds = {row["event"] for row in found}
    assert "session" in kinds
    if name in ("sweep", "compare"):
        assert {name, f"{name}_finished", "point_finished", "frame"} <= kinds


@pytest.mark.parametrize("arguments, name", [
    (("devices",), "document.devices"), (("jobs",), "document.jobs"),
    (("jobs", "randread-4k"), "document.jobs"), (("fields",), "document.fields"),
])  # fmt: skip
def test_every_document(
    arguments: tuple[str, ...], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from iopstui.cli.program import main

    assert main([*arguments, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    check(found, name)
    if name == "document.devices":
        assert len(found["devices"]) == len(read_devices(Roots()))


def test_a_report(root: Path) -> None:
    for name in RECORDINGS:
        path = root / "tests" / "fixtures" / "recordings" / f"{name}.iops"
        check(json.loads(rendered([path], "json")), "document.report")


def test_every_event_has_a_schema_and_a_name_of_its_own() -> None:
    known = strict()["$defs"]
    assert {made.kind for made in typing.get_args(Event)} <= set(known)
    assert {ref["$ref"].removeprefix("#/$defs/") for ref in strict()["anyOf"]} == {
        name for name in known if not name.startswith("document.")
    }


def frame() -> dict[str, Any]:
    (first, *_) = (e for e in session("3.42-a-randread-grp") if isinstance(e, FrameReady))
    found: dict[str, Any] = json.loads(json.dumps(frame_object(first.frame)))
    return {"event": found.pop("event"), "host": "host-1", **found}


@pytest.mark.parametrize("path, value", [
    (("t",), None), (("t",), "1"), (("fio", "read", "iops"), "many"), (("flags",), "RAMP"),
    (("kernel",), None), (("kernel", "disks"), []), (("event",), "frames"), (("new",), 1),
    (("fio", "jobs"), {}), (("fio", "read", "clat", "p50"), True),
])  # fmt: skip
def test_what_is_wrong_is_found(path: tuple[str, ...], value: object) -> None:
    row = copy.deepcopy(frame())
    check_line(row)
    place = row
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert list(errors(row, strict()["$defs"]["frame"], strict()))


def test_a_key_that_is_missing_is_found_and_one_that_is_new_is_allowed_to_users() -> None:
    row = frame()
    row["more"] = 1
    assert not list(errors(row, schema()["$defs"]["frame"], schema()))
    row["fio"] = {key: value for key, value in frame()["fio"].items() if key != "ctx/s"}
    assert list(errors(row, schema()["$defs"]["frame"], schema()))


def test_it_is_json_and_names_its_draft() -> None:
    found = json.loads(schema_text())
    assert found == schema() and found["$schema"].startswith("https://json-schema.org/draft/")


def test_a_type_that_nothing_is_known_of() -> None:
    with pytest.raises(TypeError, match="no schema for"):
        of_type(complex, strict=True)
