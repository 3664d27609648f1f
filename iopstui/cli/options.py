"""Options that several commands share, including the bought volume, and their values."""

from __future__ import annotations

import argparse
import math
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from iopstui.cli import values
from iopstui.discovery import feature_modules
from iopstui.errors import UsageError
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.catalog import Catalog
    from iopstui.model.experiment.run_request import RunRequest
    from iopstui.model.volumes.promised import PromisedFigures
    from iopstui.model.volumes.volume import VolumeClass


GIB = 1 << 30
_MB = {"mb/s": 1e6, "mib/s": float(1 << 20), "gb/s": 1e9, "gib/s": float(1 << 30)}


def gibibytes(text: str) -> float:
    """The size of a volume in GiB."""
    from iopstui.model.sizes import size_bytes

    size = size_bytes(text)
    if not size:
        raise ArgumentTypeError(f"{text!r} is not a size such as 500g or 2t")
    return size / GIB


def iops(text: str) -> float:
    """A number of IOPS; also with a suffix, as in "16k"."""
    cleaned = text.strip().lower().replace(",", "")
    factor = {"k": 1e3, "m": 1e6}.get(cleaned[-1:], 1.0)
    number = cleaned if factor == 1.0 else cleaned[:-1]
    try:
        value = float(number) * factor
    except ValueError:
        value = 0.0
    if not 0 < value < 1e12:
        raise ArgumentTypeError(f"{text!r} is not a number of IOPS such as 5000 or 16k")
    return value


def bytes_per_second(text: str) -> float:
    """A throughput; without a unit it is in MB/s."""
    cleaned = text.strip().lower().replace(" ", "")
    unit = next((unit for unit in _MB if cleaned.endswith(unit)), "")
    try:
        value = float(cleaned.removesuffix(unit)) * _MB.get(unit, 1e6)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e15:
        raise ArgumentTypeError(f"{text!r} is not a throughput such as 350MB/s or 125MiB/s")
    return value


def add_volume_details(command: argparse.ArgumentParser, default_size: str = "") -> None:
    """Add the options for the bought size and performance. ``read_promised_figures`` reads them.
    ``default_size`` is added to the help of --size."""
    command.add_argument("--size", type=gibibytes, metavar="SIZE",
                         help=f"size of the volume, e.g. 500g{default_size}")  # fmt: skip
    command.add_argument("--iops", type=iops, metavar="N",
                         help="provisioned IOPS, where the class sells them")  # fmt: skip
    command.add_argument("--throughput", type=bytes_per_second, metavar="RATE",
                         help="provisioned throughput, e.g. 500MB/s or 250MiB/s")  # fmt: skip
    command.add_argument("--instance", metavar="NAME",
                         help="instance size whose limits count, too "
                              "(`iopstui volumes --instances`)")  # fmt: skip
    command.add_argument("--cached", action="store_true",
                         help="the volume uses the host's cache: the instance's cached limits "
                              "count")  # fmt: skip


def add_volume(
    command: argparse.ArgumentParser,
    help_text: str = "the volume that was bought, e.g. aws/gp2,size=500g (options: size, iops, "
    "throughput, instance, cached): its limits and burst credits are shown, and findings name them",
) -> None:
    """Add the option for the bought volume, whose limits are compared with the measurement.
    ``read_volume_option`` reads it."""
    command.add_argument("--volume", metavar="NAME[,OPTION=VALUE]", help=help_text)


def read_volume_option(arguments: argparse.Namespace) -> PromisedFigures | None:
    """The figures of --volume, or ``None``. Raises UsageError."""
    text = getattr(arguments, "volume", None)
    return None if text is None else parse_volume(text)


def parse_volume(text: str, option: str = "--volume") -> PromisedFigures:
    """The figures of a volume given as one word, such as "aws/gp3,size=500g,iops=6000"; ``option``
    is the option's name, for messages. Raises UsageError."""
    from iopstui.catalog import read_catalog

    name, values = _name_and_options(text, option)
    catalog = read_catalog()
    volume = catalog.volume(name)
    if volume.needs_size and values["size"] is None:
        raise UsageError(f"The figures of {volume.id} depend on the size of the volume.",
                         f"Name it: {option} {volume.id},size=500g")  # fmt: skip
    try:
        return read_promised_figures(argparse.Namespace(**values), catalog, volume)
    except UsageError as error:
        # replace the hint, which would name options of other commands
        raise UsageError(str(error), f"Correct the options of {option}: size=, iops=, "
                         "throughput=, instance=, cached") from error  # fmt: skip


