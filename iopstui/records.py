"""Dataclasses that cost little to define: ``dataclass`` as in the standard library.

The standard one writes source text for up to seven methods of each class and compiles it whenever
the program starts, which took longer for 130 classes than reading all of their files. Here methods
that need no source text are shared functions, and ``__init__`` is compiled once a class has more
objects than a few.
Fields are found without the standard library where all annotations are text: its own look at each
of them was two thirds of what was left.
``fields``, ``replace``, ``asdict`` and ``is_dataclass`` work as on any dataclass, messages too.
"""

from __future__ import annotations

import abc
import dataclasses
import importlib
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING or sys.version_info >= (3, 15):
    # what is not tried yet is as it always was
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False):
        """As ``dataclasses.dataclass``: with ``eq`` and ``repr``, without ``order``."""

        def make(cls):
            return _with_methods(cls, frozen, slots, kw_only)

        return make if cls is None else make(cls)


def type_hints(cls: type) -> dict[str, Any]:
    """As ``typing.get_type_hints``. A module whose classes have fields of types that it does not
    import names those in ``LATER``, with the module that has them: here they are imported."""
    for one in cls.__mro__:
        known = vars(sys.modules[one.__module__])
        for name, where in known.get("LATER", {}).items():
            known.setdefault(name, getattr(importlib.import_module(where), name))
    return get_type_hints(cls)


_FROM_FACTORY = object()
_CLASS_VARIABLE = ("ClassVar", "typing.ClassVar")
_Method = Callable[..., Any]


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Model:
    """What the standard library makes, to take from it what it calls a field."""

    one: int


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _FrozenModel:
    """The parameters of one that is frozen."""


_NORMAL = _Model.__dataclass_fields__["one"]._field_type  # type: ignore[attr-defined]
_PARAMS: dict[bool, Any] = {
    False: _Model.__dict__["__dataclass_params__"],
    True: _FrozenModel.__dict__["__dataclass_params__"],
}
# set here, because the standard library would compile methods for it
_PARAMS[True].frozen = True


def _with_methods(cls: Any, frozen: bool, slots: bool, kw_only: bool) -> Any:
    fields = _fields(cls, kw_only)
    if fields is None:
        made = _by_the_standard(cls, frozen, slots, kw_only)
        for name, method in _methods(dataclasses.fields(made), frozen, slots, made, [made]).items():
            setattr(made, name, method)
        return made
    real = [one for one in fields.values() if one._field_type is _NORMAL]
    mine: dict[str, Any] = {
        "__dataclass_fields__": fields,
        "__dataclass_params__": _PARAMS[frozen],
        "__match_args__": tuple(one.name for one in real if one.init and not one.kw_only),
    }
    owner: list[Any] = []
    methods = _methods(real, frozen, slots, cls, owner)
    # a class that is made anew for its slots is given all at once: setting is dearer
    made = _slotted(cls, real, mine, methods) if slots else _given(cls, mine, methods)
    owner.append(made)
    abc.update_abstractmethods(made)
    return made


def _methods(
    fields: Sequence[Any], frozen: bool, slots: bool, cls: Any, owner: list[Any]
) -> dict[str, _Method | None]:
    """Those that ``cls`` has not written itself. ``owner`` has to get the class that they are for,
    which may be made with them."""
    values = _values_of(tuple(one.name for one in fields if one.compare))
    methods: dict[str, _Method | None] = {
        "__init__": _init(owner, frozen), "__repr__": _repr, "__eq__": _eq(values),
        "__hash__": _hash(values) if frozen else None,
    }  # fmt: skip
    if frozen:
        methods |= {"__setattr__": _no_assignment, "__delattr__": _no_deletion}
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
    written = cls.__dict__
    return {name: one for name, one in methods.items() if written.get(name) is None}


def _fields(cls: Any, kw_only: bool) -> dict[str, Any] | None:
    """Its fields by name, those of the classes above first; ``None`` if the standard library has to
    look for them: annotations that are no text, or something else than a field and a ClassVar."""
    found: dict[str, Any] = {}
    for above in cls.__mro__[-1:0:-1]:
        found.update(above.__dict__.get("__dataclass_fields__", ()))
    written = cls.__dict__
    for name, text in written.get("__annotations__", {}).items():
        if not isinstance(text, str) or "InitVar" in text or "KW_ONLY" in text:
            return None
        if text.startswith(_CLASS_VARIABLE):
            continue
        given = written.get(name, dataclasses.MISSING)
        if given is dataclasses.MISSING and hasattr(cls, name):
            return None  # the default is that of a class above
        one: Any = (
            given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
        )
        if one.default.__class__.__hash__ is None:
            return None  # refused in the standard library's words
        one.name, one.type, one._field_type = name, text, _NORMAL
        if one.kw_only is dataclasses.MISSING:
            one.kw_only = kw_only
        found[name] = one
    return found


