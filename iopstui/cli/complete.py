"""Complete a command line for the shell scripts in iopstui/data/completion.

A shell passes the words so far and gets candidates back. So it offers exactly what this version
accepts: commands and options come from the parsers, values from the program's own lists."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from iopstui.cli.command import FILES, Candidate, CandidateSource, CommandLine
from iopstui.discovery import feature_modules
from iopstui.errors import IopstuiError


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
    """The options that are not on the line yet, and those that may be repeated."""
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

    if action.choices is not None:
        return _matching(current, [Candidate(str(choice)) for choice in action.choices])
    metavar = str(action.metavar)
    name = action.option_strings[-1] if action.option_strings else metavar
    # ``prog`` is "iopstui COMMAND"
    command = parser.prog.rpartition(" ")[2]
    source = VALUES.get(f"{command} {name}") or VALUES.get(name) or VALUES.get(metavar)
    if source is None:
        return []
    return _matching(current, source())


def _matching(current: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    # bash passes an unclosed word with its opening quote
    prefix = current.lstrip("'\"")
    return [
        candidate
        for candidate in candidates
        if candidate.word.startswith(prefix) or candidate.word == FILES
    ]


# Complete the values of options and arguments that the machine or the program knows.


def devices() -> Iterator[Candidate]:
    """The machine's block devices that have a size."""
    from iopstui.linux.devices.sysfs import read_devices
    from iopstui.linux.kernel_files import Roots

    for device in read_devices(Roots()).values():
        if device.size and not device.hidden:
            yield Candidate(device.path, device.model or device.kind)


def jobs() -> Iterator[Candidate]:
    """The shipped jobs."""
    from iopstui.fio.library import shipped_jobs

    for job in shipped_jobs():
        yield Candidate(job.name, job.title)


def volumes() -> Iterator[Candidate]:
    """Classes of volumes, shipped ones and the user's."""
    from iopstui.catalog import read_catalog

    for volume in read_catalog().classes.values():
        yield Candidate(volume.id, volume.title)


def instances() -> Iterator[Candidate]:
    """Instance sizes."""
    from iopstui.catalog import read_catalog

    for instance in read_catalog().instances.values():
        yield Candidate(instance.id, "instance size")


def fields() -> Iterator[Candidate]:
    """The figures of a run for which there can be an expectation."""
    from iopstui.model.figures.figure import ANY
    from iopstui.model.metrics.fields import FIELDS
    from iopstui.model.metrics.figures import is_measurable

    for field in FIELDS:
        if ANY not in field.path and is_measurable(field.path):
            short = field.id
            for before in ("kernel.total.", "fio.total.", "fio.", "kernel."):
                short = short.removeprefix(before)
            yield Candidate(short, field.meaning)


def tunables() -> Iterator[Candidate]:
    """Settings of a device's queue."""
    from iopstui.model.block.tunable import TUNABLES

    for tunable in TUNABLES.values():
        yield Candidate(f"{tunable.name}=", tunable.meaning)


def fio_options() -> Iterator[Candidate]:
    """Options of the installed fio, or common ones without it."""
    from iopstui.cli.parser import FIO_OPTIONS
    from iopstui.fio.inspect import find_fio, read_fio_options

    options: Mapping[str, str] = {}
    with contextlib.suppress(IopstuiError):
        options = read_fio_options(find_fio())
    for name, meaning in (options or dict.fromkeys(sorted(FIO_OPTIONS), "")).items():
        yield Candidate(f"{name}=", meaning)


def files() -> Iterator[Candidate]:
    """Let the shell complete file names."""
    yield Candidate(FILES)


def demo() -> Iterator[Candidate]:
    """The demo recording, which comes with iopstui."""
    yield Candidate("demo", "comes with iopstui")


def _both(first: CandidateSource, then: CandidateSource) -> CandidateSource:
    return lambda: chain(first(), then())


VALUES: Mapping[str, CandidateSource] = {
    "TARGET": _both(devices, files),
    "DEVICE": devices,
    "--destroy-data": _both(devices, files),
    "--job": _both(jobs, files),
    "JOB": _both(jobs, files),
    "jobs NAME": jobs,
    "volumes NAME": volumes,
    "--volume": volumes,
    "--instance": instances,
    "DIR|PROGRAM": files,
    "--set": fio_options,
    "--axis": _both(tunables, fio_options),
    "--variant": _both(tunables, fio_options),
    "--knob": tunables,
    "--expect": fields,
    "--trigger": fields,
    "replay FILE": _both(demo, files),
    "report FILE": _both(demo, files),
    "FILE": files,
    "OUT": files,
    **{name: source for module in feature_modules("completion")
       for name, source in module.VALUES.items()},
}  # fmt: skip
"""Functions that return the values, by "COMMAND OPTION", by the option or argument, or by the
value's name in the help. An option that is not here and has no ``choices`` is not completed."""