def apply_volume_options(arguments: argparse.Namespace, text: str, option: str) -> str:
    """Parse ``text`` ("aws/gp3,size=500g"): return the class and store the options like those of
    ``add_volume_details``. Raises UsageError for an option that is given both ways."""
    name, values = _name_and_options(text, option)
    for key, value in values.items():
        if value and getattr(arguments, key):
            raise UsageError(f"{option} {printable(text)!r} and --{key} both set {key}.",
                             "Leave one of them out.")  # fmt: skip
        if value:
            setattr(arguments, key, value)
    return name


def _name_and_options(text: str, option: str) -> tuple[str, dict[str, object]]:
    name, *assignments = text.split(",")
    pairs = [assignment.partition("=")[::2] for assignment in assignments]
    options = dict(pairs)
    if len(options) < len(pairs):
        raise UsageError(f"{option} {printable(text)!r}: an option is given twice.",
                         "Give each one once.")  # fmt: skip
    readers: dict[str, Callable[[str], object]] = {
        "size": gibibytes, "iops": iops, "throughput": bytes_per_second, "instance": str,
        "cached": bool,
    }  # fmt: skip
    values: dict[str, object] = dict.fromkeys(readers) | {"cached": False}
    for key, value in options.items():
        if key not in readers or (key == "cached" and value):
            raise UsageError(f"{option} {printable(text)!r}: {printable(key)!r} is not one of "
                             f"its options.", f"For example: {option} aws/gp3,size=500g,iops=6000 "
                             "(also throughput=, instance=, cached)")  # fmt: skip
        try:
            values[key] = True if key == "cached" else readers[key](value)
        except ArgumentTypeError as error:
            raise UsageError(f"{option} {printable(text)!r}: {error}.") from error
    if not name:
        raise UsageError(f"{option} names no class.", "To list them: iopstui volumes")
    return name, values


def read_promised_figures(
    arguments: argparse.Namespace, catalog: Catalog, volume: VolumeClass,
    size_gib: float | None = None,
) -> PromisedFigures:  # fmt: skip
    """The promised figures. ``size_gib`` is used without --size. Raises UsageError."""
    from iopstui.model.volumes.promised import promised_figures

    instance = catalog.instance(arguments.instance) if arguments.instance else None
    return promised_figures(
        volume, arguments.size if arguments.size is not None else size_gib, arguments.iops,
        arguments.throughput, instance, arguments.cached,
    )  # fmt: skip


MAX_ROUNDS = 25

EPILOG = """\
TARGET is a block device, a file, a directory (a scratch file is made in it and removed), or
nothing (a scratch file in the current directory). With several TARGETs of one kind every job uses
all of them, as fio does with filename=A:B. A block device is only read unless --destroy-data
repeats its path (for each device that is written); a device in use is never written.

exit codes: 0 done, 1 the job failed, 2 usage or bad input, 3 refused for safety,
4 an expectation was not met, 5 something needed is missing, 130 interrupted (by any signal)
"""

NO_TOLERANCE = "0%"
PLAIN_EVERY_S = 10.0


def _add_write_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--destroy-data", action="append", default=[], metavar="PATH",
                         help="allow overwriting PATH, which must repeat the target; once per "
                              "target")  # fmt: skip
    command.add_argument("--write-budget", type=values.budget, metavar="SIZE",
                         help="stop before more than this is written in total, e.g. 200g; "
                              "includes scratch files")  # fmt: skip
    command.add_argument("--no-fence", action="store_true",
                         help="run your own job file that writes, even if the kernel cannot "
                              "restrict fio to its files; see iopstui doctor")  # fmt: skip


def _add_own_cpu_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cpu", type=values.cpus, metavar="LIST",
                         help="run iopstui itself (not fio) on these CPUs, e.g. 7 or 0-1; "
                              "\"all\": anywhere (default: away from the job's and the device's "
                              "CPUs, if the job names its CPUs)")  # fmt: skip
    command.add_argument("--nice", type=values.nice_value, default=0, metavar="N",
                         help="nice value of iopstui itself, 0 to 19; sampling is not affected "
                              "(default: 0)")  # fmt: skip


