"""A request whose job file was read, and the job that is ready to run, with the cleanup it
needs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iopstui.errors import Refused, UsageError
from iopstui.fio.fence import NONE, Fence, Grant, fence_kind, grant
from iopstui.fio.inspect import Fio, JobFacts
from iopstui.fio.job_text import check_section_names, check_streams, count_of, escape_path
from iopstui.fio.library import is_shipped
from iopstui.fio.logs import FioLogs
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.private import write_text
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Binding
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile
from iopstui.preflight.inspection import JOB, inspect_text
from iopstui.preflight.staging import LentScratch, Staging
from iopstui.safety import scratch
from iopstui.safety.locks import ActiveRun
from iopstui.safety.write_guard import WriteGuard

SPARE_BYTES = 16 << 20
# most bytes of documents: fio's main process writes them, during the layout as well; its jobs write
# none
MIN_LAYOUT, MIN_RUN = 4 << 20, 8 << 20
MIN_LOGGED = 1 << 30
TRACE = "replay.log"


@dataclass(slots=True)
class PreparedJob:
    """A job that is ready to run. ``text`` is the job file; ``files`` are those it opens, by
    absolute names; ``layout_text`` is the job that creates the files first (``None``: nothing to
    create), with ``layout_bytes`` in them; ``scratch`` is removed by ``close``, unless
    ``shares_scratch``; ``other_bytes`` are the bytes of files that other runs have made in it.
    ``staging`` is where missing files are created, ``logs`` where fio writes its logs.
    ``max_file_bytes`` is how long a file may become. ``file_sizes`` are the bytes of each scratch
    file. ``options`` are those that were requested; runs are compared by them. ``trace`` has the
    requests that the run replays, as fio's iolog."""

    name: str
    title: str
    text: str
    facts: JobFacts
    files: tuple[str, ...]
    cwd: Path
    layout_text: str | None = None
    layout_bytes: int | None = None
    scratch: scratch.Scratch | None = None
    other_bytes: int = 0
    guard: WriteGuard | None = None
    binding: Binding | None = None
    shares_scratch: bool = False
    staging: Staging | None = None
    logs: FioLogs | None = None
    max_file_bytes: int | None = None
    file_sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    trace: str = ""

    @property
    def read_only(self) -> bool:
        """True if, according to fio, no section writes; fio then runs with --readonly."""
        return not self.facts.writes

    @property
    def makes_files(self) -> bool:
        """True if the run itself makes or removes files."""
        options = self.facts.options
        writes = self.facts.writes or jobfile.makes_files(options)
        return writes or jobfile.removes_files(options)

    @property
    def ends_others(self) -> bool:
        """True if fio may send signals to its own processes."""
        return jobfile.ends_others(self.facts.options)

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directories that were made for this run on the file systems that it works on."""
        paths = () if self.scratch is None else self.scratch.paths
        return (
            *paths,
            *(directory.path for directory in (self.staging.directories if self.staging else ())),
        )

    @property
    def cleanup(self) -> tuple[Path, ...]:
        """Directories to remove after the run."""
        links = self.staging.link_directory if self.staging is not None else None
        logs = self.logs.directory if self.logs is not None else None
        return (*self.directories, *filter(None, (links, logs)))

    def used_bytes(self) -> int:
        """Bytes allocated in files that were made for this run."""
        scratch_bytes = self.scratch.used_bytes() if self.scratch else 0
        return scratch_bytes + (self.staging.used_bytes() if self.staging else 0)

    def fence(self, layout: bool) -> Fence:
        """Access rights of fio during layout and during the measurement."""
        directories = tuple(map(str, self.directories))
        logs = self.logs.directory if self.logs is not None else None
        writable = (
            *(directories if layout or self.makes_files else ()),
            *((str(logs),) if logs else ()),
        )
        max_bytes = self.max_file_bytes
        if max_bytes is not None:
            least = MIN_LOGGED if logs is not None else MIN_RUN
            max_bytes = max(max_bytes, MIN_LAYOUT if layout else least)
        guard = None if layout else self.guard
        return Fence(
            read=guard.reads if guard is not None else self._neighbouring_files(),
            write=guard.writes if guard is not None else (),
            run_directories=writable,
            open=directories,
            fsize=max_bytes,
        )

    def _neighbouring_files(self) -> tuple[Grant, ...]:
        """Files beside those to be laid out; fio looks at their sizes."""
        grants = []
        for name in self.files if self.staging is not None else ():
            with contextlib.suppress(OSError):
                grants.append(grant(name))
        return tuple(grants)

    def slow_ios(self) -> dict[str, Any]:
        """The slowest I/Os by fio's log of each I/O; empty without that log."""
        if self.logs is None:
            return {}
        return self.logs.slow_ios(len(self.files) == 1)

    def overrun_reason(self) -> str:
        """Why the run has to end, because its files grow beyond the planned size; "" if it may go
        on."""
        for directory in self.directories:
            with contextlib.suppress(UsageError):
                if scratch.usable_bytes(directory) == 0:
                    return (
                        f"the file system of {directory.parent} has only 5 % free space left; free "
                        "some, or make the job's files smaller (size=)"
                    )
        if self.scratch is not None and self.layout_bytes is not None:
            used_bytes = self.scratch.used_bytes() - self.other_bytes
            most = self.layout_bytes + SPARE_BYTES
            if used_bytes > most:
                return (
                    f"its scratch files grew to {used_bytes >> 20} MiB instead of {most >> 20}; "
                    "the job creates more or longer files than it declares (offset=, "
                    "nrfiles= ...)"
                )
        return ""

    def finish_layout(self) -> None:
        """Move the laid out files to their final names. Raises Refused."""
        if self.staging is not None and not self.makes_files:
            self.staging.check()
            self.staging.close()
            self.staging = None

    def publish(self) -> list[str]:
        """Give the run's new files their final names. Returns a sentence for each file for which
        that failed."""
        messages = self.staging.publish() if self.staging is not None and self.makes_files else []
        return [*messages, *(self.logs.publish() if self.logs is not None else ())]

    def release(self) -> None:
        """Release only the locks and reserved devices."""
        if self.guard is not None:
            self.guard.close()

    def close(self) -> None:
        """Remove the scratch files and release the reserved devices."""
        self.release()
        if self.logs is not None:
            self.logs.close()
        if self.staging is not None:
            self.staging.close()
        if self.scratch is not None and not self.shares_scratch:
            self.scratch.close()


