"""Each file in iopstui/cli/commands is a command, and the guide shows how each is used."""

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
from iopstui.fio.library import find_job
from iopstui.fio.options import parse_options
from iopstui.fleet.merging.figures import parse_fleet_expectation
from iopstui.lesson.library import find_lesson
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


def parsers() -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for action in build_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            found = dict(action.choices)
    return found


LINE = re.compile(r"^ {4}\s*(?:- )?(?:run: )?(?:sudo )?iopstui (.*)$", flags=re.MULTILINE)
"""A line of a shell, or of a pipeline's file."""


def shown(root: Path) -> list[tuple[str, list[str]]]:
    """The commands that README and the documents show: where, and their words without the program's
    own name and without what the shell does with the output."""
    found = []
    for path in documents(root):
        text = path.read_text().replace("\\\n", " ")
        for line in LINE.findall(text):
            words = shlex.split(re.split(r"\s(?:[|>&]|2>)", line)[0])
            # the reference has what stands for any
            if not any(word.strip("[].()").isupper() for word in words):
                found.append((f"{path.name}: iopstui {line}", words))
    return found


def test_the_help_has_an_order() -> None:
    found = commands()
    assert [one.name for one in found] == list(parsers())
    assert len({one.order for one in found}) == len(found), "no two at one place"
    files = {Path(name).stem for name in Path(folder.__path__[0]).glob("*.py")} - {"__init__"}
    assert {one.name for one in found} == files


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


def test_a_command_is_read_alone() -> None:
    assert [one.name for one in commands("devices")] == ["devices"]
    assert len(commands("device")) == len(commands("--help")) == len(commands())


def test_the_guide_shows_every_command(root: Path) -> None:
    commands_shown = {words[0] for _, words in shown(root)}
    assert commands_shown == set(parsers())


def test_the_readme_and_the_guide_show_commands_that_are_right(root: Path) -> None:
    examples, top = shown(root), build_parser()
    assert len(examples) > 30
    for where, words in examples:
        try:
            assert parse_arguments(top, words).command.name == words[0]
        except SystemExit:
            pytest.fail(f"not a command line: {where}")


CHECKS: dict[str, Callable[[str], object]] = {
    "job": find_job, "lesson": find_lesson, "axis": parse_axis, "variant": parse_variant,
    "expect": partial(parse_expectation, tree=("vda", "vdb")),
    "fleet's expect": partial(parse_fleet_expectation, tolerance=0.0),
}  # fmt: skip


def test_what_these_commands_name_there_is(root: Path, fio: str) -> None:
    """Jobs, lessons, fio's options, axes, variants, expectations: asked as the program asks."""
    listed = subprocess.run([fio, "--cmdhelp=all"], capture_output=True, text=True).stdout
    options, seen, top = set(parse_options(listed)), set(), build_parser()
    for where, words in shown(root):
        given = vars(parse_arguments(top, words))
        if words[0] in ("jobs", "lesson"):
            given[words[0].removesuffix("s")] = given["name"]
        if words[0] in ("fleet", "merge"):
            given["fleet's expect"] = given.pop("expect", ())
        for what, check in CHECKS.items():
            for one in _several(given.get(what)):
                # what is no file of the reader's own
                if not one.endswith((".fio", ".ini")):
                    check(one)
                    seen.add(what)
        assert {one.partition("=")[0] for one in _several(given.get("set"))} <= options, where
    assert seen == set(CHECKS)


def _several(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [*map(str, value)] if isinstance(value, list | tuple) else []


def test_the_guide_names_options_that_there_are(root: Path) -> None:
    known = {option for one in parsers().values() for option in one._option_string_actions}
    for path in (root / "README.md", *(root / "docs" / "guide").glob("*.md")):
        # fio's own option, and what is said of other programs
        others = {"--readonly", "--from"}
        quoted = re.findall(r"`(--[^`]*)`", path.read_text())
        named = {option for text in quoted for option in OPTION.findall(text)}
        assert named <= known | others, path.name


def documents(root: Path) -> list[Path]:
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md")]


def test_what_is_named_in_a_sentence_is_a_command(root: Path) -> None:
    known = set(parsers())
    named = 0
    for path in documents(root):
        text = re.sub(r"\s+", " ", path.read_text())
        for word in re.findall(r"`(?:sudo )?iopstui ([^`\s]+)[^`]*`", text):
            # what stands for any, and options of the program itself
            if word.isupper() or word in ("...", "--version", "--help"):
                continue
            named += 1
            assert set(word.split("|")) <= known, f"{path.name}: iopstui {word}"
    assert named > 30


def test_what_make_is_asked_for_it_does(root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    told = set(re.findall(r"echo 'make ([a-z-]+)", makefile))
    assert told <= targets
    for path in documents(root):
        asked = re.findall(r"(?:^ {4}|`)make ([a-z-]+)", path.read_text(), flags=re.MULTILINE)
        assert set(asked) <= targets, path.name


def test_the_version_is_told_without_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "commands", lambda word: pytest.fail("commands are loaded"))
    assert program.main(["--version"]) == 0
    assert capsys.readouterr().out == f"iopstui {__version__}\n"


@pytest.mark.parametrize("name", [one.name for one in commands()])
def test_its_help_fits_a_narrow_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    choices = next(
        action.choices
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    lines = choices[name].format_help().split("\n")
    assert [line for line in lines if len(line) > 80] == []


def test_a_device_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["devices", "/dev/none9"]) == EXIT_USAGE
    assert "no block device /dev/none9" in capsys.readouterr().err
