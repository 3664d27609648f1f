"""Recordings of earlier versions: everything in the files is read, whatever the classes are called
now."""

from __future__ import annotations

import dataclasses
import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from iopstui import events
from iopstui.output.jsonl import event_object
from iopstui.recording import layout as form
from iopstui.recording.reader import EventRecord, Recording, SampleRecord, recording_path
from iopstui.recording.replay import replay_events

KEPT = Path(__file__).parents[1] / "fixtures" / "recordings"
FILES = [recording_path("demo"), *sorted(KEPT.glob("*.iops"))]
NAMES_IN_FILES = [
    "Header", "Target", "Place", "KnobRequest", "Topology", "RawSample", "Kernel", "KernelSample",
    "DiskCounters", "CpuTimes", "FioStatus", "JobStatus", "DirectionStatus", "LatencySum",
    "JobThread", "StepStarted", "Planned", "Armed", "Executed", "Progress",
    "Mark", "Notice", "TunableChanged", "Found", "Ceased",
    "Answer", "AnswerText",
    "Use", "DiskUse", "DiskUser", "BlockedTask", "RingWaiter", "LimitUse", "Peaks", "DiskPeak",
    "Finding", "Judged", "SteadyState", "ExperimentStarted", "Plan", "Axis", "Base", "Spread",
    "Variant", "Setting", "PointStarted", "PointFailed", "PointFinished", "Point", "Little",
    "Outcome", "Expectation", "ExperimentFinished", "StepFinished", "Ended", "JobRun",
    "Binding", "DeviceLinks", "Devices",
    "BlockDevice", "QueueLimits", "Hctx", "IrqVector", "Mount", "Stopped", "ProbeSample",
    "TaskCounts", "DriveReading", "Exemplar", "StallFound", "Stall",
]  # fmt: skip
KINDS_IN_JSON = [
    "step_started", "planned", "armed", "executed", "progress", "frame",
    "mark", "notice", "tunable_changed", "found", "ceased", "answer", "stall",
    "judged", "steady_state", "experiment_started", "point_started", "point_finished",
    "point_failed", "experiment_finished", "step_finished", "ended",
]  # fmt: skip


def chunks(path: Path) -> Iterator[tuple[bytes, Any]]:
    """The file's chunks as (kind, JSON), parsed only by the documented format."""
    data = path.read_bytes()
    at = data.index(b"\n") + 1
    stream: Any = None
    while at < len(data):
        kind, _, length, _ = struct.unpack_from(">cdII", data, at)
        at += struct.calcsize(">cdII")
        payload = data[at : at + length]
        at += length
        if kind in b"KS":
            stream = zlib.decompressobj() if kind == b"K" else stream
            yield kind, json.loads(stream.decompress(payload))
        else:
            yield kind, json.loads(zlib.decompress(payload))


PASSED_OVER = {("ProbeSample", "by")}
"""Fields that earlier versions wrote and no code reads any more."""


def assert_same(found: Any, written: Any, layouts: dict[str, list[str]]) -> None:
    """Check that ``found`` has the same fields and values as ``written``."""
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        names = layouts[form.NAMES[type(found)]]
        assert len(names) == len(written)
        for name, value in zip(names, written, strict=True):
            if (form.NAMES[type(found)], name) not in PASSED_OVER:
                assert_same(getattr(found, name), value, layouts)
    elif isinstance(found, dict):
        assert [str(key) for key in found] == list(written)
        for key, value in found.items():
            assert_same(value, written[str(key)], layouts)
    elif isinstance(found, (tuple, frozenset)):
        assert len(found) == len(written)
        for one, other in zip(found, written, strict=True):
            assert_same(one, other, layouts)
    else:
        assert found == written and type(found) is type(written)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_that_was_written_is_read(path: Path) -> None:
    written = list(chunks(path))
    assert written[0][0] == form.HEADER
    layouts = written[0][1]["layouts"]
    with Recording(path) as recording:
        assert_same(recording.header, written[0][1]["header"], layouts)
        records = list(recording.records())
    assert not recording.damage and len(records) == len(written) - 1
    for record, (kind, value) in zip(records, written[1:], strict=True):
        if isinstance(record, SampleRecord):
            assert kind in b"KS" and int(record.is_shown) == value[0]
            assert_same(record.raw, value[1], layouts)
        else:
            assert isinstance(record, EventRecord) and form.NAMES[type(record.value)] == value[0]
            assert_same(record.value, value[1], layouts)


def test_the_names_in_files_stay() -> None:
    assert sorted(form.NAMES.values()) == sorted(NAMES_IN_FILES)
    assert sorted(form.all_layouts()) == sorted(NAMES_IN_FILES)


def test_the_kinds_in_json_lines_stay() -> None:
    kinds = [kind.kind for kind in get_args(events.Event) if kind is not events.RunAddedUp]
    assert kinds == KINDS_IN_JSON, "only screens get RunAddedUp"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_event_is_told_under_its_kind(path: Path) -> None:
    with Recording(path) as recording:
        told = [(event.kind, event_object(event)) for event in replay_events(recording)]
    assert told and all(row["event"] == kind for kind, row in told)
    assert {kind for kind, _ in told} <= set(KINDS_IN_JSON)