def _given(cls: Any, mine: dict[str, Any], methods: dict[str, _Method | None]) -> Any:
    """The class itself, with the defaults of fields in place of what says more of them."""
    for name, one in mine["__dataclass_fields__"].items():
        if isinstance(cls.__dict__.get(name), dataclasses.Field):
            if one.default is dataclasses.MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, one.default)
    for name, value in mine.items():
        if name != "__match_args__" or name not in cls.__dict__:
            setattr(cls, name, value)
    for name, method in methods.items():
        setattr(cls, name, method)
    return cls


def _slotted(
    cls: Any, real: list[Any], mine: dict[str, Any], methods: dict[str, _Method | None]
) -> Any:
    """The class anew, with slots for the fields that no class above has one for."""
    written = dict(cls.__dict__)
    if "__slots__" in written:
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    above = {slot for one in cls.__mro__[1:-1] for slot in one.__dict__.get("__slots__", ())}
    names = [one.name for one in real]
    for name in (*names, "__dict__", "__weakref__"):
        written.pop(name, None)
    slots = tuple(name for name in names if name not in above)
    whole = {**mine, **written, **methods, "__slots__": slots}
    made = type(cls)(cls.__name__, cls.__bases__, whole)
    made.__qualname__ = cls.__qualname__
    return made


def _by_the_standard(cls: Any, frozen: bool, slots: bool, kw_only: bool) -> Any:
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


def _init(owner: list[Any], frozen: bool) -> _Method:
    """For the first few objects; more than those of most classes are never made."""
    plain: Callable[..., bool] | None = None
    left = _FEW_OBJECTS

    def __init__(self: Any, /, *arguments: Any, **named: Any) -> None:
        nonlocal left, plain
        left -= 1
        cls = owner[0]
        plain = plain or _plain_init(cls)
        if left < 0 or not plain(self, arguments, named):
            cls.__init__ = _compiled_init(cls, frozen)
            cls.__init__(self, *arguments, **named)

    return __init__


# Compiling costs as much as forty objects without it; but what is made once a second would be dear
# for so long, while everybody looks.
_FEW_OBJECTS = 4


def _plain_init(cls: Any) -> Callable[..., bool]:
    """Makes an object without compiling anything. False for arguments that don't fit, with nothing
    done: the compiled one refuses them in Python's words."""
    fields = dataclasses.fields(cls)
    positional = tuple(one.name for one in fields if one.init and not one.kw_only)
    names = {one.name for one in fields if one.init}
    missing = dataclasses.MISSING
    steps = [
        (one.name, one.default, one.default_factory)
        for one in fields
        if one.init or one.default is not missing or one.default_factory is not missing
    ]
    needed = {name for name, default, factory in steps if default is factory}
    finishes = hasattr(cls, "__post_init__")

    def plain(self: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
        given = dict(zip(positional, arguments))  # noqa: B905  # too many are told by their number
        given.update(named)
        if len(given) != len(arguments) + len(named) or not needed <= given.keys() <= names:
            return False
        for name, default, factory in steps:
            absent = name not in given
            made = factory() if absent and factory is not missing else default
            _set(self, name, made if absent else given[name])
        if finishes:
            self.__post_init__()
        return True

    return plain


_set = object.__setattr__


def _compiled_init(cls: Any, frozen: bool) -> _Method:
    known: dict[str, Any] = {"_FACTORY": _FROM_FACTORY, "_set": _set}
    positional: list[str] = ["self"]
    named: list[str] = []
    values: dict[str, str] = {}
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
        values[name] = value
    body = _assignments(cls, values, frozen, known)
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(body), known)
    made: _Method = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


_FEW = 4


def _assignments(
    cls: Any, values: dict[str, str], frozen: bool, known: dict[str, Any]
) -> list[str]:
    """Lines that give the fields their values. To many of one that is frozen in less than half the
    time: a new object is one of a class with the same slots that is not frozen until it has them.
    """
    plain = [f"self.{name}={value}" for name, value in values.items()] or ["pass"]
    if not frozen:
        return plain
    slots = cls.__dict__.get("__slots__")
    short = len(values) < _FEW or hasattr(cls, "__post_init__")
    if short or slots is None or cls.__bases__ != (object,):
        return [f"_set(self,{name!r},{value})" for name, value in values.items()] or ["pass"]
    known["_own"], known["_open"] = cls, type(cls.__name__, (), {"__slots__": slots})
    known["_FIELDS"] = tuple(values)
    return [
        "if self.__class__ is _own:",
        *(f" {line}" for line in ("_set(self,'__class__',_open)", *plain, "self.__class__=_own")),
        "else:",
        # one of a class below; in short, as all of this is compiled while somebody waits
        f" for _PAIR in zip(_FIELDS,({','.join(values.values())})): _set(self,*_PAIR)",
    ]


# one for all classes: making one for each took as long as their other methods together
@recursive_repr()
def _repr(self: Any) -> str:
    shown = [one.name for one in dataclasses.fields(self) if one.repr]
    words = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({words})"


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


def _no_assignment(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
