"""Dataclasses as JSON arrays and back, by their type hints.

A recording names the fields of each array (``layouts``), so a recording of an older or newer
iopstui is read field by field: a missing field gets its default, an unknown one is skipped.
``Names`` are the names of dataclasses in the file, so renaming a class does not change the
format."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any

from iopstui.events import field_types

Coder = Callable[[Any], Any]
Layouts = Mapping[str, "list[str]"]
Names = Mapping[type, str]


MAX_COUNT = 1 << 64
MAX_FIGURE = 1e21
"""Larger than any counter of the kernel or fio (64 bits), and than any rate or mean of such
counters."""


class MalformedData(ValueError):
    """The data does not have the expected structure."""


class ImpossibleFigure(MalformedData):
    """An impossible figure: not a number, a fraction of a count, or too large."""


def unchanged(value: Any) -> Any:
    """The value itself, because JSON can represent it."""
    return value


def layouts(kinds: Iterable[type], names: Names) -> dict[str, list[str]]:
    """The fields of these dataclasses and of all classes within them, by their ``names``. Raises
    ``KeyError`` for a class without a name."""
    fields_by_name: dict[str, list[str]] = {}
    for kind in kinds:
        _collect(kind, names, fields_by_name)
    return fields_by_name


def _collect(kind: Any, names: Names, fields_by_name: dict[str, list[str]]) -> None:
    is_one = dataclasses.is_dataclass(kind) and isinstance(kind, type)
    if is_one and names[kind] not in fields_by_name:
        fields_by_name[names[kind]] = [field.name for field in dataclasses.fields(kind)]
        for hint in field_types(kind).values():
            _collect(hint, names, fields_by_name)
    for part in typing.get_args(kind):
        _collect(part, names, fields_by_name)


@cache
def encoder(kind: Any) -> Coder:
    """A function that converts values of this type to JSON-compatible data."""
    if kind in _PLAIN or kind in (object, Any):
        return unchanged
    if dataclasses.is_dataclass(kind):
        return _encoder_of_dataclass(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        part = encoder(_without_none(arguments))
        return (
            unchanged if part is unchanged else lambda value: None if value is None else part(value)
        )
    if origin in (tuple, frozenset):
        part = encoder(arguments[0])
        return list if part is unchanged else lambda value: [part(item) for item in value]
    if origin is not None and issubclass(origin, Mapping):
        part = encoder(arguments[1])
        if part is unchanged:
            return dict
        return lambda value: {key: part(item) for key, item in value.items()}
    raise TypeError(f"no coding for {kind}")


# type hints are text that must be compiled; they are the same for every recording
_hints = cache(field_types)


def _encoder_of_dataclass(kind: Any) -> Coder:
    hints = _hints(kind)
    parts = [(field.name, encoder(hints[field.name])) for field in dataclasses.fields(kind)]
    if len(parts) > 1 and all(part is unchanged for _, part in parts):
        # attrgetter is many times faster; its tuple becomes an array in JSON, too
        return attrgetter(*(name for name, _ in parts))
    return lambda value: [part(getattr(value, name)) for name, part in parts]


class Decoder:
    """Decodes JSON to dataclasses with the ``layouts`` of one recording. Raises ``MalformedData``.

    ``without``: fields that are skipped, by dataclass, with the values they get instead."""

    def __init__(
        self,
        layouts: Layouts,
        names: Names,
        without: Mapping[type, Mapping[str, Any]] | None = None,
    ) -> None:
        self._layouts = layouts
        self._names = names
        self._left_out = without or {}
        self._coders: dict[Any, Coder] = {}

    def __call__(self, kind: Any, value: Any) -> Any:
        return self.decoder_for(kind)(value)

    def decoder_for(self, kind: Any) -> Coder:
        coder = self._coders.get(kind)
        if coder is None:
            coder = self._coders[kind] = self._make(kind)
        return coder

    def _make(self, kind: Any) -> Coder:
        if kind in (object, Any):
            return unchanged
        if kind in _PLAIN:
            return _PLAIN[kind]
        if dataclasses.is_dataclass(kind):
            return self._dataclass(kind)
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in (types.UnionType, typing.Union):
            part = self.decoder_for(_without_none(arguments))
            return lambda value: None if value is None else part(value)
        if origin in (tuple, frozenset):
            return _sequence(origin, self.decoder_for(arguments[0]))
        if origin is not None and issubclass(origin, Mapping):
            return _mapping(arguments[0] is int, self.decoder_for(arguments[1]))
        raise TypeError(f"no coding for {kind}")

    def _dataclass(self, kind: Any) -> Coder:
        kind_name = self._names[kind]
        recorded_fields = self._layouts.get(kind_name)
        if recorded_fields is None:
            raise MalformedData(f"its layout of a {kind_name} is missing")
        hints = _hints(kind)
        fields = {field.name: field for field in dataclasses.fields(kind)}
        for name, field in fields.items():
            if name not in recorded_fields and _has_no_default(field):
                raise MalformedData(f"a {kind_name} has no {name}")
        left_out = self._left_out.get(kind, {})
        parts = [
            unchanged
            if name not in fields
            else _constant(left_out[name])
            if name in left_out
            else self.decoder_for(hints[name])
            for name in recorded_fields
        ]
        # JSON may repeat a name: the last value counts
        places = {name: n for n, name in enumerate(recorded_fields) if name in fields}
        return _record(kind, kind_name, parts, places)


def _constant(value: Any) -> Coder:
    return lambda _: value


def _record(kind: Any, kind_name: str, parts: list[Coder], places: Mapping[str, int]) -> Coder:
    """A function that makes a ``kind`` from a list of values, each decoded by its item of
    ``parts``."""
    count = len(parts)
    names = [field.name for field in dataclasses.fields(kind)]
    in_order = len(places) == count and [*places] == names[:count]

    def decode(value: Any) -> Any:
        if type(value) is not list or len(value) != count:
            raise MalformedData(f"not a {kind_name}")
        values = [part(item) for part, item in zip(parts, value, strict=True)]
        if in_order:
            return kind(*values)
        return kind(**{name: values[place] for name, place in places.items()})

    return decode


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _without_none(arguments: tuple[Any, ...]) -> Any:
    rest = [argument for argument in arguments if argument is not type(None)]
    if len(rest) != 1:
        raise TypeError(f"unsupported union type {arguments}")
    return rest[0]


def _sequence(origin: Any, part: Coder) -> Coder:
    def decode(value: Any) -> Any:
        if type(value) is not list:
            raise MalformedData("not a list")
        return origin([part(item) for item in value])

    return decode


def _mapping(whole_keys: bool, part: Coder) -> Coder:
    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise MalformedData("not an object")
        keys = map(_KEYS.__getitem__, value) if whole_keys else value
        if part is _checked_count and _are_whole(value.values()):
            return dict(zip(keys, value.values(), strict=True))
        return {key: part(item) for key, item in zip(keys, value.values(), strict=True)}

    return decode


class _Keys(dict[str, int]):
    """Cache of whole numbers by their text, because CPUs and histogram bins recur in every
    sample."""

    def __missing__(self, key: str) -> int:
        number: int = _checked_count(int(key))
        # bounded, because a damaged file may have any keys
        if len(self) < MAX_KEYS:
            self[key] = number
        return number


MAX_KEYS = 4096
_KEYS = _Keys()


def _are_whole(values: Collection[Any]) -> bool:
    """Whether ``_checked_count`` accepts all values; False if there are none."""
    return set(map(type, values)) == {int} and min(values) > -MAX_COUNT and max(values) < MAX_COUNT


def _checked_count(value: Any) -> Any:
    if type(value) is not int or not -MAX_COUNT < value < MAX_COUNT:
        raise ImpossibleFigure(f"{_shortened(value)} is not a count")
    return value


def _number(value: Any) -> Any:
    # keep int and float apart, as JSON does (1 and 1.0)
    if type(value) is not int and type(value) is not float:
        raise ImpossibleFigure(f"{_shortened(value)} is not a number")
    if not -MAX_FIGURE < value < MAX_FIGURE:
        raise ImpossibleFigure(f"{_shortened(value)} is beyond all that can be measured")
    return value


def _shortened(value: Any) -> str:
    # Python refuses to convert a whole number of thousands of digits to text
    if type(value) is int and abs(value) >= MAX_COUNT:
        return "a number beyond 2^64"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}~"


def _text(value: Any) -> Any:
    if type(value) is not str:
        raise MalformedData("not a text")
    return value


def _checked_bool(value: Any) -> Any:
    if type(value) is not bool:
        raise MalformedData("not a truth value")
    return value


_PLAIN: dict[Any, Coder] = {int: _checked_count, float: _number, str: _text, bool: _checked_bool}
