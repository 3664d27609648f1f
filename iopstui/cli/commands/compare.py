"""`iopstui compare`: a job with several settings in turn."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import (
    EPILOG,
    add_experiment,
    add_resume,
    add_run_options,
    experiment_options,
    run_options,
)
from iopstui.cli.terminal import require_for_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--job", required=True, metavar="JOB", help="see `iopstui jobs`")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=VALUE",
                        help="any fio options or device tunables, bind=queues or job=JOB, "
                        "joined by commas, or as-is; at least two, and the first is what the "
                        "others are compared with")  # fmt: skip
    parser.add_argument("--repeats", type=values.repeats, default=5, metavar="N",
                        help="runs of each variant (default: 5)")  # fmt: skip
    parser.add_argument("--seed", type=values.seed, metavar="N",
                        help="the order of the variants within each repeat is by chance; the same "
                        "number gives the same order again")  # fmt: skip
    parser.add_argument("--spread", type=values.share, metavar="PERCENT",
                        help="how far runs of one setting differ here, as far as you know, e.g. "
                        "2%%: says beforehand what the repeats will find")  # fmt: skip
    add_experiment(parser)
    add_resume(parser)
    add_run_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run all variants in turn."""
    require_for_runs()
    from iopstui.cli.experiment import run_experiment
    from iopstui.model.experiment.plan import Plan, check_variants, parse_variant

    options = run_options(arguments)
    variants = tuple(map(parse_variant, arguments.variant))
    check_variants(variants, options.overrides)
    plan = Plan(
        (arguments.job,), options.overrides, variants=variants, repeats=arguments.repeats,
        settle=arguments.settle, measure=arguments.measure,
        seed=arguments.seed,
    )  # fmt: skip
    return run_experiment(experiment_options(arguments, options, plan))


COMMAND = Command(
    "compare",
    60,
    "run a job with two or more settings in turn, and say what differs",
    add_arguments,
    run,
    epilog=EPILOG,
)
