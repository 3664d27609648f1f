"""From the command line to the screen."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui.errors import EXIT_OK, EXIT_VERDICT, IopstuiError
from iopstui.model.device import BlockDevice
from iopstui.model.expectation import Expectation, parse_tolerance
from iopstui.model.target import Target
from iopstui.session.leftovers import clean_up
from iopstui.session.live import LiveSession
from iopstui.session.place import OwnPlace
from iopstui.session.recorder import Recorder, next_free
from iopstui.session.verdicts import outcome_text
from iopstui.sources.jobs import shipped_jobs
from iopstui.sources.roots import Roots
from iopstui.sources.sysfs import read_devices
from iopstui.sources.udev import HotplugMonitor
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.model.lesson import Lesson
    from iopstui.ui.experiment_keys import Laboratory
    from iopstui.ui.lesson_keys import Lessons
    from iopstui.ui.messages import Controller

Choose = Callable[
    ["str | None", "str | None", Mapping[str, BlockDevice]], "tuple[Target, Target | None]"
]


def run_screen(
    arguments: argparse.Namespace,
    overrides: Mapping[str, str],
    choose: Choose,
    lesson: Lesson | None = None,
) -> int:
    """Opens the screen; the exit code. Without a target, a job and a ``lesson`` to begin with the
    picker comes first."""
    # what is imported now stays: looking for garbage in it is a tenth of the start (see app.py)
    gc.disable()
    clean_up(Roots())
    pick = arguments.target is None and arguments.job is None and lesson is None
    early: list[LiveSession] = []
    made: list[LiveSession] = []
    works_on: dict[object, Target | None] = {}
    record: list[str] = [arguments.record] if arguments.record else []
    recorded: dict[Path, Path] = {}
    tolerance = parse_tolerance(arguments.tolerance)

    def expectations(target: Target) -> tuple[Expectation, ...]:
        from iopstui.session.promises import expectations_of, job_sections

        jobs = [job_sections(arguments.job, overrides)] if arguments.job else []
        return expectations_of(arguments.expect, tolerance, target, jobs)

    def discover() -> Mapping[str, BlockDevice]:
        return read_devices(Roots())

    def session(path: str | None) -> LiveSession:
        devices = discover()
        target, job_target = choose(path, arguments.job if path is None else None, devices)
        one = LiveSession(
            target,
            devices,
            job_target=job_target,
            interval_s=arguments.interval,
            size=arguments.size,
            destroy_data=arguments.destroy_data,
            bind=arguments.bind == "queues",
            knobs=arguments.knob,
            place=OwnPlace(arguments.cpu, arguments.nice),
            recorder=Recorder(Path(record.pop())) if record else None,
            expectations=expectations(target) if arguments.expect else (),
        )
        if made and made[-1].recorded is not None:
            _go_on(one, made[-1].recorded, recorded)
        made.append(one)
        works_on[one] = job_target
        return one

    def make_controller(path: str | None) -> Controller:
        return early.pop() if early else session(path)

    def laboratory(controller: Controller) -> Laboratory:
        from iopstui.session.laboratory import Laboratory
        from iopstui.session.runner import Conditions

        assert isinstance(controller, LiveSession)
        knobs = tuple((k.name, k.value) for k in arguments.knob if k.after_s is None)
        conditions = Conditions(arguments.size, tuple(arguments.destroy_data), knobs=knobs)
        return Laboratory(controller, works_on[controller], conditions)

    def lessons(controller: Controller) -> Lessons:
        from iopstui.session import lessons as here

        return here.Lessons(
            works_on[controller], lambda: controller.devices, arguments.size,
            arguments.destroy_data,
        )  # fmt: skip

    if not pick:
        early.append(session(arguments.target))
        early[0].start()
    try:
        # only now: Textual takes longer to import than the first interval
        from iopstui.ui.app import run_app

        code = run_app(
            make_controller,
            arguments.target,
            arguments.job,
            overrides,
            discover,
            shipped_jobs(),
            pick=pick,
            refresh_s=arguments.refresh,
            watch=HotplugMonitor,
            laboratory=laboratory,
            lessons=lessons,
            lesson=lesson,
        )
    finally:
        for one in early:
            one.close()
        # the screen is gone, the terminal as it was: only now can it be read
        for line in (line for one in made for line in map(outcome_text, one.outcomes)):
            print(f"iopstui: {printable(line)}", file=sys.stderr)
        for text in (one.left_behind for one in made if one.left_behind):
            print(f"iopstui: {text}", file=sys.stderr)
    missed = any(outcome.passed is False for one in made for outcome in one.outcomes)
    return EXIT_VERDICT if missed and code == EXIT_OK else code


def _go_on(session: LiveSession, before: Path, recorded: dict[Path, Path]) -> None:
    """A recording goes on with another device in a file of its own: FILE-2, FILE-3 ...
    ``recorded`` maps those to the first."""
    first = recorded.get(before, before)
    path = next_free(first)
    recorded[path] = first
    try:
        session.record(path)
    except IopstuiError as error:
        session.notice("error", f"{error.message} {error.hint}".strip())
