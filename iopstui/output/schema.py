"""The JSON Schema of all JSON output, built from the registries that the output uses."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from iopstui.discovery import feature_modules
from iopstui.events import (
    Event,
    ExpectationChecked,
    FrameReady,
    PointFailed,
    PointFinished,
    field_types,
)
from iopstui.linux.devices.smart import DiskHealth
from iopstui.linux.devices.zones import Zones
from iopstui.linux.nvme.topology import DriveFacts, NamespaceTopology
from iopstui.model.block.device import BlockDevice, Hctx
from iopstui.model.experiment.host_sweep import OF_HOSTS, HostPoint
from iopstui.model.experiment.point import Point
from iopstui.model.figures.figure import BY_KEY, IN_LIST, SCHEMA, Figure, Rows
from iopstui.model.metrics.frame_figures import EVENT
from iopstui.output.pages.nvme import PATH

# A document with all schemas: at its top the schema of a JSON line, in ``$defs`` the schemas of
# each kind of line and of each document.


DRAFT = "https://json-schema.org/draft/2020-12/schema"
DOCUMENT = "document."
"""The prefix of the names of documents in ``$defs``; lines have none."""


def schema(strict: bool = False) -> Schema:
    """The whole schema. ``strict``: unknown keys are an error."""
    lines = line_schemas(strict)
    return {
        "$schema": DRAFT,
        "title": "iopstui: one JSON line (--format jsonl), and documents in $defs",
        "$comment": f"schema {SCHEMA}; keys may be added, see docs/guide/data.md",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "$defs": {
            **lines,
            **{DOCUMENT + n: document for n, document in _documents(strict).items()},
        },
    }


def schema_text() -> str:
    """Return the schema as printed by `iopstui fields --format schema`."""
    return json.dumps(schema(), indent=1)


def _documents(strict: bool) -> dict[str, Schema]:
    """Schemas of `iopstui NAME --format json` and `iopstui report`."""
    texts = ("name", "title", "measures", "source", "look_at", "teaches", "path", "text")
    job = record({**dict.fromkeys(texts, TEXT), "writes": BOOLEAN, "run": or_null(TEXT)}, strict)
    field = record(dict.fromkeys(("id", "title", "unit", "source", "meaning"), TEXT), strict)
    version = {"const": 1}
    return {
        "devices": _devices(strict),
        "jobs": {"anyOf": [array(job), job]},
        "fields": record({"schema": {"const": SCHEMA}, "fields": array(field)}, strict),
        **{
            name: make(strict)
            for module in feature_modules("json_documents")
            for name, make in module.DOCUMENTS.items()
        },
        "report": record(
            {"report": version, "iopstui": TEXT, "recordings": array(_report())}, strict
        ),
    }


def _devices(strict: bool) -> Schema:
    devices = record({"schema": {"const": 1}, "devices": array(_device(strict))}, strict)
    rates = dict.fromkeys((row.name for row in PATH), NUMBER)
    nvme = {
        "namespace": of_type(NamespaceTopology, strict),
        "rates": keyed(record(rates, strict)),
        "drive": of_type(DriveFacts, strict),
    }
    # these keys exist only in `devices DEVICE`, for an NVMe drive, a zoned device, or a SATA or SAS
    # disk
    devices["properties"]["nvme"] = record(nvme, strict)
    devices["properties"]["zones"] = of_type(Zones, strict)
    devices["properties"]["smart"] = of_type(DiskHealth, strict)
    return devices


def _device(strict: bool) -> Schema:
    keys = of_dataclass(BlockDevice, strict)
    hctx = {**of_dataclass(Hctx, strict), "irqs": array(INTEGER)}
    keys["hctxs"] = array(record(hctx, strict))
    more = {
        "in_use": BOOLEAN, "in_use_by": array(TEXT),
        "rq_affinity_cannot_matter": or_null(TEXT),
    }  # fmt: skip
    return record({**keys, **more}, strict)


def overview_schema(strict: bool) -> Schema:
    """The overview at the top of a report."""
    return record({"state": or_null(TEXT), "reason": TEXT, "measured": TEXT,
                   "answer": or_null(TEXT), "compared": or_null(TEXT)}, strict)  # fmt: skip


def _report() -> Schema:
    """Schema of the report of one recording; its parts have the schemas of the lines above."""
    schema_: Schema = {"type": "object"}
    lists = ("answers", "devices", "experiments", "runs", "side_by_side", "findings", "marks",
             "changes", "notices")  # fmt: skip
    return record(
        {
            "file": TEXT, "overview": overview_schema(strict=False), "header": schema_,
            "duration_s": NUMBER, "samples": INTEGER, "incomplete": or_null(TEXT),
            **dict.fromkeys(lists, array(schema_)),
            "series": keyed(array(NUMBER)),
        },
        strict=False,
    )  # fmt: skip


# JSON Schema (draft 2020-12) for Python's types, as iopstui.output.jsonl.clean writes their values.
#
# ``strict`` schemas allow no further keys; the tests check the program against them. Users get open
# schemas: keys may be added (docs/guide/data.md).


Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
# a float that is not finite is written as null
NUMBER: Schema = {"type": ["number", "null"]}
ANYTHING: Schema = {}

_PLAIN: Mapping[Any, Schema] = {
    str: TEXT,
    bool: BOOLEAN,
    int: INTEGER,
    float: NUMBER,
    object: ANYTHING,
}


def or_null(schema: Schema) -> Schema:
    kind = schema.get("type")
    if kind is None:
        return schema if not schema else {"anyOf": [schema, {"type": "null"}]}
    kinds = kind if isinstance(kind, list) else [kind]
    return {**schema, "type": [*kinds, "null"] if "null" not in kinds else kinds}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def keyed(values: Schema) -> Schema:
    """An object whose keys are data, such as names of devices."""
    return {"type": "object", "additionalProperties": values}


def record(properties: Mapping[str, Schema], strict: bool) -> Schema:
    """An object that always has all these keys."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        **({"additionalProperties": False} if strict else {}),
    }


