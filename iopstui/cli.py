"""The command line. Each command imports what it needs inside its handler."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from iopstui import __version__
from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_OK,
    IopstuiError,
    UsageError,
)
from iopstui.session.signals import handle_stop_signals, interrupt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iopstui.model.device import BlockDevice
    from iopstui.model.target import Target
    from iopstui.model.tunable import KnobRequest

EPILOG = """\
TARGET is a block device, a file, a directory (a scratch file is made in it and removed), or
nothing (a scratch file in the current directory). Of several TARGETs of one kind every job uses
all, as fio does with filename=A:B. A block device is only read unless --destroy-data repeats its
path (for each device that is written); a device in use is never written.

exit codes: 0 done, 1 the job failed, 2 usage or bad input, 3 refused for safety,
4 a verdict failed, 5 something needed is missing, 130 interrupted (by a signal, whichever)
"""
DEFAULT_JOB = "mixed-4k"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. No exception leaves this function. Without ``argv`` the
    process is ours: every signal that would end it interrupts the command."""
    if argv is not None:
        return _whole(argv)
    try:
        handle_stop_signals(interrupt)
        try:
            return _whole(None)
        finally:
            # nothing is left to undo
            handle_stop_signals(signal.SIG_DFL)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _whole(argv: Sequence[str] | None) -> int:
    """With the standard streams as they have to be."""
    from iopstui.output.streams import finish, prepare

    writable = prepare()
    code = _told(argv, writable)
    lost = finish()
    return code if lost is None else _output_lost(lost)


