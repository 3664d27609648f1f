"""Judge a disk for programs: from the arguments to the exit code."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from iopstui.cli.runs.check_files import with_check_files
from iopstui.cli.terminal import kill_without_waiting, print_message, show, width
from iopstui.errors import EXIT_OK
from iopstui.events import Event, FindingEnded, FindingReported, FrameReady
from iopstui.features.fit.model import (
    FAIL,
    NO_BOUND,
    PASS,
    UNDECIDED,
    Figure,
    Judgement,
    Program,
    Row,
    SyncTime,
    judge,
    share_of_all,
)
from iopstui.features.fit.setup import (
    SCRATCH_FILE,
    SETTLE_S,
    FitSetup,
    plan_lines,
    read_programs,
    set_up,
    split_words,
)
from iopstui.fio.job_shape import shape_of
from iopstui.fio.job_text import read_job
from iopstui.fio.library import find_job
from iopstui.format import latency, mib, number, print_sentence, size
from iopstui.linux.activity.io_users import disturbance_meter
from iopstui.linux.kernel_files import Roots
from iopstui.linux.machine.load import DiskLoads
from iopstui.model.experiment.baseline import MIN_INTERVALS, BatchMeans
from iopstui.model.experiment.disturbance import DISTURBING_SHARE, MIN_OTHERS, DisturbanceMeter
from iopstui.model.experiment.point import SettlingFilter
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.model.figures.disk import DiskRates, Loads
from iopstui.model.figures.figure import TOTAL
from iopstui.model.fio import jobfile
from iopstui.model.metrics.fields import BY_ID
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import Frame
from iopstui.output.narration import RunProgress
from iopstui.preflight.staging import LentScratch
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.safety.signals import StopSignals
from iopstui.session.live import LiveSession
from iopstui.session.run_loop import RunLoop
from iopstui.session.tick.context import NOBODY
from iopstui.tables import aligned
from iopstui.text import printable, wrapped


def run_fit(arguments: argparse.Namespace) -> int:
    """Run `iopstui fit`. Returns the exit code. The table or JSON goes to stdout, everything else
    to stderr."""
    programs = read_programs()
    for problem in programs.problems:
        print_message(problem)
    directory, chosen = split_words(arguments.words, programs)
    request = RunRequest(
        targets=(directory,), write_budget=arguments.write_budget, record=arguments.record
    )
    setup = set_up(directory, chosen, request, arguments.measure)
    for line in plan_lines(setup):
        print_sentence(line, sys.stdout if arguments.dry_run else sys.stderr)
    if arguments.dry_run:
        return EXIT_OK
    title = f"fit in {printable(setup.target.path)}"
    return with_check_files(arguments, title, lambda: _measure(setup, arguments))


def _measure(setup: FitSetup, arguments: argparse.Namespace) -> Verdict:
    clean_up_and_report(print_message, Roots())
    progress = RunProgress(sys.stderr, sys.stdout)
    runner = FitRunner(setup, progress.handle, progress.write_note)
    StopSignals(runner.loop.stop, kill_without_waiting(runner.loop.kill))
    runner.run()
    target = setup.target
    on = f" ({target.fstype or 'file system'} on {target.device})" if target.device else ""
    place = f"{printable(target.path)}{on}"
    if arguments.json:
        show(json.dumps(fit_json(runner.judgements, target.path), indent=2))
    elif runner.judgements:
        show(fit_text(runner.judgements, place, width(), arguments.details))
    if runner.loop.interrupted:
        count = f"{len(runner.judgements)} of {len(setup.programs)}"
        print_message(f"Interrupted: {count} programs were measured.")
    return Verdict(checks_of(runner.judgements), runner.loop.interrupted)


# Run the jobs of programs one after another in one session, and judge each.


MACHINE_RULES = {
    "job-cpu": "the job's CPU was full", "softirq-cpu": "the CPU of the disk's interrupts was full",
    "cpu-wait": "the job waited for a CPU", "throttled": "a cgroup's CPU limit stopped the job",
    "steal": "the hypervisor took CPU time",
}  # fmt: skip
"""Rules of findings (model/findings) that mean: this machine, not the disk, makes the job slow."""


class FitRunner:
    """Runs the jobs of programs and judges each. ``judgements`` are the results so far, in the
    order of the programs. ``notify`` is called with a message when a program begins; ``sink`` gets
    the session's events."""

    def __init__(
        self, setup: FitSetup, sink: Callable[[Event], None], notify: Callable[[str], None]
    ) -> None:
        self.setup = setup
        self._loads = DiskLoads()
        self.judgements: list[Judgement] = []
        session = LiveSession(setup.target, setup.devices, setup.target, setup.run, NOBODY)
        self.loop = RunLoop(session, sink)
        self._notify = notify

    def run(self) -> None:
        """Run all programs, or up to an interruption. Raises the error of the first run that fails.
        Afterwards the session is closed, and no scratch file is left."""
        with self.loop.open(self.setup.target) as lent:
            assert lent is not None
            for program in self.setup.programs:
                if self.loop.interrupted or not self._measure(program, lent):
                    break

    def _measure(self, program: Program, lent: LentScratch) -> bool:
        self._notify(f"{program.title}: {self.setup.seconds_of(program):g} s")
        file = lent.scratch.path / SCRATCH_FILE
        file.unlink(missing_ok=True)
        if program.preallocated:
            _allocate(file, self.setup.file_bytes[program.name])
        session = self.loop.session
        request = self.setup.request(program)
        job = jobfile.with_overrides(read_job(find_job(request.job)), request.overrides)
        meters = ProgramMeters(
            program, SettlingFilter(SETTLE_S, self.setup.seconds_of(program)),
            disturbance_meter(session.target, shape_of(job), session.devices),
        )  # fmt: skip
        around = Neighbours(self._loads, session.target.tree, lambda: self.loop.interrupted)
        around.watch("before")
        finished = self.loop.run(lambda: session.run_request(request, lent), meters.take)
        if not self.loop.complete(finished):
            return False
        # remove the file at once, so that its unsynced data need not be written
        file.unlink(missing_ok=True)
        around.watch("after")
        disk = session.target.device or "the disk"
        self.judgements.append(meters.judgement(disk, around.reasons))
        return True