def add_run_options(command: argparse.ArgumentParser) -> None:
    """Add the options of every run. ``run_request`` reads them."""
    command.add_argument("target", nargs="*", metavar="TARGET", help="see below")
    command.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE",
                         help="set a fio option for every job in the file, e.g. iodepth=32; "
                              "runtime=N also makes it time_based")  # fmt: skip
    command.add_argument("--size", metavar="SIZE",
                         help="size of each scratch file, or of the area to use, e.g. "
                              "4g")  # fmt: skip
    _add_write_options(command)
    command.add_argument(
        "--knob",
        action="append",
        default=[],
        type=values.knob,
        metavar="NAME=VALUE[@SECONDS]",
        help="change a device tunable for the run, e.g. rq_affinity=2 or irq/36=0-1, at "
        "@SECONDS after the start if given; restored at the end",
    )
    command.add_argument(
        "--bind",
        choices=("queues",),
        help="bind each fio job to a CPU of a different hardware queue",
    )
    add_interval(command)
    _add_own_cpu_options(command)
    add_probe(command)
    command.add_argument("--record", type=values.new_file, metavar="FILE",
                         help="record all measurements in FILE, which must not exist; for "
                              "`iopstui replay` and `iopstui report`")  # fmt: skip


def add_precondition(command: argparse.ArgumentParser) -> None:
    """Add the option to write an SSD before measuring it. ``run_request`` reads it."""
    command.add_argument("--precondition", action="store_true",
                         help="first write the whole device (or --size of it) twice with the "
                              "job precondition; counts toward --write-budget")  # fmt: skip


def add_interval(command: argparse.ArgumentParser) -> None:
    command.add_argument("--interval", type=values.interval, default=1.0, metavar="SECONDS",
                         help="time between samples, 0.25 to 60 (default: 1)")  # fmt: skip


def add_exports(command: argparse.ArgumentParser) -> None:
    """Add the options to export figures during a measurement. ``exporting_sessions`` reads them."""
    for sink in feature_modules("session_sink"):
        sink.add_arguments(command)


def add_format(
    command: argparse._ActionsContainer, formats: Sequence[str] = values.FORMATS
) -> None:
    command.add_argument("--format", choices=formats, default=formats[0],
                         help="output format (default: table)")  # fmt: skip


class _ExplicitOption(argparse.Action):
    """Stores an option's value and notes that it was given on the command line."""

    def __call__(self, parser: object, namespace: argparse.Namespace, value: object,
                 option: object = None) -> None:  # fmt: skip
        """Store the value, and note that the option was given."""
        setattr(namespace, self.dest, value)
        setattr(namespace, f"{self.dest}_named", True)


def add_theme(command: argparse.ArgumentParser) -> None:
    command.add_argument("--theme", action=_ExplicitOption, choices=values.THEMES, default="",
                         help="colour theme (default: dark; terminal where there are only 16 "
                         "colours)")  # fmt: skip
    command.add_argument("--no-mouse", dest="mouse", action="store_false", default=True,
                         help="leave the mouse to the terminal")  # fmt: skip


def refuse_theme(arguments: argparse.Namespace) -> None:
    """Raise UsageError if --theme is given together with --format or --plain, which use no
    screen."""
    if not getattr(arguments, "theme_named", False):
        return
    instead = "--format" if getattr(arguments, "format", None) is not None else "--plain"
    if instead == "--format" or getattr(arguments, "plain", False):
        raise UsageError(
            f"--theme {arguments.theme} needs the screen, but {instead} replaces the screen.",
            "Use one of the two.",
        )


def add_plain(
    command: argparse.ArgumentParser, beside: argparse._ActionsContainer | None = None
) -> None:
    """Add the option for screen readers. ``beside`` is a group of options that exclude it."""
    group = command if beside is None else beside
    group.add_argument("--plain", action="store_true",
                       help="for screen readers: no screen, one line for each change")  # fmt: skip
    command.add_argument(
        "--no-plain",
        dest="plain",
        action="store_false",
        help="override `plain = true` of the configuration file",
    )
    command.add_argument("--plain-every", type=values.plain_every, default=PLAIN_EVERY_S,
                         metavar="SECONDS",
                         help="with --plain: time between two status lines, 1 to 3600 "
                              "(default: 10); none comes if nothing has changed")  # fmt: skip


def add_probe(command: argparse.ArgumentParser) -> None:
    command.add_argument("--probe", action="store_true",
                         help="measure each request inside the kernel: latencies, CPUs, processes, "
                              "sizes (needs root, costs about 0.4 µs per I/O)")  # fmt: skip


