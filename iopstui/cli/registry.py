"""The list of commands: the files of cli/commands."""

from __future__ import annotations

import importlib
import os

from iopstui.cli import commands as folder
from iopstui.cli.command import Command


def commands(only: str = "") -> list[Command]:
    """Return all commands in the order of the help, or the one called ``only`` alone."""
    names = command_names()
    selected = [_load_command(name) for name in ([only] if only in names else names)]
    return sorted(selected, key=lambda command: (command.order, command.name))


def command_names() -> list[str]:
    """Names of all commands, in no order."""
    files = map(os.path.splitext, os.listdir(folder.__path__[0]))
    return [name for name, suffix in files if suffix == ".py" and name != "__init__"]


def _load_command(name: str) -> Command:
    command: Command = importlib.import_module(f"{folder.__name__}.{name}").COMMAND
    return command
