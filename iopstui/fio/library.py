"""The shipped fio job files; find a job by name or path."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import iopstui
from iopstui.errors import Missing, NoFile, UsageError

SUFFIX = ".fio"
OWN_PUBLISHER = "iopstui"
GENERAL = "general"
LABELS = ("Title", "Measures", "Source", "Look at", "Writes", "Teaches", "Run")


@dataclass(frozen=True, slots=True)
class ShippedJob:
    """A shipped job file, with the fields of its header comment (one line each, "" if absent).
    ``writes`` is what the comment says; fio/inspect.py finds out what fio itself says. ``run`` is
    the command that reproduces the measurement in the source document, with DEV for the device ("":
    none). ``text`` is the whole file."""

    name: str
    path: Path
    title: str
    measures: str
    source: str
    look_at: str
    teaches: str
    writes: bool
    text: str
    run: str = ""


def parse_header(text: str) -> dict[str, str]:
    """The ``# Label: text`` lines at the top of a job file, continuation lines joined.

    The keys are the labels of ``LABELS`` that the file has. The first line that is not a comment
    ends it. A file that does not use the labels gives an empty result."""
    fields: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        content = line[1:].strip()
        label, colon, value = content.partition(":")
        if colon and label in LABELS and label not in fields:
            current = fields[label] = [value.strip()]
        elif content:
            current.append(content)
    return {label: " ".join(part for part in parts if part) for label, parts in fields.items()}


def jobs_directory() -> Path:
    """Directory of the shipped jobs. Raises Missing."""
    return shipped_directory("jobs", "fio job file")


def job_paths() -> dict[str, Path]:
    """The shipped job files by name, sorted."""
    files = sorted(jobs_directory().glob(f"*{SUFFIX}"))
    return {file.name.removesuffix(SUFFIX): file for file in files}


def is_shipped(path: Path) -> bool:
    """True if this very file is a shipped one (a copy of it is not)."""
    try:
        return path.resolve() in {shipped.resolve() for shipped in job_paths().values()}
    except Missing:
        return False


def load_job(path: Path) -> ShippedJob:
    """Load a job file, with the fields of its header comment."""
    text = path.read_text(encoding="utf-8", errors="replace")
    head = parse_header(text)
    return ShippedJob(
        name=path.name.removesuffix(SUFFIX),
        path=path,
        title=head.get("Title", ""),
        measures=head.get("Measures", ""),
        source=head.get("Source", ""),
        look_at=head.get("Look at", ""),
        teaches=head.get("Teaches", ""),
        # a job is assumed to write unless its comment says that it does not
        writes=head.get("Writes", "").lower() != "no",
        text=text,
        run=head.get("Run", ""),
    )


def shipped_jobs() -> tuple[ShippedJob, ...]:
    """All shipped jobs: first iopstui's own, then the jobs of each document, each group sorted by
    name."""
    jobs = [load_job(path) for path in job_paths().values()]
    return tuple(sorted(jobs, key=lambda job: (publisher(job.source), job.name)))


def publisher(source: str) -> str:
    """The publisher of the job: the beginning of its ``source``; "" for iopstui's own jobs."""
    name = source.partition(",")[0].strip()
    return "" if not name or name.startswith(OWN_PUBLISHER) else name


def publisher_heading(source: str) -> str:
    """The heading above the jobs of one publisher in a list."""
    return publisher(source) or GENERAL


def find_shipped(name: str) -> ShippedJob:
    """The shipped job of that name, or the only shipped job whose name begins like that. Raises
    UsageError if there is none."""
    paths = job_paths()
    chosen = _find_job(name, paths)
    if chosen is None:
        raise _unknown_job(name, paths, "No shipped job is called")
    return load_job(chosen)


def _may_exist(path: str) -> bool:
    """Return whether the file may exist; True, too, if permissions hide it."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def find_job(name_or_path: str) -> Path:
    """The file of a shipped job, or of any path. Raises UsageError if there is neither. A shipped
    name has precedence: ``./NAME`` means a file of the same name. The beginning of a name is enough
    if only one shipped job has it and no file has that name."""
    if "/" in name_or_path:
        if _may_exist(name_or_path):
            return Path(name_or_path)
        raise NoFile(name_or_path, _advice(name_or_path, job_paths()))
    paths = job_paths()
    if name_or_path in paths:
        return paths[name_or_path]
    if name_or_path and os.path.exists(name_or_path):
        return Path(name_or_path)
    chosen = _find_job(name_or_path, paths)
    if chosen is None:
        raise _unknown_job(name_or_path, paths, "No shipped job or file is called")
    return chosen


def _find_job(name: str, paths: dict[str, Path]) -> Path | None:
    base_name = name.removesuffix(SUFFIX)
    if base_name in paths:
        return paths[base_name]
    matches = [
        path for job_name, path in paths.items() if base_name and job_name.startswith(base_name)
    ]
    return matches[0] if len(matches) == 1 else None


def _unknown_job(name: str, paths: dict[str, Path], problem: str) -> UsageError:
    return UsageError(f"{problem} {name!r}.", _advice(name, paths))


def _advice(name: str, paths: dict[str, Path]) -> str:
    """Names that were probably meant: those with this beginning, else similar ones."""
    prefix = os.path.basename(name).removesuffix(SUFFIX).lower()
    similar = [job_name for job_name in paths if prefix and job_name.startswith(prefix)]
    import difflib

    similar = similar or difflib.get_close_matches(prefix, paths, n=3, cutoff=0.5)
    listing = "List: iopstui jobs"
    return f"Did you mean {' or '.join(similar)}? {listing}" if similar else listing


# Find files that are shipped with iopstui.


def shipped_directory(name: str, kind: str) -> Path:
    """Directory of the shipped ``name`` ("jobs"): inside the installed package, or beside it in a
    checkout. ``kind`` names what a user may give instead, for the error message. Raises Missing."""
    package = Path(iopstui.__file__).resolve().parent
    inside, checkout = package / name, package.parent / name
    if inside.is_dir():
        return inside
    # pyproject.toml shows that it is a checkout: beside an installed package, a directory of that
    # name belongs to others
    if checkout.is_dir() and (package.parent / "pyproject.toml").is_file():
        return checkout
    raise Missing(
        f"The shipped {name} are missing from this installation ({inside}).",
        f"Install iopstui again, or give the path of a {kind}.",
    )
