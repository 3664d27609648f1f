"""The interface of a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Command(NamedTuple):
    """A command: ``add_arguments`` adds its arguments, ``run`` runs it and returns the exit code.
    The help sorts commands by ``order``."""

    name: str
    order: int
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    epilog: str = ""
    without_directory: bool = False
    """It works without a current directory."""
    needs_proc: bool = False
    """It reads from this machine's kernel, and needs /proc."""
    hidden: bool = False
    """No user starts it: the list of commands leaves it out."""
    minor: bool = False
    """The list of commands names it in its last line, together with others."""


class CommandLine(NamedTuple):
    """The whole command line, for commands that parse or complete another one. Each command finds
    it in its arguments, as "line"."""

    parse: Callable[[Sequence[str]], argparse.Namespace]
    """Parse a command line that begins with a command. Raises SystemExit as argparse does."""
    parsers: Callable[[str], dict[str, argparse.ArgumentParser]]
    """The commands' parsers by name; only one of them if a command is named."""
    commands: Callable[[], list[Command]]
    """In the order of the help."""


# A candidate that shell completion offers for the next word.


FILES = ":files"
"""In place of a candidate: the shell's own completion of file names."""


class Candidate(NamedTuple):
    """A word, and what it means."""

    word: str
    meaning: str = ""


CandidateSource = Callable[[], Iterable[Candidate]]
