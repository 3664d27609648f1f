"""Ask fio for its version and its options, how it reads a job file, and whether that job writes."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from iopstui.errors import Interrupted, Missing, UsageError
from iopstui.fio.fence import Fence, start_fenced
from iopstui.linux.counters.signal_flag import SignalFlag, shielded
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.limits import hint_for_limit
from iopstui.linux.process.processes import children, cpu_s, waits_for_cpu
from iopstui.linux.process.programs import which
from iopstui.linux.shares import require_answers
from iopstui.model.fio.jobfile import END_SECTION as _END
from iopstui.model.fio.jobfile import objections
from iopstui.text import printable

OLDEST_FIO = (3, 1)
# how long to wait for a fio that uses no CPU, and for one that works: on a busy or emulated machine
# it may take a minute
IDLE_S = 20.0
MAX_ANSWER_S = 300.0
POLL_S = 0.25
# most bytes of an answer: fio names each file of a job in some hundred bytes, but a program that
# never stops printing would take all memory
MAX_ANSWER_BYTES = 512 << 20
FIO = "fio"
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
class SectionFiles:
    """The files that fio opens for one job section. ``paths`` has the files of all its clones in
    order, as fio joins them with ``directory=``; ``sets`` is the number of sets of files: one for
    each clone, or 1 if all clones share the same files."""

    name: str
    paths: tuple[str, ...] = ()
    sets: int = 1


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job file as fio reads it; all values come from fio itself. ``sections`` are the job
    sections in order, with their files; ``writes`` is True if any of them writes or trims, which
    fio's own switch --readonly shows. ``options`` are all options that fio has understood in all
    sections ("" for an option without a value)."""

    sections: tuple[SectionFiles, ...]
    writes: bool
    options: tuple[tuple[str, str], ...] = ()

    @property
    def jobs(self) -> tuple[str, ...]:
        """The names of the sections, in order."""
        return tuple(section.name for section in self.sections)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file fio opens, without repeats."""
        return tuple(dict.fromkeys(path for section in self.sections for path in section.paths))


_thread_state = threading.local()


def cancel_when(flag: SignalFlag | None) -> None:
    """Stop waiting for fio's answers in this thread once ``flag`` is set; raises Interrupted
    then."""
    _thread_state.cancel_flag = flag


def cancel_flag() -> SignalFlag | None:
    flag: SignalFlag | None = getattr(_thread_state, "cancel_flag", None)
    return flag


def find_fio(path: str | None = None) -> Fio:
    """The fio in PATH (or IOPSTUI_FIO). Raises Missing (exit 5) if there is none or it is too
    old."""
    program = path or os.environ.get("IOPSTUI_FIO") or FIO
    searched = (program,) if os.path.dirname(program) else os.get_exec_path()
    require_answers([Path.cwd() / entry for entry in searched], Roots())
    executable = which(program)
    if executable is None and os.path.exists(program) and os.path.dirname(program):
        raise Missing(f"{program} is not an executable program.",
                      f"Check it: ls -lL {program}. To use another fio: IOPSTUI_FIO=/path/to/fio",
                      )  # fmt: skip
    if executable is None:
        if program in (path, FIO):
            raise Missing(f"{program} was not found. iopstui needs it to run jobs.",
                          INSTALL_HINT)  # fmt: skip
        raise Missing(f"{program}, which IOPSTUI_FIO names, was not found.",
                      "To use the fio in PATH: unset IOPSTUI_FIO")  # fmt: skip
    info = os.stat(executable)
    return _version(executable, (info.st_dev, info.st_ino, info.st_mtime_ns))


@lru_cache(maxsize=8)
def _version(executable: str, file: tuple[int, int, int]) -> Fio:
    """Ask fio for its version, once for each ``file`` (device, inode, time of change): a start of
    fio costs 50 ms of CPU, and a run needs the version twice. If that fails, fio is asked again the
    next time."""
    answer = run_fio([executable, "--version"], None, Fence())
    banner = answer.stdout.strip()
    match = re.match(r"fio-(\d+)\.(\d+)", banner)
    if match is None and answer.returncode:
        raise Missing(f"{executable} exits with an error: {_exit_text(answer)}.",
                      f"Try it: {executable} --version; a shell limit may be the cause: "
                      "ulimit -a")  # fmt: skip
    if match is None:
        output = banner or error_line(answer.stderr.split("\n")) or "nothing"
        raise Missing(f"{executable} is not fio. Instead of a version it printed: "
                      f"{printable(output[:200])}.",
                      INSTALL_HINT)  # fmt: skip
    version = int(match[1]), int(match[2])
    if version < OLDEST_FIO:
        raise Missing(f"{executable} is {banner}; iopstui needs fio 3.1 or newer.", INSTALL_HINT)
    return Fio(executable, version, banner)


def _exit_text(answer: subprocess.CompletedProcess[str]) -> str:
    last_lines = answer.stderr.strip().splitlines()[-1:]
    if answer.returncode < 0:
        return ", ".join([f"killed by signal {-answer.returncode}", *map(printable, last_lines)])
    return ", ".join([f"exit code {answer.returncode}", *map(printable, last_lines)])


def inspect(
    fio: Fio, job_file: Path, label: str, cwd: Path | None = None, writes: bool = False
) -> JobFacts:
    """Ask fio how it reads ``job_file``. Raises UsageError with fio's own message if it refuses the
    file. ``label`` is what messages call the job. The file's last section must be ``END``: there
    fio gives up, after it has printed the files that it would open, and before it has opened any.
    fio is fenced in and can write nowhere. ``writes``: the job is known to write."""
    fence = Fence(open=(str(job_file.parent),))
    options = ["--debug=file,parse", str(job_file)]
    if not writes:
        # a job that fio accepts with --readonly does the same without that option
        parsed = run_fio([fio.path, "--readonly", *options], cwd, fence)
        writes = not _reached_end(parsed.stdout)
    if writes:
        parsed = run_fio([fio.path, *options], cwd, fence)
    if not _reached_end(parsed.stdout):
        lines = (parsed.stdout + "\n" + parsed.stderr).split("\n")
        why = error_line(lines)
        hint = _value_hint(why)
        for message, in_words, what_helps in _LIMITS:
            if any(message in line for line in lines):
                why, hint = in_words or why, what_helps
        # put the reason first: a job file's path can be longer than the room on the screen
        reason = f": {why}" if why else ", but gives no reason"
        raise UsageError(f"fio rejects the job{reason} ({label}).", hint)
    sections = opened_files(parsed.stdout)
    if not sections:
        raise UsageError(f"{label} has no job section: nothing to run.",
                         "A job file needs at least one [name] section; see `iopstui jobs`.",
                         )  # fmt: skip
    return JobFacts(sections, writes, _options(parsed.stdout))


# a pattern in fio's message, the reason in words if these are better, and what to do
_LIMITS = (
    ("size too small, must not be less", "", "Give a larger size=, or a smaller bs="),
    ("maximum number of jobs reached", "it has more jobs than fio can run (4,096 in fio 3.33)",
     "Give a smaller numjobs="),
    ("smalloc: OOM", "it has more files than fio has memory for (smalloc: OOM)",
     "Give a smaller nrfiles= or numjobs="),
)  # fmt: skip


def _value_hint(why: str) -> str:
    """Where fio explains the option that it rejects; "" if the message is not about an option."""
    if match := re.match(r"failed parsing ([a-z_0-9]+)=", why):
        return f"What it may be: fio --cmdhelp={match[1]}"
    return "List fio's options: fio --cmdhelp=all" if why.startswith("Bad option") else ""


# a name that is not an option in any version of fio
END = f"\n[{_END}]\n{_END}=1\n"
_SECTION = re.compile(r"^parse +\d+ +Parsing section \[(.*)\]$")
# the path as fio will open it, directory= included, and its index in its clone's list
_OPENED = re.compile(r'^file +\d+ +file \S+ "(.*)" added at (\d+)$')


def _reached_end(debug: str) -> bool:
    return re.search(rf"^parse +\d+ +Parsing section \[{_END}\]$", debug, re.M) is not None


def opened_files(debug: str) -> tuple[SectionFiles, ...]:
    """The job sections and their files, from fio's output with ``--debug=file,parse``."""
    sections: list[SectionFiles] = []
    name: str | None = None
    # a section has the files of [global], too
    common: dict[str, None] = {}
    paths: dict[str, None] = {}
    sets = 0
    for line in [*debug.split("\n"), f"parse 0 Parsing section [{_END}]"]:
        if section := _SECTION.match(line):
            if name == "global":
                common = paths
            elif name not in (None, _END):
                sections.append(SectionFiles(name or "", tuple(paths), max(1, sets)))
            name, paths, sets = section[1], dict(common), 0
        elif match := _OPENED.match(line):
            paths[match[1]] = None
            sets += match[2] == "0"
    return tuple(sections)


