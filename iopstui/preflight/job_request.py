"""A request for a run, as the user makes it and as a recording stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from iopstui.model.block.binding import Binding
from iopstui.model.block.target import TargetPart
from iopstui.recording.records import JobRun
from iopstui.safety.scratch import Scratch


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Request to run a job: a shipped job's name or a path, changed options (fio's names), the size
    of scratch files ("512m"), the paths whose data may be destroyed, whether every job is bound to
    another hardware queue, and whether a job that writes may run if the kernel has no fence.

    ``part``: the part of the target that is used. ``plan``: report first what would be laid out,
    and wait for permission. ``trace``: requests that fio replays on a scratch file, as an iolog
    written by iopstui. ``io_log``: fio logs each I/O for the list of the slowest. ``hand_over``: a
    running job goes on until this one has done its first I/O, where that is safe. ``mark`` is put
    on all charts when the run begins. For the points
    of an experiment: ``knobs`` are the tunables of the device during the run; ``scratch`` is a
    scratch directory whose files are reused and whose owner removes it; ``max_scratch_bytes``
    limits each file without ``size``, so that a point with more jobs has files of the same
    size."""

    job: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    size: str | None = None
    destroy_data: tuple[str, ...] = ()
    bind: bool = False
    knobs: tuple[tuple[str, str], ...] = ()
    scratch: Scratch | None = None
    max_scratch_bytes: int | None = None
    no_fence: bool = False
    plan: bool = False
    part: TargetPart | None = None
    trace: str = ""
    io_log: bool = False
    hand_over: bool = False
    mark: str = ""


def recorded_job(
    step: int,
    request: JobRequest,
    text: str,
    files: Sequence[str],
    binding: Binding | None = None,
) -> JobRun:
    """The requested job as recorded; ``text`` is passed to fio."""
    return JobRun(
        step, request.job, dict(request.overrides), request.size, request.bind, text, tuple(files),
        tuple(request.knobs), binding,
    )  # fmt: skip