def add_expect(command: argparse.ArgumentParser, baseline: bool = True) -> None:
    """Add the options for a run's expectations. ``with_expectations`` reads them."""
    command.add_argument("--expect", action="append", default=[], metavar="FIGURE>=VALUE",
                         help="PASS or FAIL for a figure (`iopstui fields` lists all): iops>=5000, "
                              "read.clat.p99<=2ms, util<=90%%; JOB:iops>=5000 checks one of "
                              "several jobs; may be repeated")  # fmt: skip
    if baseline:
        command.add_argument("--baseline", metavar="FILE",
                             help="earlier result that --expect 'iops>=95%%' compares with: a "
                                  "recording or fio's JSON; fails only if the whole confidence "
                                  "interval misses the limit")  # fmt: skip
    command.add_argument("--tolerance", default=NO_TOLERANCE, metavar="PERCENT",
                         help="how far a result may miss --expect, e.g. 10%%")  # fmt: skip


def add_check_files(command: argparse.ArgumentParser) -> None:
    """Add the options for files that CI systems read. ``check_files`` reads them."""
    command.add_argument("--junit", type=values.new_file, metavar="FILE",
                         help="write each PASS and FAIL to FILE as JUnit XML; an existing FILE "
                              "is replaced")  # fmt: skip
    command.add_argument("--summary", type=values.new_file, metavar="FILE",
                         help="append a summary in Markdown to FILE, e.g. "
                              "\"$GITHUB_STEP_SUMMARY\"")  # fmt: skip


def add_experiment(command: argparse.ArgumentParser) -> None:
    """Add the options that sweep and compare share. ``run_experiment`` reads them."""
    command.add_argument("--settle", type=values.settle, default=2.0, metavar="SECONDS",
                         help="time to skip at the start of each run (default: 2)")  # fmt: skip
    command.add_argument("--measure", type=values.measure, default=8.0, metavar="SECONDS",
                         help="time to measure after that (default: 8)")  # fmt: skip
    add_format(command, values.EXPERIMENT_FORMATS)
    command.add_argument("--dry-run", action="store_true",
                         help="print the plan, its duration and what it will write")  # fmt: skip
    command.add_argument(
        "--yes", action="store_true", help="start a very long experiment without asking"
    )


def add_resume(command: argparse.ArgumentParser) -> None:
    """Add the options of an experiment that can be resumed after an interruption."""
    command.add_argument("--state", type=values.new_file, metavar="FILE",
                         help="file for the progress; after an interruption the same command "
                              "continues (default: in the state directory)")  # fmt: skip
    command.add_argument("--fresh", action="store_true",
                         help="start over instead of continuing after an "
                              "interruption")  # fmt: skip


def run_request(arguments: argparse.Namespace, job: str | None = None) -> RunRequest:
    """The request for a run, from the options of ``add_run_options``. Raises UsageError for an
    invalid --set."""
    from iopstui.model.experiment.run_request import RunRequest
    from iopstui.model.fio.jobfile import parse_override

    round_s = getattr(arguments, "until_steady", None)
    # a run until steady state (SNIA) has at most MAX_ROUNDS rounds
    runtime = {"runtime": str(math.ceil(MAX_ROUNDS * round_s))} if round_s else {}
    return RunRequest(
        targets=tuple(arguments.target),
        job=job or "",
        overrides=runtime | dict(parse_override(text) for text in arguments.set),
        size=arguments.size,
        part=getattr(arguments, "part", None),
        destroy_data=tuple(arguments.destroy_data),
        no_fence=arguments.no_fence,
        write_budget=arguments.write_budget,
        until_steady=round_s,
        precondition=getattr(arguments, "precondition", False),
        bind=arguments.bind == "queues",
        knobs=tuple(arguments.knob),
        interval_s=arguments.interval,
        own_cpus=arguments.cpu,
        nice=arguments.nice,
        record=arguments.record,
        probe=arguments.probe,
        volume=read_volume_option(arguments),
    )


def with_expectations(request: RunRequest, arguments: argparse.Namespace) -> RunRequest:
    """``request`` with the expectations from the options of ``add_expect``. Raises UsageError for
    an invalid --tolerance."""
    from dataclasses import replace

    tolerance = 0.0
    if arguments.tolerance != NO_TOLERANCE:
        from iopstui.model.experiment.expectation import parse_tolerance

        tolerance = parse_tolerance(arguments.tolerance)
    return replace(
        request, expect=tuple(arguments.expect), tolerance=tolerance,
        baseline=getattr(arguments, "baseline", None),
    )  # fmt: skip
