"""Generate docs/reference from the program's parsers, keys, fields and exit codes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from iopstui.cli.options import EPILOG
from iopstui.cli.program import build_parser
from iopstui.errors import EXIT_MEANINGS
from iopstui.model.figures.figure import ANY
from iopstui.model.metrics.fields import FIELDS, Field
from iopstui.ui.help import help_sections
from iopstui.ui.keys import LIVE_ACTIONS, REPLAY_ONLY, markdown

NOTE = "<!-- Written by `make docs` from the program itself: not edited by hand. -->"
RUNS = ("live", "run", "sweep", "compare")
"""The commands that share the options of a run."""


def pages() -> dict[str, str]:
    """Name and text of every file in docs/reference."""
    lines_by_file = {
        "commands.md": commands(), "exit-codes.md": exit_codes(), "fields.md": fields(),
        "keys.md": keys(),
    }  # fmt: skip
    return {
        name: "\n".join([NOTE, "", *lines]).rstrip() + "\n" for name, lines in lines_by_file.items()
    }


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table. Bars in cells are escaped."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    cells = ([text.replace("|", "\\|") for text in row] for row in rows)
    return [*lines, *("| " + " | ".join(row) + " |" for row in cells), ""]


def code(text: str) -> str:
    """Format ``text`` as code."""
    return f"`{text}`"


# -- commands


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, in the order of the help."""
    return next(
        dict(action.choices) for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )  # fmt: skip


def commands() -> list[str]:
    """Every command with its arguments and options."""
    command_parsers = parsers()
    shared = _shared([command_parsers[name] for name in RUNS])
    lines = [
        "# Commands", "",
        "`iopstui COMMAND --help` says the same. `iopstui` alone is `iopstui live`;"
        " `iopstui --version` prints the version.", "",
        *table(("command", "what it does"),
               ((f"[`{name}`](#iopstui-{name})", parser.description or "")
                for name, parser in command_parsers.items())),
    ]  # fmt: skip
    for name, parser in command_parsers.items():
        lines += _command(name, parser, shared if name in RUNS else [])
    targets, codes = EPILOG.strip().split("\n\n")
    lines += ["## Options of a run", "",
              f"{_and([f'`{name}`' for name in RUNS])} take these as well.", "",
              *table(("option", "meaning"), map(_option, shared)),
              "## TARGET", "", targets, "",
              "[Targets and jobs](../guide/targets.md) says it at length.", ""]  # fmt: skip
    assert codes.startswith("exit codes:")
    return [*lines, "Exit codes: [the table](exit-codes.md)."]


def _command(
    name: str, parser: argparse.ArgumentParser, shared: list[argparse.Action]
) -> list[str]:
    shared_keys = {_same(action) for action in shared}
    places = [a for a in parser._actions if not a.option_strings]
    options = [a for a in parser._actions if a.option_strings and _same(a) not in shared_keys]
    own_options = [a for a in options if "--help" not in a.option_strings]
    either = {
        id(a) for g in parser._mutually_exclusive_groups if g.required for a in g._group_actions
    }
    usage_parts = [f"{a.option_strings[-1]} {a.metavar}" for a in own_options if a.required]
    if either:
        choices = (_option(a)[0].strip("`") for a in own_options if id(a) in either)
        usage_parts.append(f"({' | '.join(choices)})")
    if shared or any(not a.required and id(a) not in either for a in own_options):
        usage_parts.append("[OPTION]...")
    usage = " ".join(["iopstui", name, *map(_place, places), *usage_parts])
    lines = [f"## iopstui {name}", "", parser.description or "", "", f"    {usage}", ""]
    argument_rows = [
        (code(str(a.metavar)), a.help) for a in places if a.help and a.help != "see below"
    ]
    rows = [*argument_rows, *map(_option, own_options)]
    if rows:
        lines += table(("option" if own_options else "argument", "meaning"), rows)
    if shared:
        lines += ["And the [options of a run](#options-of-a-run).", ""]
    return lines


