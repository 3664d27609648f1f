"""`iopstui why`: a sentence about a disk, a directory or a process, and the evidence for it."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command

EPILOG = """\
WHAT is a block device, a file or directory (the disk it is on), or the number of a process. Without
it all disks are looked at, and all that are at fault are named. Needs no root: what another user
can't see is listed, with what would allow it. Nothing is written. As root a kernel probe measures
single requests (about 0.4 µs an I/O; --no-probe: means alone).

exit codes: 0 nothing that matters waits for it, 2 usage, 4 I/Os wait for it or for a limit on the
way to it (whoever causes that; a process: it waits for a disk at least 30 % of its time), 5
something needed is missing, 6 can't tell (too short, unsteady, contradictory), 130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", metavar="WHAT", help="see below")
    parser.add_argument("--for", dest="length", type=values.duration, metavar="TIME", default=10.0,
                        help="how long to look (default: 10s; at least 3s)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.add_argument("--no-probe", action="store_true",
                        help="load nothing into the kernel, even as root")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Look at the disks and print the answer. The exit code is the verdict."""
    from iopstui.cli.runs.why import why

    return why(arguments.what, arguments.length, arguments.json, not arguments.no_probe)


COMMAND = Command(
    "why",
    14,
    "answer in one sentence: is the disk slow, who uses it, what next",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