def _allocate(file: Path, size: int) -> None:
    """Create a file with blocks that are allocated but not yet written, as programs do that
    allocate their log ahead."""
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)


class ProgramMeters:
    """The figures of one run, computed from its events."""

    def __init__(
        self, program: Program, settling: SettlingFilter, disturbances: DisturbanceMeter
    ) -> None:
        self._program = program
        self._settling = settling
        self._disturbances = disturbances
        paths = [one.path for one in program.shown]
        paths += [program.bound.expectation.path] if program.bound is not None else []
        self._figures = {path: BatchMeans(path) for path in paths}
        self._seconds: list[Mapping[int, int]] = []
        kernel = ("kernel", TOTAL)
        self._times = {
            name: Meter(path) for name, path in (
                ("syncs", ("fio", "sync", "iops")), ("whole", ("fio", "sync", "mean")),
                ("f/s", (*kernel, "f/s")), ("f_await", (*kernel, "f_await")),
                ("w/s", (*kernel, "w/s")), ("w_await", (*kernel, "w_await")),
            )
        }  # fmt: skip
        self._active: set[str] = set()
        self._rules: set[str] = set()

    def take(self, event: Event) -> None:
        """Process an event: count a frame, and the findings that hold in it."""
        match event:
            case FrameReady():
                counts = self._settling.counts(event.frame)
                self._disturbances.add(event.frame, counts)
                if counts:
                    self._rules |= self._active
                    for batches in self._figures.values():
                        batches.add(event.frame)
                    self._add_second(event.frame)
                    for meter in self._times.values():
                        meter.add(event.frame)
            case FindingReported():
                self._active.add(event.finding.rule)
            case FindingEnded():
                self._active.discard(event.rule)

    def _add_second(self, frame: Frame) -> None:
        bound = self._program.bound
        if bound is None or not frame.holds:
            return
        second = Meter(bound.expectation.path)
        second.add(frame)
        if second.bins:
            self._seconds.append(second.bins)

    def judgement(self, disk: str, neighbours: Sequence[str] = ()) -> Judgement:
        """The judgement of the run. ``neighbours`` are sentences on what others did just before and
        after it."""
        program = self._program
        disturbed = [
            *self._disturbances.result().reasons,
            *neighbours,
            *(text for rule, text in MACHINE_RULES.items() if rule in self._rules),
        ]
        rows = [Row(one.name, self._figure(one.path), means=one.means) for one in program.shown]
        if program.bound is not None:
            wanted = program.bound.expectation
            figure = replace(
                self._figure(wanted.path),
                above=self._figures[wanted.path].share_above(wanted.required),
                of_all=share_of_all(self._seconds, wanted.required),
            )
            rows.insert(0, judge(program.bound, figure, disturbed))
        return Judgement(program, tuple(rows), self._time(disk), tuple(disturbed))

    def _figure(self, path: tuple[str, ...]) -> Figure:
        batches = self._figures[path]
        value, spread = batches.whole.value, batches.spread
        if value is None:
            return Figure(None, why="fio timed no syncs" if path[1] == "sync" else "")
        if spread is None:
            enough = batches.frames >= MIN_INTERVALS
            return Figure(value, why="too unsteady for an interval" if enough else batches.why)
        return Figure(value, *_interval(value, spread.distances()))

    def _time(self, disk: str) -> SyncTime:
        values = {name: meter.value for name, meter in self._times.items()}
        # if a program seldom syncs, the disk also writes between syncs, so its time can't be
        # divided by sync
        syncs = values["syncs"] if self._program.job.get("fdatasync") == "1" else None
        whole = values["whole"] if syncs else None

        def a_sync(rate: float | None, await_ms: float | None) -> float | None:
            if not syncs or rate is None or await_ms is None:
                return None
            return 1e6 * rate * await_ms / syncs

        return SyncTime(
            disk, whole, a_sync(values["f/s"], values["f_await"]),
            a_sync(values["w/s"], values["w_await"]),
        )  # fmt: skip


