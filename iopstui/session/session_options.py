"""Options of a live session: how it samples, and how it runs fio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iopstui.model.block.target import TargetPart
from iopstui.session.fio.write_budget import WriteBudget

if TYPE_CHECKING:
    from iopstui.model.volumes.promised import PromisedFigures


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """``idle_frames`` False: frames only while a job runs (headless). ``short_first_interval``: the
    first frame covers a shorter interval, for somebody who waits at a screen. ``keep_s``: so
    many of the last seconds are kept, for a recording that is made later. ``probe``: parts of
    the kernel probe to count. ``volume`` is what was bought, if the user says so: findings name
    its limits. ``cgroups``: each sample has the I/O of each cgroup.
    ``on_screen``: while no job runs, latencies are counted where that is possible and cheap, and
    who uses the disks is read each second.
    """

    interval_s: float = 1.0
    idle_frames: bool = True
    short_first_interval: bool = True
    keep_s: float = 0.0
    probe: Sequence[str] = ()
    volume: PromisedFigures | None = None
    cgroups: bool = False
    on_screen: bool = False


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """Policy for every run of the session. ``budget`` limits what all runs together may write.
    ``keep_scratch``: scratch files stay until the session ends, for runs that need the same.
    ``hold``: a run is made ready and starts with ``start_run``. ``deadline_s``: fio is ended if
    this process hangs or is stopped for so long (``None``: fio.process.DEADLINE_S). ``part``: the
    part of the target that is used. ``trace``: what the runs replay, as fio's iolog. ``io_log``:
    fio logs each I/O."""

    size: str | None = None
    part: TargetPart | None = None
    destroy_data: Sequence[str] = ()
    no_fence: bool = False
    bind: bool = False
    fio_path: str | None = None
    budget: WriteBudget = field(default_factory=WriteBudget)
    keep_scratch: bool = False
    hold: bool = False
    deadline_s: float | None = None
    trace: str = ""
    io_log: bool = False
