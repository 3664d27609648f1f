"""The list of commands: the files of cli/commands."""

from __future__ import annotations

import importlib
import os

from iopstui.cli import commands as folder
from iopstui.cli.command import Command


def commands(word: str = "") -> list[Command]:
    """All of them in the order of the help; the one that is called ``word`` alone, if there is
    one."""
    names = command_names()
    found = [_command(name) for name in ([word] if word in names else names)]
    return sorted(found, key=lambda command: (command.place, command.name))


def command_names() -> list[str]:
    """Names of all commands, in no order."""
    files = map(os.path.splitext, os.listdir(folder.__path__[0]))
    return [name for name, suffix in files if suffix == ".py" and name != "__init__"]


def _command(name: str) -> Command:
    found: Command = importlib.import_module(f"{folder.__name__}.{name}").COMMAND
    return found