def _interval(value: float, distances: tuple[float, float]) -> tuple[float, float]:
    below, above = distances
    return value * math.exp(-below), value * math.exp(above)


# Find out whether others use the disk right before or after a run.
#
# During the run this can't be known: a file system may write any number of blocks for a sync, and
# other writes look the same (except for flushes).


IDLE_S, POLL_S = 1.5, 0.1
MIN_BYTES_S = 256 << 10
"""Fewer bytes per second are normal on any system, and do not count as use."""


@dataclass
class Neighbours:
    """Watches the disks ``names`` around a run. ``stopped`` ends the waiting."""

    loads: Loads
    names: Collection[str]
    stopped: Callable[[], bool]
    _idle: dict[str, Mapping[str, DiskRates]] = field(default_factory=dict)
    _run: Mapping[str, DiskRates] = field(default_factory=dict)

    def watch(self, when: str) -> None:
        """Measure for a moment, in which the job is not running, what the disks do. ``when`` names
        the moment ("before")."""
        if self._idle:
            self._run = self.loads(self.names)
        if not self.names:
            return
        self.loads(self.names)
        until = time.monotonic() + IDLE_S
        while time.monotonic() < until and not self.stopped():
            time.sleep(POLL_S)
        self._idle[when] = self.loads(self.names)

    @property
    def reasons(self) -> list[str]:
        """A sentence on the disk that others used most; nothing if they hardly used any."""
        found = [
            (share, f"{text} for other programs {when} the run")
            for when, rates in self._idle.items()
            for name in self.names if name in rates and name in self._run
            for share, text in (_others(name, rates[name], self._run[name]),)
        ]  # fmt: skip
        share, text = max(found, default=(0.0, ""))
        return [text] if share >= DISTURBING_SHARE else []


