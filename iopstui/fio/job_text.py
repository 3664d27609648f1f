"""Inspect the text of a job file; fio/inspect.py has fio's own interpretation."""

from __future__ import annotations

import codecs
import contextlib
import os
import shlex
import stat
from collections.abc import Sequence
from pathlib import Path

from iopstui.errors import Refused, UsageError
from iopstui.fio.inspect import JobFacts
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import Section
from iopstui.model.fio.rows import flag
from iopstui.model.sizes import size_bytes
from iopstui.text import printable

MAX_JOB_FILE = 1 << 20


def read_job(path: Path) -> str:
    """The text of a job file as ``jobfile.canonical_text`` writes it. Undecodable bytes are kept.
    Raises UsageError if the file is not a job file, or if the meaning of a line is not certain. The
    message begins with the reason, because a path can be longer than there is room on the
    screen."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise UsageError(f"{path} is not a regular file.")
        if info.st_size > MAX_JOB_FILE:
            raise UsageError(f"{path} is too large for a fio job file ({info.st_size} bytes).")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{error.strerror}: the job file {path} can't be read.") from error
    if not data.strip():
        raise UsageError(f"The job file {path} is empty.",
                         "Choose a job from `iopstui jobs`, or add at least one [name] section.",
                         )  # fmt: skip
    if b"\0" in data:
        raise UsageError(f"{path} is not a fio job file (it contains binary data).")
    if data.startswith(codecs.BOM_UTF8):
        raise UsageError(
            f"The job file {path} starts with a byte order mark, which fio does not understand.",
            f"Remove it: sed -i '1s/^\\xEF\\xBB\\xBF//' {shlex.quote(str(path))}",
        )
    text = data.decode("utf-8", "surrogateescape")
    try:
        return jobfile.canonical_text(text, os.environ)
    except jobfile.AmbiguousLine as error:
        raise UsageError(
            f"The job file is not accepted: {error.message} (in {path}).",
            "Rewrite that line without ambiguity, or run the file with fio itself.",
        ) from error


def check_variables(text: str, label: str) -> None:
    """Raises UsageError for a ``${VAR}`` that is not set, which fio would replace by nothing."""
    for name, line in jobfile.unset_variables(text):
        raise UsageError(
            f"{label} needs the variable {name}, which is not set: {line}",
            f"Set it for the command: {name}=... iopstui ...",
        )


def check_options(text: str, label: str) -> None:
    """Refuse forbidden options before fio sees the file."""
    problems = jobfile.objections(
        pair for section in jobfile.sections(text) for pair in section.options.items()
    )
    if problems:
        raise Refused(
            f"{label} is not run: {printable('; '.join(problems))}.",
            "Remove it from the job file, or run the file with fio.",
        )


def sets_filename(text: str) -> bool:
    """True if a job itself names the path or directory it works on, so that no target is needed.
    Not to be asked about a shipped job: its relative ``filename=`` only makes its threads share a
    file."""
    return any(
        "filename" in s.options or "directory" in s.options
        for s in jobfile.effective_sections(text)
    )


def describe_job(text: str) -> str:
    """One line for the header: "randread 4k  QD 32 × 2 jobs", or the sections' names."""
    jobs = jobfile.effective_sections(text)
    if len(jobs) != 1:
        return f"{len(jobs)} jobs: " + ", ".join(job.name for job in jobs)
    options = {name: expand_variables(value) for name, value in jobs[0].options.items()}
    rw = options.get("rw", options.get("readwrite", "read"))
    block = options.get("bs") or options.get("bsrange") or options.get("bssplit") or "4k"
    count = count_of(options.get("numjobs"))
    plural = "job" if count == 1 else "jobs"
    return f"{rw} {block}  QD {options.get('iodepth', '1')} × {count} {plural}"


def common_options(text: str) -> dict[str, str]:
    """The options that are the same in all sections of a job, without those that name files or
    directories."""
    jobs = [job.options for job in jobfile.effective_sections(text)]
    first, *others = jobs or [{}]
    return {
        name: value
        for name, value in first.items()
        if name not in ("filename", "directory") and all(o.get(name) == value for o in others)
    }


def expand_variables(text: str) -> str:
    """Expand ``${VAR}`` in a text as fio does, from the environment (unset: empty)."""
    out, rest = "", text
    while True:
        before, opening, tail = rest.partition("${")
        name, closing, after = tail.partition("}")
        if not opening or not closing:
            return out + rest
        out, rest = out + before + os.environ.get(name, ""), after


