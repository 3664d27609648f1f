"""`iopstui compare`: run a job with several settings in turn."""

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
    run_request,
)
from iopstui.errors import UsageError

REPEATS, MAX_REPEATS = 5, 30
MIN_ROUNDS = 6
"""The same as MIN_RUNS in model/metrics/statistics.py."""
FIGURES = ("iops", "mean", "p50", "p99", "p99.9", "cpu")
"""The keys of PRIMARY_FIGURES in model/experiment/comparison.py, written here to save the
import."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job", required=True, metavar="JOB", help="see `iopstui jobs`")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=VALUE",
                        help="fio options or device tunables, bind=queues or job=JOB, separated "
                             "by commas, or as-is; at least two; the first is the "
                             "reference")  # fmt: skip
    parser.add_argument("--repeats", type=values.repeats, metavar="N",
                        help="runs per variant (default: 5; with fewer no difference is "
                             "claimed)")  # fmt: skip
    parser.add_argument("--figure", choices=FIGURES, default=FIGURES[0],
                        help="the figure that decides (default: iops); it is tested by itself, "
                             "the others are secondary and corrected for multiple testing",
                        )  # fmt: skip
    parser.add_argument("--until", type=values.precision, metavar="±PERCENT",
                        help="instead of --repeats: stop as soon as the difference in --figure is "
                             "known this precisely, e.g. ±2%% (95 %% confidence, valid although "
                             "checked after every repeat)",
                        )  # fmt: skip
    parser.add_argument("--max-repeats", type=values.repeats, metavar="N",
                        help="most repeats for --until (default: 30)",
                        )  # fmt: skip
    parser.add_argument("--seed", type=values.seed, metavar="N",
                        help="random order of the variants within each repeat; the same number "
                             "gives the same order")  # fmt: skip
    parser.add_argument("--spread", type=values.percentage, metavar="PERCENT",
                        help="noise between runs of one setting, if you know it, e.g. 2%%; the "
                             "plan then says what the repeats can detect")  # fmt: skip
    add_experiment(parser)
    add_resume(parser)
    add_precondition(parser)
    add_run_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from iopstui.cli.runs.experiment import run_experiment
    from iopstui.model.experiment.comparison import PRIMARY_FIGURES, Comparison
    from iopstui.model.experiment.plan import check_variants, parse_variant

    request, repeats = run_request(arguments), _repeats(arguments)
    variants = tuple(map(parse_variant, arguments.variant))
    check_variants(variants, request.overrides)
    plan = Comparison(
        (arguments.job,), request.overrides, variants=variants, repeats=repeats,
        settle=arguments.settle, measure=arguments.measure,
        seed=arguments.seed, until=arguments.until,
        figure=PRIMARY_FIGURES[arguments.figure],
    )  # fmt: skip
    return run_experiment(request, plan, arguments)


def _repeats(arguments: argparse.Namespace) -> int:
    """The number of repeats of each variant (with --until: the maximum). Raises UsageError for
    options that exclude each other."""
    if arguments.until is None:
        if arguments.max_repeats is not None:
            raise UsageError("--max-repeats limits --until, which is missing.",
                             "For a fixed number: --repeats N; or add --until 2%")  # fmt: skip
        return int(arguments.repeats or REPEATS)
    if arguments.repeats is not None:
        raise UsageError("--until decides the number of repeats, so --repeats has no effect.",
                         "To limit the repeats: --max-repeats N")  # fmt: skip
    most = int(arguments.max_repeats or MAX_REPEATS)
    if most < MIN_ROUNDS:
        raise UsageError(
            f"--until needs at least {MIN_ROUNDS} repeats; --max-repeats {most} is too few."
        )
    return most


COMMAND = Command(
    "compare",
    60,
    "compare settings and test whether the difference is real",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
