"""Parse the TOML subset for settings: ``key = value`` with strings, numbers, true and false.

Python has a reader of TOML of its own from 3.11 on only, and one for whole documents stops at the
first mistake: here a wrong line is reported and the others count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Value = str | int | float | bool

_KEY = re.compile(
    r"""(?: "([^"\\]*)" | '([^']*)' | ([A-Za-z0-9_-]+) ) [ \t]* = [ \t]* (.*)""", re.X
)
_BASIC = re.compile(r'"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\x00-\x08\x0a-\x1f\x7f]*)'")
_INTEGER = re.compile(r"[+-]?(?:0|[1-9](?:_?[0-9])*)(?![\w.])")
_FLOAT = re.compile(
    r"[+-]?(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9]+)?(?![\w.])"
)
_BOOLEAN = re.compile(r"(?:true|false)(?!\w)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of a line. ``problem`` is the reason if it is invalid, in words; then
    ``value`` is None."""

    line: int
    key: str
    value: Value | None
    problem: str = ""


def parse(text: str) -> list[Entry]:
    """The entries of all lines with content, valid or not, in order; line numbers start at 1."""
    entries: list[Entry] = []
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip(" \t\r")
        if content.startswith("["):
            return [*entries, Entry(number, "", None, "tables ([...]) are not supported; "
                                                      "everything after one is "
                                                      "ignored")]  # fmt: skip
        if content and not content.startswith("#"):
            entries.append(_entry(number, content))
    return entries


def _entry(number: int, content: str) -> Entry:
    match = _KEY.fullmatch(content)
    if match is None:
        return Entry(number, "", None, 'expected  key = "text"  or  key = number')
    key = next(group for group in match.groups()[:3] if group is not None)
    try:
        return Entry(number, key, _value(match[4]))
    except ValueError as error:
        return Entry(number, key, None, str(error))


def _value(text: str) -> Value:
    """Parse a value; ValueError with the reason if it is invalid."""
    for pattern, meaning in (
        (_BASIC, lambda match: _unescape(match[1])), (_LITERAL, lambda match: match[1]),
        (_BOOLEAN, lambda match: match[0] == "true"), (_INTEGER, lambda match: int(match[0])),
        (_FLOAT, lambda match: float(match[0])),
    ):  # fmt: skip
        match = pattern.match(text)
        if match is None or text.startswith(('"""', "'''")):
            continue
        rest = text[match.end() :].strip(" \t")
        if rest and not rest.startswith("#"):
            raise ValueError(f"unexpected text after the value: {rest!r}")
        value: Value = meaning(match)
        return value
    raise ValueError('the value must be a number or a text in quotes ("...", on one line)')


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: _character(match[1]), text)


def _character(escape: str) -> str:
    if escape in _ESCAPED:
        return _ESCAPED[escape]
    code = int(escape[1:], 16) if len(escape) > 1 else -1
    if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        raise ValueError(f"\\{escape} is not a known escape")
    return chr(code)
