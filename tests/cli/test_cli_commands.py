"""Each file in cli/commands and each command_NAME.py of a feature is a command, which the guide
shows."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from iopstui import __version__
from iopstui.cli import commands as folder
from iopstui.cli import program
from iopstui.cli.program import build_parser, parse_arguments
from iopstui.cli.registry import commands
from iopstui.errors import EXIT_USAGE
from iopstui.features.fleet.merging.figures import parse_fleet_expectation
from iopstui.features.lessons.play.library import find_lesson
from iopstui.fio.inspect import parse_options
from iopstui.fio.library import find_job
from iopstui.model.experiment.expectation import parse_expectation
from iopstui.model.experiment.plan import parse_axis, parse_variant

HELLO = """
from iopstui.cli.command import Command


def add_arguments(parser):
    parser.add_argument("--loud", action="store_true")


def run(arguments):
    return 3 if arguments.loud else 0


COMMAND = Command("hello", 1, "say hello", add_arguments, run)
"""
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def parsers_by_command() -> dict[str, argparse.ArgumentParser]:
    parsers_by_name: dict[str, argparse.ArgumentParser] = {}
    for action in build_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            parsers_by_name = dict(action.choices)
    return parsers_by_name


LINE = re.compile(r"^ {4}\s*(?:- )?(?:run: )?(?:sudo )?iopstui (.*)$", flags=re.MULTILINE)
"""A line of a shell or of a CI pipeline."""


def documented_commands(root: Path) -> list[tuple[str, list[str]]]:
    """Commands in README and the documents that are written by hand: (place, arguments without the
    program's name, pipes and redirections)."""
    examples = []
    for path in documents(root):
        if path.parent.name == "reference":
            continue
        text = path.read_text().replace("\\\n", " ")
        for line in LINE.findall(text):
            args = shlex.split(re.split(r"\s(?:[|>&]|2>)", line)[0])
            # a line with placeholders
            if not any(arg.strip("[].()").isupper() for arg in args):
                examples.append((f"{path.name}: iopstui {line}", args))
    return examples


def test_commands_of_the_help_are_ordered() -> None:
    all_commands = commands()
    assert [command.name for command in all_commands] == list(parsers_by_command())
    assert len({command.order for command in all_commands}) == len(all_commands), (
        "no two at one place"
    )
    top = Path(folder.__path__[0]).parents[1]
    files = [*top.glob("cli/commands/[a-z]*.py"), *top.glob("features/*/command_*.py")]
    names = {path.stem.removeprefix("command_").replace("_", "-") for path in files}
    assert {command.name for command in all_commands} == names


def test_a_new_command_is_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(HELLO)
    monkeypatch.setattr(folder, "__path__", [str(tmp_path)])
    try:
        top = build_parser()
    finally:
        sys.modules.pop(f"{folder.__name__}.hello", None)
    arguments = top.parse_args(["hello", "--loud"])
    assert arguments.command.run(arguments) == 3
    assert "say hello" in top.format_help()


def test_only_the_requested_command_is_loaded() -> None:
    assert [command.name for command in commands("devices")] == ["devices"]
    assert len(commands("device")) == len(commands("--help")) == len(commands())


def test_the_guide_shows_every_command(root: Path) -> None:
    commands_shown = {args[0] for _, args in documented_commands(root)}
    assert commands_shown == set(parsers_by_command())


def test_documented_commands_can_be_parsed(root: Path) -> None:
    examples, top = documented_commands(root), build_parser()
    assert len(examples) > 30
    for line, args in examples:
        try:
            assert parse_arguments(top, args).command.name == args[0]
        except SystemExit:
            pytest.fail(f"not a command line: {line}")


CHECKS: dict[str, Callable[[str], object]] = {
    "job": find_job, "lesson": find_lesson, "axis": parse_axis, "variant": parse_variant,
    "expect": partial(parse_expectation, tree=("vda", "vdb", "nvme1n1")),
    "fleet's expect": partial(parse_fleet_expectation, tolerance=0.0),
}  # fmt: skip


def test_names_in_documented_commands_exist(root: Path, fio: str) -> None:
    """Jobs, lessons, fio options, axes, variants and expectations are valid."""
    listed = subprocess.run([fio, "--cmdhelp=all"], capture_output=True, text=True).stdout
    options, checked, top = set(parse_options(listed)), set(), build_parser()
    for line, args in documented_commands(root):
        values = vars(parse_arguments(top, args))
        if args[0] in ("jobs", "lesson"):
            values[args[0].removesuffix("s")] = values["name"]
        if args[0] in ("fleet", "merge"):
            values["fleet's expect"] = values.pop("expect", ())
        for key, check in CHECKS.items():
            for value in _several(values.get(key)):
                # not a file that the reader has
                if not value.endswith((".fio", ".ini")):
                    check(value)
                    checked.add(key)
        assert {setting.partition("=")[0] for setting in _several(values.get("set"))} <= options, (
            line
        )
    assert checked == set(CHECKS)


def _several(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [*map(str, value)] if isinstance(value, list | tuple) else []


def test_options_named_in_the_guide_exist(root: Path) -> None:
    valid_options = {
        option
        for parser in parsers_by_command().values()
        for option in parser._option_string_actions
    }
    for path in (root / "README.md", *(root / "docs" / "guide").glob("*.md")):
        # options of fio and other programs
        options_of_others = {"--readonly", "--from", "--prefix", "--status-interval"}
        quoted = re.findall(r"`(--[^`]*)`", path.read_text())
        options = {option for text in quoted for option in OPTION.findall(text)}
        assert options <= valid_options | options_of_others, path.name


def documents(root: Path) -> list[Path]:
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md")]


def test_commands_named_in_sentences_exist(root: Path) -> None:
    valid_names = set(parsers_by_command())
    count = 0
    for path in documents(root):
        text = re.sub(r"\s+", " ", path.read_text())
        for name in re.findall(r"`(?:sudo )?iopstui ([^`\s]+)[^`]*`", text):
            # placeholders, and options of the program itself
            if name.isupper() or name in ("...", "--version", "--help"):
                continue
            count += 1
            assert set(name.split("|")) <= valid_names, f"{path.name}: iopstui {name}"
    assert count > 30


def test_make_targets_in_the_documents_exist(root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    help_targets = set(re.findall(r"echo 'make ([a-z-]+)", makefile))
    assert help_targets <= targets
    for path in documents(root):
        mentioned = re.findall(r"(?:^ {4}|`)make ([a-z-]+)", path.read_text(), flags=re.MULTILINE)
        assert set(mentioned) <= targets, path.name


def test_the_version_is_printed_without_loading_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "commands", lambda argument: pytest.fail("commands are loaded"))
    assert program.main(["--version"]) == 0
    assert capsys.readouterr().out == f"iopstui {__version__}\n"


@pytest.mark.parametrize("name", [command.name for command in commands()])
def test_the_help_of_a_command_fits_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    choices = next(
        action.choices
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    lines = choices[name].format_help().split("\n")
    assert [line for line in lines if len(line) > 80] == []


def test_a_missing_device_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["devices", "/dev/none9"]) == EXIT_USAGE
    assert "no block device /dev/none9" in capsys.readouterr().err
