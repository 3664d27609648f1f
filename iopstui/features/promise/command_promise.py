"""`iopstui promise`: test whether a volume delivers its promised figures."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import add_volume_details, bytes_per_second

EPILOG = """\
TARGET is the volume's block device (only read unless --destroy-data repeats it), or a directory
(default: the current one), in which a scratch file is made and removed. iopstui volumes lists the
classes. Without a class: iopstui promise --iops 3000 --mbps 125 --latency 'p99<=2ms'.

exit codes: 0 met, 1 a job failed, 2 usage or bad input, 3 refused for safety, 4 not met (a figure
failed, or none could be shown to pass), 5 something needed is missing, 130 interrupted
"""


def own_latency(text: str) -> tuple[str, float]:
    """Parse a latency and its bound. Returns the percentile ("" is the mean) and the bound in
    ns."""
    from iopstui.errors import UsageError
    from iopstui.model.experiment.expectation import parse_expectation

    name, _, _ = text.partition("<")
    try:
        bound = parse_expectation(f"clat.{text.strip()}").required if "<=" in text else 0.0
    except UsageError:
        bound = 0.0
    if not bound or name.strip() not in ("mean", "p50", "p90", "p95", "p99", "p99.9"):
        raise ArgumentTypeError(f"{text!r} is not a latency such as p99<=2ms or mean<=500us")
    return "" if name.strip() == "mean" else name.strip(), bound


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", metavar="TARGET", help="see below")
    parser.add_argument("--volume", metavar="NAME[,OPTION=VALUE]",
                        help="class that was bought, e.g. aliyun/essd-pl1, or a drive; without "
                             "it the figures you name are tested, or a guess is shown")  # fmt: skip
    add_volume_details(parser, " (default: the device's)")
    parser.add_argument("--mbps", dest="throughput", type=bytes_per_second, metavar="N",
                        help="--throughput as a number of MB/s")  # fmt: skip
    parser.add_argument("--latency", type=own_latency, metavar="FIGURE<=TIME",
                        help="without --volume: latency of random I/Os of 4 KiB to test, e.g. "
                             "p99<=2ms or mean<=500us, at the rate of --iops (without it: one "
                             "at a time)")  # fmt: skip
    parser.add_argument("--destroy-data", metavar="PATH",
                        help="test writes, too, and overwrite PATH, which must repeat the "
                             "target")  # fmt: skip
    parser.add_argument(
        "--write-budget",
        type=values.budget,
        metavar="SIZE",
        help="stop before more than this is written in total, e.g. 200g",
    )
    parser.add_argument("--file-size", metavar="SIZE",
                        help="size of the scratch file, or of the area to use, e.g. 4g (default: "
                             "512m, or the whole device)")  # fmt: skip
    _add_measurement(parser)
    parser.add_argument(
        "--record",
        type=values.new_file,
        metavar="FILE",
        help="record all measurements in FILE, which must not exist",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would run and be written, and exit"
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")


def _add_measurement(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settle", type=values.settle, default=2.0, metavar="SECONDS",
                        help="time before each measurement (default: 2)")  # fmt: skip
    parser.add_argument("--measure", type=values.measure, default=30.0, metavar="SECONDS",
                        help="measured time of each figure (default: 30, the least for a "
                             "FAIL)")  # fmt: skip
    parser.add_argument("--drain", action="store_true",
                        help="use up the burst credits first, so that the baseline is measured, "
                             "too; takes as long as a full burst (--dry-run shows how "
                             "long)")  # fmt: skip
    parser.add_argument("--tolerance", type=values.percentage, metavar="PERCENT",
                        help="allowed shortfall of a figure (default: the provider's own, else "
                             "2%%)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    from iopstui.features.promise.run import run_promise

    return run_promise(arguments)


COMMAND = Command(
    "promise",
    55,
    "test whether a cloud volume or drive delivers what was promised",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
