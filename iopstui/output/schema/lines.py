"""The schemas of JSON lines: the session, its events, results of sweeps and comparisons, and a
frame, which is that of the tree of its figures (model/metrics/frame_figures.py).
"""

from __future__ import annotations

import typing

from iopstui.events import Event, ExpectationChecked, FrameReady, PointFailed, PointFinished
from iopstui.model.experiment.host_sweep import OF_HOSTS, HostPoint
from iopstui.model.experiment.point import Point
from iopstui.model.figures.figure import BY_KEY, IN_LIST, Figure, Rows
from iopstui.model.metrics.frame_figures import EVENT
from iopstui.model.metrics.paths import SCHEMA
from iopstui.output.schema.notation import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Schema,
    array,
    keyed,
    of_dataclass,
    or_null,
    record,
)


def frame_schema(strict: bool) -> Schema:
    """Schema of a frame event."""
    return _object(EVENT, "", strict)


def _object(rows: Rows, about: str, strict: bool) -> Schema:
    values: dict[str, Schema] = {}
    for row in rows:
        if not isinstance(row, Figure):
            part = _object(row.rows, row.about or about, strict)
            part = {IN_LIST: array(part), BY_KEY: keyed(part)}.get(row.many, part)
            values[row.name] = part if row.always else or_null(part)
        elif not row.inner:
            values[row.name] = _value(row, about)
    return record(values, strict)


def _value(row: Figure, about: str) -> Schema:
    meaning = row.meaning_of(about)
    description = f"{meaning} ({row.unit})" if row.unit else meaning
    if row.name == "event":
        return {"const": "frame", "description": description}
    leaf: Schema = {"type": row.kind}
    # what stands in a list, or under a key that is data, is there
    leaf = {**(leaf if row.always or row.keys else or_null(leaf)), "description": description}
    if row.name == "flags":
        return array(leaf)
    for _ in range(row.keys):
        leaf = keyed(leaf)
    return leaf if not row.keys or row.always else or_null(leaf)


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
    "sweep": {"plan": or_null(TEXT), "jobs": array(TEXT), "axes": keyed(array(TEXT)),
              "settle": NUMBER, "measure": NUMBER, "points": INTEGER,
              "repeats": INTEGER, "seed": or_null(INTEGER)},
    "curve": {"axis": TEXT, "fixed": keyed(TEXT), "points": array(INTEGER),
              "knee": or_null(INTEGER), "edge": or_null(TEXT), "doubt": or_null(TEXT),
              "knee_within": or_null(array(INTEGER))},
    "sweep_finished": {"words": array(TEXT)},
    "compare": {"plan": or_null(TEXT), "job": TEXT, "repeats": INTEGER, "seed": or_null(INTEGER),
                "until": or_null(NUMBER), "variants": array(TEXT),
                "settle": NUMBER, "measure": NUMBER, "primary": TEXT},
    "difference": {"variant": INTEGER, "against": INTEGER, "figure": TEXT, "unit": TEXT,
                   "means": array(NUMBER), "difference": or_null({"type": "object"}),
                   "p_corrected": NUMBER, "shown": BOOLEAN, "better": or_null(BOOLEAN),
                   "primary": BOOLEAN, "disturbed": TEXT},
    "cpus": {"variant": INTEGER, "against": INTEGER, "cpus": array({"type": "object"})},
    "compare_finished": {"complete": INTEGER, "repeats": INTEGER, "settled": or_null(BOOLEAN),
                         "words": array(TEXT)},
}  # fmt: skip
_OBJECT: Schema = {"type": "object"}
_SCALING: dict[str, Keys] = {
    "scaling": {"fixed": keyed(TEXT), "points": array(array(NUMBER)), "rate": NUMBER,
                "contention": NUMBER, "coherency": NUMBER, "residuals": or_null(array(NUMBER)),
                "knee": NUMBER, "knee_within": or_null(array(NUMBER)), "beyond": BOOLEAN,
                "doubt": or_null(TEXT), "words": array(TEXT)},
}  # fmt: skip
_MERGED_SESSION: Keys = {"schema": {"const": SCHEMA}, "iopstui": TEXT, "merged": {"const": True}}
_MERGED: dict[str, Keys] = {
    "total": {"schema": {"const": SCHEMA}, "second": INTEGER, "interval_s": NUMBER,
              "wall_ms": INTEGER, "utc": TEXT, "hosts": _OBJECT, "flags": keyed(INTEGER),
              "slowest": or_null(_OBJECT), "fio": or_null(_OBJECT), "kernel": or_null(_OBJECT),
              "device": or_null(_OBJECT)},
    "merged": {"schema": {"const": SCHEMA}, "interval_s": NUMBER, "hosts": _OBJECT,
               "lost": array(TEXT), "late": keyed(INTEGER), "count": _OBJECT,
               "slowest": or_null(_OBJECT), "fio": or_null(_OBJECT), "kernel": or_null(_OBJECT),
               "device": or_null(_OBJECT)},
}  # fmt: skip


def line_schemas(strict: bool) -> dict[str, Schema]:
    """Schemas of every kind of line, by its ``event``."""
    # of one host, and of many
    sessions = [record({"event": {"const": "session"}, **_SESSION}, strict),
                _line("session", _MERGED_SESSION, strict)]  # fmt: skip
    schemas: dict[str, Schema] = {"session": {"anyOf": sessions}}
    for event_type in typing.get_args(Event):
        if event_type is not FrameReady:
            schemas[event_type.kind] = _line(event_type.kind, _event(event_type, strict), strict)
    schemas["frame"] = frame_schema(strict)
    for kind, keys in (_EXPERIMENTS | _MERGED | _SCALING).items():
        schemas[kind] = _line(kind, keys, strict)
    # of one host, and of many
    points = [_point(Point, strict), _point(HostPoint, strict)]
    schemas["point_finished"] = {
        "anyOf": [_line("point_finished", point, strict) for point in points]
    }
    of_mean = "job", "settings", "point", "little"
    means = [{"place": INTEGER, **{key: point[key] for key in of_mean}} for point in points]
    schemas["point_mean"] = {"anyOf": [_line("point_mean", mean, strict) for mean in means]}
    # of a sweep's point, not of a run of its own
    judged = {"index": INTEGER, **_event(ExpectationChecked, strict)}
    del judged["step"]
    schemas["judged"] = {"anyOf": [schemas["judged"], _line("judged", judged, strict)]}
    return schemas


def _line(kind: str, keys: Keys, strict: bool) -> Schema:
    return record({"event": {"const": kind}, "host": TEXT, **keys}, strict)


def _event(event_type: type, strict: bool) -> Keys:
    keys = of_dataclass(event_type, strict)
    keys.pop("document", None)
    if event_type in (PointFinished, PointFailed):
        keys["settings"] = keyed(TEXT)
    return keys


def _point(of: type[Point], strict: bool) -> Keys:
    """A run of a sweep or a comparison; ``in_flight`` is the sweep's own."""
    own = dict.fromkeys(OF_HOSTS if of is HostPoint else (), NUMBER)
    figures = record({**own, **of_dataclass(of, strict)}, strict)
    figures["properties"]["in_flight"] = NUMBER
    keys = {**_event(PointFinished, strict), "point": figures}
    del keys["outcomes"]
    return keys
