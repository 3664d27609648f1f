"""From the command line to the screen."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from iopstui.model.device import BlockDevice
from iopstui.model.target import Target
from iopstui.session.leftovers import clean_up
from iopstui.session.live import LiveSession
from iopstui.sources.jobs import shipped_jobs
from iopstui.sources.roots import Roots
from iopstui.sources.sysfs import read_devices
from iopstui.ui.app import run_app
from iopstui.ui.messages import Controller

Choose = Callable[
    ["str | None", "str | None", Mapping[str, BlockDevice]], "tuple[Target, Target | None]"
]


def run_screen(arguments: argparse.Namespace, overrides: Mapping[str, str], choose: Choose) -> int:
    """Opens the screen; the exit code. Without a target and a job the picker comes first."""
    clean_up(Roots())

    def discover() -> Mapping[str, BlockDevice]:
        return read_devices(Roots())

    def make_controller(path: str | None) -> Controller:
        devices = discover()
        target, job_target = choose(path, arguments.job if path is None else None, devices)
        return LiveSession(
            target,
            devices,
            job_target=job_target,
            interval_s=arguments.interval,
            size=arguments.size,
            destroy_data=arguments.destroy_data,
            bind=arguments.bind == "queues",
            knobs=arguments.knob,
        )

    return run_app(
        make_controller,
        arguments.target,
        arguments.job,
        overrides,
        discover,
        shipped_jobs(),
        pick=arguments.target is None and arguments.job is None,
    )
