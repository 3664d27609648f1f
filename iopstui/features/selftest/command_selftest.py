"""`iopstui selftest`: check iopstui's own figures on this machine."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from iopstui.cli.command import Command
from iopstui.cli.terminal import print_message, show, width
from iopstui.errors import EXIT_JOB_FAILED, EXIT_OK, Interrupted, UsageError

EPILOG = """\
Runs fio on scratch files in DIR (default: here) and compares what iopstui shows with fio's
own log of each I/O and with the kernel's counters, read by other code. As root it also checks
tunables of a loop device, the probe, and a null_blk whose latency is known. Takes 20 to 50 s and
192 MiB in DIR; nothing else is written, and everything is removed.

The bundle (-o) has the figures that were compared and the machine's versions: no host name, no
serial numbers, no paths. Attach it to a bug report.

exit codes: 0 all checks passed, 1 one failed, 2 usage or bad input, 5 something needed is missing,
130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", nargs="?", default=None, metavar="DIR",
                        help="a directory on the disk to be tested (default: here)")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="write what was compared to FILE, which must not exist")  # fmt: skip
    parser.add_argument("--read", metavar="FILE",
                        help="judge a FILE written with -o, on any machine")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")


def run(arguments: argparse.Namespace) -> int:
    import json

    from iopstui.features.selftest.evidence import (
        any_failed,
        check_writable,
        selftest_json,
        selftest_text,
        write_bundle,
    )
    from iopstui.features.selftest.judge import judge, judge_bundle

    for name in (arguments.directory, arguments.output, arguments.read):
        if name == "":
            raise UsageError("An argument is empty: a shell variable without a value?",
                             "iopstui selftest --help")  # fmt: skip
    if arguments.read:
        if arguments.directory or arguments.output:
            raise UsageError("--read judges a bundle; it takes neither DIR nor -o.",
                             "iopstui selftest --read FILE")  # fmt: skip
        checks, evidence = judge_bundle(Path(arguments.read))
    else:
        from iopstui.features.selftest.collect import collect
        from iopstui.safety.signals import STOP_SIGNALS

        for number in STOP_SIGNALS:
            signal.signal(number, _interrupt)
        if arguments.output:
            # check now: if the file can't be written, half a minute of work would be lost
            check_writable(Path(arguments.output))
        evidence = collect(Path(arguments.directory or "."), print_message)
        if arguments.output:
            write_bundle(evidence, Path(arguments.output))
        checks = judge(evidence)
    if arguments.json:
        show(json.dumps(selftest_json(checks, evidence), indent=2))
    else:
        show(selftest_text(checks, evidence, width()))
    return EXIT_JOB_FAILED if any_failed(checks) else EXIT_OK


def _interrupt(number: int, frame: object) -> None:
    # raise from wherever the self-test is, so that it removes what it has created
    raise Interrupted("Interrupted: the self-test was not finished.")


COMMAND = Command(
    "selftest",
    112,
    "check iopstui's own figures against fio's log and the kernel",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
    minor=True,
)
