"""Each file in iopstui/cli/commands is a command, and the README describes all of them."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import pytest

from iopstui.cli import commands as folder
from iopstui.cli.command import commands
from iopstui.cli.program import parser

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
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            found = dict(action.choices)
    return found


def described(root: Path) -> dict[str, str]:
    """The README's section of each command; the heading is its first line."""
    text = (root / "README.md").read_text()
    text = text[text.index("\n## Commands\n") : text.index("\n## Targets\n")]
    sections = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    named = (re.match(r"iopstui (\w+)", section) for section in sections)
    return {m[1]: section for m, section in zip(named, sections, strict=True) if m is not None}


def test_the_help_has_an_order() -> None:
    found = commands()
    assert [one.name for one in found] == list(parsers())
    assert len({one.place for one in found}) == len(found), "no two at one place"
    files = {Path(name).stem for name in Path(folder.__path__[0]).glob("*.py")} - {"__init__"}
    assert {one.name for one in found} == files


def test_a_new_command_is_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(HELLO)
    monkeypatch.setattr(folder, "__path__", [str(tmp_path)])
    try:
        top = parser()
    finally:
        sys.modules.pop(f"{folder.__name__}.hello", None)
    arguments = top.parse_args(["hello", "--loud"])
    assert arguments.command.run(arguments) == 3
    assert "say hello" in top.format_help()


def test_a_command_is_read_alone() -> None:
    assert [one.name for one in commands("devices")] == ["devices"]
    assert len(commands("device")) == len(commands("--help")) == len(commands())


def test_the_readme_describes_every_command(root: Path) -> None:
    assert set(described(root)) == set(parsers())


@pytest.mark.parametrize("name", list(parsers()))
def test_the_help_lists_what_the_readme_does(root: Path, name: str) -> None:
    section = described(root)[name]
    heading, *lines = section.splitlines()
    shown = OPTION.findall(heading)
    for line in lines:
        if line.startswith("| `--"):
            shown += OPTION.findall(line.split("`")[1])
        elif match := re.match(r" {4}(?:sudo )?iopstui (\w+) ([^|>]*)", line):
            known = parsers()[match[1]]._option_string_actions
            assert set(OPTION.findall(re.sub(r"'[^']*'|\"[^\"]*\"", "", match[2]))) <= set(known)
    text = parsers()[name].format_help()
    missing = [option for option in shown if option not in OPTION.findall(text)]
    assert not missing, missing
