"""A request after a first look at its job file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import Refused
from iopstui.fio.fence import NONE, fence_kind
from iopstui.fio.inspect import Fio, JobFacts
from iopstui.fio.job_text import check_section_names, check_streams, count_of
from iopstui.fio.library import is_shipped
from iopstui.linux.roots import Roots
from iopstui.model.block.target import Target
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile
from iopstui.preflight.inspection import inspect_text
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.preflight.shared_scratch import LentScratch
from iopstui.safety.active_run import ActiveRun

ROWS_BEFORE_GROUPING = 16


@dataclass(frozen=True, slots=True)
class LoadedRequest:
    """A request after a first look at its job file ``path``: with the file's ``text``, and the
    options that are changed in it. ``target`` is ``None`` if the job names its own files.
    ``active``: the run that this one replaces without a pause. ``lent``: the scratch directory that
    it may use."""

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
    """Raises Refused if the kernel has no fence: then only iopstui's own checks would protect other
    files from the user's job file."""
    if fence_kind() != NONE or examined.request.no_fence or is_shipped(examined.path):
        return
    if prepared.makes_files:
        raise Refused(
            f"The job file {examined.path} writes, and this kernel cannot restrict fio to its "
            "files (no Landlock, no namespaces).",
            "If you trust it: --no-fence. `iopstui doctor` shows what is missing.",
        )


def group_reporting(text: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """Options for one row for all clones of a job: a document with 64 rows would cost fio 40 ms a
    second."""
    options = dict(overrides)
    jobs = jobfile.effective_sections(jobfile.with_overrides(text, overrides))
    rows = sum(count_of(job.options.get("numjobs")) for job in jobs)
    if (len(jobs) == 1 and rows > 1) or rows > ROWS_BEFORE_GROUPING:
        options.setdefault("group_reporting", "1")
    return options
