"""Make text from devices, job files or fio safe to print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import PurePath

# the space between a figure and its unit
_TIE = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|[KMGT]iB|IOPS|points?|times)(?!\w))")
# the space between an option and its value, which are copied together
_OPTION = re.compile(r"(--[a-z][a-z-]*) (?=[\d/'])")
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
# control characters except tabs and line ends, bidirectional marks, line separators, half surrogate
# pairs, invisible tags
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def safe_text(text: str) -> str:
    """``text`` with ``?`` in place of characters that could mislead a terminal, a page or a file.

    Line ends and tabs stay. Every text from another machine, program or file passes through here
    once."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub("?", text.replace("\r\n", "\n"))


def printable(text: str | PurePath) -> str:
    """``text`` as one line, without anything that a terminal would act on. Each run of white space
    becomes one space; control, format, surrogate, private and unassigned characters become ``?``
    (``str.isprintable``). Ends are stripped."""
    spaced = " ".join(str(text).split())
    if spaced.isprintable():
        return spaced
    return "".join(char if char.isprintable() else "?" for char in spaced)


def without_breaks(text: str) -> str:
    """``text`` with ``NO_BREAK_SPACE`` in place of spaces at which a line must not be broken."""
    return _OPTION.sub(rf"\1{NO_BREAK_SPACE}", _TIE.sub(NO_BREAK_SPACE, text))


def with_breaks(text: str) -> str:
    """Undo ``without_breaks``."""
    return text.replace(NO_BREAK_SPACE, " ")


def wrapped(text: str, first: int, rest: int, width: int = 80) -> str:
    """``text`` in lines of at most ``width``, indented by ``first`` and then ``rest``."""
    import textwrap

    lines = textwrap.fill(
        without_breaks(text), width, initial_indent=" " * first, subsequent_indent=" " * rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return with_breaks(lines)
