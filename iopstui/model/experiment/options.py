"""The user's options for a run or an experiment, as values.

The front end (today the command line) creates these once; everything below reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui.model.block.target import TargetPart
from iopstui.model.block.tunable import TunableRequest

if TYPE_CHECKING:
    from iopstui.model.experiment.plan import Plan
    from iopstui.model.volumes.promised import PromisedFigures


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of every run of a command. ``targets``, ``destroy_data`` and ``record`` are
    paths as the user wrote them."""

    targets: tuple[str, ...] = ()
    job: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Options of fio that take the place of the job's."""
    size: str | None = None
    part: TargetPart | None = None
    """The part of each target that is used; ``None``: all of it."""
    destroy_data: tuple[str, ...] = ()
    no_fence: bool = False
    bind: bool = False
    """Every fio job on a CPU of another hardware queue."""
    knobs: tuple[TunableRequest, ...] = ()
    interval_s: float = 1.0
    own_cpus: tuple[int, ...] | None = None
    """The CPUs of iopstui itself: ``()`` any, ``None`` those where it disturbs least."""
    nice: int = 0
    record: str | None = None
    expect: tuple[str, ...] = ()
    tolerance: float = 0.0
    """By which share of its value an expectation may be missed."""
    baseline: str | None = None
    """The file of an earlier run that expectations are a share of."""
    until_steady: float | None = None
    """Seconds of a round: the run ends when five of them are steady."""
    write_budget: int | None = None
    """Bytes that all runs together may write."""
    precondition: bool = False
    """The target is written twice before."""
    hold: bool = False
    """Everything is made ready, and fio starts at a word."""
    io_log: bool = False
    """fio logs each I/O, for the list of the slowest."""
    probe: tuple[str, ...] = ()
    """What is counted inside the kernel (model/metrics/probe.py)."""
    textfile: str | None = None
    """Where the metrics are written to while it runs, for node_exporter."""
    metrics_port: int | None = None
    """The loopback port they are served at; 0: any."""
    junit: str | None = None
    """Where the outcomes of ``expect`` are written as JUnit XML."""
    volume: PromisedFigures | None = None
    """What was bought (--volume): its limits are drawn, and findings name them."""
    cgroups: bool = False
    """Each sample has the I/O of each cgroup."""
    summary: str | None = None
    """The file that a summary in Markdown is appended to."""
    trace: str = ""
    """The requests that the job replays, as fio's iolog; empty: it makes its own."""


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """Options of a sweep or a comparison: the ``plan``, the options of each ``run``, and those
    of the whole experiment."""

    run: RunOptions
    plan: Plan
    format: str = "table"
    """Of the data: "table", "jsonl" or "csv"."""
    dry_run: bool = False
    yes: bool = False
    """Start a very long experiment without asking."""
    state: Path | None = None
    """Where progress is kept; ``None``: in the state directory."""
    spread: float | None = None
    """What is said of how runs of one setting differ (0.03: 3 %)."""
    fresh: bool = False
    """Discard what an interrupted run has measured."""
