"""fio job files as text: strict parsing, copies with options changed, the comments of a
captured job.

fio's own parser is lax: it cuts a value at any ``#`` or ``;``, takes ``[globalx]`` for ``[global]``
and drops the last letter of ``[name`` without a bracket, hands sums to a shell, and splits a line
that is too long. ``canonical_text`` accepts only unambiguous lines and writes them so that fio
can't misunderstand them; it refuses others with the line and the reason. ``with_overrides`` removes
an option everywhere, under each of its names, and writes the new value at the end of each job
section, so that it applies whatever ``[global]`` and the section said.

Each section of such a job has a line like "# captured: read 332.10/s, 6502 bytes each" for each
direction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iopstui.errors import UsageError

# options with several names, and options about the same thing (fio(1))
_ALIASES = (
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
# fio keeps all of these: bssplit= has priority over bsrange=, and bsrange= over bs=, in any order
_CONFLICTING = (("bs", "blocksize"), ("bsrange", "blocksize_range"), ("bssplit",))
# an override of where a job works removes both: for fio, neither replaces the other
_TARGET_OPTIONS = frozenset({"filename", "directory"})


@dataclass(frozen=True, slots=True)
class Section:
    """A ``[name]`` section of a job file with its own options, in order, unexpanded."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)


# the longest line that the parser of every fio version accepts
_MAX_LENGTH = 2000
_MAX_NAME_LENGTH = 120
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_SECOND_OPTION = re.compile(r"[\s,]+(--set\s+)?[a-z][a-z0-9_]*\s*=")
# options whose value is free text or a file name
_FREE_TEXT_OPTIONS = frozenset({"description", "filename", "directory", "filename_format"})
# marks the end of a file that is only inspected (fio/inspect.py)
END_SECTION = "iopstui-end"
_HEADER = re.compile(r"\[([^][#;]+)\]")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_KEYWORDS = ("$pagesize", "$mb_memory", "$ncpus")
_BLANK = " \t\r"
# options with which iopstui itself calculates: fio would also accept 0x10, (2*8) and $ncpus
_COUNTS = frozenset({"numjobs", "nrfiles", "iodepth", "loops"})
_SIZES = frozenset(
    {"size", "filesize", "file_size", "io_size", "io_limit", "offset", "bs", "blocksize", "ba"}
)
# the options that choose a job's sequence of random numbers
SEQUENCE = frozenset({"randrepeat", "allrandrepeat", "randseed"})
_EXPRESSION = re.compile(r"0[xX]|[()*/+]")


class AmbiguousLine(UsageError):
    """A line of a job file that has more than one meaning, or one that is not safe."""

    def __init__(self, line: int, quoted: str, why: str) -> None:
        super().__init__(f"line {line}: {quoted}: {why}")
        self.line = line


def canonical_text(text: str, environment: Mapping[str, str]) -> str:
    """``text`` in a form that has only one meaning: one option or header per line, no comment after
    it, ``${VAR}`` replaced where it is set (``unset_variables`` finds the others).

    Raises AmbiguousLine for the first ambiguous line."""
    lines: list[str] = []
    in_section = False
    for number, line in enumerate(text.split("\n"), 1):
        if len(line.encode("utf-8", "surrogateescape")) > _MAX_LENGTH:
            raise AmbiguousLine(
                number, f"{line[:30]!r}...", f"it is longer than {_MAX_LENGTH} bytes"
            )
        bare = line.strip(_BLANK)
        if not bare or bare[0] in "#;":
            lines.append("".join(char for char in bare if char.isprintable()).rstrip(_BLANK))
            continue
        content = re.split("[#;]", bare, maxsplit=1)[0].rstrip(_BLANK)
        why = _why_line_refused(content, in_section)
        if why:
            raise AmbiguousLine(number, repr(content), why)
        in_section = True
        lines.append(
            content if content[0] == "[" else _canonical_option(number, content, environment)
        )
    return "\n".join(lines)


def _why_line_refused(content: str, in_section: bool) -> str:
    """Why a line (without its comment) is refused; "" if it is accepted."""
    if not all(char.isprintable() or char == "\t" or char > "\x9f" for char in content):
        return "it has control characters in it"
    if content[0] == "[":
        return _unclear_header(content)
    if content.startswith("include"):
        return "other files are not included; put their lines here"
    if not in_section:
        return "it comes before the first [section]"
    name = content.partition("=")[0].rstrip(_BLANK)
    if _NAME.fullmatch(name.lower()) and not name.islower():
        return f"fio's options are in lower case: {name.lower()}"
    if not _NAME.fullmatch(name):
        return "this is not the name of a fio option"
    return ""


