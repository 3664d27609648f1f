"""A small validator for JSON Schema, for the keywords that iopstui's own schema uses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from iopstui.output.schema import schema

NOTES = {"$schema", "$comment", "$defs", "title", "description"}
TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
}  # fmt: skip


@lru_cache
def strict() -> dict[str, Any]:
    """The program's own schema, which also forbids unknown keys."""
    return schema(strict=True)


def check_line(row: dict[str, Any]) -> None:
    """Check that a JSON line matches the schema of its event."""
    assert row["event"] in strict()["$defs"], row["event"]
    check(row, row["event"])


def check(value: Any, name: str) -> None:
    """Check that ``value`` matches the schema's definition ``name``."""
    wrong = list(errors(value, strict()["$defs"][name], strict(), name))
    assert not wrong, wrong[:5]


def errors(value: Any, rule: dict[str, Any], root: dict[str, Any], at: str = "") -> Iterator[str]:
    """Each mismatch: where it is, and why."""
    for word, said in rule.items():
        if word in NOTES:
            continue
        match word:
            case "$ref":
                yield from errors(value, root["$defs"][said.removeprefix("#/$defs/")], root, at)
            case "anyOf":
                if not any(not list(errors(value, one, root, at)) for one in said):
                    yield f"{at}: none of {len(said)}"
            case "const":
                if value != said:
                    yield f"{at}: {value!r} is not {said!r}"
            case "type":
                if not any(
                    _is(value, kind) for kind in ([said] if isinstance(said, str) else said)
                ):
                    yield f"{at}: {value!r} is no {said}"
            case "minItems" if isinstance(value, list) and len(value) < said:
                yield f"{at}: less than {said} items"
            case "maxItems" if isinstance(value, list) and len(value) > said:
                yield f"{at}: more than {said} items"
            case "minItems" | "maxItems":
                continue
            case _:
                yield from _inside(word, value, rule, root, at)


def _inside(
    word: str, value: Any, rule: dict[str, Any], root: dict[str, Any], at: str
) -> Iterator[str]:
    said = rule[word]
    match word:
        case "required" if isinstance(value, dict):
            yield from (f"{at}: no {key}" for key in said if key not in value)
        case "properties" if isinstance(value, dict):
            for key in said.keys() & value.keys():
                yield from errors(value[key], said[key], root, f"{at}.{key}")
        case "additionalProperties" if isinstance(value, dict):
            for key in value.keys() - rule.get("properties", {}).keys():
                if said is False:
                    yield f"{at}: {key} is not known"
                else:
                    yield from errors(value[key], said, root, f"{at}.{key}")
        case "items" if isinstance(value, list):
            for number, one in enumerate(value):
                yield from errors(one, said, root, f"{at}[{number}]")
        case "prefixItems" if isinstance(value, list):
            for number, (one, part) in enumerate(zip(value, said, strict=False)):
                yield from errors(one, part, root, f"{at}[{number}]")
        case "required" | "properties" | "additionalProperties" | "items" | "prefixItems":
            return
        case _:
            raise NotImplementedError(word)


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (whole or kind == "number")
    return isinstance(value, TYPES[kind])
