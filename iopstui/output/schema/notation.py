"""JSON Schema (draft 2020-12) of Python's types, as iopstui.output.jsonl.clean writes their values.

``strict`` schemas know no further keys, which is what the tests hold the program to. What users get
is open: keys may be added (docs/guide/data.md).
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from iopstui.events import field_types

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
# a float that is no number any more is written as null
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
    """Allow null, too."""
    kind = schema.get("type")
    if kind is None:
        return schema if not schema else {"anyOf": [schema, {"type": "null"}]}
    kinds = kind if isinstance(kind, list) else [kind]
    return {**schema, "type": [*kinds, "null"] if "null" not in kinds else kinds}


def array(items: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": items}


def keyed(values: Schema) -> Schema:
    """An object whose keys are data."""
    return {"type": "object", "additionalProperties": values}


def record(properties: Mapping[str, Schema], strict: bool) -> Schema:
    """An object that always has all of these keys."""
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
