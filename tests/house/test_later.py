"""Modules of the standard library that are read when something of them is first asked for."""

from __future__ import annotations

import subprocess
import sys


def said(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


BEGIN = "import sys; from iopstui.later import load_later; load_later('inspect', 'ipaddress'); "


def test_who_imports_it_reads_nothing() -> None:
    code = BEGIN + "import dataclasses, inspect, pathlib; print('dis' in sys.modules)"
    assert said(code) == "False"


def test_what_is_asked_of_it_is_there() -> None:
    code = BEGIN + (
        "import dataclasses, inspect; first = inspect; "
        "print(inspect.signature(len), inspect.isclass(int), end=' '); "
        "import inspect; print(inspect is not first, inspect.unwrap is first.unwrap)"
    )
    assert said(code) == "(obj, /) True True True"


def test_from_it_can_be_imported_as_ever() -> None:
    code = BEGIN + "from inspect import isclass; from ipaddress import ip_address as ip; "
    assert said(code + "print(isclass(int), ip('::1').version)") == "True 6"


def test_what_it_does_not_have_is_an_attribute_error() -> None:
    code = BEGIN + "import inspect; print(hasattr(inspect, 'no_such_thing'))"
    assert said(code) == "False"


def test_what_is_loaded_stays() -> None:
    assert said("import inspect, sys; before = inspect; " + BEGIN
                + "print(sys.modules['inspect'] is before)") == "True"  # fmt: skip
