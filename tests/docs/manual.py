"""The man pages, made from the commands' parsers: one of the program, one of each command."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator

from reference import parsers

from iopstui.cli.program import DESCRIPTION, EXAMPLES, USAGE
from iopstui.errors import EXIT_MEANINGS

NOTE = '.\\" Written by "make docs" from the program itself: not edited by hand.'
SEE = "https://fio.readthedocs.io"
FILES = (
    ("~/.config/iopstui/config.toml", "defaults for options: see iopstui-config(1)"),
    ("~/.local/state/iopstui", "what has to be undone after a crash, and experiments' progress"),
)
VARIABLES = (
    ("IOPSTUI_FIO", "the fio to run, instead of the one in PATH"),
    ("NO_COLOR", "the screen in the terminal's own two colours"),
)


def manual() -> dict[str, str]:
    """Name and text of every page."""
    command_parsers = parsers()
    pages = {"iopstui.1": _program(command_parsers)}
    pages |= {
        f"iopstui-{name}.1": _command(name, parser, command_parsers)
        for name, parser in command_parsers.items()
    }
    return {name: "\n".join([NOTE, *lines]) + "\n" for name, lines in pages.items()}


def _program(command_parsers: dict[str, argparse.ArgumentParser]) -> list[str]:
    rows = [
        (f"iopstui-{name}(1)", parser.description or "") for name, parser in command_parsers.items()
    ]
    codes = [(str(code), meaning) for code, meaning in EXIT_MEANINGS.items()]
    return [
        '.TH IOPSTUI 1 "" iopstui "User Commands"',
        *_section("NAME", [f"iopstui \\- {_text(DESCRIPTION[0].lower() + DESCRIPTION[1:])}"]),
        *_section("SYNOPSIS", [_text(USAGE)]),
        *_section("COMMANDS", _terms(rows)),
        *_section("EXIT STATUS", _terms(codes)),
        *_section("FILES", _terms(FILES)),
        *_section("ENVIRONMENT", _terms(VARIABLES)),
        *_section("EXAMPLES", [".nf", *map(_text, EXAMPLES), ".fi"]),
        *_section("SEE ALSO", [f"fio(1), iostat(1), {_text(SEE)}"]),
    ]


def _command(
    name: str, parser: argparse.ArgumentParser, command_parsers: dict[str, argparse.ArgumentParser]
) -> list[str]:
    about = (parser.description or "").rstrip(".")
    usage = re.sub(r"\s+", " ", parser.format_usage().removeprefix("usage: ")).strip()
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    notes = [*_notes(parser.epilog)] if parser.epilog else []
    others = [f"iopstui\\-{command}(1)" for command in command_parsers if command != name]
    return [
        f'.TH IOPSTUI\\-{name.upper()} 1 "" iopstui "User Commands"',
        *_section("NAME", [f"iopstui\\-{name} \\- {_text(about[0].lower() + about[1:])}"]),
        *_section("SYNOPSIS", [_text(usage)]),
        *_section("OPTIONS", _terms(map(_option, actions))),
        *(_section("NOTES", notes) if notes else []),
        *_section("SEE ALSO", [", ".join(["iopstui(1)", *others])]),
    ]


def _notes(text: str) -> Iterator[str]:
    """Paragraphs of ``text``. Lines aligned with blanks stay unchanged."""
    for line in text.strip().split("\n"):
        if not line:
            yield ".PP"
        elif line.startswith(" ") or "   " in line:
            yield from (".nf", _text(line), ".fi")
        else:
            yield _text(line)


def _option(action: argparse.Action) -> tuple[str, str]:
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    )
    value = "" if action.nargs == 0 else f" {value}"
    if not action.option_strings:
        return str(action.metavar), (action.help or "").replace("%%", "%")
    meaning = (action.help or "").replace("%%", "%")
    return ", ".join(option + value for option in action.option_strings), meaning


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return [f".SH {title}", *lines]


def _terms(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in rows:
        yield from (".TP", f".B {_text(term)}", _text(text.replace("`", "")))


def _text(text: str) -> str:
    """Escape ``text`` for roff: dashes stay dashes, and no line is a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped.startswith((".", "'")) or not escaped else escaped
