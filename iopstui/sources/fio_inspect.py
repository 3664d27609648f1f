"""Asking fio itself: which version it is, what a job file means, whether it writes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import Interrupted, Missing, UsageError
from iopstui.sources.interrupts import shielded
from iopstui.sources.limits import mend
from iopstui.sources.processes import cpu_s, waits_for_cpu
from iopstui.text import printable

OLDEST = (3, 1)
# a fio that does nothing any more is given up; one that works is waited for: a busy or emulated
# machine may take a minute
IDLE_S = 20.0
LONGEST_S = 300.0
LOOK_S = 0.25
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
    or verifies by writing: fio's own verdict, given by its read-only switch. ``paths`` are the
    files with the ``directory=`` of their section before them. ``options`` are
    all that fio has understood, in all sections and ``include`` files, values expanded ("" for
    a bare one).
    """

    jobs: tuple[str, ...]
    files: tuple[str, ...]
    writes: bool
    paths: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


_of_this_thread = threading.local()


def give_up_when(asked: threading.Event) -> None:
    """From now on this thread stops waiting for fio's answers once ``asked`` is set; what it asked
    for is Interrupted then."""
    _of_this_thread.given_up = asked


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
    if match is None and answer.returncode:
        raise Missing(f"{found} fails at once: {_how_ended(answer)}.",
                      "Try it: fio --version; a limit of this shell may be in its way: ulimit -a",
                      )  # fmt: skip
    if match is None:
        raise Missing(f"{found} does not say which fio it is: {printable(banner[:60])!r}.",
                      INSTALL_HINT)  # fmt: skip
    version = int(match[1]), int(match[2])
    if version < OLDEST:
        raise Missing(f"{found} is {banner}; iopstui needs fio 3.1 or newer.", INSTALL_HINT)
    return Fio(found, version, banner)


def _how_ended(answer: subprocess.CompletedProcess[str]) -> str:
    said = answer.stderr.strip().splitlines()[-1:]
    if answer.returncode < 0:
        return ", ".join([f"killed by signal {-answer.returncode}", *map(printable, said)])
    return ", ".join([f"exit code {answer.returncode}", *map(printable, said)])


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
    writes = read_only.returncode != 0
    return JobFacts(jobs, tuple(files), writes, named_paths(parsed.stdout), _options(parsed.stdout))


_SECTION = re.compile(r"^parse +\d+ +Parsing section \[(.*)\]$")
_FILE = re.compile(r"^file +\d+ +add file (.+)$")
_DIRECTORY = re.compile(r"^parse +\d+ +handle_option=directory, ptr=(.*)$")
_UNESCAPED_COLON = re.compile(r"(?<!\\):")


def named_paths(debug: str) -> tuple[str, ...]:
    """Every file as fio joins it (filesetup.c, set_name_idx): ``directory``, a slash, the name
    whatever it begins with; one path for each of several directories."""
    found: dict[str, None] = {}
    common: tuple[list[str], list[str]] = ([], [])
    own = common
    for line in [*debug.split("\n"), "parse 0 Parsing section []"]:
        if section := _SECTION.match(line):
            if own is not common:
                found |= dict.fromkeys(_joined(own[0] or common[0], [*common[1], *own[1]]))
            own = common if section[1] == "global" else ([], [])
        elif name := _FILE.match(line):
            own[1].append(name[1])
        elif directory := _DIRECTORY.match(line):
            own[0][:] = [one.replace("\\:", ":") for one in _UNESCAPED_COLON.split(directory[1])]
    return tuple(found)


def _joined(directories: Sequence[str], names: Sequence[str]) -> list[str]:
    return [f"{one}/{name}" if one else name for one in directories or [""] for name in names]


def _options(debug: str) -> tuple[tuple[str, str], ...]:
    found = re.findall(r"^parse +\d+ +handle_option=([^,\n]+), ptr=(.*)$", debug, re.M)
    return tuple((name.strip(), "" if value == "(null)" else value.strip())
                 for name, value in found)  # fmt: skip


def check_engine(fio: Fio, name: str) -> None:
    """UsageError for an ioengine that this fio does not have (--parse-only does not load it).

    ``external:PATH`` and the default "" are left to fio itself.
    """
    if not name or ":" in name:
        return
    # its exit code is 1 also for an engine that has no options
    if "not found" in _ask([fio.path, f"--enghelp={name}"]).stdout:
        raise UsageError(f"fio has no ioengine {printable(name)!r} here.",
                         "Those it has: fio --enghelp")  # fmt: skip


def _jobs(debug: str) -> tuple[str, ...]:
    sections = re.findall(r"^parse +\d+ +Parsing section \[(.*)\]$", debug, re.M)
    return tuple(name for name in sections if name != "global")


_NOISE = re.compile(
    r"^(parse |file |fio: set debug|fio: job .* dropped|\s|Correct format|$)|valid values|^ *:"
)
_BLAME = re.compile(
    r"fail|bad option|unable|not found|error|outside|invalid|unknown|too|must|not loadable", re.I
)


def complaint(lines: Sequence[str]) -> str:
    """The line in which fio says what is wrong, in printable characters; "" if there is none."""
    said = [line.strip() for line in lines if not _NOISE.search(line)]
    said = [line for line in said if line]
    blaming = [line for line in said if _BLAME.search(line)]
    best = (blaming or said or [""])[0]
    return printable(best.removeprefix("fio: ").rstrip("."))[:300]


def _ask(command: Sequence[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    process = None
    try:
        with shielded():
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
            )
        streams = _answer(process, command[0])
    except OSError as error:
        raise Missing(f"Can't run {command[0]}: {error.strerror}.",
                      mend(error, INSTALL_HINT)) from error  # fmt: skip
    finally:
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
    # decoded like a file name: what is checked must be the very file that fio opens, and a
    # carriage return in a name is no new line
    out, said = (os.fsdecode(stream) for stream in streams)
    return subprocess.CompletedProcess(command, process.returncode, out, said)


def _answer(process: subprocess.Popen[bytes], name: str) -> tuple[bytes, bytes]:
    """All it writes until it ends. Missing if it has done nothing for ``IDLE_S``."""
    began = worked = time.monotonic()
    busy = 0.0
    while True:
        try:
            return process.communicate(timeout=LOOK_S)
        except subprocess.TimeoutExpired:
            given_up = getattr(_of_this_thread, "given_up", None)
            if given_up is not None and given_up.is_set():
                raise Interrupted(f"{name} did not answer yet.") from None
            now, had = time.monotonic(), cpu_s(process.pid) or 0.0
            if had > busy or waits_for_cpu(process.pid):
                busy, worked = had, now
            if now - worked > IDLE_S:
                raise Missing(f"{name} does nothing: no answer within {IDLE_S:.0f} s.") from None
            if now - began > LONGEST_S:
                raise Missing(f"{name} did not answer within {LONGEST_S:.0f} s.") from None
