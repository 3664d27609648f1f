"""The schemas of JSON lines: the session, its events, and what sweeps and comparisons say."""

from __future__ import annotations

import typing

from iopstui.events import Event, FrameReady, Judged, PointFinished
from iopstui.model.metrics.fields import SCHEMA
from iopstui.output.schema.frames import frame_schema
from iopstui.output.schema.notation import (
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    Schema,
    array,
    keyed,
    of_dataclass,
    or_null,
    record,
)

Keys = dict[str, Schema]

_SESSION: Keys = {
    "schema": {"const": SCHEMA},
    "iopstui": TEXT,
    "host": TEXT,
    "target": or_null(TEXT),
    "device": or_null(TEXT),
    "devices": array(TEXT),
    "targets": array(TEXT),
    "opened": array(TEXT),
}
_EXPERIMENTS: dict[str, Keys] = {
    "sweep": {"jobs": array(TEXT), "axes": keyed(array(TEXT)), "settle": NUMBER,
              "measure": NUMBER, "points": WHOLE},
    "curve": {"axis": TEXT, "fixed": keyed(TEXT), "points": array(WHOLE),
              "knee": or_null(WHOLE), "edge": or_null(TEXT)},
    "sweep_finished": {"words": array(TEXT)},
    "compare": {"job": TEXT, "repeats": WHOLE, "seed": or_null(WHOLE), "variants": array(TEXT),
                "settle": NUMBER, "measure": NUMBER},
    "difference": {"variant": WHOLE, "against": WHOLE, "figure": TEXT, "unit": TEXT,
                   "means": array(NUMBER), "difference": or_null({"type": "object"}),
                   "p_corrected": NUMBER, "shown": TRUTH, "better": or_null(TRUTH)},
    "cpus": {"variant": WHOLE, "against": WHOLE, "cpus": array({"type": "object"})},
    "compare_finished": {"complete": WHOLE, "repeats": WHOLE, "words": array(TEXT)},
}  # fmt: skip


def line_schemas(strict: bool) -> dict[str, Schema]:
    """Of every sort of line, by its ``event``."""
    found = {"session": record({"event": {"const": "session"}, **_SESSION}, strict)}
    for made in typing.get_args(Event):
        if made is not FrameReady:
            found[made.kind] = _line(made.kind, _event(made, strict), strict)
    found["frame"] = frame_schema(strict)
    for kind, keys in _EXPERIMENTS.items():
        found[kind] = _line(kind, keys, strict)
    # of a sweep's point, not of a run of its own
    judged = {"index": WHOLE, **_event(Judged, strict)}
    del judged["step"]
    found["judged"] = {"anyOf": [found["judged"], _line("judged", judged, strict)]}
    return found


def _line(kind: str, keys: Keys, strict: bool) -> Schema:
    return record({"event": {"const": kind}, "host": TEXT, **keys}, strict)


def _event(made: type, strict: bool) -> Keys:
    keys = of_dataclass(made, strict)
    keys.pop("document", None)
    if made is PointFinished:
        del keys["outcomes"]
        keys["settings"] = keyed(TEXT)
        # the sweep's own
        keys["point"]["properties"]["in_flight"] = NUMBER
    return keys