def _others(name: str, idle: DiskRates, run: DiskRates) -> tuple[float, str]:
    """How much others do, as a share of what the disk did in the run, and a text about it."""
    ios, moved = _ios(idle), _bytes(idle)
    by_ios = ios / max(_ios(run), ios) if ios >= MIN_OTHERS[0] else 0.0
    by_bytes = moved / max(_bytes(run), moved) if moved >= MIN_BYTES_S else 0.0
    amount = f"{number(ios)} I/Os" if by_ios >= by_bytes else size(moved)
    return max(by_ios, by_bytes), f"{name} did {amount} a second"


def _ios(rates: DiskRates) -> float:
    return (rates.r_s or 0.0) + (rates.w_s or 0.0)


def _bytes(rates: DiskRates) -> float:
    return (rates.r_bytes_s or 0.0) + (rates.w_bytes_s or 0.0)


# Print the judgements on programs: a table for people, and JSON.


HEAD = ("PROGRAM", "FIGURE", "NEEDS", "MEASURED", "95 % INTERVAL", "RESULT")


def fit_text(
    judgements: Sequence[Judgement], place: str, width: int, details: bool = False
) -> str:  # fmt: skip
    """The table, what it means, and the last line. Several programs get one sentence each, so that
    all fit on one screen; with ``details`` each gets the full text."""
    cells: list[Sequence[str]] = [HEAD]
    cells += [
        (each.program.name if not number_ else "", *_cells(row))
        for each in judgements for number_, row in enumerate(each.rows)
    ]  # fmt: skip
    lines = [place, "", *aligned(cells)]
    if len(judgements) > 1 and not details:
        short = (f"{each.program.name}: {_short(each)}" for each in judgements)
        lines += ["", *(wrapped(printable(text), 0, 0, max(width, 40)) for text in short)]
        return "\n".join([*lines, "", _last_line(judgements), "All that is known: --details."])
    for each in judgements:
        needs = f"{each.program.title}. {each.program.needs}"
        lines += ["", wrapped(printable(needs), 0, 0, max(width, 40))]
        for sentence in _sentences(each):
            lines.append(wrapped(printable(sentence), 2, 2, max(width, 40)))
    return "\n".join([*lines, "", _last_line(judgements)])


def _short(judgement: Judgement) -> str:
    """The most important result: that of the bound with its reason, or what the first figure
    means."""
    row = judgement.rows[0]
    note = ""
    if row.bound is not None:
        text = f"{row.result}: {row.why}" if row.why else row.result
    else:
        text = f"{figure_text(row, row.figure.value)}: {row.means}"
        note = " Disturbed, perhaps slower than alone." if judgement.disturbed else ""
    return f"{text}.{note}"


def _sentences(judgement: Judgement) -> Iterator[str]:
    program = judgement.program
    for row in judgement.rows:
        if row.why:
            yield f"{row.result}: {row.why}."
        elif row.figure.value is not None and row.bound is None:
            doubt = "too unsteady to say more" if row.figure.is_unsteady else row.figure.why
            note = f" ({doubt})" if doubt else ""
            yield f"{figure_text(row, row.figure.value)}{note}: {row.means}."
    if judgement.disturbed and program.bound is None:
        yield f"Disturbed, so perhaps slower than usual: {judgement.disturbed[0]}."
    if judgement.time.text:
        binding = f" Most of that is {judgement.time.binding}." if judgement.time.binding else ""
        yield f"{judgement.time.text}.{binding}"
    if program.helps and any(row.result != PASS for row in judgement.rows):
        yield _what_helps(judgement)
    if program.bound is not None:
        yield f"Bound: {program.bound.page} ({program.bound.url}, read {program.bound.read})."