def _unclear_header(content: str) -> str:
    match = _HEADER.fullmatch(content)
    if match is None:
        return "a section is [name], alone on its line"
    name = match[1]
    if len(name.encode("utf-8", "surrogateescape")) > _MAX_NAME_LENGTH:
        return f"the name is longer than {_MAX_NAME_LENGTH} bytes"
    if name.startswith("global") and name != "global":
        return "fio takes every name that begins so for [global]"
    if name == END_SECTION:
        return "iopstui marks the end of the file with this name"
    return ""


def _canonical_option(number: int, content: str, environment: Mapping[str, str]) -> str:
    """An option with its value, variables replaced."""
    name, equals, value = content.partition("=")
    name, value = name.strip(_BLANK), value.strip(_BLANK)
    if not equals:
        return name
    substituted = [
        environment[variable] for variable in _VARIABLE.findall(value) if variable in environment
    ]
    expanded = _VARIABLE.sub(lambda match: environment.get(match[1], match[0]), value)
    why = next(filter(None, map(why_unsafe, (*substituted, _VARIABLE.sub("", expanded)))), "")
    why = why or why_number_refused(name, expanded)
    if why:
        raise AmbiguousLine(number, repr(f"{name}={expanded}"), why)
    return f"{name}={expanded}" if expanded or equals else name


def why_unsafe(value: str) -> str:
    """Why fio would misread this value; "" if it would not."""
    if any(char in value for char in "#;"):
        return "fio cuts a value at # and ;"
    if "${" in value:
        return "fio would look for an environment variable in it"
    keyword = next((word for word in _KEYWORDS if word in value), "")
    if keyword:
        return f"fio would replace {keyword} and calculate; write the number"
    if value != value.strip() or any(ord(char) < 32 or char == "\x7f" for char in value):
        return "fio would strip blanks or control characters"
    if len(value.encode("utf-8", "surrogateescape")) > _MAX_LENGTH:
        return f"it is longer than {_MAX_LENGTH} bytes"
    return ""


def why_number_refused(name: str, value: str) -> str:
    """Why a number that iopstui calculates with is refused; "" if it is accepted."""
    if name in _COUNTS and not _VARIABLE.search(value) and not value.isdecimal():
        return "write a plain decimal number"
    if name == "numjobs" and value.isdecimal() and not int(value):
        return "write 1 or more"
    if name in _SIZES and _EXPRESSION.search(_VARIABLE.sub("", value)):
        return "write a plain size, such as 4k or 1g"
    return ""


def unset_variables(text: str) -> Iterator[tuple[str, str]]:
    """(variable, line) of every ``${VAR}`` left in a canonical text, because it is not set."""
    for line in text.split("\n"):
        if not line.lstrip(_BLANK).startswith(("#", ";")):
            yield from ((match[1], line.strip()) for match in _VARIABLE.finditer(line))


def option_names(option: str) -> frozenset[str]:
    """All names that set the same thing as ``option``."""
    for group in _ALIASES:
        if option in group:
            return frozenset(group)
    return frozenset((option,))


def sections(text: str) -> tuple[Section, ...]:
    """The sections of a job file. Later options of the same name win, as they do for fio."""
    parsed: list[tuple[str, dict[str, str]]] = []
    for line in text.split("\n"):
        header = _header(line)
        if header is not None:
            parsed.append((header, {}))
            continue
        option = _option(line)
        if option is not None and parsed:
            parsed[-1][1][option[0]] = option[1]
    return tuple(Section(name, options) for name, options in parsed)


def effective_sections(text: str) -> tuple[Section, ...]:
    """The job sections, each with the ``[global]`` options that stand before it."""
    common: dict[str, str] = {}
    jobs = []
    for section in sections(text):
        if section.name == "global":
            common.update(section.options)
        else:
            options = dict(common)
            for option in section.options:
                for name in _replaced_by(option):
                    options.pop(name, None)
            jobs.append(Section(section.name, {**options, **section.options}))
    return tuple(jobs)


def _replaced_by(option: str) -> frozenset[str]:
    """The options of [global] that a section's ``option`` replaces."""
    conflicting = next((names for names in _CONFLICTING if option in names), None)
    return option_names(option) - _TARGET_OPTIONS if conflicting is None else frozenset(conflicting)


def with_overrides(
    text: str,
    overrides: Mapping[str, str],
    per_section: Mapping[int, Mapping[str, str]] | None = None,
    removed: Iterable[str] = (),
) -> str:
    """``text`` with the options ``overrides`` in force in every job section.

    ``per_section`` adds options to single job sections by their index (``[global]`` is not
    counted); ``removed`` options are removed everywhere. A value ``""`` writes an option without a
    value."""
    extra = per_section or {}
    replaced: set[str] = set(removed)
    for name in (*overrides, *(name for options in extra.values() for name in options)):
        replaced |= option_names(name)
    lines: list[str] = []
    job = -1
    pending: list[str] = []
    for line in text.split("\n"):
        header = _header(line)
        option = _option(line)
        if header is not None:
            lines += pending
            pending = []
            if header != "global":
                job += 1
                job_options = {**overrides, **extra.get(job, {})}
                pending = [_line(name, value) for name, value in job_options.items()]
            lines.append(line)
        elif option is None or option[0] not in replaced:
            lines.append(line)
    return "\n".join([*lines, *pending]).rstrip("\n") + "\n"


