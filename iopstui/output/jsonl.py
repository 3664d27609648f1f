"""The session's events as JSON lines: for other programs.

One object a line. The first is ``{"event": "session", "schema": 1, ...}``; every object carries its
host, so the lines of many machines can be put together. A missing value is null. A frame's keys are
always the same (model/metrics/fields.py lists them), except that a direction without I/O is null as
a whole, and so is fio's part of a frame without fio. Output is pure ASCII."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any, TextIO

from iopstui import __version__
from iopstui.events import Event, FrameReady
from iopstui.model.block.target import Target
from iopstui.model.figures.figure import SCHEMA, as_object
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.frame_figures import FRAME

DECIMALS = 6
Object = dict[str, Any]


class JsonlSink:
    """Writes one JSON object per line and flushes it. Passes ``BrokenPipeError`` on."""

    def __init__(self, stream: TextIO, host: str, target: Target | None = None) -> None:
        self._stream = stream
        self._host = host
        self._first: Object | None = session_object(host, target)

    def handle(self, event: Event) -> None:
        """Write one event (and the session line before the first)."""
        self.begin()
        row = _event(event)
        self._write({"event": row.pop("event"), "host": self._host, **row})

    def close(self) -> None:
        """Close: no more events follow. The session line is written even if nothing ever came."""
        self.begin()
        self._stream.flush()

    def begin(self) -> None:
        """Write the session line, if it is not written yet."""
        if self._first is not None:
            first, self._first = self._first, None
            self._write(first)

    def _write(self, row: Object) -> None:
        self._stream.write(dumps(row) + "\n")
        self._stream.flush()


def dumps(row: Object) -> str:
    """Return a line of ASCII without control characters."""
    text = json.dumps(clean(row), allow_nan=False, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f")


def session_object(host: str, target: Target | None) -> Object:
    """The first line: whose numbers follow, and in which schema."""
    return {
        "event": "session",
        "schema": SCHEMA,
        "iopstui": __version__,
        "host": host,
        "target": target.path if target else None,
        "device": target.devices_below[0] if target and len(target.devices_below) == 1 else None,
        "devices": list(target.tree) if target else [],
        "targets": [place.path for place in target.places] if target else [],
        "opened": list(target.opened) if target else [],
    }


def event_object(event: Event) -> Object:
    """Any event as plain data; ``event`` is its kind ("frame", "step_started", "mark" ...)."""
    cleaned: Object = clean(_event(event))
    return cleaned


def frame_object(frame: Frame) -> Object:
    """A frame as plain data, in the names and units of model/metrics/fields.py."""
    cleaned: Object = clean(_frame(frame))
    return cleaned


def main_figures(frame: Frame) -> Object:
    """``frame_object`` without fio's histograms and without figures of single CPUs, interrupts and
    jobs. Values are not cleaned: callers do that for the columns they use (``clean``)."""
    return _frame(frame, is_full=False)


def _event(event: Event) -> Object:
    if isinstance(event, FrameReady):
        return _frame(event.frame)
    values = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    values.pop("document", None)  # fio's own JSON report, which fio itself can print
    return {"event": event.kind, **values}


def _frame(frame: Frame, is_full: bool = True) -> Object:
    return as_object(FRAME, frame.whole, is_full)


_PLAIN = frozenset((int, str, bool, type(None)))


def clean(value: Any) -> Any:
    """``value`` in a form that JSON can represent: string keys, lists, no NaN or infinity, rounded
    numbers."""
    if (
        type(value) in _PLAIN
    ):  # nearly all values have one of these types; testing for Mapping is slow
        return value
    if isinstance(value, float):
        return round(value, DECIMALS) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): clean(part) for key, part in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(clean(part) for part in value)
    if isinstance(value, (list, tuple)):
        return [clean(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: clean(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)
