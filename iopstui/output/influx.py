"""Frames and events in InfluxDB's line protocol.

A line is ``measurement,tag=value field=value time`` (InfluxDB documentation, "Line protocol").
Fields have the names and units of JSON lines (model/metrics/fields.py). All are floating-point
numbers, because InfluxDB does not let a field change its type. The time is wall-clock time in ns.
Unknown values are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from iopstui.events import (
    Event,
    FindingReported,
    FrameReady,
    Mark,
    StallFound,
    StepFinished,
    StepStarted,
)
from iopstui.model.block.target import Target
from iopstui.model.figures.figure import DEVICE, TOTAL
from iopstui.model.metrics.aws import SOURCE as AWS
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.nvme import DIAG, DRIVES, NVME
from iopstui.model.metrics.shares import NFS, SMB
from iopstui.model.samples import DIRECTIONS
from iopstui.model.sources import BY_NAME
from iopstui.output.jsonl import frame_object
from iopstui.text import printable

_HISTOGRAMS = ("bins", "sizes")


class InfluxSink:
    """Writes the lines of each event and flushes them. Passes ``BrokenPipeError`` on."""

    def __init__(self, stream: TextIO, host: str, target: Target | None = None) -> None:
        self._stream = stream
        self._tags = {"host": host, "target": target.path if target else ""}
        self._clock_ms: float | None = None
        # events that came before the first frame: only a frame tells their wall-clock time
        self._early: list[Event] = []

    def handle(self, event: Event) -> None:
        if isinstance(event, FrameReady):
            self._clock_ms = event.frame.wall_ms - 1000 * event.frame.t
            early, self._early = self._early, []
            for early_event in early:
                self._write(self._event_text(early_event))
            self._write(self._figures(event.frame))
        elif self._clock_ms is None:
            self._early.append(event)
        else:
            self._write(self._event_text(event))

    def close(self) -> None:
        self._stream.flush()

    def _write(self, lines: Iterator[str]) -> None:
        for text in lines:
            self._stream.write(text + "\n")
        self._stream.flush()

    def _event_text(self, event: Event) -> Iterator[str]:
        match event:
            case StepStarted():
                text = event.title
            case StepFinished():
                text = event.error or "done"
            case Mark():
                text = event.text
            case FindingReported():
                text = event.finding.text
            case StallFound():
                text = event.stall.text
            case _:
                return
        at_ms = (self._clock_ms or 0.0) + 1000 * event.t
        yield line("event", {**self._tags, "kind": event.kind}, {"text": text}, at_ms)

    def _figures(self, frame: Frame) -> Iterator[str]:
        row = frame_object(frame)
        for name, tags, values in _points(row):
            fields: dict[str, float | str] = dict(_numbers(values))
            if name == "frame":
                fields["flags"] = " ".join(row["flags"])
            if fields:
                yield line(name, {**self._tags, **tags}, fields, frame.wall_ms)


def _points(row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str], Mapping[str, Any]]]:
    """The measurements in a frame object, each with its tags and its fields."""
    yield "frame", {}, {key: value for key, value in _scalars(row).items() if key != "wall_ms"}
    fio, kernel = row["fio"], row["kernel"]
    if fio is not None:
        yield "fio_run", {}, _scalars(fio)
        names = (*DIRECTIONS, TOTAL, "sync")
        yield from _tagged("fio", "direction", {name: fio[name] for name in names})
    yield from _tagged("disk", "device", kernel["disks"])
    yield from _tagged("cpu", "cpu", kernel["cpus"])
    for name in (*BY_NAME, NFS, SMB):
        if kernel[name] is not None:
            yield name, {}, kernel[name]
    yield from _tagged(AWS, "device", kernel[AWS] or {})
    yield from _tagged(DIAG, "object", kernel[DIAG] or {})
    yield from _tagged(NVME, "drive", (row[NVME] or {}).get(DRIVES, {}))
    for device, kinds in (row[DEVICE] or {}).get("disks", {}).items():
        for name, tags, values in _tagged(DEVICE, "direction", kinds):
            yield name, {"device": device, **tags}, values


def _tagged(
    name: str, tag: str, parts: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, str], Mapping[str, Any]]]:
    yield from ((name, {tag: key}, part) for key, part in parts.items() if part is not None)


def _scalars(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: v for key, v in values.items() if not isinstance(v, (dict, list, str))}


def _numbers(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in ``values``; nested ones are named by their path. Histograms are left out."""
    for key, value in values.items():
        if isinstance(value, dict):
            if key not in _HISTOGRAMS:
                yield from _numbers(value, f"{before}{key}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield before + key, float(value)


def line(
    name: str, tags: Mapping[str, str], fields: Mapping[str, float | str], wall_ms: float
) -> str:
    """Return a line; tags without a value are left out. ``fields`` must not be empty."""
    head = ",".join([_key(name), *(f"{_key(k)}={_key(v)}" for k, v in tags.items() if v)])
    body = ",".join(f"{_key(name)}={_value(value)}" for name, value in fields.items())
    return f"{head} {body} {round(wall_ms * 1e6)}"


def _key(text: str) -> str:
    """The text as a name or tag. A backslash becomes a slash: the protocol cannot escape it here,
    and it would escape the next character."""
    escaped = printable(text).replace("\\", "/")
    for special in (",", "=", " "):
        escaped = escaped.replace(special, "\\" + special)
    return escaped


def _value(value: float | str) -> str:
    if isinstance(value, str):
        return '"' + printable(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)
