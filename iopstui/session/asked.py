"""A session as a command line asks for it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from iopstui.model.device import BlockDevice
from iopstui.model.expectation import Expectation
from iopstui.model.target import Target
from iopstui.session.live import LiveSession
from iopstui.session.place import OwnPlace
from iopstui.session.recorder import Recorder

Choose = Callable[
    [Sequence[str], "str | None", Mapping[str, BlockDevice]], "tuple[Target, Target | None]"
]
"""From all TARGETs, the job and all devices to what is watched, and what jobs are told to work on
(``None``: the job names its files)."""


def asked_session(
    arguments: argparse.Namespace,
    target: Target,
    job_target: Target | None,
    devices: Mapping[str, BlockDevice],
    record: str | Path | None,
    expectations: Sequence[Expectation] = (),
    idle_frames: bool = True,
) -> LiveSession:
    """Not started. UsageError for a --record or --cpu that can't be; then no file is left."""
    place = OwnPlace(arguments.cpu, arguments.nice)
    return LiveSession(
        target,
        devices,
        job_target=job_target,
        interval_s=arguments.interval,
        size=arguments.size,
        destroy_data=arguments.destroy_data,
        bind=arguments.bind == "queues",
        no_fence=arguments.no_fence,
        knobs=arguments.knob,
        idle_frames=idle_frames,
        recorder=Recorder(Path(record)) if record else None,
        place=place,
        expectations=expectations,
    )