def other_blocks(text: str, seed: int) -> dict[str, str]:
    """The options that give a job another sequence of random blocks for each ``seed``, so that no
    run reads from a cache what the run before it has read. Without them, fio's sequence is the same
    in each run. Empty for a job that sets its sequence, or verifies data, which needs the sequence
    of the run that wrote them.

    fio before 3.34 ignores ``randseed`` for blocks unless ``randrepeat=0`` (fio issue 1502)."""
    for section in effective_sections(text):
        if any(name in SEQUENCE or name.startswith("verify") for name in section.options):
            return {}
    return {"randrepeat": "0", "randseed": str(seed)}


def only_sections(text: str, indices: Iterable[int]) -> str:
    """The job file with only these job sections, given by their index (``[global]`` is not
    counted)."""
    keep, job, lines, included = set(indices), -1, [], True
    for line in text.split("\n"):
        header = _header(line)
        if header is not None:
            job += header != "global"
            included = header == "global" or job in keep
        if included:
            lines.append(line)
    return "\n".join(lines)


def parse_override(text: str) -> tuple[str, str]:
    """``K=V`` of --set as (option, value); UsageError if the text has another form."""
    name, separator, value = text.partition("=")
    name = name.strip()
    if not separator or not name:
        raise UsageError(
            f"--set {text!r} is not of the form OPTION=VALUE.", "For example: --set iodepth=32"
        )
    value = value.strip()
    if not _NAME.fullmatch(name) or name.startswith("include"):
        raise UsageError(f"--set {text!r} is not a fio option.", "See: fio --cmdhelp=all")
    second_option = _SECOND_OPTION.search(value) if name not in _FREE_TEXT_OPTIONS else None
    if second_option is not None:
        # fio would take the first word as the value and ignore the rest silently
        raise UsageError(
            f"--set {text!r} has more than one option.",
            f"One at a time: --set {name}={value[: second_option.start()]}",
        )
    # a lesson may have a formula here, which is evaluated before fio sees it
    why = why_unsafe(value) or ("" if value.startswith("{") else why_number_refused(name, value))
    if why:
        raise UsageError(f"--set {text!r} is not accepted: {why}.")
    return name, value


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


# Options that no job may use, whatever its target. Source of the meanings: fio(1).
#
# This explains a refusal early; the real protection is the fence (fio/fence_exec.py).


Options = Iterable[tuple[str, str]]

PASSTHROUGH = "io_uring_cmd"
"""The engine that sends commands to an NVMe generic device, past the block layer."""
# these engines reach storage only by filename=, with open(2), and load nothing from a path
ENGINES = frozenset(
    {
        "cpuio", "filecreate", "filestat", "io_uring", PASSTHROUGH, "libaio", "mmap", "null",
        "posixaio", "psync", "pvsync", "pvsync2", "splice", "sync", "vsync",
    }
)  # fmt: skip
_MAKES_FILES = frozenset({"filecreate"})
_COMMANDS = frozenset({"exec_prerun", "exec_postrun"})
_OPENS_UNNAMED_FILES = {
    "opendir": "works on all files of a directory",
    "read_iolog": "works on the files that a recorded log names",
    "replay_": "works on the files that a recorded log names",
    "merge_blktrace": "merges recorded logs into a file",
    "dp_scheme": "reads a file of its own",
    "verify_state_load": "reads a file of an earlier run",
}
_NAMES = {
    "filename_format": "makes up file names; give them with filename=",
    "profile": "brings options that the job file does not show",
    "unique_filename": "changes the names of files",
}
# the only form that iopstui writes itself; fio reports such file names like any others
_SPREAD = re.compile(r"\$filenum/\d+\.\$jobnum")
_SETTINGS = {
    "ioscheduler": "changes the device's scheduler and leaves it so (use --knob scheduler=NAME)",
    "cgroup": "creates a control group",
    "cgroup_weight": "changes a control group",
    "cgroup_nodelete": "leaves a control group",
}
_REMOVES = frozenset({"unlink", "unlink_each_loop"})
_ENDS_OTHERS = frozenset({"exitall", "exitall_on_error", "exit_what"})
PREFIX_LOGS = ("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log")
FILE_LOGS = ("write_iolog",)


