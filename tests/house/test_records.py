"""The program's dataclasses behave as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from iopstui import records

Decorator = Callable[..., Any]


def plain(dataclass: Decorator) -> type:
    @dataclass
    class Plain:
        a: int
        b: list[int] = dataclasses.field(default_factory=list)
        c: str = "c"

    return Plain


def frozen(dataclass: Decorator) -> type:
    @dataclass(frozen=True, slots=True)
    class Frozen:
        kind: ClassVar[str] = "frozen"
        a: int
        b: tuple[int, ...] = ()
        c: dict[str, int] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    return Frozen


def below(dataclass: Decorator) -> type:
    @dataclass(frozen=True, slots=True)
    class Above:
        a: int

    @dataclass(frozen=True, slots=True)
    class Below(Above):
        b: int = 2

        def twice(self) -> int:
            return 2 * self.b

    return Below


def by_name(dataclass: Decorator) -> type:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class ByName:
        a: int
        b: int = 3

    return ByName


def finished(dataclass: Decorator) -> type:
    @dataclass(slots=True)
    class Finished:
        a: int
        total: int = dataclasses.field(init=False)
        seen: list[int] = dataclasses.field(init=False, default_factory=list)

        def __post_init__(self) -> None:
            self.total = self.a + 1

    return Finished


def own(dataclass: Decorator) -> type:
    @dataclass(frozen=True)
    class Own:
        a: int = 1

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    return Own


def empty(dataclass: Decorator) -> type:
    @dataclass(frozen=True, slots=True)
    class Empty:
        pass

    return Empty


ASKED: tuple[Callable[[Any], object], ...] = (
    lambda cls: repr(cls(1)),
    lambda cls: repr(cls(a=1)),
    lambda cls: repr(cls()),
    lambda cls: repr(cls(1, 2)),
    lambda cls: cls(1, 2, 3, 4),
    lambda cls: cls(nothing=1),
    lambda cls: cls(1, a=1),
    lambda cls: cls(1, 2, nothing=1),
    lambda cls: [repr(cls(a=n)) for n in range(3)],
    lambda cls: (cls(a=1) == cls(a=1), cls(a=1) == cls(a=2), cls(a=1) == 1),
    lambda cls: hash(cls(a=1)) == hash(cls(a=1)),
    lambda cls: hash(cls()) == hash(cls()),
    lambda cls: hash(cls(a=1, b=(), c={})) == hash(cls(a=1, b=(), c={"x": 1})),
    lambda cls: cls(a=1, c={}) == cls(a=1, c={"x": 1}),
    lambda cls: repr(dataclasses.replace(cls(a=1), a=5)),
    lambda cls: repr(dataclasses.replace(cls(a=1), total=5)),
    lambda cls: dataclasses.asdict(cls(a=1)),
    lambda cls: [(one.name, one.init, one.kw_only) for one in dataclasses.fields(cls)],
    lambda cls: (cls.__match_args__, cls.__dataclass_params__.frozen, hasattr(cls, "__slots__")),
    lambda cls: cls(a=1).b is cls(a=1).b,
    lambda cls: setattr(cls(a=1), "a", 2),
    lambda cls: delattr(cls(a=1), "a"),
    lambda cls: repr(copy.copy(cls(a=1))),
    lambda cls: cls(a=1).twice(),
    lambda cls: cls(a=1).total,
)


def answer(ask: Callable[[Any], object], cls: Any) -> object:
    try:
        return ask(cls)
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("few", [0, 1, 1000], ids=["compiled", "second", "plain"])
@pytest.mark.parametrize("make", [plain, frozen, below, by_name, finished, own, empty])
def test_what_is_asked_of_it_is_answered_as_by_the_standard_one(
    monkeypatch: pytest.MonkeyPatch, make: Any, few: int
) -> None:
    monkeypatch.setattr(records, "_FEW_OBJECTS", few)
    for ask in ASKED:
        standard, ours = make(dataclasses.dataclass), make(records.dataclass)
        assert answer(ask, ours) == answer(ask, standard)


@pytest.mark.skipif(
    records.dataclass is dataclasses.dataclass, reason="later Pythons have their own"
)
def test_only_a_class_of_many_objects_has_anything_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    really = records._compiled_init  # type: ignore[attr-defined]
    monkeypatch.setattr(
        records,
        "_compiled_init",
        lambda cls, frozen: (compiled.append(cls.__name__), really(cls, frozen))[1],
    )
    made = frozen(records.dataclass)
    few = records._FEW_OBJECTS  # type: ignore[attr-defined]
    before = [made(n, c={"n": n}) for n in range(few)]
    assert compiled == []
    after = [made(n, c={"n": n}) for n in range(few)]
    assert compiled == ["Frozen"]
    assert before == after
    assert [one.c for one in before] == [one.c for one in after]


def test_a_standard_one_may_inherit_from_it_and_it_from_a_standard_one() -> None:
    @records.dataclass(frozen=True)
    class First:
        a: int

    @dataclasses.dataclass(frozen=True)
    class Second(First):
        b: int

    @records.dataclass(frozen=True)
    class Third(Second):
        c: int

    assert [one.name for one in dataclasses.fields(Third)] == ["a", "b", "c"]
    assert Third(1, 2, 3) == Third(1, 2, 3) != Third(1, 2, 4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Third(1, 2, 3).c = 4  # type: ignore[misc]


@records.dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: str = "b"


def test_it_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1)


def test_one_that_holds_itself_can_be_shown() -> None:
    @records.dataclass
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    assert "..." in repr(node)


def test_types_that_a_module_imports_later_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """events.py names where Plan and Point are, and does not import them."""
    monkeypatch.setitem(globals(), "LATER", {"Fraction": "fractions"})

    @records.dataclass(frozen=True)
    class Later:
        share: Fraction  # type: ignore[name-defined]  # noqa: F821

    assert records.type_hints(Later) == {"share": importlib.import_module("fractions").Fraction}


def test_what_is_no_text_is_left_to_the_standard_one() -> None:
    """As in a module without ``from __future__ import annotations``."""

    def base(dataclass: Decorator) -> type:
        return dataclass(type("Base", (), {"__annotations__": {"a": int, "b": str}, "b": "x"}))  # type: ignore[no-any-return]

    ours, standard = base(records.dataclass), base(dataclasses.dataclass)
    assert repr(ours(1)) == repr(standard(1)) and ours(1) == ours(1, "x")
    with pytest.raises(ValueError, match="mutable default"):
        records.dataclass(type("Base", (), {"__annotations__": {"a": "list[int]"}, "a": []}))
