"""Ask fio whether an option exists and whether it takes a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from iopstui.errors import UsageError
from iopstui.fio.fence import Fence
from iopstui.fio.inspect import Fio, error_line, run_fio
from iopstui.model.fio.jobfile import objections
from iopstui.text import printable

PATH_OPTIONS = {"filename": "file or device", "directory": "directory"}
_LINE = re.compile(r"^ *([a-z]\w*) *: *(.*)$")
_VALUES = re.compile(r"valid values: *(\S+)|^ *: (\S+)", re.M)


def parse_options(text: str) -> dict[str, str]:
    """The options of ``fio --cmdhelp=all`` or ``--enghelp=ENGINE`` with fio's words for each."""
    matches = (_LINE.match(line) for line in text.splitlines())
    return {line[1]: printable(line[2].strip()) for line in matches if line}


@lru_cache(maxsize=16)
def read_fio_options(fio: Fio, engine: str = "") -> Mapping[str, str]:
    """All options that a job with this engine can have, with fio's words. For each engine that
    costs a start of fio (50 ms of CPU), once. Raises Missing if fio can't be started."""
    options = parse_options(run_fio([fio.path, "--cmdhelp=all"], None, Fence()).stdout)
    if engine:
        answer = run_fio([fio.path, f"--enghelp={engine}"], None, Fence())
        options |= parse_options(answer.stdout) if not answer.returncode else {}
    return options


def check_option(fio: Fio, name: str, value: str, engine: str = "") -> None:
    """Raises UsageError, with what may have been meant, if fio has no such option, does not accept
    this value for it, or if jobs may not have it. For an empty ``value`` (which undoes the option)
    only the name must be known. Errors that depend on the rest of the job are not found here."""
    if name in PATH_OPTIONS:
        raise UsageError(
            f"{name}= conflicts with the target. Both set where the job runs.",
            f"Another {PATH_OPTIONS[name]}: d, or iopstui live TARGET",
        )
    options = read_fio_options(fio, engine)
    if options and name not in options:
        import difflib

        similar = difflib.get_close_matches(name, options, n=2, cutoff=0.7)
        raise UsageError(
            f"fio has no option {name}.",
            f"Did you mean {' or '.join(similar)}?" if similar else "List: fio --cmdhelp=all",
        )
    if not value:
        return
    why = objections([(name, value)])
    if why:
        raise UsageError(f"{why[0]}.")
    engine_option = [f"--ioengine={engine}"] if engine and name != "ioengine" else []
    arguments = ["--parse-only", "--name=check", *engine_option, f"--{name}={value}"]
    answer = run_fio([fio.path, *arguments], None, Fence())
    if answer.returncode:
        _refuse(name, value, f"{answer.stdout}\n{answer.stderr}", options.get(name, ""))


def _refuse(name: str, value: str, output: str, meaning: str) -> None:
    values = [first or second for first, second in _VALUES.findall(output)]
    import difflib

    similar = difflib.get_close_matches(value, values, n=2)
    lines = [line for line in output.splitlines() if "failed parsing" not in line]
    # "rwmixread: max value out of range: 170 (100 max)"
    why = error_line(lines).removeprefix(f"{name}: ")
    raise UsageError(
        f"fio does not accept {name}={value}" + (f": {why}." if why else "."),
        f"Did you mean {' or '.join(similar)}?" if similar
        else f"Allowed: {', '.join(values)}" if values
        else f"{name}: {meaning}" if meaning else "",
    )  # fmt: skip


def complete_option(text: str, names: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Complete an option name for Tab, and list the candidates."""
    if "=" in text:
        return text, ()
    prefix = text.strip()
    fitting = tuple(sorted(name for name in names if name.startswith(prefix)))
    if len(fitting) == 1:
        return f"{fitting[0]}=", fitting
    if not fitting:
        return prefix, ()
    # a common prefix of the first and the last in sorted order is a prefix of all
    first, last = fitting[0], fitting[-1]
    common_length = next(
        (at for at, letter in enumerate(first) if last[at : at + 1] != letter), len(first)
    )
    return first[:common_length], fitting
