"""fio job files as text: what a section says, and a copy with some options changed.

fio's own parser decides what a job means (sources/fio_inspect.py asks it). This module only
edits: it removes an option wherever it stands, under every name fio gives it, and writes the
wanted value at the end of each job section, so that the change holds whatever ``[global]``
and the section said. Everything else stays as it was, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from iopstui.errors import UsageError

# options with several names, and options that speak of the same thing (fio(1))
_SAME = (
    ("bs", "blocksize", "bsrange", "blocksize_range", "bssplit"),
    ("rw", "readwrite"),
    ("runtime", "timeout"),
    ("direct", "buffered"),
    ("io_size", "io_limit"),
    ("name", "jobname"),
    ("size", "filesize"),
    ("numjobs",),
    ("filename", "directory"),
    ("iodepth",),
)


@dataclass(frozen=True, slots=True)
class Section:
    """One ``[name]`` of a job file with its own options, in order, unexpanded."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)


def names_of(option: str) -> frozenset[str]:
    """All names that set the same thing as ``option``."""
    for group in _SAME:
        if option in group:
            return frozenset(group)
    return frozenset((option,))


def sections(text: str) -> tuple[Section, ...]:
    """The sections of a job file. Later options of the same name win, as they do for fio."""
    found: list[tuple[str, dict[str, str]]] = []
    for line in text.splitlines():
        header = _header(line)
        if header is not None:
            found.append((header, {}))
            continue
        option = _option(line)
        if option is not None and found:
            found[-1][1][option[0]] = option[1]
    return tuple(Section(name, options) for name, options in found)


def effective(text: str) -> tuple[Section, ...]:
    """The job sections, each with the ``[global]`` options that stand before it."""
    common: dict[str, str] = {}
    jobs = []
    for section in sections(text):
        if section.name == "global":
            common.update(section.options)
        else:
            own = dict(common)
            for option in section.options:
                for name in names_of(option):
                    own.pop(name, None)
            jobs.append(Section(section.name, {**own, **section.options}))
    return tuple(jobs)


def changed(
    text: str,
    overrides: Mapping[str, str],
    per_section: Mapping[int, Mapping[str, str]] | None = None,
    removed: Iterable[str] = (),
) -> str:
    """``text`` with ``overrides`` in force in every job section.

    ``per_section`` adds options to single job sections by their index (``[global]`` is not
    counted); ``removed`` takes options away everywhere. A value ``""`` writes a bare option.
    """
    extra = per_section or {}
    gone: set[str] = set(removed)
    for name in (*overrides, *(name for options in extra.values() for name in options)):
        gone |= names_of(name)
    out: list[str] = []
    job = -1
    pending: list[str] = []
    for line in text.splitlines():
        header = _header(line)
        option = _option(line)
        if header is not None:
            out += pending
            pending = []
            if header != "global":
                job += 1
                wanted = {**overrides, **extra.get(job, {})}
                pending = [_line(name, value) for name, value in wanted.items()]
            out.append(line)
        elif option is None or option[0] not in gone:
            out.append(line)
    return "\n".join([*out, *pending]) + "\n"


def checked_override(text: str) -> tuple[str, str]:
    """``K=V`` of --set as (option, value); UsageError if it is not of that form."""
    name, separator, value = text.partition("=")
    name = name.strip()
    if not separator or not name:
        raise UsageError(
            f"--set {text!r} is not of the form OPTION=VALUE.", "For example: --set iodepth=32"
        )
    if any(ord(char) < 32 for char in text) or name[0] in "[#;":
        raise UsageError(f"--set {text!r} is not a fio option.", "See: fio --cmdhelp=all")
    return name, value.strip()


def _header(line: str) -> str | None:
    bare = line.strip()
    if bare.startswith("[") and "]" in bare:
        return bare[1 : bare.rindex("]")]
    return None


def _option(line: str) -> tuple[str, str] | None:
    bare = line.strip()
    if not bare or bare[0] in "#;":
        return None
    name, _, value = bare.partition("=")
    return name.strip(), value.strip()


def _line(name: str, value: str) -> str:
    return f"{name}={value}" if value != "" else name