def write_job(prepared: PreparedJob, private: Path, layout: bool) -> Path:
    """Write the job file (or the one that lays out its files) into the private directory."""
    if layout:
        assert prepared.layout_text is not None
        return write_text(private, "layout.fio", prepared.layout_text)
    text = prepared.text
    if prepared.logs is not None and prepared.logs.options:
        text = jobfile.with_overrides(text, prepared.logs.options)
    if not prepared.trace:
        return write_text(private, JOB, text)
    # fio (3.33) crashes with directory= and a trace; the trace's file is in its current directory
    log = write_text(private, TRACE, prepared.trace)
    replayed = jobfile.with_overrides(
        text, {"read_iolog": escape_path(str(log))}, removed=("directory",)
    )
    return write_text(private, JOB, replayed)


ROWS_BEFORE_GROUPING = 16


@dataclass(frozen=True, slots=True)
class LoadedRequest:
    """A request whose job file at ``path`` was read: with the file's ``text``, and the options that
    are changed in it. ``target`` is ``None`` if the job names its own files. ``active``: the run
    that this one replaces without a pause. ``lent``: the scratch directory that it may use."""

    request: RunRequest
    target: Target | None
    path: Path
    text: str
    overrides: Mapping[str, str]
    fio: Fio
    private: Path
    roots: Roots
    active: ActiveRun | None = None
    lent: LentScratch | None = None

    @property
    def label(self) -> str:
        """The name of the job on the screen."""
        return self.path.stem if self.path.suffix == ".fio" else self.path.name

    def inspect(self, text: str, cwd: Path) -> JobFacts:
        """Ask fio how it reads the job; UsageError if it is invalid, Refused if it is not
        allowed."""
        options = " ".join(f"{name}={value}" for name, value in self.request.overrides.items())
        name = f"job {self.label}" if is_shipped(self.path) else f"job file {self.path}"
        label = f"the {name}{options and f' with {options}'}"
        facts = inspect_text(self.fio, self.private, text, label, cwd)
        check_section_names(text, facts)
        check_streams(facts)
        return facts


def refuse_unfenced(examined: LoadedRequest, prepared: PreparedJob) -> None:
    """Raises Refused if a user's job file writes and the kernel has no fence, unless --no-fence is
    given: only iopstui's own checks would then protect other files from the job file."""
    if fence_kind() != NONE or examined.request.no_fence or is_shipped(examined.path):
        return
    if prepared.makes_files:
        raise Refused(
            f"The job file {examined.path} writes, and this kernel cannot restrict fio to its "
            "files (no Landlock, no namespaces).",
            "If you trust it: --no-fence. `iopstui doctor` shows what is missing.",
        )


def group_reporting(text: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """Options that give all clones of a job one row: a document with 64 rows would cost fio 40 ms a
    second."""
    options = dict(overrides)
    jobs = jobfile.effective_sections(jobfile.with_overrides(text, overrides))
    rows = sum(count_of(job.options.get("numjobs")) for job in jobs)
    if (len(jobs) == 1 and rows > 1) or rows > ROWS_BEFORE_GROUPING:
        options.setdefault("group_reporting", "1")
    return options
