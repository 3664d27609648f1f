"""`iopstui compare`: a job with several settings in turn."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import (
    EPILOG,
    add_experiment,
    add_precondition,
    add_resume,
    add_run_options,
    experiment_options,
    run_options,
)
from iopstui.cli.terminal import require_for_runs
from iopstui.errors import UsageError

REPEATS, MOST_REPEATS = 5, 30
LEAST = 6
"""model/metrics/sequential.py"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--job", required=True, metavar="JOB", help="see `iopstui jobs`")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=VALUE",
                        help="any fio options or device tunables, bind=queues or job=JOB, "
                        "joined by commas, or as-is; at least two, and the first is what the "
                        "others are compared with")  # fmt: skip
    parser.add_argument("--repeats", type=values.repeats, metavar="N",
                        help="runs of each variant (default: 5)")  # fmt: skip
    parser.add_argument("--until", type=values.within, metavar="±PERCENT",
                        help="instead: look after every repeat, and end once the difference in "
                        "IOPS is known that well, e.g. ±2%% (at 95 %%, though looked at so often)",
                        )  # fmt: skip
    parser.add_argument("--max-repeats", type=values.repeats, metavar="N",
                        help="--until ends after N repeats at the latest (default: 30)",
                        )  # fmt: skip
    parser.add_argument("--seed", type=values.seed, metavar="N",
                        help="the order of the variants within each repeat is by chance; the same "
                        "number gives the same order again")  # fmt: skip
    parser.add_argument("--spread", type=values.share, metavar="PERCENT",
                        help="how far runs of one setting differ here, as far as you know, e.g. "
                        "2%%: says beforehand what the repeats will find")  # fmt: skip
    add_experiment(parser)
    add_resume(parser)
    add_precondition(parser)
    add_run_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run all variants in turn."""
    require_for_runs()
    from iopstui.cli.runs.experiment import run_experiment
    from iopstui.model.experiment.plan import Plan, check_variants, parse_variant

    options, repeats = run_options(arguments), _repeats(arguments)
    variants = tuple(map(parse_variant, arguments.variant))
    check_variants(variants, options.overrides)
    plan = Plan(
        (arguments.job,), options.overrides, variants=variants, repeats=repeats,
        settle=arguments.settle, measure=arguments.measure,
        seed=arguments.seed, until=arguments.until,
    )  # fmt: skip
    return run_experiment(experiment_options(arguments, options, plan))


def _repeats(arguments: argparse.Namespace) -> int:
    """Of each variant; with --until at most. UsageError for options that don't go together."""
    if arguments.until is None:
        if arguments.max_repeats is not None:
            raise UsageError("--max-repeats is the end of --until, which isn't given.",
                             "For a fixed number: --repeats N; or add --until 2%")  # fmt: skip
        return int(arguments.repeats or REPEATS)
    if arguments.repeats is not None:
        raise UsageError("--until ends by itself, so that --repeats says nothing.",
                         "Give --max-repeats N for the most.")  # fmt: skip
    most = int(arguments.max_repeats or MOST_REPEATS)
    if most < LEAST:
        raise UsageError(f"--until takes {LEAST} repeats at least; --max-repeats {most} is less.")
    return most


COMMAND = Command(
    "compare",
    60,
    "run a job with two or more settings in turn, and say what differs",
    add_arguments,
    run,
    epilog=EPILOG,
    kernel=True,
)
