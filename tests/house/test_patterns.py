"""Patterns that are compiled late are right all the same."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

import iopstui
from iopstui import patterns
from iopstui.patterns import pattern


def named(value: object) -> Iterator[patterns._Later]:
    if isinstance(value, patterns._Later):
        yield value
    for one in value if isinstance(value, tuple) else ():
        yield from named(one)


def test_each_can_be_compiled() -> None:
    modules = [one.name for one in pkgutil.walk_packages(iopstui.__path__, "iopstui.")]
    names = {name for name in modules if not name.endswith(("__main__", "_exec"))}
    found = [
        one
        for name in sorted(names)
        for value in vars(importlib.import_module(name)).values()
        for one in named(value)
    ]
    assert len(found) > 50
    for one in found:
        assert re.compile(*one._given)


def test_it_does_what_a_compiled_one_does_and_says_what_is_wrong_with_it() -> None:
    digits = pattern(r"([0-9]+)", re.ASCII)
    found = digits.search("a12b")
    assert found is not None and found[1] == "12" and digits.sub("-", "a1b2") == "a-b-"
    assert digits.pattern == r"([0-9]+)"
    with pytest.raises(re.error):
        pattern("(").match("")
