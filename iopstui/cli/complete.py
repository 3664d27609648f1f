"""Complete a command line for the shell scripts in iopstui/data/completion.

A shell hands over the words so far and gets candidates back, so what it offers is what this version
takes: commands and options from their parsers, their values from where the program has them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from iopstui.cli.candidate import FILES, Candidate
from iopstui.cli.command import CommandLine


def complete(words: Sequence[str], line: CommandLine) -> list[Candidate]:
    """Candidates for ``words[-1]``, which may be empty."""
    *before, current = words or ("",)
    if not before:
        tops = [Candidate(one.name, one.help) for one in line.commands()]
        return _that_begin(current, [*tops, Candidate("--help"), Candidate("--version")])
    parser = line.parsers(before[0]).get(before[0])
    if parser is None:
        return []
    return _after_option(parser, before[1:], current)


def _after_option(
    parser: argparse.ArgumentParser, before: Sequence[str], current: str
) -> list[Candidate]:
    known = parser._option_string_actions
    option = known.get(before[-1]) if before else None
    if option is not None and option.nargs != 0 and "--" not in before:
        return _values(parser, option, current)
    name, equals, value = current.partition("=")
    if equals and name in known and known[name].nargs != 0:
        return [Candidate(f"{name}={word}" if word != FILES else word, meaning)
                for word, meaning in _values(parser, known[name], value)]  # fmt: skip
    if current.startswith("-") and "--" not in before:
        return _that_begin(current, _options(parser, before))
    place = _next_positional(parser, before)
    return _values(parser, place, current) if place is not None else []


def _options(parser: argparse.ArgumentParser, before: Sequence[str]) -> list[Candidate]:
    """Options that are not on the line yet, or may be repeated."""
    found = []
    for action in parser._actions:
        long = [one for one in action.option_strings if one.startswith("--")]
        repeated = isinstance(action, argparse._AppendAction)
        if not long or action.help == argparse.SUPPRESS:
            continue
        if repeated or not set(action.option_strings) & set(before):
            found.append(Candidate(long[0], (action.help or "").replace("%%", "%")))
    return found


def _next_positional(
    parser: argparse.ArgumentParser, before: Sequence[str]
) -> argparse.Action | None:
    """Which positional argument comes next."""
    known, taken, value = parser._option_string_actions, 0, False
    for word in before:
        if value:
            value = False
        elif word.startswith("-") and word != "-":
            action = known.get(word)
            value = action is not None and action.nargs != 0
        else:
            taken += 1
    places = [action for action in parser._actions if not action.option_strings]
    if places and taken >= len(places) and places[-1].nargs in ("*", "+"):
        return places[-1]
    return places[taken] if taken < len(places) else None


def _values(
    parser: argparse.ArgumentParser, action: argparse.Action, current: str
) -> list[Candidate]:
    from iopstui.cli.complete_values import VALUES, separated

    if action.choices is not None:
        return _that_begin(current, [Candidate(str(one)) for one in action.choices])
    called = str(action.metavar)
    name = action.option_strings[-1] if action.option_strings else called
    # the parser's program name ends in its command
    command = parser.prog.rpartition(" ")[2]
    source = VALUES.get(f"{command} {name}") or VALUES.get(name) or VALUES.get(called)
    if source is None:
        return []
    head, last = separated(name, current)
    return [one if one.word == FILES else Candidate(head + one.word, one.meaning)
            for one in _that_begin(last, source())]  # fmt: skip


def _that_begin(current: str, found: Iterable[Candidate]) -> list[Candidate]:
    # bash leaves the quote of a word that is not closed
    wanted = current.lstrip("'\"")
    return [one for one in found if one.word.startswith(wanted) or one.word == FILES]
