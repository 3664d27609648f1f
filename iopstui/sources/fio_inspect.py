"""Asking fio itself: which version it is, what a job file means, whether it writes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import Missing, UsageError
from iopstui.text import printable

OLDEST = (3, 1)
TIMEOUT_S = 20.0
INSTALL_HINT = (
    "Install it: apt install fio | dnf install fio | zypper install fio | pacman -S fio | "
    "apk add fio"
)


@dataclass(frozen=True, slots=True)
class Fio:
    """A fio program: its path and version, e.g. (3, 33) from "fio-3.33"."""

    path: str
    version: tuple[int, int]
    banner: str


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What fio makes of a job file.

    ``jobs`` are the section names in order; ``files`` what fio opens by name (``filename=``,
    expanded), in order and without repeats; ``writes`` is True if any section writes, trims
    or verifies by writing: fio's own verdict, given by its read-only switch.
    """

    jobs: tuple[str, ...]
    files: tuple[str, ...]
    writes: bool


def find_fio(path: str | None = None) -> Fio:
    """The fio in PATH (or IOPSTUI_FIO). Missing (exit 5) if there is none or it is too old."""
    wanted = path or os.environ.get("IOPSTUI_FIO") or "fio"
    found = shutil.which(wanted)
    if found is None:
        raise Missing(f"{wanted} was not found, and nothing can be measured without it.",
                      INSTALL_HINT)  # fmt: skip
    answer = _ask([found, "--version"])
    banner = answer.stdout.strip()
    match = re.match(r"fio-(\d+)\.(\d+)", banner)
    if match is None:
        raise Missing(f"{found} does not say which fio it is: {printable(banner[:60])!r}.",
                      INSTALL_HINT)  # fmt: skip
    version = int(match[1]), int(match[2])
    if version < OLDEST:
        raise Missing(f"{found} is {banner}; iopstui needs fio 3.1 or newer.", INSTALL_HINT)
    return Fio(found, version, banner)


def inspect(fio: Fio, job_file: Path, label: str, cwd: Path | None = None) -> JobFacts:
    """What fio makes of ``job_file``; UsageError with fio's own words if it refuses it.

    ``label`` is how messages name the job. Nothing is opened or written (--parse-only).
    """
    parsed = _ask([fio.path, "--parse-only", "--debug=file,parse", str(job_file)], cwd)
    if parsed.returncode != 0:
        why = complaint((parsed.stdout + "\n" + parsed.stderr).splitlines())
        raise UsageError(f"fio does not accept {label}: {why or 'it does not say why'}.")
    jobs = _jobs(parsed.stdout)
    if not jobs:
        raise UsageError(f"{label} has no job section, so there is nothing to run.",
                         "A job file needs at least one [name] section; see `iopstui jobs`.",
                         )  # fmt: skip
    files = dict.fromkeys(re.findall(r"^file +\d+ +add file (.+)$", parsed.stdout, re.M))
    read_only = _ask([fio.path, "--readonly", "--parse-only", str(job_file)], cwd)
    return JobFacts(jobs, tuple(files), writes=read_only.returncode != 0)


def _jobs(debug: str) -> tuple[str, ...]:
    sections = re.findall(r"^parse +\d+ +Parsing section \[(.*)\]$", debug, re.M)
    return tuple(name for name in sections if name != "global")


_NOISE = re.compile(
    r"^(parse |file |fio: set debug|fio: job .* dropped|\s|Correct format|$)|valid values|^ *:"
)
_BLAME = re.compile(
    r"fail|bad option|unable|not found|error|outside|invalid|unknown|too|must", re.I
)


def complaint(lines: Sequence[str]) -> str:
    """The line in which fio says what is wrong, in printable characters; "" if there is none."""
    said = [line.strip() for line in lines if not _NOISE.search(line)]
    said = [line for line in said if line]
    blaming = [line for line in said if _BLAME.search(line)]
    best = (blaming or said or [""])[0]
    return printable(best.removeprefix("fio: ").rstrip("."))[:300]


def _ask(
    command: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
            cwd=cwd,
            env=env,
        )
    except subprocess.TimeoutExpired as error:
        raise Missing(f"{command[0]} did not answer within {TIMEOUT_S:.0f} s.") from error
    except OSError as error:
        raise Missing(f"Can't run {command[0]}: {error.strerror}.", INSTALL_HINT) from error
