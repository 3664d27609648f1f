"""From the arguments of sweep and compare to an experiment that is ready to run."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.model.device import BlockDevice
from iopstui.model.plan import Plan
from iopstui.model.target import Target
from iopstui.output.experiment import say
from iopstui.session.asked import Choose, asked_session
from iopstui.session.experiment import Setup, goes_on_text, rehearsed_setup
from iopstui.session.leftovers import clean_up
from iopstui.session.live import LiveSession
from iopstui.session.progress_file import ProgressFile, default_path
from iopstui.session.recorder import next_free
from iopstui.session.rehearsal import distinct
from iopstui.session.runner import Conditions
from iopstui.sources.fio_inspect import find_fio
from iopstui.sources.roots import Roots
from iopstui.sources.sysfs import read_devices

MANY = 20
"""From so many questions on, fio's answers take seconds."""


def session_of(setup: Setup, arguments: argparse.Namespace, goes_on: bool = False) -> LiveSession:
    """The session that runs it; not started. UsageError for a --record that can't be. One that
    ``goes_on`` after an interruption has been recorded to that file before."""
    record = Path(arguments.record) if arguments.record else None
    if record is not None and goes_on and record.exists():
        record = next_free(record)
        say([f"recording to {record}: {arguments.record} ends with the interruption"])
    return asked_session(
        arguments, setup.target, setup.job_target, setup.devices, record, idle_frames=False
    )


def set_up(arguments: argparse.Namespace, plan: Plan, choose: Choose) -> Setup:
    """Look at everything before anything runs. UsageError, Refused or Missing."""
    fio = find_fio()
    done, failed = clean_up(Roots())
    say([f"left by a crash: {line}" for line in (*done, *failed)])
    devices = read_devices(Roots())
    target, job_target = _one_target(arguments.target, plan.every_job, devices, choose)
    if any(knob.after_s is not None for knob in arguments.knob):
        raise UsageError(
            "A knob turned in mid-run (NAME=VALUE@SECONDS) makes the runs of an experiment uneven.",
            "Give it without @, or make it an axis or a variant.",
        )
    conditions = Conditions(
        arguments.size,
        tuple(arguments.destroy_data),
        arguments.bind == "queues",
        tuple((knob.name, knob.value) for knob in arguments.knob),
        arguments.no_fence,
    )
    looked = sum(1 for _ in distinct(plan))
    if looked >= MANY:
        say([f"asking fio about {looked} of {plan.points} points first; nothing runs yet"])
    return rehearsed_setup(plan, target, job_target, devices, conditions, fio, Roots())


def _one_target(
    texts: Sequence[str], jobs: Sequence[str], devices: Mapping[str, BlockDevice], choose: Choose
) -> tuple[Target, Target | None]:
    chosen = [choose(texts, job, devices) for job in jobs]
    if any(one != chosen[0] for one in chosen):
        raise UsageError("The jobs name different files to work on, so they need a common target.",
                         "Name it as TARGET: a device, a file or a directory.")  # fmt: skip
    return chosen[0]


def progress_of(
    setup: Setup, what: str, arguments: argparse.Namespace, expectations: Sequence[str] = ()
) -> ProgressFile | None:
    """The file that keeps what was measured, with what an interrupted run has left in it;
    ``None`` where none can be kept. UsageError for a --state that is of something else."""
    key = setup.key(expectations)
    try:
        path = Path(arguments.state) if arguments.state else default_path(what, key)
    except OSError as error:
        say([f"the progress is not kept: {error}"])
        return None
    found = ProgressFile(path, key)
    if arguments.fresh and not arguments.dry_run:
        found.remove()
    if found.points:
        say([f"{goes_on_text(found, setup.plan, time.time())} (--fresh begins anew)"])
    return found
