"""A wrong command line: reason, advice and one line of usage; exit code 2."""

from __future__ import annotations

import argparse
import shlex

import pytest

from iopstui.cli.program import EXAMPLES, build_parser, main, parse_arguments
from iopstui.cli.registry import command_names, commands


def error_lines(capsys: pytest.CaptureFixture[str], line: str) -> list[str]:
    assert main(shlex.split(line)) == 2
    captured = capsys.readouterr()
    assert not captured.out
    lines = captured.err.splitlines()
    assert lines[0].startswith("iopstui: ") and all(line.startswith("  ") for line in lines[1:])
    assert sum(line.startswith("  usage: iopstui") for line in lines) == 1
    assert lines[-1].startswith("  more: iopstui") and lines[-1].endswith("--help")
    return lines


@pytest.mark.parametrize(
    ("line", "reason", "advice"),
    [
        ("run -j randread-4k", "there is no option -j", "did you mean --job or --junit?"),
        ("run --job x -s 4", "there is no option -s", "--set or --size"),
        ("run --job x --iodepth 4", "there is no option --iodepth", "--set iodepth=4"),
        ("run --job x --iodepth=4", "there is no option --iodepth", "--set iodepth=4"),
        ("run --job x --rate-iops 9", "no option --rate-iops", "--set rate_iops=9"),
        ("live --blocksize 8k", "no option --blocksize", "--set bs=8k"),
        ("sweep --job x --numjobs", "no option --numjobs", "--set numjobs=VALUE"),
        ("run --job x --intervall 2", "no option --intervall", "did you mean --interval?"),
        ("run --job x --filename /a", "no option --filename", "without an option: iopstui run /a"),
        ("run --job x --zzzz", "there is no option --zzzz", "usage"),
        ("replay demo --bs 4k", "there is no option --bs", "usage"),
        ("run", "--job or --diskspd or --replay is missing", "iopstui jobs"),
        ("run --job x --interval 0", "--interval: '0' is not a number of seconds", "usage"),
        ("run --job x --record x/", "'x/' names a directory, by the / at its end", "usage"),
        ("sweep --job x --state y/", "name a file, such as 'y'", "usage"),
        ("watch --textfile x.prom/", "name a file, such as 'x.prom'", "usage"),
        ("fleet h --job x --record x/", "'x/' names a directory", "usage"),
        ("run --job", "--job has no value", "it takes one: --job JOB"),
        ("run --size -1m", "--size has no value: '-1m' begins with -", "--size=-1m"),
        ("run --job --size 1g", "--job has no value: '--size' begins", "--job=--size"),
        ("jobs x y", "unexpected argument 'y'", "usage"),
        ("rnu --job x", "there is no command 'rnu'", "did you mean iopstui run?"),
        ("zzzz", "there is no command 'zzzz'", "usage"),
        ("/dev/sda", "'/dev/sda' is not a command", "iopstui live /dev/sda"),
        ("--theme light", "no option --theme before a command", "iopstui live --theme"),
        ("--at -2m", "no option --at before", "first: iopstui why --at ... (or iopstui replay)"),
        ("live --at -2m", "there is no option --at", "iopstui why, iopstui replay have it"),
        ("why --worst=3", "there is no option --worst", "iopstui watch has it"),
        ("--worst=3", "no option --worst=3 before", "first: iopstui watch --worst=3 ..."),
        ("--zzzz", "no option --zzzz before", "no command has it"),
    ],
)
def test_an_error_has_a_reason_and_advice(
    capsys: pytest.CaptureFixture[str], line: str, reason: str, advice: str
) -> None:
    first, second, *_ = error_lines(capsys, line)
    assert reason in first and advice in second


def test_optional_arguments_are_not_called_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert error_lines(capsys, "fleet")[0].endswith("HOSTS is missing")


def test_the_usage_is_one_line_with_required_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    needed = "(--job JOB | --diskspd COMMAND | --replay FILE)"
    usage = f"  usage: iopstui run [TARGET]... {needed} [OPTION]..."
    assert usage in error_lines(capsys, "run")
    assert "  usage: iopstui compare [TARGET]... --job JOB [OPTION]..." in error_lines(
        capsys, "compare"
    )
    assert "  usage: iopstui config" in error_lines(capsys, "config x")


def test_control_characters_in_arguments_are_removed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--job", "x", "--\x1b[2J"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_options_can_be_abbreviated() -> None:
    assert parse_arguments(build_parser(), ["run", "--jo", "x", "--inter", "2"]).interval == 2.0


def test_arguments_after_two_dashes_are_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--", "--no-such-file"]) == 2
    assert "no option" not in capsys.readouterr().err


def test_the_help_fits_on_a_small_screen() -> None:
    lines = build_parser().format_help().splitlines()
    # the prompt takes the last line of 24
    assert len(lines) <= 23 and max(map(len, lines)) <= 80
    rows = lines[2 : lines.index("", 2)]
    visible = [command for command in commands() if not command.hidden]
    *single, more = rows
    assert [line.split()[0] for line in single] == [
        command.name for command in visible if not command.minor
    ]
    first, *minor = more.split(":")[0].replace(",", "").split()
    # the row lists exactly the minor commands
    assert first == "and" and [command.name for command in visible if command.minor] == minor


def test_examples_of_the_help_can_be_parsed() -> None:
    top = build_parser()
    lines = top.format_help().splitlines()
    examples = [line.strip() for line in lines[lines.index("", 3) + 1 :]]
    # with many commands only the first examples fit
    assert examples and examples == list(EXAMPLES[: len(examples)])
    for example in EXAMPLES:
        name, *args = shlex.split(example.split("  ")[0].split(" > ")[0])
        assert name == "iopstui"
        assert (
            isinstance(parse_arguments(top, args), argparse.Namespace)
            and args[0] in command_names()
        )