def _told(argv: Sequence[str] | None, writable: bool) -> int:
    """The same; what goes wrong is told."""
    from iopstui.output.streams import OutputLost

    try:
        return _main(argv, writable)
    except SystemExit as ended:  # argparse: help, or a wrong command line that it has told
        return ended.code if isinstance(ended.code, int) else EXIT_OK
    except IopstuiError as error:
        complain(error)
        return error.exit_code
    except (BrokenPipeError, OutputLost) as error:
        return _output_lost(error)
    except KeyboardInterrupt:
        print("iopstui: interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception as error:
        from iopstui.session.crash import crash_sentence
        from iopstui.text import printable

        print(printable(crash_sentence(error)), file=sys.stderr)
        return EXIT_JOB_FAILED


def _main(argv: Sequence[str] | None, writable: bool) -> int:
    arguments = _parsed(parser(), argv)
    if not writable:
        raise UsageError(
            "Standard output is closed, so nothing that is found out could be told.",
            "Where only the exit code matters: iopstui ... > /dev/null",
        )
    if arguments.handler not in (cmd_devices, cmd_jobs, cmd_fields):
        _require_current_directory()
    return int(arguments.handler(arguments))


def _require_current_directory() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise UsageError(
            f"The current directory can't be told ({error.strerror}); has it been removed?",
            "Go to one that exists: cd ~",
        ) from error


def _parsed(top: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """As ``parse_args``, but further TARGETs may also stand behind options."""
    arguments, rest = top.parse_known_args(argv)
    if rest:
        several = isinstance(getattr(arguments, "target", None), list) and arguments.target
        if not several or any(text.startswith("-") for text in rest):
            top.error(f"unrecognized arguments: {' '.join(rest)}")
        arguments.target = [*arguments.target, *rest]
    return arguments


def complain(error: IopstuiError) -> None:
    """What happened and what mends it, on standard error."""
    from iopstui.text import printable

    print(f"iopstui: {printable(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  {printable(error.hint)}", file=sys.stderr)


def _output_lost(error: OSError) -> int:
    from iopstui.output.streams import drop

    drop()
    if isinstance(error, BrokenPipeError):
        said, code = "standard output was closed, so nothing more is written", EXIT_INTERRUPTED
    else:
        said, code = f"standard output can't be written: {error.strerror}", EXIT_JOB_FAILED
    print(f"iopstui: {said}.", file=sys.stderr)
    return code


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="iopstui",
        description="The oscilloscope for block I/O: runs fio and shows, second by second, what "
        "fio sees and what the kernel sees.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"iopstui {__version__}")
    top.set_defaults(handler=cmd_live, target=[], job=None, set=[], size=None,
                     destroy_data=[], no_fence=False, interval=1.0, bind=None, knob=[],
                     record=None, refresh=0.0, cpu=None, nice=0, expect=[],
                     tolerance="0%")  # fmt: skip
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    _add_live(commands)
    _add_run(commands)
    _add_recordings(commands)
    _add_sweep(commands)
    _add_compare(commands)
    _add_lesson(commands)
    _add_lists(commands)
    return top


def _add(commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str,
         handler: object, epilog: str = "") -> argparse.ArgumentParser:  # fmt: skip
    command = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(handler=handler)
    return command


def _add_live(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    live = _add(commands, "live", "the live screen (device picker first without TARGET)",
                cmd_live, EPILOG)  # fmt: skip
    live.add_argument("--job", metavar="JOB", help="start this job at once: see `iopstui jobs`")
    live.add_argument("--refresh", type=_refresh, default=0.0, metavar="SECONDS",
                      help="paint at most this often, up to 60; sampling keeps its own "
                      "--interval (default: paint every sample)")  # fmt: skip
    _add_expect(live)
    _add_run_options(live)


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = _add(commands, "run", "run a job without a screen: table, JSON lines or CSV",
               cmd_run, EPILOG)  # fmt: skip
    what = run.add_mutually_exclusive_group(required=True)
    what.add_argument("--job", metavar="JOB",
                      help="a shipped job (see `iopstui jobs`) or any fio job file")  # fmt: skip
    what.add_argument("--diskspd", metavar="COMMAND",
                      help="a DISKSPD command line in quotes, translated to a fio job and run",
                      )  # fmt: skip
    run.add_argument("--format", choices=("table", "jsonl", "csv"), default="table",
                     help="of the data on standard output (default: table)")  # fmt: skip
    _add_expect(run)
    _add_run_options(run)


def _add_sweep(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sweep = _add(commands, "sweep", "run a job at every point of one or more axes",
                 cmd_sweep, EPILOG)  # fmt: skip
    sweep.add_argument("--job", action="append", required=True, metavar="JOB",
                       help="see `iopstui jobs`; several are measured one after another",
                       )  # fmt: skip
    sweep.add_argument("--axis", action="append", default=[], metavar="NAME=LIST",
                       help="any fio option or knob, e.g. iodepth=1,2,4..256 (doubles), "
                       "numjobs=1..4 (counts), bs=4k,64k, rq_affinity=1,2; the first axis varies "
                       "fastest")  # fmt: skip
    _add_experiment(sweep)
    _add_resume(sweep)
    _add_expect(sweep)
    _add_run_options(sweep)


def _add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    compare = _add(commands, "compare", "run a job with two or more settings in turn, and say "
                   "what differs", cmd_compare, EPILOG)  # fmt: skip
    compare.add_argument("--job", required=True, metavar="JOB", help="see `iopstui jobs`")
    compare.add_argument("--variant", action="append", default=[], metavar="NAME=VALUE",
                         help="any fio option or knob, bind=queues or job=JOB, several joined by "
                         "commas, or as-is; two at least, the first is what the others are held "
                         "against")  # fmt: skip
    compare.add_argument("--repeats", type=_repeats, default=5, metavar="N",
                         help="runs of each variant (default: 5)")  # fmt: skip
    _add_experiment(compare)
    _add_run_options(compare)


def _add_lesson(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    lesson = _add(commands, "lesson", "guided experiments: predict, run, see, explain; without "
                  "NAME a list of them", cmd_lesson, EPILOG)  # fmt: skip
    lesson.add_argument("name", nargs="?", metavar="NAME",
                        help="a lesson's number or name, or a lesson file of your own")  # fmt: skip
    lesson.add_argument("target", nargs="?", metavar="TARGET", help="see below")
    lesson.add_argument("--plain", action="store_true",
                        help="as text on standard output, without the screen")  # fmt: skip
    lesson.add_argument("--answers", metavar="LETTERS",
                        help="answers to its questions in order, - for none: a,c,-; implies "
                        "--plain")  # fmt: skip
    lesson.add_argument("--check", action="store_true",
                        help="examine the lesson file and show its steps")  # fmt: skip
    lesson.add_argument("--figures", action="store_true",
                        help="list what a lesson file can ask for")  # fmt: skip
    lesson.add_argument("--size", metavar="SIZE",
                        help="size of each scratch file: 1g (default: 256m)")  # fmt: skip
    lesson.add_argument("--destroy-data", action="append", default=[], metavar="PATH",
                        help="for a lesson that writes; the shipped ones only read")  # fmt: skip


def _repeats(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number from 2 to 1000 (one run of each says nothing of chance)"
        )
    return int(text)


def _add_experiment(command: argparse.ArgumentParser) -> None:
    command.add_argument("--settle", type=_settle, default=2.0, metavar="SECONDS",
                         help="not measured at the start of each run (default: 2)")  # fmt: skip
    command.add_argument("--measure", type=_measure, default=8.0, metavar="SECONDS",
                         help="measured after it (default: 8)")  # fmt: skip
    command.add_argument("--format", choices=("table", "jsonl", "csv"), default="table",
                         help="of the data on standard output (default: table)")  # fmt: skip
    command.add_argument("--dry-run", action="store_true",
                         help="print the plan, its length and what it will write")  # fmt: skip
    command.add_argument("--yes", action="store_true", help="begin a very long one without asking")


def _add_resume(command: argparse.ArgumentParser) -> None:
    command.add_argument("--state", metavar="FILE",
                         help="keep the progress here; after an interruption the same command "
                         "goes on (default: in the state directory)")  # fmt: skip
    command.add_argument("--fresh", action="store_true",
                         help="begin anew after an interruption")  # fmt: skip


def _add_expect(command: argparse.ArgumentParser) -> None:
    command.add_argument("--expect", action="append", default=[], metavar="FIGURE>=VALUE",
                         help="PASS or FAIL by a figure of `iopstui fields`: iops>=5000, "
                         "read.clat.p99<=2ms, util<=90%%; may be repeated")  # fmt: skip
    command.add_argument("--tolerance", default="0%", metavar="PERCENT",
                         help="how far --expect may be missed, e.g. 10%%")  # fmt: skip


def _add_run_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", nargs="*", metavar="TARGET", help="see below")
    command.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE",
                         help="change an option of every job in the file, e.g. iodepth=32; "
                         "runtime=N also makes the job time_based")  # fmt: skip
    command.add_argument("--size", metavar="SIZE",
                         help="size of each scratch file, or of the area used: 4g")  # fmt: skip
    command.add_argument("--destroy-data", action="append", default=[], metavar="PATH",
                         help="allow writing over PATH, which must repeat the target; once for "
                         "each of several")  # fmt: skip
    command.add_argument("--no-fence", action="store_true",
                         help="run a job file of your own that writes even where the kernel can't "
                         "keep fio from all other files; see iopstui doctor")  # fmt: skip
    command.add_argument(
        "--knob",
        action="append",
        default=[],
        type=_knob,
        metavar="NAME=VALUE[@SECONDS]",
        help="change a setting of the device while it is measured, e.g. rq_affinity=2 or "
        "irq/36=0-1, with @SECONDS so long after the job began; put back at the end",
    )
    command.add_argument(
        "--bind",
        choices=("queues",),
        help="bind every fio job to a CPU of another hardware queue",
    )
    command.add_argument("--interval", type=_interval, default=1.0, metavar="SECONDS",
                         help="between two samples, 0.25 to 60 (default: 1)")  # fmt: skip
    command.add_argument("--cpu", type=_cpus, metavar="LIST",
                         help='run iopstui itself (not fio) on these CPUs, e.g. 7 or 0-1; "all": '
                         "anywhere (default: where neither job nor device work, if the job names "
                         "its CPUs)")  # fmt: skip
    command.add_argument("--nice", type=_nice, default=0, metavar="N",
                         help="priority of iopstui itself, 0 to 19, except of what samples "
                         "(default: 0)")  # fmt: skip
    command.add_argument("--record", metavar="FILE",
                         help="keep everything that is measured in FILE, which must not exist: "
                         "see `iopstui replay` and `iopstui report`")  # fmt: skip


def _add_lists(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    devices = _add(commands, "devices", "block devices, their queues, CPUs, IRQs and use",
                   cmd_devices)  # fmt: skip
    devices.add_argument("--format", choices=("table", "json"), default="table")
    devices.add_argument("--all", action="store_true", help="empty and hidden devices too")
    jobs = _add(commands, "jobs", "the shipped jobs; with NAME, one explained", cmd_jobs)
    jobs.add_argument("name", nargs="?", metavar="NAME")
    jobs.add_argument("--format", choices=("table", "json"), default="table")
    fields = _add(commands, "fields", "every field of the JSON lines: unit, source, meaning",
                  cmd_fields)  # fmt: skip
    fields.add_argument("--format", choices=("table", "json"), default="table")
    _add(commands, "doctor", "what this machine allows, what is missing and what mends it; "
         "removes what a crash left", cmd_doctor)  # fmt: skip


def _add_recordings(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    replay = _add(commands, "replay", "what was recorded, on the live screen or as data",
                  cmd_replay)  # fmt: skip
    replay.add_argument("file", metavar="FILE",
                        help='made with --record or key R; "demo" comes with iopstui')  # fmt: skip
    replay.add_argument("--speed", type=_speed, default=1.0, metavar="X",
                        help="seconds of the recording in one, 0.1 to 1000 (default: 1)",
                        )  # fmt: skip
    replay.add_argument("--format", choices=("table", "jsonl", "csv"),
                        help="write everything to standard output at once, without a screen",
                        )  # fmt: skip

    report = _add(commands, "report", "a page, or data, of a recording, or of two side by side",
                  cmd_report)  # fmt: skip
    report.add_argument("file", nargs="+", metavar="FILE", help="one recording, or two")
    report.add_argument("-o", "--output", metavar="OUT",
                        help="x.html, x.md, x.csv or x.json (default: Markdown on standard output)",
                        )  # fmt: skip
    report.add_argument("--format", choices=("html", "md", "csv", "json"),
                        help="where OUT's name does not say it")  # fmt: skip


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0.1 <= speed <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0.1 to 1000")
    return speed


def _settle(text: str) -> float:
    return _seconds(text, 0, 3600)


def _measure(text: str) -> float:
    return _seconds(text, 1, 86400)


def _seconds(text: str, low: float, high: float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not low <= seconds <= high:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds from {low:g} to {high:g}"
        )
    return seconds


def _refresh(text: str) -> float:
    return _seconds(text, 0, 60)


def _nice(text: str) -> int:
    if text.isdecimal() and int(text) <= 19:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 19")


def _cpus(text: str) -> tuple[int, ...]:
    """CPU numbers; none for "all"."""
    from iopstui.sources.sysattr import parse_cpu_list

    cpus = parse_cpu_list(text)
    if text != "all" and (not cpus or not set(text) <= set("0123456789,-")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of CPUs such as 7 or 0-1,4")
    return cpus


def _interval(text: str) -> float:
    return _seconds(text, 0.25, 60)


def _knob(text: str) -> KnobRequest:
    from iopstui.model.tunable import parse_knob

    try:
        return parse_knob(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(error.message) from error


def _overrides(arguments: argparse.Namespace) -> dict[str, str]:
    from iopstui.model.jobfile import checked_override

    return dict(checked_override(text) for text in arguments.set)


def choose_targets(
    texts: Sequence[str], job: str | None, devices: Mapping[str, BlockDevice]
) -> tuple[Target, Target | None]:
    """What is watched, and what jobs are told to work on (``None``: the job names its files)."""
    from pathlib import Path

    from iopstui.session.own_target import own_target
    from iopstui.sources.roots import Roots
    from iopstui.sources.target import resolve_targets

    roots = Roots()
    if not texts and job is not None:
        named = own_target(job, devices, roots)
        if named is not None:
            return named, None
    # looking needs no right; a job that lacks one says which when it starts
    target = resolve_targets(texts, Path.cwd(), roots, devices, to_read=False)
    return target, target


def cmd_live(arguments: argparse.Namespace) -> int:
    """The screen."""
    from iopstui.sources.packages import FOR_THE_SCREEN, require

    _require_terminal()
    require(*FOR_THE_SCREEN)
    from iopstui.ui.start import run_screen

    return run_screen(arguments, _overrides(arguments), choose_targets)


def _has_screen() -> bool:
    """Whether the live screen can be shown."""
    tty = sys.stdin.isatty() and sys.stdout.isatty()
    return tty and os.environ.get("TERM", "") not in ("", "dumb")


def _require_terminal(
    instead: str = "iopstui run [TARGET] --job JOB --format table|jsonl|csv",
) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The live screen needs a terminal, and standard input or output is none.",
            f"Without one: {instead}",
        )
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise UsageError(
            "This terminal (TERM=dumb) can't place text, so there is no live screen on it.",
            f"Set TERM to what the terminal is, e.g. TERM=xterm, or use: {instead}",
        )


def _require_for_runs() -> None:
    from iopstui.sources.packages import FOR_RUNS, require

    require(*FOR_RUNS)


def cmd_run(arguments: argparse.Namespace) -> int:
    """A job without a screen."""
    _require_for_runs()
    if arguments.diskspd is not None:
        from iopstui.output.diskspd import run_diskspd

        return run_diskspd(arguments, _overrides(arguments), choose_targets)
    from iopstui.output.headless import run_headless

    return run_headless(arguments, _overrides(arguments), choose_targets)


def cmd_replay(arguments: argparse.Namespace) -> int:
    """A recording, on the screen or as data."""
    if arguments.format:
        from iopstui.output.replay import replay_headless

        return replay_headless(arguments.file, arguments.format)
    _require_terminal("iopstui replay FILE --format table|jsonl|csv")
    from iopstui.sources.packages import FOR_THE_SCREEN, require

    require(*FOR_THE_SCREEN)
    from iopstui.ui.replay import run_replay

    return run_replay(arguments.file, arguments.speed)


def cmd_sweep(arguments: argparse.Namespace) -> int:
    """A job at many points."""
    _require_for_runs()
    from iopstui.output.sweep import run_sweep

    return run_sweep(arguments, _overrides(arguments), choose_targets)


def cmd_report(arguments: argparse.Namespace) -> int:
    """A report of one recording or two."""
    from iopstui.output.report import report

    return report(arguments.file, arguments.output, arguments.format)


def cmd_compare(arguments: argparse.Namespace) -> int:
    """A job with several settings in turn."""
    _require_for_runs()
    from iopstui.output.compare import run_compare

    return run_compare(arguments, _overrides(arguments), choose_targets)


def cmd_lesson(arguments: argparse.Namespace) -> int:
    """The lessons, or one of them: on the screen where there is one."""
    from iopstui.output.lesson import play_plain
    from iopstui.output.lesson_list import check_lesson, list_figures, list_lessons
    from iopstui.sources.lessons import find_lesson, shipped_lessons

    if arguments.figures:
        _print("\n".join(list_figures()))
        return EXIT_OK
    if arguments.name is None:
        _print("\n".join(list_lessons(shipped_lessons(), choose_targets, None)))
        return EXIT_OK
    lesson = find_lesson(arguments.name)
    if arguments.check:
        _print("\n".join(check_lesson(lesson, choose_targets, arguments.target)))
        return EXIT_OK
    _require_for_runs()
    if arguments.plain or arguments.answers or not _has_screen():
        return play_plain(arguments, lesson, choose_targets)
    from iopstui.sources.fio_inspect import find_fio
    from iopstui.sources.packages import FOR_THE_SCREEN, require

    require(*FOR_THE_SCREEN)
    from iopstui.ui.start import run_screen

    find_fio()
    arguments.target = [arguments.target] if arguments.target is not None else []
    return run_screen(arguments, {}, choose_targets, lesson)


def cmd_devices(arguments: argparse.Namespace) -> int:
    """The block devices."""
    import json

    from iopstui.output.devices import devices_json, devices_table
    from iopstui.sources.roots import Roots
    from iopstui.sources.sysfs import read_devices
    from iopstui.sources.topology import online_cpus

    devices = read_devices(Roots())
    if arguments.format == "json":
        print(json.dumps(devices_json(devices, online_cpus(Roots())), indent=2))
    else:
        _print(devices_table(devices, _width(), all=arguments.all))
    return EXIT_OK


def cmd_jobs(arguments: argparse.Namespace) -> int:
    """The shipped jobs, or one of them."""
    import json

    from iopstui.output.jobs import explain, jobs_json, jobs_table
    from iopstui.sources.jobs import find_shipped, shipped_jobs

    if arguments.name:
        job = find_shipped(arguments.name)
        text = json.dumps(jobs_json([job])[0], indent=2) if arguments.format == "json" else explain(
            job, _width()
        )  # fmt: skip
    elif arguments.format == "json":
        text = json.dumps(jobs_json(shipped_jobs()), indent=2)
    else:
        text = jobs_table(shipped_jobs(), _width())
    _print(text)
    return EXIT_OK


def cmd_fields(arguments: argparse.Namespace) -> int:
    """The field registry."""
    from iopstui import fields

    _print(fields.fields_json() if arguments.format == "json" else fields.fields_table(_width()))
    return EXIT_OK


def cmd_doctor(arguments: argparse.Namespace) -> int:
    """What this machine allows."""
    from iopstui.output.doctor import report
    from iopstui.session.doctor import examine

    text, code = report(examine(), _width())
    _print(text)
    return code


def _width() -> int:
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def _print(text: str) -> None:
    """To standard output in whatever the locale's encoding can say."""
    from iopstui.units import fit

    sys.stdout.write(fit(text, sys.stdout.encoding or "ascii"))
    if not text.endswith("\n"):
        sys.stdout.write("\n")