def escape_path(path: str) -> str:
    """Write a path as a value of filename= or directory=, in which ``:`` separates paths (fio(1)).
    Raises UsageError for a path that a job file can't express."""
    why = jobfile.why_unsafe(path)
    # fio has no escape for the backslash itself
    if "\\:" in path:
        why = "fio reads a backslash before a colon as an escape"
    if why:
        raise UsageError(
            f"{printable(path)} cannot be used in a job file: {why}.",
            "Create a symbolic link with a plain name and use that.",
        )
    return path.replace(":", "\\:")


def join_paths(paths: Sequence[str]) -> str:
    """Write several paths as one value. Raises UsageError like ``escape_path``."""
    for path in paths[:-1]:
        if path.endswith("\\"):
            escape_path(path + ":")
    return ":".join(map(escape_path, paths))


def count_of(text: str | None) -> int:
    """A count of at least 1; 1 also if no count is given."""
    with contextlib.suppress(ValueError):
        return max(1, int(expand_variables(text or "1")))
    return 1


def uses_direct_io(job: Section) -> bool:
    """Whether a job asks for O_DIRECT (direct=, buffered=)."""
    if "buffered" in job.options:
        return not flag(job.options, "buffered")
    return flag(job.options, "direct")


def largest_block(job: Section) -> int:
    """The largest I/O of a job in bytes, as far as its text shows."""
    sizes = [4096]
    for name in ("bs", "blocksize", "bsrange", "blocksize_range"):
        for part in expand_variables(job.options.get(name, "")).replace("-", ",").split(","):
            sizes.append(size_bytes(part) or 0)
    for part in expand_variables(job.options.get("bssplit", "")).replace(",", ":").split(":"):
        sizes.append(size_bytes(part.partition("/")[0]) or 0)
    return max(sizes)


def absolute_files(facts: JobFacts, cwd: Path) -> tuple[str, ...]:
    """The absolute path of every file the job opens, as fio joins it."""
    return tuple(dict.fromkeys(os.path.join(cwd, path) for path in facts.paths))


def check_section_names(text: str, facts: JobFacts) -> None:
    """Raise UsageError if a section has the name of an existing device or directory: fio would use
    that as its file."""
    for job, section in zip(jobfile.effective_sections(text), facts.sections, strict=True):
        if "filename" not in job.options and job.name in map(_base_name, section.paths):
            raise UsageError(
                f"The section [{job.name}] has the name of an existing file or directory, "
                "which fio would use.",
                "Say which file to use: filename=...",
            )


def check_streams(facts: JobFacts) -> None:
    """Raise UsageError for a file called ``-``."""
    if "-" in facts.paths:
        raise UsageError(
            "The job opens -, which means standard input or output to fio.",
            "For a file of that name: filename=./-",
        )


def _base_name(path: str) -> str:
    # the part after the directory: a section's name may contain slashes
    return path if path.startswith("/") else path.rpartition("/")[2]


def check_directories(text: str, cwd: Path) -> None:
    """Raises UsageError if a directory= is not a directory."""
    for directory in _directories(text, cwd):
        if not os.path.isdir(directory):
            raise UsageError(
                f"The job uses the directory {directory}, which does not exist.",
                "Create it, or choose another target: iopstui run TARGET --job ...",
            )


def _directories(text: str, cwd: Path) -> list[Path]:
    return [
        directory
        for job in jobfile.effective_sections(text)
        for directory in _job_directories(job, cwd)
    ]


def _job_directories(job: Section, cwd: Path) -> list[Path]:
    return [cwd / part for part in split_paths(expand_variables(job.options.get("directory", "")))]


def named_paths(text: str) -> set[str]:
    """The directories and files that the text names; fio combines them to the actual paths."""
    paths: set[str] = set()
    for section in jobfile.effective_sections(text):
        directories, files = (
            split_paths(expand_variables(section.options.get(name, "")))
            for name in ("directory", "filename")
        )
        paths |= {os.path.join(top, file) for top in directories or [""] for file in files or [""]}
    return paths


def split_paths(value: str) -> list[str]:
    """The paths in a filename= or directory=, in which ``:`` separates and ``\\:`` does not."""
    parts = value.replace("\\:", "\0").split(":")
    return [part.replace("\0", ":") for part in parts if part]
