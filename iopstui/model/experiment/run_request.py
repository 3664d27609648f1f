"""Everything that is requested of a run, as one value. It is made once, by the source of the
request: the command line, the screen, a plan of several runs, or the orders of a fleet. All lower
layers pass it on whole. Open files, locks and grants belong to the prepared run
(preflight/prepared_job.py) and are checked again right before fio starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iopstui.model.block.target import TargetPart
from iopstui.model.block.tunable import TunableRequest

if TYPE_CHECKING:
    from iopstui.model.volumes.promised import PromisedFigures


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Names and numbers as the user wrote them. ``job`` is a shipped job's name or a path; "" if no
    job runs, or none yet."""

    job: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """fio options that replace the job's."""
    size: str | None = None
    """Size of each scratch file, or of the area that is used ("512m")."""
    destroy_data: tuple[str, ...] = ()
    """The paths whose data may be overwritten."""
    bind: bool = False
    """Bind every fio job to a CPU of a different hardware queue."""
    knobs: tuple[TunableRequest, ...] = ()
    """Tunables of the disks during the run."""
    targets: tuple[str, ...] = ()
    part: TargetPart | None = None
    """The part of each target that is used; ``None``: all of it."""
    no_fence: bool = False
    """Let a job that writes run even if the kernel can't fence fio."""
    trace: str = ""
    """The requests that the job replays, as fio's iolog; empty: it makes its own."""
    io_log: bool = False
    """Have fio log each I/O, for the list of the slowest ones."""
    write_budget: int | None = None
    """Bytes that all runs together may write."""
    precondition: bool = False
    """Before the run, write the whole target twice."""
    hold: bool = False
    """Prepare everything, then wait for a signal to start fio."""
    until_steady: float | None = None
    """Length of a round in seconds; the run ends when five rounds in a row are steady."""
    interval_s: float = 1.0
    probe: bool = False
    """Whether each request is counted inside the kernel."""
    cgroups: bool = False
    """Whether each sample includes the I/O of each cgroup."""
    own_cpus: tuple[int, ...] | None = None
    """The CPUs of iopstui itself: ``()`` for any, ``None`` for those where it disturbs least."""
    nice: int = 0
    record: str | None = None
    volume: PromisedFigures | None = None
    """The bought volume (--volume): charts draw its limits, and findings name them."""
    expect: tuple[str, ...] = ()
    tolerance: float = 0.0
    """The part of its value by which an expectation may be missed (0.1: 10 %)."""
    baseline: str | None = None
    """The file of the earlier run to which expectations in percent refer."""

    def words(self) -> list[str]:
        """The options of `iopstui run` that repeat this run, besides targets and job.
        --destroy-data is not among them: it must be given each time."""
        words = [word for pair in self.overrides.items() for word in ("--set", "=".join(pair))]
        words += ["--size", self.size] if self.size else []
        words += ["--bind", "queues"] if self.bind else []
        words += [word for knob in self.knobs for word in ("--knob", str(knob))]
        words += ["--interval", f"{self.interval_s:g}"] if self.interval_s != 1 else []
        return [*words, *self.further_words()]

    def further_words(self) -> list[str]:
        """Those of ``words`` that a recording keeps as they are, for the command that repeats the
        run."""
        words = [word for text in self.expect for word in ("--expect", text)]
        words += ["--tolerance", f"{100 * self.tolerance:g}%"] if self.tolerance else []
        words += ["--part", str(self.part)] if self.part is not None else []
        words += ["--until-steady", f"{self.until_steady:g}"] if self.until_steady else []
        words += ["--write-budget", str(self.write_budget)] if self.write_budget else []
        flags = {"--precondition": self.precondition, "--no-fence": self.no_fence,
                 "--io-log": self.io_log, "--probe": self.probe}  # fmt: skip
        return [*words, *(name for name, given in flags.items() if given)]