def _options(debug: str) -> tuple[tuple[str, str], ...]:
    pairs = re.findall(r"^parse +\d+ +handle_option=([^,\n]+), ptr=(.*)$", debug, re.M)
    return tuple((name.strip(), "" if value == "(null)" else value.strip())
                 for name, value in pairs)  # fmt: skip


_NOISE = re.compile(
    r"^(parse |file |fio: set debug|fio: job .* dropped|\s|Correct format|\.\.\.$|$)|valid values"
    r"|^ *:|: \(g=\d+\): rw="
)
_ERROR_WORDS = re.compile(
    r"fail|bad option|unable|not found|error|outside|invalid|unknown|too|must|not loadable", re.I
)


def error_line(lines: Sequence[str]) -> str:
    """The line with fio's error, in printable characters; "" if there is none."""
    messages = [line.strip() for line in lines if not _NOISE.search(line)]
    messages = [line for line in messages if line]
    # the line with the place in fio's source says less than any other line
    errors = sorted(
        (line for line in messages if _ERROR_WORDS.search(line)), key=_is_source_location
    )
    best = (errors or messages or [""])[0]
    return printable(best.removeprefix("fio: ").rstrip("."))[:300]


def _is_source_location(line: str) -> bool:
    return line.removeprefix("fio: ").startswith("file:")


