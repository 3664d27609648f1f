"""`iopstui sweep`: run a job at many points."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import (
    EPILOG,
    add_check_files,
    add_expect,
    add_experiment,
    add_precondition,
    add_resume,
    add_run_options,
    run_request,
    with_expectations,
)
from iopstui.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job", action="append", required=True, metavar="JOB",
                        help="job to run (`iopstui jobs` lists them); several run one after "
                             "another",
                        )  # fmt: skip
    parser.add_argument("--axis", action="append", default=[], metavar="NAME=LIST",
                        help="any fio option or device tunable, e.g. iodepth=1,2,4..256 (doubles), "
                        "numjobs=1..4 (counts), bs=4k,64k, rq_affinity=1,2; the first axis varies "
                        "fastest")  # fmt: skip
    parser.add_argument("--repeats", type=values.sweep_repeats, default=1, metavar="N",
                        help="run every point N times, round by round; shows means with 95 %% "
                             "intervals (default: 1)")  # fmt: skip
    parser.add_argument("--shuffle", action="store_true",
                        help="run the points of each round in random order")  # fmt: skip
    parser.add_argument("--seed", type=values.seed, metavar="N",
                        help="random order for --shuffle that can be repeated")  # fmt: skip
    add_experiment(parser)
    add_resume(parser)
    add_precondition(parser)
    add_expect(parser, baseline=False)
    add_check_files(parser)
    add_run_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run all points one after another."""
    from iopstui.cli.runs.experiment import run_experiment
    from iopstui.model.experiment.plan import Plan, check_axes, parse_axis

    request = run_request(arguments)
    axes = tuple(map(parse_axis, arguments.axis))
    check_axes(axes, request.overrides)
    jobs = arguments.job or [arguments.first_job]  # default: the job in the configuration file
    if not axes and len(jobs) < 2:
        raise UsageError("A sweep needs something to vary.",
                         "For example: --axis iodepth=1,2,4..256, or several --job")  # fmt: skip
    plan = Plan(
        tuple(dict.fromkeys(jobs)), request.overrides, axes,
        settle=arguments.settle, measure=arguments.measure, repeats=arguments.repeats,
        seed=arguments.seed, shuffle=arguments.shuffle or arguments.seed is not None,
    )  # fmt: skip
    if arguments.expect:  # --tolerance alone has no expectation to apply to
        request = with_expectations(request, arguments)
    return run_experiment(request, plan, arguments)


COMMAND = Command(
    "sweep",
    50,
    "run a job at every point of one or more axes",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
