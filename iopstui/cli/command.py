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
    """Whether the command works without a current directory."""
    needs_proc: bool = False
    """Whether the command reads from this machine's kernel, and needs /proc."""
    hidden: bool = False
    """Whether the command is left out of the list of commands, because users do not start it."""
    minor: bool = False
    """Whether the list of commands only names the command, in its last line."""


class CommandLine(NamedTuple):
    """The whole command line, for commands that parse or complete another command line. It is in
    the arguments of each command, as "line"."""

    parse: Callable[[Sequence[str]], argparse.Namespace]
    """Parses a command line that begins with a command. Raises SystemExit as argparse does."""
    parsers: Callable[[str], dict[str, argparse.ArgumentParser]]
    """Returns the commands' parsers by name; only one parser if a command is named."""
    commands: Callable[[], list[Command]]
    """Returns all commands in the order of the help."""


# Candidates that shell completion offers for the next word.


FILES = ":files"
"""A candidate that stands for the shell's own completion of file names."""


class Candidate(NamedTuple):
    """A word and its meaning."""

    word: str
    meaning: str = ""


CandidateSource = Callable[[], Iterable[Candidate]]
