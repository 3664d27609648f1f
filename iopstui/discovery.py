"""Find what the features provide: this is the only way from the core to them.

A feature is a folder of ``iopstui/features``. It may import the core, and no other feature; the
core imports none, and works without any of them. The names of a feature's files say what it
provides. command_NAME is a command; extend_NAME adds options to the command of that name, and may
take it over. The others are: ``job_source``, an option of `iopstui run` that makes its job;
``session_sink``, options by which others can read what is measured; ``who_page``, a page on who
uses a disk; ``doctor_check``, a check of the machine; ``recording_directory``, directories that
iopstui records to continuously; ``hour_baseline``, a disk's usual figures at this hour;
``screen_part``, keys of the live screen; ``completion``, values that Tab completes;
``config_keys``, keys of the configuration; ``screen_help``, sections of the help;
``json_documents``, schemas; ``report_source``, reports on files of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

PACKAGE = "iopstui.features"
COMMAND = "command_"
EXTEND = "extend_"


def feature_modules(name: str) -> Iterator[ModuleType]:
    """The modules called ``name`` of all features that have one, in the order of the features'
    names."""
    for folder in _folders():
        if os.path.exists(os.path.join(_place(), folder, f"{name}.py")):
            yield import_module(f"{PACKAGE}.{folder}.{name}")


def command_modules() -> dict[str, str]:
    """The modules of the features' commands, by the name of the command. None is imported."""
    found = {}
    for folder in _folders():
        for file in os.listdir(os.path.join(_place(), folder)):
            if file.startswith(COMMAND) and file.endswith(".py"):
                module = file.removesuffix(".py")
                found[module.removeprefix(COMMAND)] = f"{PACKAGE}.{folder}.{module}"
    return found


def extensions(command: str) -> list[ModuleType]:
    """What features add to a command: modules with ``add_arguments(parser)`` and
    ``run(arguments)``, which returns the exit code, or None to let the command go on."""
    return [*feature_modules(EXTEND + command.replace("-", "_"))]


def _place() -> str:
    return os.path.join(os.path.dirname(__file__), "features")


def _folders() -> list[str]:
    place = _place()
    return sorted(name for name in os.listdir(place)
                  if os.path.exists(os.path.join(place, name, "__init__.py")))  # fmt: skip
