"""Run the program: from the command line to the exit code."""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

from iopstui import __version__
from iopstui.cli.command import Command, CommandLine
from iopstui.cli.parser import Formatter, Parser
from iopstui.cli.registry import command_names, commands
from iopstui.cli.terminal import print_message
from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_MISSING,
    EXIT_OK,
    IopstuiError,
    Missing,
    UsageError,
    pop_incomplete_messages,
)
from iopstui.linux.counters.signal_flag import disable_interrupts
from iopstui.linux.process.limits import exhausted_limit
from iopstui.safety import streams
from iopstui.safety.signals import handle_stop_signals, interrupt, repeat_lost_interrupts

if TYPE_CHECKING:
    from iopstui.cli.config import Config

USAGE = "iopstui [--help | --version] [COMMAND [--help] ...]"
DESCRIPTION = "The oscilloscope for block I/O: what fio and the kernel see, each second"
EXAMPLES = (
    "iopstui live /dev/nvme0n1      (a disk that others use; r starts a job)",
    "iopstui run /srv/data --job randread-4k --expect 'iops>=5000'",
    "iopstui sweep /srv/data --job randread-4k --axis iodepth=1,2,4..64",
    "iopstui replay demo",
)
SCREEN, FEWEST_EXAMPLES = 24, 1
"""The lines of a small terminal, of which the prompt takes the last, and how many examples the help
shows at least; the first examples are the most useful."""
VERSION = "--version"
DEFAULT_COMMAND = "live"
"""The command if none is given."""
GC_THRESHOLD = 50_000
"""How many objects are made before Python looks for garbage: more than are made while a command is
loaded. With Python's default of 700, looking through objects that stay took a fifth of a short
command's time."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code, and raises nothing. Without ``argv`` the whole
    process is iopstui's: a signal that would end it interrupts the command."""
    if argv is not None:
        return _run_with_streams(argv)
    gc.set_threshold(GC_THRESHOLD, 10, 10)
    code = EXIT_INTERRUPTED
    try:
        try:
            handle_stop_signals(_interrupt)
            repeat_lost_interrupts()
            code = _run_with_streams(None)
        finally:
            disable_interrupts()
    except KeyboardInterrupt:
        disable_interrupts()
    _keep_exit_code(code)
    # no garbage collection at the exit: all memory is freed with the process
    gc.freeze()
    return code


def _interrupt(number: int, frame: FrameType | None) -> None:
    # the cleanup may print messages: do not let them wait for a reader
    streams.drop_stuck()
    interrupt(number, frame)


def _keep_exit_code(code: int) -> None:
    """Make sure that the process ends with ``code``: a signal only hastens the end. It, too, cleans
    up what Python's normal exit would (private directories)."""

    def end(number: int, frame: FrameType | None) -> None:
        atexit._run_exitfuncs()
        os._exit(code)

    handle_stop_signals(end)
    atexit.register(_before_exit)
    # Python remembers that a text that it executed (the standard library does that) was
    # interrupted, and would end by SIGINT; executing another text clears this
    exec("")


def _before_exit() -> None:
    """Prepare for the end of Python, which resets signal handlers (ignored signals stay ignored)
    and flushes stdout. Output that nobody reads is discarded, so that the flush cannot block."""
    streams.drop_stuck()
    handle_stop_signals(signal.SIG_IGN)


def _run_with_streams(argv: Sequence[str] | None) -> int:
    writable = streams.prepare()
    code = _report_incomplete_files(_run_reporting_errors(argv, writable))
    _print_leftovers()
    error = streams.finish()
    # a reader that has closed its end is no error
    return (
        code if error is None or isinstance(error, BrokenPipeError) else _report_lost_output(error)
    )


def _run_reporting_errors(argv: Sequence[str] | None, writable: bool) -> int:
    try:
        return _main(argv, writable)
    # by argparse, for help or a wrong command line, which it has reported
    except SystemExit as system_exit:
        return system_exit.code if isinstance(system_exit.code, int) else EXIT_OK
    except IopstuiError as error:
        print_error(error)
        return error.exit_code
    except BrokenPipeError:  # the reader has closed the pipe, like head
        streams.drop()
        return EXIT_OK
    except streams.OutputLost as error:
        return _report_lost_output(error)
    except KeyboardInterrupt:
        return _report_interrupt()
    except Exception as error:
        # before 3.12 Python wraps an exception that occurs while a class is being created
        if isinstance(error.__cause__, KeyboardInterrupt):
            return _report_interrupt()
        return _report_failure(error)


def _report_failure(error: Exception) -> int:
    limit = exhausted_limit(error)
    if not limit:
        try:
            from iopstui.safety.crash import crash_sentence
            from iopstui.text import printable
        except Exception as lack:
            # after running out of memory Python may raise other errors, too, and then nothing can
            # be imported
            limit = exhausted_limit(lack)
            if not limit:
                raise
        else:
            print(printable(crash_sentence(error)), file=sys.stderr)
            return EXIT_JOB_FAILED
    print(f"iopstui: {limit}", file=sys.stderr)
    return EXIT_MISSING


def _print_leftovers() -> None:
    # if it is not imported, no scratch files were made
    scratch = sys.modules.get("iopstui.safety.scratch")
    for line in scratch.leftover_messages() if scratch is not None else ():
        print(f"iopstui: {line}", file=sys.stderr)


def _report_incomplete_files(code: int) -> int:
    messages = pop_incomplete_messages()
    for line in messages:
        print(f"iopstui: {line}", file=sys.stderr)
    return EXIT_MISSING if messages and code == EXIT_OK else code