def run_fio(
    command: Sequence[str], cwd: Path | None, fence: Fence
) -> subprocess.CompletedProcess[str]:
    """Run fio and return its output, whatever its exit code. Raises Missing if it can't be started
    or prints nothing."""
    process = None
    try:
        with shielded():
            process = start_fenced(fence, command, cwd)
        streams = _wait_for_output(process, command[0])
    except OSError as error:
        why, hint = _start_failure(command[0], error)
        raise Missing(f"Can't run {command[0]}: {why}.", hint_for_limit(error, hint)) from error
    finally:
        if process is not None:
            _kill(process)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
    # decoded like a file name: the name that is checked must be exactly the name that fio opens,
    # and a carriage return in it is no new line
    out, err = (os.fsdecode(stream) for stream in streams)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _start_failure(program: str, error: OSError) -> tuple[str, str]:
    """Why a program can't be started, and what to do. If a script exists but its interpreter does
    not, execve(2) says that the file does not exist."""
    if error.errno == errno.ENOENT and os.path.exists(program):
        return ("its interpreter or loader does not exist",
                f"Check its first line: head -1 {program}. To use another fio: "
                "IOPSTUI_FIO=/path/to/fio")  # fmt: skip
    return error.strerror or str(error), INSTALL_HINT


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and everything that it has started: otherwise, if it is a script, its fio
    would go on. This must happen before the process is waited for: afterwards the number of its
    process group may belong to others."""
    if process.returncode is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def _wait_for_output(process: subprocess.Popen[bytes], name: str) -> tuple[bytes, bytes]:
    """Everything that the process writes until it ends. Raises Missing if it does nothing for
    ``IDLE_S``, works longer than ``MAX_ANSWER_S`` or writes more than ``MAX_ANSWER_BYTES``."""
    hint = f"Try it: {name} --version"
    began = active_at = time.monotonic()
    busy = 0.0
    while True:
        try:
            return process.communicate(timeout=POLL_S)
        except subprocess.TimeoutExpired as timeout:
            if len(timeout.output or b"") + len(timeout.stderr or b"") > MAX_ANSWER_BYTES:
                raise Missing(f"{name} does not stop printing.", hint) from None
            cancel = cancel_flag()
            if cancel is not None and cancel.is_set():
                raise Interrupted(f"{name} has not answered yet.") from None
            now, cpu_time_s = time.monotonic(), _busy_s(process.pid)
            if cpu_time_s > busy or any(map(waits_for_cpu, (process.pid, *children(process.pid)))):
                busy, active_at = cpu_time_s, now
            if now - active_at > IDLE_S:
                raise Missing(f"{name} does not respond: no answer within {IDLE_S:.0f} s.",
                              hint) from None  # fmt: skip
            if now - began > MAX_ANSWER_S:
                raise Missing(f"{name} did not answer within {MAX_ANSWER_S:.0f} s.", hint) from None


def _busy_s(pid: int) -> float:
    """The CPU time of the process and of its children, because in a PID namespace fio is a
    child."""
    return sum(cpu_s(process) or 0.0 for process in (pid, *children(pid)))


PATH_OPTIONS = {"filename": "file or device", "directory": "directory"}
_LINE = re.compile(r"^ *([a-z]\w*) *: *(.*)$")
_VALUES = re.compile(r"valid values: *(\S+)|^ *: (\S+)", re.M)


def parse_options(text: str) -> dict[str, str]:
    """The options of ``fio --cmdhelp=all`` or ``--enghelp=ENGINE`` with fio's words for each."""
    matches = (_LINE.match(line) for line in text.splitlines())
    return {line[1]: printable(line[2].strip()) for line in matches if line}


@lru_cache(maxsize=16)
def read_fio_options(fio: Fio, engine: str = "") -> Mapping[str, str]:
    """All options that a job with this engine can have, with fio's words. The first call for an
    engine starts fio (50 ms of CPU). Raises Missing if fio can't be started."""
    options = parse_options(run_fio([fio.path, "--cmdhelp=all"], None, Fence()).stdout)
    if engine:
        answer = run_fio([fio.path, f"--enghelp={engine}"], None, Fence())
        options |= parse_options(answer.stdout) if not answer.returncode else {}
    return options


def check_option(fio: Fio, name: str, value: str, engine: str = "") -> None:
    """Raises UsageError, with suggestions, if fio has no such option, if it does not accept this
    value, or if jobs may not have the option. For an empty ``value`` (which undoes the option) only
    the name must be known. Errors that depend on the rest of the job are not found here."""
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
    # an example: "rwmixread: max value out of range: 170 (100 max)"
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
