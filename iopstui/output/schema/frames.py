"""The schema of a frame, from the registry of fields (model/metrics/fields.py)."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.model.metrics.fields import FIELDS, Field
from iopstui.model.metrics.paths import ANY
from iopstui.output.schema.notation import Schema, array, keyed, or_null, record

LISTS = {("flags",), ("jobs",), ("fio", "jobs"), ("device", "tasks"), ("device", "groups"),
         ("device", "slowest"),
         ("kernel", "cgroups"), ("kernel", "tcp")}  # fmt: skip
"""Whose ``*`` is a place in a list; any other is a key."""
TEXTS = {"host", "utc", "name", "bins_of", "comm", "cgroup", "disk", "direction", "rwbs", "kind",
         "server", "state"}  # fmt: skip
BOOLEANS = {"pinned", "stalled", "slow", "sampled"}
NEVER_NULL = {"event", "host", "seq", "step", "t", "wall_ms", "utc"}
"""What is never null."""
NEVER_NULL_CONTAINERS = {
    "layers",
    "others",
    "kernel",
    "flags",
    "jobs",
    "irqs",
    "cpus",
    "disks",
    "limits",
    "pressure",
    "matrix",
    "tasks",
    "groups",
    "slowest",
    "bins",
    "sizes",
}
"""Objects and lists that may be empty and are never null, where what they stand in is there."""


def frame_schema(strict: bool) -> Schema:
    """Schema of a frame event."""
    return _object((), FIELDS, strict)


def _object(path: tuple[str, ...], fields: Sequence[Field], strict: bool) -> Schema:
    """Schema of the object at ``path``, whose values are ``fields``."""
    depth = len(path)
    names = list(dict.fromkeys(field.path[depth] for field in fields))
    if names == [ANY]:
        values = _value((*path, ANY), fields, strict)
        return array(values) if path in LISTS else keyed(values)
    return record(
        {
            name: _value((*path, name), [f for f in fields if f.path[depth] == name], strict)
            for name in names
        },
        strict,
    )


def _value(path: tuple[str, ...], fields: Sequence[Field], strict: bool) -> Schema:
    if len(fields[0].path) == len(path):
        return _leaf(fields[0])
    object_ = _object(path, fields, strict)
    # what stands in a list, or under a key that is data, is there
    return object_ if path[-1] in (*NEVER_NULL_CONTAINERS, ANY) else or_null(object_)


def _leaf(field: Field) -> Schema:
    name = field.path[-1]
    description = f"{field.meaning.strip()} ({field.unit})" if field.unit else field.meaning.strip()
    if field.path == ("event",):
        return {"const": "frame", "description": description}
    text = name in TEXTS or field.path[0] == "flags"
    kind = "string" if text else "boolean" if name in BOOLEANS else "number"
    is_known = name in NEVER_NULL or field.path[-1] == ANY
    return {**({"type": kind} if is_known else or_null({"type": kind})), "description": description}
