"""A candidate that shell completion offers for the next word."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

FILES = ":files"
"""In place of a candidate: the shell's own completion of file names."""


class Candidate(NamedTuple):
    """A word, and what it means."""

    word: str
    meaning: str = ""


CandidateSource = Callable[[], Iterable[Candidate]]
