"""The schema of a frame, from the tree of its figures (model/metrics/frame_figures.py)."""

from __future__ import annotations

from iopstui.model.figures.figure import BY_KEY, IN_LIST, Figure, Rows
from iopstui.model.metrics.frame_figures import EVENT
from iopstui.output.schema.notation import Schema, array, keyed, or_null, record


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