def _shared(of: Sequence[argparse.ArgumentParser]) -> list[argparse.Action]:
    """The options that all these parsers share with the same meaning."""
    keys_by_parser = [{_same(action) for action in parser._actions} for parser in of]
    return [
        action for action in of[0]._actions
        if action.option_strings and all(_same(action) in keys for keys in keys_by_parser)
        and "--help" not in action.option_strings
    ]  # fmt: skip


def _same(action: argparse.Action) -> tuple[object, ...]:
    return (*action.option_strings, action.help)


def _place(action: argparse.Action) -> str:
    text = str(action.metavar)
    return {"?": f"[{text}]", "*": f"[{text}]...", "+": f"{text}..."}.get(str(action.nargs), text)


def _option(action: argparse.Action) -> tuple[str, str]:
    """An option and its meaning."""
    value = action.metavar or "|".join(map(str, action.choices or ()))
    names = ", ".join(action.option_strings)
    assert action.help, f"{names} has no help"
    meaning = action.help % vars(action)
    phrases = ("repeated", "each of several", "several are measured", "two at least")
    if isinstance(action, argparse._AppendAction) and not any(
        phrase in meaning for phrase in phrases
    ):
        meaning += "; may be repeated"
    return code(f"{names} {value}".rstrip()), meaning


def _and(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1]


# -- keys


def keys() -> list[str]:
    """The help of the screen, keys first."""
    (_, _), *sections = help_sections()
    lines = ["# Keys, and the words on the screen", "",
             "`?` (or F1) shows this on the screen, ctrl+p a list of all actions to search in. The"
             " footer has the keys that matter at the moment.", "", "## On the live screen", "",
             *markdown(LIVE_ACTIONS).splitlines(), ""]  # fmt: skip
    replay = dict(sections)["Keys of a replay (iopstui replay FILE)"]
    assert len(replay) == len([action for action in REPLAY_ONLY if action.help])
    for title, rows in sections:
        cells = ((code(term), _plain(meaning)) for term, meaning in rows)
        head = "key" if title.startswith("Keys") else "word"
        lines += [f"## {title}", "", *table((head, "meaning"), cells)]
    return lines


# -- fields


def fields() -> list[str]:
    """Every field of a frame, grouped by section."""
    lines = ["# Fields", "",
             f"The {len(FIELDS)} fields of a frame event (`--format jsonl`); CSV has the main"
             f" ones as its columns. `{ANY}` stands for a key that is data: a device, a CPU, the"
             " number of a job. Disk fields have the names and units of `iostat`. What is not known"
             " is null, never 0. The heading is what a column of it is called; `iopstui fields"
             " --format json` has the same for programs;"
             " [what the numbers mean](../guide/numbers.md) explains the ones that matter most.",
             ""]  # fmt: skip
    for place, group in groupby(FIELDS, _group):
        rows = ((code(field.id), field.title, field.unit, field.source, _plain(field.meaning))
                for field in group)  # fmt: skip
        lines += [
            f"## {place}",
            "",
            *table(("field", "heading", "unit", "source", "meaning"), rows),
        ]
    return lines


def _group(field: Field) -> str:
    """The section of ``field``."""
    if len(field.path) == 1 or field.path[0] == "flags":
        return "The frame itself"
    if field.path[0] == "jobs":
        return "jobs"
    return "fio" if len(field.path) == 2 or field.path[1] == "iodepth_level" else ".".join(
        field.path[:2]
    )  # fmt: skip


def _plain(text: str) -> str:
    """Escape ``text`` for Markdown."""
    return re.sub(r"\s+", " ", text).replace("*", "\\*").replace("<", "&lt;").strip()


# -- exit codes


def exit_codes() -> list[str]:
    """The table of exit codes."""
    rows = ((str(number), meaning) for number, meaning in EXIT_MEANINGS.items())
    return ["# Exit codes", "", *table(("code", "meaning"), rows)]
