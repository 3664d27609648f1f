"""Create a session from the options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.experiment.options import RunOptions
from iopstui.recording.writer import Recorder
from iopstui.session.fio.write_budget import WriteBudget
from iopstui.session.live import LiveSession
from iopstui.session.own_cpus import OwnCpus
from iopstui.session.session_options import RunPolicy, SamplingOptions

if TYPE_CHECKING:
    from iopstui.model.experiment.expectation import Expectation


def new_session(
    options: RunOptions,
    target: Target,
    job_target: Target | None,
    devices: Mapping[str, BlockDevice],
    expectations: Sequence[Expectation] = (),
    idle_frames: bool = True,
    keep_s: float = 0.0,
    short_first_interval: bool = True,
    announce_writes: bool = False,
    deadline_s: float | None = None,
    on_screen: bool = False,
) -> LiveSession:
    """A new session, not started. ``announce_writes``: each run says first how much it may write.
    ``deadline_s``: as of ``RunPolicy``. ``on_screen``: as of ``SamplingOptions``.
    UsageError for an invalid --record or --cpu; then no file is left."""
    sampling = SamplingOptions(
        options.interval_s,
        idle_frames,
        short_first_interval,
        keep_s,
        options.probe,
        options.volume,
        options.cgroups,
        on_screen,
    )
    # on the screen (idle_frames) one run follows another, and the scratch file stays
    policy = _run_policy(options, idle_frames, announce_writes, deadline_s)
    return LiveSession(
        target,
        devices,
        job_target,
        sampling,
        policy,
        knobs=options.knobs,
        own_cpus=OwnCpus(options.own_cpus, options.nice),
        recorder=Recorder(Path(options.record)) if options.record else None,
        expectations=expectations,
        until_steady=options.until_steady,
    )


def _run_policy(
    options: RunOptions, keep_scratch: bool, announce_writes: bool, deadline_s: float | None
) -> RunPolicy:
    return RunPolicy(
        size=options.size, part=options.part, destroy_data=options.destroy_data, bind=options.bind,
        no_fence=options.no_fence, budget=WriteBudget(options.write_budget, announce_writes),
        keep_scratch=keep_scratch, hold=options.hold, deadline_s=deadline_s, trace=options.trace,
        io_log=options.io_log,
    )  # fmt: skip
