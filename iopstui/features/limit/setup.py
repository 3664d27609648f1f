"""Turn the options into a checked search, and describe what it does."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.experiment.baseline import job_sections, parse_expectations
from iopstui.features.limit.model import LONG_S, SHORT_S, OpenLoop, open_loop, why_no_open_loop
from iopstui.fio.inspect import find_fio
from iopstui.fio.job_shape import shape_of
from iopstui.fio.job_text import describe_job, largest_block, read_job
from iopstui.fio.library import find_job
from iopstui.format import duration
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.private import private_directory, remove
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.experiment.expectation import EXAMPLES, Expectation
from iopstui.model.experiment.plan import check_name
from iopstui.model.experiment.point import run_length_s
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.figures.figure import BY_PERCENTILE
from iopstui.model.findings.evidence import JobShape
from iopstui.model.fio import jobfile
from iopstui.preflight.job import prepare
from iopstui.preflight.targets import ChosenTargets, choose_targets
from iopstui.recording.writer import check_creatable
from iopstui.session.fio.write_budget import max_writes_text
from iopstui.text import printable

SETTLE_S = 2.0
EXAMPLE = "For example: --keep 'read.clat.p99<=1ms'"
TIMES = ("runtime", "timeout", "time_based")
PREVIEW_RATE = 1000.0
"""The rate in the command that --dry-run prints, because the real rates are only known during the
search."""


@dataclass(frozen=True, slots=True)
class LimitSetup:
    """A search. ``run`` is the unchanged job, ``keep`` the bound; ``load`` says how the job is sent
    at a rate, and ``time_s`` is the time limit of the search."""

    run: RunRequest
    keep: Expectation
    load: OpenLoop
    shape: JobShape
    time_s: float
    target: Target
    job_target: Target | None
    devices: Mapping[str, BlockDevice]
    title: str
    writes: bool

    @property
    def allowed(self) -> float:
        """The share of I/Os that may be slower than the bound."""
        return round(1 - BY_PERCENTILE[self.keep.path[-1]] / 100, 9)

    @property
    def bound_s(self) -> float:
        return self.keep.required / 1e9

    @property
    def uses_scratch(self) -> bool:
        """Whether the search creates its own scratch files."""
        return self.job_target is not None and self.job_target.kind == kinds.DIRECTORY

    def closed_loop(self, seconds: float) -> RunRequest:
        return self._timed({}, seconds)

    def request(self, rate: float, seconds: float, seed: int, deeper: int = 0) -> RunRequest:
        """The request for a run at a rate, whose queue is ``deeper`` steps deeper than usual."""
        depth = self.load.depth(rate, self.bound_s, deeper)
        return self._timed(self.load.options(rate, depth, seed), seconds)

    def _timed(self, options: Mapping[str, str], seconds: float) -> RunRequest:
        length_ms = round(1000 * run_length_s(SETTLE_S, seconds, self.run.interval_s))
        timed = {"time_based": "1", "runtime": f"{length_ms}ms"}
        return replace(self.run, overrides={**self.run.overrides, **options, **timed})


def require_whole_seconds(interval_s: float) -> None:
    """Raise UsageError if the session's interval is not one second."""
    if interval_s != 1:
        raise UsageError("limit compares seconds, so --interval can't be changed here.",
                         "Leave it out.")  # fmt: skip


def set_up(run: RunRequest, keep: str, time_s: float) -> LimitSetup:
    """Check everything before anything runs. Raises UsageError, Refused or Missing."""
    find_fio()
    devices = read_devices(Roots())
    targets = choose_targets(run.targets, run.job, devices, Roots())
    if run.record:
        check_creatable(Path(run.record))
    return set_up_on(targets, devices, run, keep, time_s)


def set_up_on(
    targets: ChosenTargets, devices: Mapping[str, BlockDevice], run: RunRequest, keep: str,
    time_s: float,
) -> LimitSetup:  # fmt: skip
    """Like ``set_up``, for targets that are already chosen."""
    target, job_target = targets
    for name in run.overrides:
        if name in TIMES:
            raise UsageError(f"--set {name}: each run is as long as the search needs.",
                             "Leave it out. --time limits the whole search.")  # fmt: skip
        check_name(name, f"--set {name}")
    sections = job_sections(run.job, run.overrides)
    text = jobfile.with_overrides(read_job(find_job(run.job)), run.overrides)
    shape = shape_of(text)
    if len(sections) != 1:
        raise UsageError(
            f"{printable(run.job)} has {len(sections)} jobs, and limit measures one.",
            "Put the job to measure into a job file of its own.",
        )
    expectation = parse_keep(keep, target, sections)
    reason = why_no_open_loop(shape, sections[0].options)
    if reason is not None:
        raise UsageError(f"{printable(run.job)} can't be sent at a rate: {reason[0]}.", reason[1])
    setup = LimitSetup(
        run, expectation, open_loop(shape, sections[0], largest_block(sections[0])), shape, time_s,
        target, job_target, devices, describe_job(text), bool(shape.writes),
    )  # fmt: skip
    fio, private = find_fio(), private_directory()
    try:
        for request in (setup.closed_loop(SHORT_S), setup.request(PREVIEW_RATE, SHORT_S, 1)):
            prepare(request, job_target, fio, private, devices, Roots()).close()
    finally:
        remove(private)
    return setup


def parse_keep(text: str, target: Target, sections: tuple[jobfile.Section, ...]) -> Expectation:
    """Parse the bound. Raises UsageError for anything but an upper bound on a percentile of fio's
    latency."""
    try:
        expectation = parse_expectations((text,), 0.0, target, [sections])[0]
    except UsageError as error:
        message = error.message.replace("--expect", "--keep", 1)
        hint = EXAMPLE if error.hint == EXAMPLES else error.hint
        raise UsageError(message.replace("FIGURE>=VALUE or ", ""), hint) from error
    path = expectation.path
    is_latency = path[0] == "fio" and path[-1] in BY_PERCENTILE and not expectation.of_job
    if not is_latency or expectation.op != "<=" or expectation.part is not None:
        raise UsageError(
            f"--keep {text!r}: only an upper bound of a percentile of fio's latency can be kept.",
            EXAMPLE,
        )
    if expectation.required <= 0:
        raise UsageError(f"--keep {text!r}: no I/O is that fast.", EXAMPLE)
    return expectation


def plan_lines(setup: LimitSetup) -> Iterator[str]:
    """Describe the search: runs, writes, duration."""
    job, place = printable(setup.run.job), printable(setup.target.path)
    yield f"job {job}: {printable(setup.title)}"
    yield (f"runs it once as it is, then at one rate after another ({SHORT_S:g} to {LONG_S:g} s "
           f"each): at most {duration(setup.time_s)}")  # fmt: skip
    if setup.uses_scratch:
        yield f"writes: scratch files in {place}, removed at the end"
    elif setup.writes:
        yield f"writes: OVERWRITES {place}"
    else:
        yield f"writes: nothing; {place} is read only"
    if setup.writes:
        yield max_writes_text(0, True, setup.time_s, setup.run.write_budget)


def command_line(setup: LimitSetup) -> str:
    """The command that runs the job at one rate, without searching."""
    words = setup.request(PREVIEW_RATE, LONG_S, 1).words()
    return printable(shlex.join(
        ["iopstui", "run", *setup.run.targets, "--job", setup.run.job, *words]
    ))  # fmt: skip
