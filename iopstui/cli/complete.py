"""Complete a command line for the shell scripts in iopstui/data/completion.

A shell passes the words so far and gets candidates back. So it offers exactly what this version
accepts: commands and options come from their parsers, values from where the program itself has
them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from iopstui.cli.command import FILES, Candidate, CommandLine


def complete(words: Sequence[str], line: CommandLine) -> list[Candidate]:
    """Candidates for ``words[-1]``, which may be empty."""
    *before, current = words or ("",)
    if not before:
        command_candidates = [Candidate(command.name, command.help) for command in line.commands()]
        return _matching(
            current, [*command_candidates, Candidate("--help"), Candidate("--version")]
        )
    parser = line.parsers(before[0]).get(before[0])
    if parser is None:
        return []
    return _complete_argument(parser, before[1:], current)


def _complete_argument(
    parser: argparse.ArgumentParser, before: Sequence[str], current: str
) -> list[Candidate]:
    actions = parser._option_string_actions
    option = actions.get(before[-1]) if before else None
    if option is not None and option.nargs != 0 and "--" not in before:
        return _value_candidates(parser, option, current)
    name, equals, value = current.partition("=")
    if equals and name in actions and actions[name].nargs != 0:
        return [Candidate(f"{name}={word}" if word != FILES else word, meaning)
                for word, meaning in _value_candidates(parser, actions[name], value)]  # fmt: skip
    if current.startswith("-") and "--" not in before:
        return _matching(current, _option_candidates(parser, before))
    positional = _next_positional(parser, before)
    return _value_candidates(parser, positional, current) if positional is not None else []


def _option_candidates(parser: argparse.ArgumentParser, before: Sequence[str]) -> list[Candidate]:
    """The options that are not on the line yet, or may be repeated."""
    candidates = []
    for action in parser._actions:
        long = [name for name in action.option_strings if name.startswith("--")]
        repeated = isinstance(action, argparse._AppendAction)
        if not long or action.help == argparse.SUPPRESS:
            continue
        if repeated or not set(action.option_strings) & set(before):
            candidates.append(Candidate(long[0], (action.help or "").replace("%%", "%")))
    return candidates


def _next_positional(
    parser: argparse.ArgumentParser, before: Sequence[str]
) -> argparse.Action | None:
    actions, index, value = parser._option_string_actions, 0, False
    for word in before:
        if value:
            value = False
        elif word.startswith("-") and word != "-":
            action = actions.get(word)
            value = action is not None and action.nargs != 0
        else:
            index += 1
    positionals = [action for action in parser._actions if not action.option_strings]
    if positionals and index >= len(positionals) and positionals[-1].nargs in ("*", "+"):
        return positionals[-1]
    return positionals[index] if index < len(positionals) else None


def _value_candidates(
    parser: argparse.ArgumentParser, action: argparse.Action, current: str
) -> list[Candidate]:
    from iopstui.cli.complete_values import VALUES

    if action.choices is not None:
        return _matching(current, [Candidate(str(choice)) for choice in action.choices])
    metavar = str(action.metavar)
    name = action.option_strings[-1] if action.option_strings else metavar
    # the parser's program name ends in its command
    command = parser.prog.rpartition(" ")[2]
    source = VALUES.get(f"{command} {name}") or VALUES.get(name) or VALUES.get(metavar)
    if source is None:
        return []
    return _matching(current, source())


def _matching(current: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    # bash leaves the opening quote of a word that is not closed
    prefix = current.lstrip("'\"")
    return [
        candidate
        for candidate in candidates
        if candidate.word.startswith(prefix) or candidate.word == FILES
    ]