def spread_format(index: int) -> str:
    """The filename_format= that puts the files of section ``index`` into directories 0, 1 ..."""
    return f"$filenum/{index}.$jobnum"


def objections(options: Options) -> tuple[str, ...]:
    """Why this job is refused, in words; empty if it is allowed."""
    return tuple(dict.fromkeys(_objections(options)))


def _objections(options: Options) -> Iterator[str]:
    for name, value in options:
        if name in _COMMANDS:
            yield f"{name}= runs a command, and jobs get no shell"
        elif name in _NAMES and not (name == "filename_format" and _SPREAD.fullmatch(value)):
            yield f"{name}= {_NAMES[name]}"
        elif name in _SETTINGS:
            yield f"{name}= {_SETTINGS[name]}"
        elif name in ("mem", "iomem") and ":" in value:
            yield f"{name}={value} writes its buffers into a file"
        elif name == "ioengine" and value not in ENGINES:
            yield f"ioengine={value} {_why_not(value)}"
        else:
            unnamed = next((what for what in _OPENS_UNNAMED_FILES if name.startswith(what)), None)
            if unnamed is not None:
                yield f"{name}= {_OPENS_UNNAMED_FILES[unnamed]}, which can't be checked beforehand"


def _why_not(engine: str) -> str:
    if "/" in engine or engine.startswith("external"):
        return "loads a program from a file"
    import difflib

    similar = difflib.get_close_matches(engine, sorted(ENGINES), n=1)
    if similar:
        return f"is not among the engines that can be guarded (did you mean {similar[0]}?)"
    return (
        "is not among the engines that reach their storage by filename= alone, which are "
        + ", ".join(sorted(ENGINES))
    )


def removes_files(options: Options) -> bool:
    """True if the job removes the files it worked on (unlink=1)."""
    return any(name in _REMOVES and value != "0" for name, value in options)


def ends_others(options: Options) -> bool:
    """True if one of its jobs may end others, by a signal of fio's own (exitall=1)."""
    return any(name in _ENDS_OTHERS and value != "0" for name, value in options)


def makes_files(options: Options) -> bool:
    """True if the job creates files although fio treats it as a job that only reads."""
    return any(name == "ioengine" and value in _MAKES_FILES for name, value in options)


_LINE = re.compile(
    r"# captured: (?P<direction>read|write) (?P<rate>[\d.]+)/s, (?P<size>\d+) bytes each"
)
_SECTION = re.compile(r"\s*\[(?P<name>[^\]]+)\]")


@dataclass(frozen=True, slots=True)
class Figures:
    """Requests per second, and their mean size in bytes (``None``: not known)."""

    rate: float
    size: float | None


@dataclass(frozen=True, slots=True)
class CapturedRow:
    """A section and direction of a captured job, and of its run; ``replayed`` is ``None`` if fio
    reported nothing for it."""

    section: str
    direction: str
    captured: Figures
    replayed: Figures | None

    @property
    def ratio(self) -> float | None:
        """Replayed requests per second divided by captured ones."""
        if self.replayed is None or not self.captured.rate:
            return None
        return self.replayed.rate / self.captured.rate


def captured_line(direction: str, rate: float, size: float) -> str:
    """The comment (without its #) that ``captured_rows`` reads."""
    return f"captured: {direction} {rate:.2f}/s, {size:.0f} bytes each"


def captured_rows(job: str, summary: Mapping[str, Any]) -> list[CapturedRow]:
    """The captured figures beside fio's final ones (``model.summary.fio_summary``); empty if the
    job was not captured."""
    rows: Sequence[Mapping[str, Any]] = summary.get("rows", ())
    return [
        CapturedRow(name, direction, figures, _replayed(rows, name, direction))
        for name, direction, figures in _captured(job)
    ]


def _captured(job: str) -> Iterator[tuple[str, str, Figures]]:
    waiting: list[tuple[str, Figures]] = []
    for line in job.splitlines():
        if match := _LINE.fullmatch(line.strip()):
            figures = Figures(float(match["rate"]), float(match["size"]))
            waiting.append((match["direction"], figures))
        elif section := _SECTION.match(line):
            for direction, figures in waiting:
                yield section["name"], direction, figures
            waiting = []


def _replayed(rows: Sequence[Mapping[str, Any]], name: str, direction: str) -> Figures | None:
    """Figures of fio for all jobs of a section together."""
    directions = [row["directions"][direction] for row in rows
             if row["name"] == name and direction in row["directions"]]  # fmt: skip
    if not directions:
        return None
    rate = sum(part["iops"] for part in directions)
    total_bytes = sum(part["io_bytes"] for part in directions)
    ios = sum(part["total_ios"] for part in directions)
    return Figures(rate, total_bytes / ios if ios else None)
