"""docs/reference, made from what the program itself goes by: parsers, keys, fields, exit codes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from iopstui.cli.options import EPILOG
from iopstui.cli.program import build_parser
from iopstui.errors import EXIT_MEANINGS
from iopstui.model.metrics.fields import FIELDS, Field
from iopstui.model.metrics.paths import ANY
from iopstui.ui.help import help_sections
from iopstui.ui.keys import LIVE_ACTIONS, REPLAY_ONLY, markdown

NOTE = "<!-- Written by `make docs` from the program itself: not edited by hand. -->"
RUNS = ("live", "run", "sweep", "compare")
"""The commands that share the options of a run."""


def pages() -> dict[str, str]:
    """Name and text of every file in docs/reference."""
    made = {
        "commands.md": commands(), "exit-codes.md": exit_codes(), "fields.md": fields(),
        "keys.md": keys(),
    }  # fmt: skip
    return {name: "\n".join([NOTE, "", *lines]).rstrip() + "\n" for name, lines in made.items()}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; a bar in a cell is no border."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    cells = ([text.replace("|", "\\|") for text in row] for row in rows)
    return [*lines, *("| " + " | ".join(row) + " |" for row in cells), ""]


def code(text: str) -> str:
    """As it is typed."""
    return f"`{text}`"


# -- commands


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, in the order of the help."""
    return next(
        dict(action.choices) for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )  # fmt: skip


def commands() -> list[str]:
    """Every command with what it takes."""
    known = parsers()
    shared = _shared([known[name] for name in RUNS])
    lines = [
        "# Commands", "",
        "`iopstui COMMAND --help` says the same. `iopstui` alone is `iopstui live`;"
        " `iopstui --version` prints the version.", "",
        *table(("command", "what it does"),
               ((f"[`{name}`](#iopstui-{name})", one.description or "")
                for name, one in known.items())),
    ]  # fmt: skip
    for name, one in known.items():
        lines += _command(name, one, shared if name in RUNS else [])
    targets, codes = EPILOG.strip().split("\n\n")
    lines += ["## Options of a run", "",
              f"{_and([f'`{name}`' for name in RUNS])} take these as well.", "",
              *table(("option", "meaning"), map(_option, shared)),
              "## TARGET", "", targets, "",
              "[Targets and jobs](../guide/targets.md) says it at length.", ""]  # fmt: skip
    assert codes.startswith("exit codes:")
    return [*lines, "Exit codes: [the table](exit-codes.md)."]


def _command(name: str, one: argparse.ArgumentParser, shared: list[argparse.Action]) -> list[str]:
    known = {_same(action) for action in shared}
    places = [a for a in one._actions if not a.option_strings]
    options = [a for a in one._actions if a.option_strings and _same(a) not in known]
    own = [a for a in options if "--help" not in a.option_strings]
    either = {id(a) for g in one._mutually_exclusive_groups if g.required for a in g._group_actions}
    words = [f"{a.option_strings[-1]} {a.metavar}" for a in own if a.required]
    if either:
        words.append("(" + " | ".join(_option(a)[0].strip("`") for a in own if id(a) in either)
                     + ")")  # fmt: skip
    if shared or any(not a.required and id(a) not in either for a in own):
        words.append("[OPTION]...")
    usage = " ".join(["iopstui", name, *map(_place, places), *words])
    lines = [f"## iopstui {name}", "", one.description or "", "", f"    {usage}", ""]
    told = [(code(str(a.metavar)), a.help) for a in places if a.help and a.help != "see below"]
    rows = [*told, *map(_option, own)]
    if rows:
        lines += table(("option" if own else "argument", "meaning"), rows)
    if shared:
        lines += ["And the [options of a run](#options-of-a-run).", ""]
    return lines


def _shared(of: Sequence[argparse.ArgumentParser]) -> list[argparse.Action]:
    """The options that all of them have, with the same meaning."""
    found = [{_same(action) for action in one._actions} for one in of]
    return [
        action for action in of[0]._actions
        if action.option_strings and all(_same(action) in one for one in found)
        and "--help" not in action.option_strings
    ]  # fmt: skip


def _same(action: argparse.Action) -> tuple[object, ...]:
    return (*action.option_strings, action.help)


def _place(action: argparse.Action) -> str:
    text = str(action.metavar)
    return {"?": f"[{text}]", "*": f"[{text}]...", "+": f"{text}..."}.get(str(action.nargs), text)


def _option(action: argparse.Action) -> tuple[str, str]:
    """An option as it is typed, and its meaning."""
    value = action.metavar or "|".join(map(str, action.choices or ()))
    names = ", ".join(action.option_strings)
    meaning = (action.help or "of what is printed (default: %(default)s)") % vars(action)
    told = ("repeated", "each of several", "several are measured", "two at least")
    if isinstance(action, argparse._AppendAction) and not any(words in meaning for words in told):
        meaning += "; may be repeated"
    return code(f"{names} {value}".rstrip()), meaning


def _and(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1]


# -- keys


def keys() -> list[str]:
    """The help of the screen, its keys first."""
    (_, _), *others = help_sections()
    lines = ["# Keys, and the words on the screen", "",
             "`?` (or F1) shows this on the screen, ctrl+p a list of all actions to search in. The"
             " footer has the keys that matter at the moment.", "", "## On the live screen", "",
             *markdown(LIVE_ACTIONS).splitlines(), ""]  # fmt: skip
    replay = dict(others)["Keys of a replay (iopstui replay FILE)"]
    assert len(replay) == len([action for action in REPLAY_ONLY if action.help])
    for title, rows in others:
        told = ((code(term), _plain(words)) for term, words in rows)
        head = "key" if title.startswith("Keys") else "word"
        lines += [f"## {title}", "", *table((head, "meaning"), told)]
    return lines


# -- fields


def fields() -> list[str]:
    """Every field of a frame, by its place in it."""
    lines = ["# Fields", "",
             f"The {len(FIELDS)} fields of a frame event (`--format jsonl`); CSV has the main"
             f" ones as its columns. `{ANY}` stands for a key that is data: a device, a CPU, the"
             " number of a job. Disk fields have the names and units of `iostat`. What is not known"
             " is null, never 0. The heading is what a column of it is called; `iopstui fields"
             " --format json` has the same for programs;"
             " [what the numbers mean](../guide/numbers.md) explains the ones that matter most.",
             ""]  # fmt: skip
    for place, group in groupby(FIELDS, _group):
        rows = ((code(one.id), one.title, one.unit, one.source, _plain(one.meaning))
                for one in group)  # fmt: skip
        lines += [
            f"## {place}",
            "",
            *table(("field", "heading", "unit", "source", "meaning"), rows),
        ]
    return lines


def _group(field: Field) -> str:
    """The heading it stands under."""
    if len(field.path) == 1 or field.path[0] == "flags":
        return "The frame itself"
    if field.path[0] == "jobs":
        return "jobs"
    return "fio" if len(field.path) == 2 or field.path[1] == "iodepth_level" else ".".join(
        field.path[:2]
    )  # fmt: skip


def _plain(text: str) -> str:
    """Without what Markdown would take for its own."""
    return re.sub(r"\s+", " ", text).replace("*", "\\*").replace("<", "&lt;").strip()


# -- exit codes


def exit_codes() -> list[str]:
    """What a program can tell a command's end by."""
    rows = ((str(number), meaning) for number, meaning in EXIT_MEANINGS.items())
    return ["# Exit codes", "", *table(("code", "meaning"), rows)]
