"""`iopstui config`: show the effective configuration."""

from __future__ import annotations

import argparse

from iopstui.cli.command import Command
from iopstui.cli.terminal import print_message, show
from iopstui.errors import EXIT_OK, EXIT_USAGE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Print each value with its source, then what is wrong with the file."""
    from iopstui.cli.config import KEYS, read_config
    from iopstui.tables import aligned
    from iopstui.text import printable

    config = read_config()
    rows = [("key", "value", "source")]
    for name, key in KEYS.items():
        setting = config.settings.get(name)
        source = f"{config.path}, line {setting.line}" if setting else "default"
        text = printable(setting.text) if setting else key.default
        rows.append((name, text, printable(source)))
    show("\n".join(aligned(rows)))
    if not config.settings and not config.problems and config.path is not None:
        show(f"\nNothing is set; the file would be {printable(str(config.path))}")
    for sentence in config.problem_texts():
        print_message(sentence)
    return EXIT_USAGE if config.problems else EXIT_OK


COMMAND = Command(
    "config",
    105,
    "show the configuration: values, sources, mistakes in the file",
    add_arguments,
    run,
    without_directory=True,
    minor=True,
)