def _what_helps(judgement: Judgement) -> str:
    """What may help; and if most of the time is not spent in the disk, how little a faster drive
    saves."""
    time, helps = judgement.time, judgement.program.helps
    if not time.is_above_disk:
        return f"This may help: {helps}."
    return (f"A faster drive saves at most {latency(time.on_disk)} of a sync: first find what "
            f"waits above the disk (iopstui why). After that, this may help: {helps}."
            )  # fmt: skip


def _cells(row: Row) -> tuple[str, ...]:
    low, high = row.figure.low, row.figure.high
    within = NO_BOUND if low is None or high is None else (
        f"{figure_text(row, low)} to {figure_text(row, high)}")  # fmt: skip
    needs = ""
    if row.bound is not None:
        expectation = row.bound.expectation
        sign = "≤" if expectation.op == "<=" else "≥"
        needs = f"{sign} {figure_text(row, expectation.required)}"
    return (row.name, needs, figure_text(row, row.figure.value), within, row.result)


def figure_text(row: Row, value: float | None) -> str:
    if value is None:
        return NO_BOUND
    unit = BY_ID[f"fio.{row.name.removeprefix('fio.')}"].unit
    if unit == "ns":
        return latency(value)
    return f"{mib(value)} MiB/s" if unit == "B/s" else f"{number(value)}/s"


def _last_line(judgements: Sequence[Judgement]) -> str:
    results = [row.result for each in judgements for row in each.rows if row.bound is not None]
    without = sum(1 for each in judgements if each.program.bound is None)
    passed, failed = results.count(PASS), results.count(FAIL)
    if not results:
        return "No published bound to judge by."
    word = FAIL if failed else UNDECIDED if passed < len(results) else PASS
    text = f"{passed} passed, {failed} failed, {len(results) - passed - failed} undecided"
    more = f"; {without} without a published bound" if without else ""
    return f"{word}: {text}{more}."


def checks_of(judgements: Sequence[Judgement]) -> tuple[Check, ...]:
    """The bounds as checks, for the exit code and for CI systems."""
    outcome = {PASS: True, FAIL: False}
    return tuple(
        Check(
            f"{each.program.name}: {row.bound.expectation.text}", outcome.get(row.result),
            f"measured {figure_text(row, row.figure.value)}" + (f"; {row.why}" if row.why else ""),
        )
        for each in judgements for row in each.rows if row.bound is not None
    )  # fmt: skip


def fit_json(judgements: Sequence[Judgement], place: str) -> dict[str, Any]:
    """The answer as an object for JSON. Rates are per second, sizes in bytes, times in ns."""
    return {"directory": place, "programs": [_program_json(each) for each in judgements]}


def _program_json(judgement: Judgement) -> dict[str, Any]:
    program, time = judgement.program, judgement.time
    return {
        "name": program.name, "title": program.title, "needs": program.needs,
        "job": dict(program.job), "rows": [_row_json(row) for row in judgement.rows],
        "disturbed": list(judgement.disturbed), "binding": time.binding or None,
        "sync_ns": time.whole, "flushes_ns": time.flushes, "writes_ns": time.writes,
        "helps": program.helps or None,
    }  # fmt: skip


def _row_json(row: Row) -> dict[str, Any]:
    bound = row.bound
    figure = row.figure
    return {
        "figure": row.name, "unit": BY_ID[f"fio.{row.name.removeprefix('fio.')}"].unit,
        "measured": figure.value, "low": figure.low, "high": figure.high,
        "expect": bound.expectation.text if bound else None,
        "source": {"page": bound.page, "url": bound.url, "read": bound.read} if bound else None,
        "means": row.means or None, "result": row.result if bound else None,
        "why": row.why or figure.why or None,
    }  # fmt: skip
