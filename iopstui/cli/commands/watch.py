"""`iopstui watch`: watch disks in use, without a job and without a screen."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import (
    add_exports,
    add_format,
    add_interval,
    add_plain,
    add_probe,
    add_volume,
    read_volume_option,
)
from iopstui.errors import UsageError

if TYPE_CHECKING:
    from iopstui.cli.runs.watch_disks import Attach

EPILOG = """\
TARGET is a block device; a file or directory means the disk, NFS or SMB mount it is on. Without
TARGET all disks that have done I/O are watched. Nothing is written, and fio is not needed.

FIGURE is one of `iopstui fields`, as for --expect: r/s, w/s, rMB/s, r_await, w_await, aqu-sz,
util, pressure.some, nfs.read.rtt ...; for several disks it is their sum, vdb.r_await is one
disk's. A trigger fires when the figure was beyond VALUE in every sample of TIME (a sample without
the figure is not beyond). It can fire again after a sample that is not beyond VALUE. With --record
only the time around each event is recorded, in FILE, FILE-2, FILE-3 ...

exit codes: 0 done (--for is over; or without --for a signal ended it; or the reader of the output
closed it), 1 failed, 2 usage or bad input, 5 something needed is missing, 130 interrupted before
--for was over
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="*", metavar="TARGET", help="see below")
    parser.add_argument("--for", dest="length", type=values.duration, metavar="TIME",
                        help="how long to watch: 30s, 10m, 8h or 2d (default: until "
                             "Ctrl-C)")  # fmt: skip
    parser.add_argument("--trigger", action="append", default=[], metavar="WHEN",
                        help="'FIGURE>VALUE for TIME', e.g. 'r_await>20ms for 3s' (also >=, <, "
                             "<=): report when it is true; may be repeated")  # fmt: skip
    parser.add_argument("--record", type=values.file_or_directory, metavar="FILE",
                        help="record everything, or with --trigger the time around each event; "
                             "FILE must not exist")  # fmt: skip
    parser.add_argument("--before", type=values.lead_time, metavar="TIME",
                        help="how much to record before a trigger fires, max 10m (default: "
                             "1m)")  # fmt: skip
    parser.add_argument("--after", type=values.duration, metavar="TIME",
                        help="how much to record after a trigger fires (default: 1m)")  # fmt: skip
    add_interval(parser)
    form = parser.add_mutually_exclusive_group()
    add_format(form)
    add_plain(parser, form)
    # no default, to see whether --format was given: it wins over `plain = true` in the
    # configuration
    parser.set_defaults(format=None)
    add_exports(parser)
    add_probe(parser)
    parser.add_argument("--cgroups", action="store_true",
                        help="add the I/O, waiting time and limits of each cgroup (systemd unit, "
                             "container, pod) to JSON lines, recordings and the summary"
                        )  # fmt: skip
    add_volume(parser, "the volume that was bought, e.g. aws/gp2,size=500g: findings name its "
                       "limits and burst credits")  # fmt: skip


def run(arguments: argparse.Namespace, attach: Attach | None = None) -> int:
    """Watch until the end. ``attach``: see ``watch_disks.watch``."""
    from iopstui.cli.runs.watch_disks import watch
    from iopstui.model.experiment.run_request import RunRequest

    sets_margins = arguments.before is not None or arguments.after is not None
    if sets_margins and not (arguments.trigger and arguments.record):
        raise UsageError("--before and --after set how much is recorded around a trigger.",
                         "They need --trigger and --record.")  # fmt: skip
    request = RunRequest(
        targets=tuple(arguments.target),
        interval_s=arguments.interval,
        own_cpus=(),
        record=arguments.record,
        probe=arguments.probe,
        volume=read_volume_option(arguments),
        cgroups=arguments.cgroups,
    )
    kind = arguments.format or ("plain" if arguments.plain else values.FORMATS[0])
    return watch(request, kind, arguments, attach)


COMMAND = Command(
    "watch",
    15,
    "watch busy disks without running a job: table, JSON lines, CSV",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
