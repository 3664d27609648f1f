"""`iopstui serve`: the live screen or a recording in browsers."""

from __future__ import annotations

import argparse
import os
import sys

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.errors import Missing, UsageError
from iopstui.linux.process.programs import SCREEN_PACKAGES, require_packages

MAX_VIEWERS = 64
COMMANDS = ("live", "replay")
OWN_OPTIONS = ("--port", "--host", "--viewers", "--viewers-cpu")
EXTRA = "textual-serve>=1.1.3,<1.2"
EPILOG = """\
COMMAND is a command line of `iopstui live TARGET` or `iopstui replay FILE`. It is opened in a
browser by the addresses that are printed; the tokens in them are new each time.

live: the presenter's page shows and controls the measurement. It can only be opened on this
machine. Viewers' pages show the same measurement, a second later, each with its own scrolling and
zoom; their keys cannot start, stop or change anything. It ends when the presenter quits (q).
replay: every page plays the recording alone, until Ctrl-C.

No page can run a command, or read or write a file. Viewers' processes have no rights and share one
CPU at the lowest priority.

exit codes: those of live; 0 after Ctrl-C of a replay, 130 of live
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=values.port, default=8000, metavar="N",
                        help="TCP port, 0: any free one (default: 8000)")  # fmt: skip
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS",
                        help="address to listen on; 0.0.0.0: also from other machines (default: "
                             "127.0.0.1, this machine alone)")  # fmt: skip
    parser.add_argument("--viewers", type=_viewers, default=MAX_VIEWERS, metavar="N",
                        help=f"the most viewers at a time, up to {MAX_VIEWERS} (default: "
                             f"{MAX_VIEWERS})")  # fmt: skip
    parser.add_argument("--viewers-cpu", type=_cpu, metavar="N",
                        help="the CPU that all viewers share (default: the last one)")  # fmt: skip
    parser.add_argument("command_line", nargs=argparse.REMAINDER, metavar="COMMAND ...",
                        help="live TARGET [OPTION]... or replay FILE [OPTION]...")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    command_line = arguments.command_line
    if not command_line or command_line[0] not in COMMANDS:
        problem = (
            f"`iopstui serve` cannot show {command_line[0]!r}."
            if command_line
            else "What should be served?"
        )
        raise UsageError(problem, "iopstui serve live TARGET, or: iopstui serve replay FILE")
    for option in (arg.split("=")[0] for arg in command_line):
        if option in OWN_OPTIONS:
            raise UsageError(
                f"{option} is an option of serve: it belongs before {command_line[0]}.",
                f"iopstui serve {option} VALUE {command_line[0]} ...",
            )
    served_args = arguments.line.parse(command_line)
    if served_args.plain or getattr(served_args, "format", None):
        raise UsageError("--plain and --format replace the screen, which is what is served.",
                         "Leave them out.")  # fmt: skip
    if arguments.viewers_cpu is not None and arguments.viewers_cpu not in os.sched_getaffinity(0):
        raise UsageError(f"iopstui may not use CPU {arguments.viewers_cpu}.",
                         "Those that it may use: taskset -cp $$")  # fmt: skip
    require_packages(*SCREEN_PACKAGES)
    _require_extra()
    from iopstui.features.serve.serving import ServeOptions, serve_live, serve_replay

    options = ServeOptions(arguments.host, arguments.port, arguments.viewers, arguments.viewers_cpu)
    if command_line[0] == "replay":
        return serve_replay(served_args, options)
    if not served_args.target:
        raise UsageError("`iopstui serve live` needs a target: a device, a file or a directory.",
                         "List of devices: iopstui devices")  # fmt: skip
    return serve_live(served_args, command_line, options)


def _require_extra() -> None:
    from importlib.util import find_spec

    lacking = [name for name in ("textual_serve", "aiohttp") if find_spec(name) is None]
    if lacking:
        raise Missing("`iopstui serve` needs the Python package textual-serve.",
                      f"Install it: {sys.executable} -m pip install '{EXTRA}'")  # fmt: skip


def _viewers(text: str) -> int:
    return values.whole_number(text, 1, MAX_VIEWERS)


def _cpu(text: str) -> int:
    return values.whole_number(text, 0, 1 << 16)


COMMAND = Command(
    "serve",
    31,
    "show live or replay in browsers, to a presenter and viewers",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
