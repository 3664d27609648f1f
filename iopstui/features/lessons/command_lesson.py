"""`iopstui lesson`: play guided experiments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from iopstui.cli.command import Command
from iopstui.cli.options import EPILOG, add_probe, add_theme
from iopstui.cli.terminal import has_screen, require_for_screen, show
from iopstui.errors import EXIT_OK

if TYPE_CHECKING:
    from iopstui.features.lessons.model.pages import Lesson
    from iopstui.features.lessons.play.facts import TargetFacts
    from iopstui.model.block.target import Target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME",
                        help="a lesson's number or name, or a lesson file of your own")  # fmt: skip
    parser.add_argument("target", nargs="?", metavar="TARGET", help="see below")
    parser.add_argument("--plain", action="store_true",
                        help="print as text, without the screen")  # fmt: skip
    parser.add_argument("--answers", metavar="LETTERS",
                        help="answers to the questions in order, - to skip one: a,c,-; implies "
                             "--plain")  # fmt: skip
    parser.add_argument("--check", action="store_true",
                        help="check the lesson file and show its pages")  # fmt: skip
    parser.add_argument("--figures", action="store_true",
                        help="list what a lesson file can ask for")  # fmt: skip
    parser.add_argument("--size", metavar="SIZE",
                        help="size of each scratch file, e.g. 1g (default: 256m)")  # fmt: skip
    parser.add_argument("--destroy-data", action="append", default=[], metavar="PATH",
                        help="needed for a lesson that writes; shipped lessons only "
                             "read")  # fmt: skip
    add_theme(parser)
    add_probe(parser)


def run(arguments: argparse.Namespace) -> int:
    """List the lessons, or play one: on the screen if there is one."""
    if arguments.figures:
        from iopstui.features.lessons.output import list_figures

        show("\n".join(list_figures()))
        return EXIT_OK
    if arguments.name is None:
        from iopstui.features.lessons.output import list_lessons
        from iopstui.features.lessons.play.library import shipped_lessons

        show("\n".join(list_lessons(shipped_lessons(), *_default_target(()))))
        return EXIT_OK
    from iopstui.features.lessons.play.library import find_lesson

    lesson = find_lesson(arguments.name)
    targets = (arguments.target,) if arguments.target is not None else ()
    if arguments.check:
        from iopstui.features.lessons.output import check_lesson

        show("\n".join(check_lesson(lesson, *_default_target(targets))))
        return EXIT_OK
    return _play(lesson, arguments, targets)


def _default_target(targets: Sequence[str]) -> tuple[Target, TargetFacts]:
    from iopstui.features.lessons.play.facts import read_target_facts
    from iopstui.linux.devices.sysfs import read_devices
    from iopstui.linux.kernel_files import Roots
    from iopstui.preflight.targets import choose_targets

    devices = read_devices(Roots())
    target, _ = choose_targets(targets, None, devices, Roots())
    return target, read_target_facts(target, devices, Roots())


def _play(lesson: Lesson, arguments: argparse.Namespace, targets: tuple[str, ...]) -> int:
    from iopstui.model.experiment.run_request import RunRequest

    request = RunRequest(
        targets=targets, size=arguments.size, destroy_data=tuple(arguments.destroy_data),
        probe=arguments.probe,
    )  # fmt: skip
    if arguments.plain or arguments.answers or not has_screen():
        from iopstui.features.lessons.plain_player import parse_answers, play_plain

        answers = parse_answers(arguments.answers, lesson)
        return play_plain(lesson, request, answers, is_interactive=not arguments.answers)
    require_for_screen(arguments)
    from iopstui.fio.inspect import find_fio
    from iopstui.ui.start import run_screen

    find_fio()
    return run_screen(request, begin=lesson, theme=arguments.theme)


COMMAND = Command(
    "lesson",
    70,
    "guided experiments: predict, run, see, explain (or list them)",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
