"""The subset of TOML for settings gives the same values as a full TOML parser."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.cli.config import Entry, Value, parse

RIGHT = {
    'a = "x"': "x", "a='x\\n'": "x\\n", 'a = ""': "", 'a = "x # y" # z': "x # y", "a = 4": 4,
    "a=-1_000": -1000, "a = 0.25": 0.25, "a = 1e3": 1000.0, "a = true": True,
    "a = false # no": False, '"a" = 1': 1, "'a' = 1": 1,
    '\ta\t=\t"\\t\\"\\u00b5\\\\"\r': '\t"µ\\', "a = +0": 0,
}  # fmt: skip
WRONG = (
    "a", "a =", "= 1", "a = 4g", "a = x", 'a = "x', "a = 'x", 'a = """x"""', "a = '''x'''",
    "a = [1]", "a = {b = 1}", "a.b = 1", "a = 1 2", 'a = "x" y', "a = 01", "a = 1.", "a = .5",
    "a = 0x1f", "a = 1__0", "a = truely", 'a = "\\q"', 'a = "\\ud800"', "a = 1979-05-27", "a b = 1",
    "a = 1:2", 'a = "\x01"',
)  # fmt: skip


@pytest.mark.parametrize("text", RIGHT)
def test_valid_lines_are_parsed(text: str) -> None:
    [entry] = parse(text)
    assert entry == Entry(1, "a", RIGHT[text]) and type(entry.value) is type(RIGHT[text])


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_line_has_a_reason_and_other_lines_are_read(text: str) -> None:
    wrong, right = parse(f"{text}\nb = 1")
    assert wrong.problem and wrong.value is None and wrong.line == 1
    assert right == Entry(2, "b", 1)


@given(st.text())
def test_any_text_is_parsed_without_an_exception(text: str) -> None:
    for entry in parse(text):
        assert (entry.value is None) == bool(entry.problem)


# Python 3.11 has a TOML parser
if sys.version_info >= (3, 11):
    import tomllib

    @given(st.text(alphabet="ab=\"'\\ #tuf0123456789._-+e\t"))
    def test_values_equal_those_of_tomllib(text: str) -> None:
        [entry] = parse(f"a = {text}")
        if not entry.problem:
            value: Value | None = entry.value
            assert tomllib.loads(f"a = {text}") == {"a": value}