def _report_interrupt() -> int:
    print("iopstui: interrupted.", file=sys.stderr)
    return EXIT_INTERRUPTED


def _main(argv: Sequence[str] | None, writable: bool) -> int:
    args = sys.argv[1:] if argv is None else argv
    name = args[0] if args else DEFAULT_COMMAND
    config = read_config_for(name)
    arguments = parse_arguments(build_parser(name, config), args)
    command: Command = arguments.command
    if not writable:
        raise UsageError(
            "Standard output is closed, so iopstui cannot show any result.",
            "If only the exit code matters: iopstui ... > /dev/null",
        )
    if not command.without_directory:
        _require_current_directory()
    if command.needs_proc:
        _require_proc()
    if config is not None and config.problems:
        print_message(config.summary())
    return command.run(arguments)


def _require_proc() -> None:
    """Check that /proc is mounted, because mounts, processes and device counters are read from
    it."""
    if not os.path.exists("/proc/self/mountinfo"):
        raise Missing("/proc is not mounted, so iopstui cannot see this machine's devices and "
                      "programs.",
                      "Mount it (root): mount -t proc proc /proc")  # fmt: skip


def _require_current_directory() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise UsageError(
            f"Cannot determine the current directory ({error.strerror}); has it been removed?",
            "Change to one that exists: cd ~",
        ) from error


def parse_arguments(top: Parser, argv: Sequence[str]) -> argparse.Namespace:
    """Parse like ``parse_args``, but allow TARGETs after options, and add the default command."""
    names = command_names()
    if argv and argv[0] not in (*names, "-h", "--help", VERSION):
        if argv[0].startswith("-"):
            top.report_option_before_command(argv[0], _commands_with(argv[0]))
        top.report_unknown_command(argv[0], names)
    arguments, rest = top.parse_known_args(argv)
    if rest:
        subparser: Parser = arguments.own_parser
        # argparse accepts no TARGET after an option either, if HOSTS come first
        several = isinstance(getattr(arguments, "target", None), list) and (
            arguments.target or "hosts" in arguments
        )
        if any(text.startswith("-") for text in rest):
            unknown = subparser.unknown_option() or rest
            subparser.report_unknown_option(unknown, _commands_with(unknown[0]))
        if not several:
            subparser.report_surplus(rest)
        arguments.target = [*arguments.target, *rest]
    return arguments if "command" in arguments else top.parse_args([DEFAULT_COMMAND])


def _commands_with(option: str) -> list[str]:
    """The commands that have exactly this option, in the order of the help."""
    visible = {command.name for command in commands() if not command.hidden}
    return [
        name
        for name, parser in command_parsers().items()
        if option.partition("=")[0] in parser._option_string_actions and name in visible
    ]


def print_error(error: IopstuiError) -> None:
    """Write what happened, and how to fix it, to standard error."""
    from iopstui.text import printable

    print(f"iopstui: {printable(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  {printable(error.hint)}", file=sys.stderr)


def _report_lost_output(error: OSError) -> int:
    streams.drop()
    print(f"iopstui: cannot write to standard output: {error.strerror}.", file=sys.stderr)
    return EXIT_JOB_FAILED


def read_config_for(name: str) -> Config | None:
    """The configuration file, or ``None`` if the command has none of its options."""
    from iopstui.cli.config import COMMANDS, read_config

    return read_config() if name in COMMANDS else None


class TopParser(Parser):
    """The parser of the whole command line. Its help fits on a screen of 24 lines."""

    def format_help(self) -> str:
        """Usage, commands, examples."""
        visible = [command for command in commands() if not command.hidden]
        column_width = max(len(command.name) for command in visible) + 2
        lines = [f"usage: {USAGE}", DESCRIPTION]
        lines += [
            f"  {command.name:<{column_width}}{command.help}"
            for command in visible
            if not command.minor
        ]
        minor_commands = ", ".join(command.name for command in visible if command.minor)
        lines.append(f"  and {minor_commands}: COMMAND --help")
        count = max(FEWEST_EXAMPLES, SCREEN - len(lines) - 2)
        return "\n".join([*lines, "", *(f"  {example}" for example in EXAMPLES[:count]), ""])


def build_parser(name: str = "", config: Config | None = None) -> Parser:
    """The parser of the whole command line. Load only the command ``name`` (the first word), or no
    command for --version. The values of ``config`` become the defaults."""
    top = TopParser(prog="iopstui", formatter_class=Formatter)
    top.add_argument(VERSION, action="version", version=f"iopstui {__version__}")
    choices = top.add_subparsers(
        title="commands", metavar="COMMAND", parser_class=Parser, prog="iopstui"
    )
    for command in commands(name) if name != VERSION else ():
        subparser = choices.add_parser(
            command.name,
            help=command.help,
            description=command.help[0].upper() + command.help[1:] + ".",
            epilog=command.epilog,
            formatter_class=Formatter,
        )
        subparser.set_defaults(command=command, own_parser=subparser, line=COMMAND_LINE)
        command.add_arguments(subparser)
        if config is not None:
            config.set_defaults(subparser, command.name)
    return top


def command_parsers(name: str = "") -> dict[str, argparse.ArgumentParser]:
    """The parser of each command by its name; only one if ``name`` is a command."""
    for action in build_parser(name)._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def parse_command_line(args: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line that begins with a command. Raises SystemExit, like argparse,
    if it is wrong or asks for help."""
    return parse_arguments(build_parser(args[0]), args)


COMMAND_LINE = CommandLine(parse_command_line, command_parsers, commands)
