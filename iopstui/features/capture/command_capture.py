"""`iopstui capture`: capture what applications ask of a disk, and write a fio job that does similar
I/O."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.errors import UsageError

EPILOG = """\
TARGET is a block device; a file or directory means the disk it is on. Without TARGET all disks that
have done I/O are captured. Needs root and Linux 5.12: each request is noted in the kernel by BPF
programs of iopstui's own (about 0.4 us a request, and 0.4 us to count it; at most 40 MiB). Nothing
is written to the disk, and nothing stays in the kernel.

-o writes two jobs. FILE keeps the captured rate (open loop: latency is the result), FILE with
.closed before its suffix keeps the requests in flight (closed loop: throughput is the result). Both
explain themselves in comments, and work on scratch files in the TARGET that `run` gets: they never
name the captured disk.

--pid counts the process and all that it starts. What a process writes through the page cache is
written by the kernel later: --cgroup counts that, too.

exit codes: 0 done (also if a signal ended it without --for), 1 failed or no requests seen, 2 usage
or bad input, 4 --check found a figure that is not close, 5 something needed is missing, 130
interrupted before --for was over (what was captured is kept)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", metavar="TARGET", help="see below")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--pid", type=int, action="append", default=[], metavar="PID",
                       help="count only this process and what it starts; may be "
                            "repeated")  # fmt: skip
    group.add_argument("--cgroup", metavar="DIR",
                       help="count only this cgroup, e.g. /sys/fs/cgroup/system.slice/"
                            "postgresql.service")  # fmt: skip
    parser.add_argument("--for", dest="length", type=values.duration, metavar="TIME",
                        help="how long to capture: 30s, 5m or 1h (default: until Ctrl-C)",
                        )  # fmt: skip
    parser.add_argument("-o", "--output", type=values.new_file, metavar="FILE",
                        help="write fio jobs to FILE (NAME.fio) and NAME.closed.fio; neither may "
                             "exist")  # fmt: skip
    parser.add_argument("--trace", type=values.new_file, metavar="FILE",
                        help="write each request to FILE, for an exact replay (run --replay): at "
                             "most a million; FILE must not exist")  # fmt: skip
    parser.add_argument("--check", metavar="DIR",
                        help="then run the job on scratch files in DIR, capture it the same way "
                             "and compare both")  # fmt: skip
    parser.add_argument("--loop", choices=("open", "closed"), default="open",
                        help="which job --check runs (default: %(default)s)")  # fmt: skip
    parser.add_argument("--phases", type=values.duration, metavar="TIME",
                        help="cut the capture into spans of TIME: those that differ become phases "
                             "of the jobs, which run one after the other")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="JSON instead of text")


def run(arguments: argparse.Namespace) -> int:
    if arguments.cgroup is not None and not arguments.cgroup:
        raise UsageError("--cgroup needs the directory of a cgroup.", "ls /sys/fs/cgroup")
    from iopstui.features.capture.capture_disk import capture

    return capture(arguments)


COMMAND = Command(
    "capture",
    17,
    "capture what applications ask of a disk; write a fio job like it",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
