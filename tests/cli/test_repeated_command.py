"""The options that repeat a run: parsed again, they ask for the same run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iopstui.cli.options import run_request, with_expectations
from iopstui.cli.program import build_parser, command_parsers
from iopstui.model.experiment.run_request import RunRequest

SAMPLES = {
    "--set": "iodepth=8", "--size": "512m", "--part": "2/3", "--until-steady": "7",
    "--precondition": None, "--write-budget": "200g", "--no-fence": None, "--io-log": None,
    "--probe": None, "--knob": "rq_affinity=2@5", "--bind": "queues", "--interval": "0.5",
    "--expect": "iops>=1000", "--tolerance": "5%",
}  # fmt: skip
LEFT_OUT = {
    "--help": "asks for no run",
    "--job": "stands before the options, with the targets",
    "--diskspd": "its fio job is in the recording",
    "--replay": "its requests are in a file of their own",
    "--destroy-data": "must be given each time",
    "--hold": "a repeated run has nothing to wait for",
    "--record": "the file exists",
    "--baseline": "names a file, which the user may have moved",
    "--volume": "draws limits, and changes no run",
    "--cpu": "where iopstui itself runs", "--nice": "how iopstui itself runs",
    "--format": "output", "--junit": "output", "--summary": "output", "--textfile": "output",
    "--openmetrics-listen": "output",
}  # fmt: skip


def requested(words: list[str]) -> RunRequest:
    arguments = build_parser("run").parse_args(["run", "/srv", "--job", "randread-4k", *words])
    request = with_expectations(run_request(arguments, "randread-4k"), arguments)
    return replace(request, hold=arguments.hold, io_log=arguments.io_log)


def test_each_option_of_a_run_is_repeated_or_left_out_for_a_reason() -> None:
    actions = command_parsers("run")["run"]._actions
    options = {name for action in actions for name in action.option_strings if name[:2] == "--"}
    assert options == SAMPLES.keys() | LEFT_OUT.keys()


@pytest.mark.parametrize("name", SAMPLES)
def test_an_option_parsed_again_asks_for_the_same(name: str) -> None:
    value = SAMPLES[name]
    given = [name] if value is None else [name, value]
    request = requested(given)
    assert request != requested([]) or name == "--tolerance"
    assert requested(request.words()) == request


def test_all_of_them_together() -> None:
    given = [word for pair in SAMPLES.items() for word in pair if word is not None]
    request = requested(given)
    assert requested(request.words()) == request
