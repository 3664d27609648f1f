from __future__ import annotations

from collections.abc import Callable

import pytest

from iopstui.model.lazy_dict import LazyDict

WHOLE = {3: "c", 1: "a"}


@pytest.mark.parametrize(
    "ask",
    [dict, list, len, repr, bool, lambda x: x == WHOLE, lambda x: x == WHOLE, lambda x: x[3],
     lambda x: 1 in x, lambda x: x.get(7), lambda x: list(x.keys()), lambda x: list(x.items()),
     lambda x: list(x.values()), lambda x: {**x}, lambda x: {3} & x.keys()],
)  # fmt: skip
@pytest.mark.parametrize("keys_of", [None, lambda: (3, 1), lambda: None])
def test_it_answers_as_the_dictionary_does(
    ask: Callable[[object], object], keys_of: Callable[[], tuple[int, ...] | None] | None
) -> None:
    made: list[int] = []
    later = LazyDict(lambda: made.append(1) or dict(WHOLE), keys_of)  # type: ignore[func-returns-value]
    for _ in range(2):
        assert ask(later) == ask(WHOLE)
    assert later.full() is later.full() and len(made) == 1


def test_keys_are_told_without_making_it() -> None:
    def make() -> dict[int, int]:
        raise AssertionError

    later = LazyDict(make, lambda: (5, 4))
    assert (list(later), len(later), bool(later)) == ([5, 4], 2, True)
