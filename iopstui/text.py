"""Text that comes from devices, job files or fio, made fit for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """``text`` as one line without anything a terminal would act on.

    Any run of white space becomes one space; control, format, surrogate, private and
    unassigned characters become ``?`` (``str.isprintable``). Ends are stripped.
    """
    spaced = " ".join(text.split())
    return "".join(char if char.isprintable() else "?" for char in spaced)
