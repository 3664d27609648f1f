"""From the words of a command line to the exit code."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from iopstui import __version__
from iopstui.cli.command import Command, commands
from iopstui.cli.options import EPILOG
from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_OK,
    IopstuiError,
    UsageError,
)
from iopstui.safety.signals import handle_stop_signals, interrupt

DEFAULT = "live"
"""The command where none is named."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. No exception leaves this function. Without ``argv`` the
    process is ours: a signal that would end it interrupts the command."""
    if argv is not None:
        return _whole(argv)
    try:
        handle_stop_signals(interrupt)
        try:
            return _whole(None)
        finally:
            # nothing is left to undo
            handle_stop_signals(signal.SIG_DFL)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _whole(argv: Sequence[str] | None) -> int:
    """Run the command with its standard streams in order."""
    from iopstui.output.streams import finish, prepare

    writable = prepare()
    code = _told(argv, writable)
    lost = finish()
    return code if lost is None else _output_lost(lost)


def _told(argv: Sequence[str] | None, writable: bool) -> int:
    """Run the command; report what goes wrong."""
    from iopstui.output.streams import OutputLost

    try:
        return _main(argv, writable)
    except SystemExit as ended:  # argparse: help, or a wrong command line that it has told
        return ended.code if isinstance(ended.code, int) else EXIT_OK
    except IopstuiError as error:
        complain(error)
        return error.exit_code
    except (BrokenPipeError, OutputLost) as error:
        return _output_lost(error)
    except KeyboardInterrupt:
        print("iopstui: interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception as error:
        from iopstui.safety.crash import crash_sentence
        from iopstui.text import printable

        print(printable(crash_sentence(error)), file=sys.stderr)
        return EXIT_JOB_FAILED


def _main(argv: Sequence[str] | None, writable: bool) -> int:
    words = sys.argv[1:] if argv is None else argv
    arguments = parsed(parser(words[0] if words else DEFAULT), words)
    command: Command = arguments.command
    if not writable:
        raise UsageError(
            "Standard output is closed, so no result could be shown.",
            "If only the exit code matters: iopstui ... > /dev/null",
        )
    if not command.anywhere:
        _require_current_directory()
    return command.run(arguments)


def _require_current_directory() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise UsageError(
            f"The current directory can't be determined ({error.strerror}); has it been removed?",
            "Go to one that exists: cd ~",
        ) from error


def parsed(top: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """As ``parse_args``, but further TARGETs may also stand behind options, and without a command
    it is the default one."""
    arguments, rest = top.parse_known_args(argv)
    if rest:
        several = isinstance(getattr(arguments, "target", None), list) and arguments.target
        if not several or any(text.startswith("-") for text in rest):
            top.error(f"unrecognized arguments: {' '.join(rest)}")
        arguments.target = [*arguments.target, *rest]
    return arguments if "command" in arguments else top.parse_args([DEFAULT])


def complain(error: IopstuiError) -> None:
    """Write what happened, and how to fix it, to standard error."""
    from iopstui.text import printable

    print(f"iopstui: {printable(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  {printable(error.hint)}", file=sys.stderr)


def _output_lost(error: OSError) -> int:
    from iopstui.output.streams import drop

    drop()
    if isinstance(error, BrokenPipeError):
        said, code = "standard output was closed, so nothing more is written", EXIT_INTERRUPTED
    else:
        said, code = f"standard output can't be written: {error.strerror}", EXIT_JOB_FAILED
    print(f"iopstui: {said}.", file=sys.stderr)
    return code


def parser(word: str = "") -> argparse.ArgumentParser:
    """The whole command line; where its first word, ``word``, is a command, no other is read."""
    top = argparse.ArgumentParser(
        prog="iopstui",
        description="The oscilloscope for block I/O: runs fio and shows, second by second, what "
        "fio sees and what the kernel sees.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"iopstui {__version__}")
    choices = top.add_subparsers(title="commands", metavar="COMMAND")
    for command in commands(word):
        below = choices.add_parser(
            command.name,
            help=command.help,
            description=command.help[0].upper() + command.help[1:] + ".",
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        below.set_defaults(command=command)
        command.add_arguments(below)
    return top
