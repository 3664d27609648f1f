"""What a command is, and which there are."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable
from typing import NamedTuple

from iopstui.cli import commands as folder


class Command(NamedTuple):
    """One command: ``add_arguments`` says what it takes, ``run`` does it and gives the exit code.
    The help lists it at its ``place``."""

    name: str
    place: int
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    epilog: str = ""
    anywhere: bool = False
    """Also where the current directory is gone."""


def commands(word: str = "") -> list[Command]:
    """All of them in the order of the help; the one that is called ``word`` alone, if there is
    one."""
    names = command_names()
    found = [_command(name) for name in ([word] if word in names else names)]
    return sorted(found, key=lambda command: (command.place, command.name))


def command_names() -> list[str]:
    """Of all of them, in no order."""
    files = map(os.path.splitext, os.listdir(folder.__path__[0]))
    return [name for name, suffix in files if suffix == ".py" and name != "__init__"]


def _command(name: str) -> Command:
    found: Command = importlib.import_module(f"{folder.__name__}.{name}").COMMAND
    return found
