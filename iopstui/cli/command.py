"""What a command is, and which there are."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable
from typing import NamedTuple

from iopstui.cli import commands


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


def all_commands() -> list[Command]:
    """Those in ``commands``, in the order of the help."""
    found: list[Command] = []
    for file in os.listdir(commands.__path__[0]):
        name, suffix = os.path.splitext(file)
        if suffix == ".py" and name != "__init__":
            found.append(importlib.import_module(f"{commands.__name__}.{name}").COMMAND)
    return sorted(found, key=lambda command: (command.place, command.name))
