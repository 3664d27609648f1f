"""An answer in fewer words, where a line has no room for all of it.

Parts are left out by rank, the least telling first, but never the number: how old a comparison is,
further figures from the last one on, who uses the disk. Words are never cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_ASIDES = re.compile(r" \((?:last |\d+:\d\d)[^()]*\)")
"""How old the seconds are that it is compared with; the seconds that a finding is about."""
_NUMBER = re.compile(r"(?<![\w(/.-])\d")
"""A figure, and not the number of a process or in a name."""
_PART_ENDS = re.compile(r"(?:[;:.]|,(?! (?:but|and|or|not|none)\b)) ")
"""Ends of parts; one that takes back the part before it belongs to that."""
_PERSON = re.compile(
    r"(\S+).*?( \(\d+\)|\(\d+ processes\)).* does (all|(?:at least )?\d+ %) of its bytes"
)
ELLIPSIS = "…"


def shortened(text: str, who: str, room: int, width: Callable[[str], int]) -> tuple[str, str]:
    """(text, who) in at most ``room`` cells with " · " between them; ``width`` counts cells."""
    for words, name in _ranked(text, who):
        if width(f"{words} · {name}" if name else words) <= room:
            return words, name
    *_, (words, _) = _ranked(text, "")
    return _whole_words(words, room, width), ""


def short_who(who: str) -> str:
    """ "fio --name=hog (965) does 64 % of its bytes" -> "fio (965): 64 % of bytes"."""
    match = _PERSON.fullmatch(who)
    if match is None:
        return who
    share = "100 %" if match[3] == "all" else match[3].replace("at least ", "≥ ")
    return f"{match[1]} {match[2].strip()}: {share} of bytes"


def _ranked(text: str, who: str) -> Iterator[tuple[str, str]]:
    """What to try, the longest first."""
    yield text, who
    who = short_who(who)
    yield text, who
    texts = [text := _ASIDES.sub("", text)]
    for end in reversed([*_PART_ENDS.finditer(text)]):
        shorter = text[: end.start()]
        if _NUMBER.search(shorter) is None and _NUMBER.search(text):
            break
        texts.append(shorter)
    yield from ((words, who) for words in texts)
    if who:
        yield from ((words, "") for words in texts)


def _whole_words(text: str, room: int, width: Callable[[str], int]) -> str:
    words = text.split(" ")
    while len(words) > 1 and width(" ".join(words) + ELLIPSIS) > room:
        words.pop()
    return " ".join(words).rstrip(",;:") + ELLIPSIS
