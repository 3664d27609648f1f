"""What a job file says, as far as its text tells: fio's own view is sources/fio_inspect.py."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.model import jobfile
from iopstui.model.fio_rows import flag
from iopstui.model.jobfile import Section
from iopstui.sources.fio_inspect import JobFacts
from iopstui.sources.fio_stream import size_bytes

MAX_JOB_FILE = 1 << 20


def read_job(path: Path) -> str:
    """The text of a job file; UsageError if it is none. Undecodable bytes are kept."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise UsageError(f"{path} is not a file, so it can't be a fio job.")
        if info.st_size > MAX_JOB_FILE:
            raise UsageError(f"{path} is too large for a fio job file ({info.st_size} bytes).")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"Can't read the job file {path}: {error.strerror}.") from error
    if not data.strip():
        raise UsageError(f"The job file {path} is empty, so there is nothing to run.",
                         "Choose one of `iopstui jobs`, or write at least one [name] section.",
                         )  # fmt: skip
    if b"\0" in data:
        raise UsageError(f"{path} is not a fio job file: it holds binary data.")
    return data.decode("utf-8", "surrogateescape")


def names_its_files(text: str) -> bool:
    """True if a job says itself where it works (a path or a directory), so that no target is
    needed. A shipped job's relative ``filename=`` only says that its threads share a file."""
    return any("filename" in s.options or "directory" in s.options for s in jobfile.effective(text))


def describe(text: str) -> str:
    """One line for the header: "randread 4k  QD 32 × 2 jobs", or the sections' names."""
    jobs = jobfile.effective(text)
    if len(jobs) != 1:
        return f"{len(jobs)} jobs: " + ", ".join(job.name for job in jobs)
    options = {name: expand(value) for name, value in jobs[0].options.items()}
    rw = options.get("rw", options.get("readwrite", "read"))
    block = options.get("bs") or options.get("bsrange") or options.get("bssplit") or "4k"
    count = number(options.get("numjobs"))
    plural = "job" if count == 1 else "jobs"
    return f"{rw} {block}  QD {options.get('iodepth', '1')} × {count} {plural}"


def expand(text: str) -> str:
    """``${VAR}`` as fio expands it, from the environment (unset: empty)."""
    out, rest = "", text
    while True:
        before, opening, tail = rest.partition("${")
        name, closing, after = tail.partition("}")
        if not opening or not closing:
            return out + rest
        out, rest = out + before + os.environ.get(name, ""), after


def escaped(path: str) -> str:
    """A path as a value of filename= or directory=, where ``:`` separates (fio(1))."""
    return path.replace("\\", "\\\\").replace(":", "\\:")


def number(text: str | None) -> int:
    """A count of at least 1, which is also what stands for none."""
    with contextlib.suppress(ValueError):
        return max(1, int(expand(text or "1")))
    return 1


def direct(job: Section) -> bool:
    """Whether it asks for O_DIRECT (direct=, buffered=)."""
    if "buffered" in job.options:
        return not flag(job.options, "buffered")
    return flag(job.options, "direct")


def largest_block(job: Section) -> int:
    """The largest I/O of a job in bytes, as far as the text says."""
    sizes = [4096]
    for name in ("bs", "blocksize", "bsrange", "blocksize_range"):
        for part in expand(job.options.get(name, "")).replace("-", ",").split(","):
            sizes.append(size_bytes(part) or 0)
    for part in expand(job.options.get("bssplit", "")).replace(",", ":").split(":"):
        sizes.append(size_bytes(part.partition("/")[0]) or 0)
    return max(sizes)


def absolute_files(facts: JobFacts, text: str, cwd: Path) -> tuple[str, ...]:
    """Every file the job opens as an absolute path: those it names, as fio joins them, and
    those fio names itself where a section has no ``filename=``."""
    found = dict.fromkeys(os.path.join(cwd, path) for path in facts.paths)
    for job in jobfile.effective(text):
        if "filename" not in job.options:
            for base in _job_directories(job, cwd) or [cwd]:
                found |= dict.fromkeys(str(base / own) for own in _generated(job))
    return tuple(found)


def _generated(job: Section) -> list[str]:
    """The names fio gives the files of a job without filename= (fio(1), filename_format)."""
    pattern = expand(job.options.get("filename_format", "")) or "$jobname.$jobnum.$filenum"
    name = job.name.replace("/", ".")
    return [
        pattern.replace("$jobname", name).replace("$jobnum", str(n)).replace("$filenum", str(f))
        for n in range(number(job.options.get("numjobs")))
        for f in range(number(job.options.get("nrfiles")))
    ]


def check_directories(text: str, cwd: Path) -> None:
    """UsageError if a directory= is none."""
    for directory in _directories(text, cwd):
        if not directory.is_dir():
            raise UsageError(
                f"The job works in the directory {directory}, which does not exist.",
                "Make it, or name another place: iopstui run TARGET --job ...",
            )


def _directories(text: str, cwd: Path) -> list[Path]:
    return [one for job in jobfile.effective(text) for one in _job_directories(job, cwd)]


def _job_directories(job: Section, cwd: Path) -> list[Path]:
    return [cwd / part for part in expand(job.options.get("directory", "")).split(":") if part]
