"""Dataclasses that cost little to define: ``dataclass`` as in the standard library.

The standard one writes source text for up to seven methods of each class and compiles it whenever
the program starts, which took longer for 130 classes than reading all of their files. Here methods
that need no source text are shared functions, and ``__init__`` is made when the first object is.
``fields``, ``replace``, ``asdict`` and ``is_dataclass`` work as on any dataclass, messages too.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 14):
    # what is not tried yet is as it always was
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False):
        """As ``dataclasses.dataclass``: with ``eq`` and ``repr``, without ``order``."""

        def make(cls):
            return _with_methods(cls, frozen, slots, kw_only)

        return make if cls is None else make(cls)


_FROM_FACTORY = object()
_Method = Callable[..., Any]


def _with_methods(cls: Any, frozen: bool, slots: bool, kw_only: bool) -> Any:
    made = _defined(cls, frozen, slots, kw_only)
    names = tuple(one.name for one in dataclasses.fields(made))
    values = _values_of(tuple(one.name for one in dataclasses.fields(made) if one.compare))
    methods: dict[str, _Method | None] = {
        "__init__": _init(made, frozen), "__repr__": _repr(made), "__eq__": _eq(values),
        "__hash__": _hash(values) if frozen else None,
    }  # fmt: skip
    if frozen:
        methods |= {"__setattr__": _refuse("assign to"), "__delattr__": _refuse("delete")}
        if slots:
            methods["__getstate__"] = lambda self: [getattr(self, name) for name in names]
            methods["__setstate__"] = _set_state(names)
    written = {name for name, value in cls.__dict__.items() if value is not None}
    for name, method in methods.items():
        if name not in written:
            if method is not None:
                method.__qualname__ = f"{made.__qualname__}.{name}"
            setattr(made, name, method)
    return made


def _defined(cls: Any, frozen: bool, slots: bool, kw_only: bool) -> Any:
    """The class with its fields, and slots, but without methods. For the standard library none is
    frozen meanwhile: that would make it compile the methods that keep it so."""
    above = [base.__dict__.get("__dataclass_params__") for base in cls.__mro__[1:]]
    was_frozen = [params for params in above if params is not None and params.frozen]
    for params in was_frozen:
        params.frozen = False
    try:
        made: Any = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
        )(cls)
    finally:
        for params in was_frozen:
            params.frozen = True
    made.__dataclass_params__.frozen = frozen
    return made


def _values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _init(cls: Any, frozen: bool) -> _Method:
    def __init__(self: Any, /, *arguments: Any, **named: Any) -> None:
        cls.__init__ = _compiled_init(cls, frozen)
        cls.__init__(self, *arguments, **named)

    return __init__


def _compiled_init(cls: Any, frozen: bool) -> _Method:
    known: dict[str, Any] = {"_FACTORY": _FROM_FACTORY, "_set": object.__setattr__}
    positional, body = ["self"], ["pass"]
    named: list[str] = []
    for one in dataclasses.fields(cls):
        name, parameter, value = one.name, one.name, one.name
        if one.default is not dataclasses.MISSING:
            known[f"_d_{name}"] = one.default
            parameter += f"=_d_{name}"
            value = name if one.init else f"_d_{name}"
        elif one.default_factory is not dataclasses.MISSING:
            known[f"_f_{name}"] = one.default_factory
            parameter += "=_FACTORY"
            value = f"(_f_{name}() if {name} is _FACTORY else {name})"
            value = value if one.init else f"_f_{name}()"
        elif not one.init:
            continue
        if one.init:
            (named if one.kw_only else positional).append(parameter)
        body.append(f"_set(self,{name!r},{value})" if frozen else f"self.{name}={value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(body), known)
    made: _Method = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _repr(cls: Any) -> _Method:
    shown = [one.name for one in dataclasses.fields(cls) if one.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        words = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({words})"

    return __repr__


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> _Method:
    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> _Method:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _refuse(what: str) -> _Method:
    def refuse(self: Any, name: str, value: Any = None) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")

    return refuse


def _set_state(names: tuple[str, ...]) -> _Method:
    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return __setstate__
