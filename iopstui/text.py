"""Make text from devices, job files or fio safe to print on a terminal."""

from __future__ import annotations

import re

# between a figure and its unit
_TIE = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|[KMGT]iB|IOPS|points?|times)(?!\w))")
# between an option and its value, which are copied together
_OPTION = re.compile(r"(--[a-z][a-z-]*) (?=[\d/'])")
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def printable(text: str) -> str:
    """``text`` as one line without anything a terminal would act on.

    Any run of white space becomes one space; control, format, surrogate, private and
    unassigned characters become ``?`` (``str.isprintable``). Ends are stripped.
    """
    spaced = " ".join(text.split())
    if spaced.isprintable():
        return spaced
    return "".join(char if char.isprintable() else "?" for char in spaced)


def without_breaks(text: str) -> str:
    """``text`` with ``NO_BREAK_SPACE`` in place of the spaces where no line should end."""
    return _OPTION.sub(rf"\1{NO_BREAK_SPACE}", _TIE.sub(NO_BREAK_SPACE, text))


def with_breaks(text: str) -> str:
    """Undo ``without_breaks``."""
    return text.replace(NO_BREAK_SPACE, " ")
