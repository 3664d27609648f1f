"""The list of commands: the files of cli/commands, and command_NAME of the features.

A command has the name of its file, with - in place of _."""

from __future__ import annotations

import argparse
import importlib
import os

from iopstui.cli import commands as folder
from iopstui.cli.command import Command
from iopstui.discovery import command_modules, extensions


def commands(only: str = "") -> list[Command]:
    """All commands in the order of the help, or just the one called ``only``."""
    modules = _modules()
    chosen = [only] if only in modules else modules
    found = [_extended(importlib.import_module(modules[name]).COMMAND) for name in chosen]
    return sorted(found, key=lambda command: (command.order, command.name))


def _extended(command: Command) -> Command:
    """The command, with the options that features add to it."""
    more = extensions(command.name)
    if not more:
        return command

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        command.add_arguments(parser)
        for extension in more:
            extension.add_arguments(parser)

    def run(arguments: argparse.Namespace) -> int:
        for extension in more:
            code: int | None = extension.run(arguments)
            if code is not None:
                return code
        return command.run(arguments)

    return command._replace(add_arguments=add_arguments, run=run)


def command_names() -> list[str]:
    """Names of all commands, unordered."""
    return [*_modules()]


def _modules() -> dict[str, str]:
    files = map(os.path.splitext, os.listdir(folder.__path__[0]))
    names = [name for name, suffix in files if suffix == ".py" and name != "__init__"]
    modules = {**{name: f"{folder.__name__}.{name}" for name in names}, **command_modules()}
    return {name.replace("_", "-"): module for name, module in modules.items()}
