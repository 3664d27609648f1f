"""Ask fio whether an option exists and whether it takes a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from iopstui.errors import UsageError
from iopstui.fio.fence import Fence
from iopstui.fio.inspect import Fio, error_line, run_fio
from iopstui.model.fio.job_rules import objections
from iopstui.text import printable

PATH_OPTIONS = {"filename": "file or device", "directory": "directory"}
_LINE = re.compile(r"^ *([a-z]\w*) *: *(.*)$")
_VALUES = re.compile(r"valid values: *(\S+)|^ *: (\S+)", re.M)


def parse_options(text: str) -> dict[str, str]:
    """The options of ``fio --cmdhelp=all`` or ``--enghelp=ENGINE`` with fio's words for each."""
    found = (_LINE.match(line) for line in text.splitlines())
    return {line[1]: printable(line[2].strip()) for line in found if line}


@lru_cache(maxsize=16)
def known_options(fio: Fio, engine: str = "") -> Mapping[str, str]:
    """All options that a job of this engine can have, with fio's words. Each costs a start of fio
    (50 ms of CPU), once. Missing if fio can't be started."""
    found = parse_options(run_fio([fio.path, "--cmdhelp=all"], None, Fence()).stdout)
    if engine:
        asked = run_fio([fio.path, f"--enghelp={engine}"], None, Fence())
        found |= parse_options(asked.stdout) if not asked.returncode else {}
    return found


def check_option(fio: Fio, name: str, value: str, engine: str = "") -> None:
    """UsageError, with what may have been meant, if fio has no such option, does not take this
    value for it, or if jobs may not have it. An empty ``value`` (take it back) needs a known name
    only. What depends on the rest of the job is not seen here."""
    if name in PATH_OPTIONS:
        raise UsageError(
            f"{name}= conflicts with the target. Both set where the job runs.",
            f"Another {PATH_OPTIONS[name]}: d, or iopstui live TARGET",
        )
    known = known_options(fio, engine)
    if known and name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, n=2, cutoff=0.7)
        raise UsageError(
            f"fio has no option {name}.",
            f"Did you mean {' or '.join(near)}?" if near else "List: fio --cmdhelp=all",
        )
    if not value:
        return
    why = objections([(name, value)])
    if why:
        raise UsageError(f"{why[0]}.")
    own = [f"--ioengine={engine}"] if engine and name != "ioengine" else []
    words = ["--parse-only", "--name=check", *own, f"--{name}={value}"]
    said = run_fio([fio.path, *words], None, Fence())
    if said.returncode:
        _refuse(name, value, f"{said.stdout}\n{said.stderr}", known.get(name, ""))


def _refuse(name: str, value: str, said: str, meaning: str) -> None:
    values = [one or two for one, two in _VALUES.findall(said)]
    import difflib

    near = difflib.get_close_matches(value, values, n=2)
    lines = [line for line in said.splitlines() if "failed parsing" not in line]
    # "rwmixread: max value out of range: 170 (100 max)"
    why = error_line(lines).removeprefix(f"{name}: ")
    raise UsageError(
        f"fio does not accept {name}={value}" + (f": {why}." if why else "."),
        f"Did you mean {' or '.join(near)}?" if near
        else f"Allowed: {', '.join(values)}" if values
        else f"{name}: {meaning}" if meaning else "",
    )  # fmt: skip


def complete_option(text: str, names: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Complete an option name for Tab, and list the candidates."""
    if "=" in text:
        return text, ()
    begun = text.strip()
    fitting = tuple(sorted(name for name in names if name.startswith(begun)))
    if len(fitting) == 1:
        return f"{fitting[0]}=", fitting
    if not fitting:
        return begun, ()
    # what the first and the last in order begin with, all do
    first, last = fitting[0], fitting[-1]
    alike = next((at for at, one in enumerate(first) if last[at : at + 1] != one), len(first))
    return first[:alike], fitting
