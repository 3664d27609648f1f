"""`iopstui replay` of fio's own results."""

from __future__ import annotations

import argparse

import pytest
from fio_recordings import LOGS

from iopstui.cli.commands import replay
from iopstui.cli.options import refuse_theme
from iopstui.cli.program import build_parser
from iopstui.errors import UsageError
from iopstui.features.fleet import command_fleet


@pytest.mark.parametrize("form", ["table", None])
def test_replay_of_a_fio_result_points_to_report(form: str | None) -> None:
    path = str(LOGS / "avg.json")
    with pytest.raises(UsageError) as caught:
        line = [path, *(["--format", form] if form else [])]
        replay.run(build_parser("replay").parse_args(["replay", *line]))
    assert caught.value.hint == f"Open it with: iopstui report {path}"


def test_a_theme_without_a_screen_is_refused() -> None:
    for command, target in ((command_fleet, "web1"), (replay, "demo")):
        name = command.COMMAND.name
        line = [name, target, "--theme", "light", "--format", "jsonl"]
        with pytest.raises(UsageError, match="--theme light needs the screen"):
            command.run(build_parser(name).parse_args(line))


def test_a_command_without_plain_takes_a_theme() -> None:
    refuse_theme(argparse.Namespace(theme="light", theme_named=True, format=None))
