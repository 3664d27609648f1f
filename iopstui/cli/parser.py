"""An argparse parser with readable errors: the reason, one line of usage, a suggestion."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from iopstui.cli.terminal import width
from iopstui.errors import EXIT_USAGE

FIO_OPTIONS = frozenset({
    "bs", "bsrange", "bssplit", "buffered", "clocksource", "cpus_allowed", "direct", "directory",
    "fdatasync", "fsync", "gtod_reduce", "io_size", "iodepth", "iodepth_batch", "ioengine",
    "norandommap", "nrfiles", "numjobs", "offset", "ramp_time", "randrepeat", "rate", "rate_iops",
    "runtime", "rw", "rwmixread", "rwmixwrite", "sync", "thinktime", "time_based", "verify",
    "zonemode",
})  # fmt: skip
"""Options of fio that people type by habit. All options of fio can be given with --set."""
FIO_ALIASES = {"blocksize": "bs", "engine": "ioengine", "readwrite": "rw"}
NEGATIVE_NUMBER = re.compile(r"-\d+$|-\d*\.\d+$")
TIME_AGO = re.compile(r"-\d+(\.\d*)?[smhd]?$")
GUESS = "did you mean"
TARGET_OPTIONS = ("--filename", "--file", "--device", "--dev", "--target")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Argparse's formatter, but without ``shutil``, which argparse imports as soon as an option is
    added."""

    def __init__(self, prog: str, **options: Any) -> None:
        options.setdefault("width", width() - 2)
        super().__init__(prog, **options)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap paragraphs to ``width``; lines that are aligned with blanks stay as they are."""
        import textwrap

        paragraphs = [""]
        for line in text.strip("\n").split("\n"):
            is_continuation = (
                paragraphs[-1]
                and line
                and not _is_aligned(paragraphs[-1])
                and not _is_aligned(line)
            )
            if is_continuation:
                paragraphs[-1] += f" {line}"
            else:
                paragraphs.append(line)
        return "\n".join(
            paragraph
            if _is_aligned(paragraph)
            else textwrap.fill(paragraph, width, break_on_hyphens=False)
            for paragraph in paragraphs[1:]
        )


def _missing_text(reason: str) -> str:
    """Name the required arguments that argparse reports as missing."""
    one_of = reason.removeprefix("one of the arguments ").removesuffix(" is required")
    if one_of.startswith("-") and one_of != reason:
        return f"{' or '.join(one_of.split())} is missing"
    all_of = reason.removeprefix("the following arguments are required: ")
    if all_of == reason:
        return reason
    return f"{all_of} {'are' if ', ' in all_of else 'is'} missing"


def _is_aligned(line: str) -> bool:
    return line.startswith(" ") or "   " in line


class Parser(argparse.ArgumentParser):
    """Argparse's parser with better error messages."""

    args: Sequence[str] = ()
    """The arguments that were parsed last."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Python 3.14 reads -1m as a negative number, and so as the value of an option
        self._negative_number_matcher = NEGATIVE_NUMBER

    def allow_times_ago(self) -> None:
        """Accept -2h as the value of an option."""
        self._negative_number_matcher = TIME_AGO

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse as argparse does, and keep the arguments for error messages."""
        self.args = [] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with code 2."""
        unknown = self.unknown_option()
        if unknown and "required" in message:
            # the unknown option may be the reason: -j in place of --job
            self.report_unknown_option(unknown)
        reason = message.removeprefix("argument ")
        if reason.endswith(": expected one argument"):
            self._report_missing_value(reason.partition(":")[0].split("/"))
        self._exit_with_usage(_missing_text(reason), _example_for(message))

    def _report_missing_value(self, names: Sequence[str]) -> NoReturn:
        """Report that the option with these ``names`` is followed by nothing, or by what looks like
        another option."""
        action = self._option_string_actions[names[0]]
        indices = (index for index, arg in enumerate(self.args) if arg in names)
        last = self.args[next(indices, len(self.args)) :][:2]
        if len(last) < 2:
            self._exit_with_usage(
                f"{names[-1]} has no value", f"it takes one: {names[-1]} {action.metavar}"
            )
        option, value = last
        self._exit_with_usage(f"{option} has no value: {value!r} begins with -, as options do",
                              f"if it is meant as the value: {option}={value}")  # fmt: skip

    def report_unknown_option(self, args: Sequence[str], commands: Sequence[str] = ()) -> NoReturn:
        """Report ``args``, an unknown option and its value, and exit. ``commands`` are others that
        have it."""
        option = args[0].split("=")[0]
        advice = self.suggestion(args)
        if commands and (not advice or advice.startswith(GUESS)):
            advice = f"{_first_three(commands)} {'has' if len(commands) == 1 else 'have'} it"
        self._exit_with_usage(f"there is no option {option}", advice)

    def report_surplus(self, args: Sequence[str]) -> NoReturn:
        """Report ``args``, more arguments than the command takes, and exit."""
        self._exit_with_usage(f"unexpected argument {' '.join(args)!r}", "")

    def report_unknown_command(self, name: str, names: Sequence[str]) -> NoReturn:
        import os

        if "/" in name or os.path.exists(name):
            self._exit_with_usage(
                f"{name!r} is not a command", f"to look at it: iopstui live {name}"
            )
        import difflib

        matches = difflib.get_close_matches(name, names, n=1)
        advice = f"did you mean iopstui {matches[0]}?" if matches else ""
        self._exit_with_usage(f"there is no command {name!r}", advice)

    def report_option_before_command(self, option: str, commands: Sequence[str]) -> NoReturn:
        advice = "no command has it, either"
        if commands:
            more = f" (or {_first_three(commands[1:])})" if commands[1:] else ""
            advice = f"the command must come first: iopstui {commands[0]} {option} ...{more}"
        self._exit_with_usage(f"there is no option {option} before a command", advice)

    def _exit_with_usage(self, reason: str, advice: str) -> NoReturn:
        from iopstui.text import printable

        usage = f"usage: {short_usage(self)}"
        details = [*([advice] if advice else []), usage, f"more: {self.prog} --help"]
        lines = [f"iopstui: {printable(reason)}", *(f"  {printable(line)}" for line in details)]
        self.exit(EXIT_USAGE, "\n".join(lines) + "\n")

    def unknown_option(self) -> list[str]:
        """The first unknown option, with the next argument if that may be its value."""
        for index, arg in enumerate(self.args):
            if arg == "--":
                break
            if arg.startswith("-") and arg != "-" and not self._is_known(arg):
                return [arg, *(x for x in self.args[index + 1 : index + 2] if x[:1] != "-")]
        return []

    def _is_known(self, arg: str) -> bool:
        name = arg.split("=")[0]
        if arg[1] != "-":  # the option is -o, in -o FILE or -oFILE
            name = arg[:2]
        return any(option.startswith(name) if name[:2] == "--" else option == name
                   for option in self._option_string_actions)  # fmt: skip

    def suggestion(self, args: Sequence[str]) -> str:
        """A suggestion for an unknown option; "" if there is none."""
        import difflib

        option, _, value = args[0].partition("=")
        value = value or (args[1] if len(args) > 1 else "")
        name = option.lstrip("-").replace("-", "_")
        options = [string for string in self._option_string_actions if string.startswith("--")]
        if name in FIO_OPTIONS | FIO_ALIASES.keys() and "--set" in options:
            return f"that is a fio option: --set {FIO_ALIASES.get(name, name)}={value or 'VALUE'}"
        if option in TARGET_OPTIONS and any(action.dest == "target" for action in self._actions):
            return f"the target is given without an option: {self.prog} {value or 'TARGET'}"
        if not option.startswith("--"):
            matches = [string for string in options if string[2] == option[1]]
        else:
            matches = difflib.get_close_matches(option, options, n=1, cutoff=0.6)
        return f"{GUESS} {' or '.join(matches)}?" if matches else ""


def _first_three(commands: Sequence[str]) -> str:
    names = [f"iopstui {name}" for name in commands[:3]]
    return ", ".join([*names, "..."] if commands[3:] else names)


def _example_for(message: str) -> str:
    if "--job" in message and "required" in message:
        return "for example --job randread-4k; list: iopstui jobs"
    return ""


def short_usage(parser: argparse.ArgumentParser) -> str:
    positionals = [a for a in parser._actions if not a.option_strings]
    groups = [g for g in parser._mutually_exclusive_groups if g.required]
    grouped = {id(action) for group in groups for action in group._group_actions}
    parts = [parser.prog, *map(_positional_text, positionals)]
    parts += [_option(a) for a in parser._actions if a.required and a.option_strings]
    parts += ["(" + " | ".join(map(_option, g._group_actions)) + ")" for g in groups]
    optional = [a for a in parser._actions if a.option_strings and id(a) not in grouped]
    if any(not a.required and "--help" not in a.option_strings for a in optional):
        parts.append("[OPTION]...")
    return " ".join(parts)


def _option(action: argparse.Action) -> str:
    return f"{action.option_strings[-1]} {action.metavar}"


def _positional_text(action: argparse.Action) -> str:
    text = str(action.metavar)
    return {"?": f"[{text}]", "*": f"[{text}]...", "+": f"{text}..."}.get(str(action.nargs), text)