def of_dataclass(type_: Any, strict: bool) -> dict[str, Schema]:
    """The keys of a dataclass with their schemas."""
    hints = field_types(type_)
    return {field.name: of_type(hints[field.name], strict) for field in dataclasses.fields(type_)}


def of_type(hint: Any, strict: bool) -> Schema:
    """The schema of a type hint. Raises TypeError for an unknown type."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if dataclasses.is_dataclass(hint):
        return record(of_dataclass(hint, strict), strict)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        parts = [of_type(part, strict) for part in arguments if part is not type(None)]
        schema = parts[0] if len(parts) == 1 else {"anyOf": parts}
        return or_null(schema) if type(None) in arguments else schema
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return keyed(of_type(arguments[1], strict))
    if isinstance(origin, type) and issubclass(origin, (Sequence, frozenset)):
        return _of_sequence(arguments, strict)
    raise TypeError(f"no schema for {hint!r}")


def _of_sequence(arguments: Sequence[Any], strict: bool) -> Schema:
    if len(arguments) == 1 or arguments[1] is Ellipsis:
        return array(of_type(arguments[0], strict))
    parts = [of_type(part, strict) for part in arguments]
    return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}


# The schemas of JSON lines: the session, its events, the results of sweeps and comparisons, and a
# frame, whose schema is made from the tree of figures (model/metrics/frame_figures.py).


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
    # an item of a list, and a value under a key that is data, is never null
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
    """Schemas of every kind of line, by the value of its ``event``."""
    # the first line of one host's output, and of a fleet's
    sessions = [record({"event": {"const": "session"}, **_SESSION}, strict),
                _line("session", _MERGED_SESSION, strict)]  # fmt: skip
    schemas: dict[str, Schema] = {"session": {"anyOf": sessions}}
    for event_type in typing.get_args(Event):
        if event_type is not FrameReady:
            schemas[event_type.kind] = _line(event_type.kind, _event(event_type, strict), strict)
    schemas["frame"] = _object(EVENT, "", strict)
    for kind, keys in (_EXPERIMENTS | _MERGED | _SCALING).items():
        schemas[kind] = _line(kind, keys, strict)
    # the means of one host's points, and of a fleet's
    points = [_point(Point, strict), _point(HostPoint, strict)]
    schemas["point_finished"] = {
        "anyOf": [_line("point_finished", point, strict) for point in points]
    }
    of_mean = "job", "settings", "point", "little"
    means = [{"place": INTEGER, **{key: point[key] for key in of_mean}} for point in points]
    schemas["point_mean"] = {"anyOf": [_line("point_mean", mean, strict) for mean in means]}
    # a sweep's outcomes have the point's ``index``, those of a single run have its ``step``
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
    """A run of a sweep or a comparison; only the sweep has ``in_flight``."""
    own = dict.fromkeys(OF_HOSTS if of is HostPoint else (), NUMBER)
    figures = record({**own, **of_dataclass(of, strict)}, strict)
    figures["properties"]["in_flight"] = NUMBER
    keys = {**_event(PointFinished, strict), "point": figures}
    del keys["outcomes"]
    return keys
