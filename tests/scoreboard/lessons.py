"""Play lessons beside a neighbour: no answer may be graded wrong.

The right answers are measured first, without a neighbour. Then another program does a share of the
device's I/O during each run. A grade is wrong if it calls only such answers right as never were
right without a neighbour."""

from __future__ import annotations

import queue
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import loads
from effect import parse_disk
from scenario import Bench, Recipe

from iopstui.events import Event, SessionEnded
from iopstui.features.lessons.model.pages import ASK, Lesson, RunPage
from iopstui.features.lessons.play.facts import read_target_facts
from iopstui.features.lessons.play.library import find_lesson
from iopstui.features.lessons.play.player import LessonRun
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_targets
from iopstui.linux.kernel_files import Roots
from iopstui.session.live import LiveSession

CALM_PLAYS = 2
SECONDS = 2.0

Grades = dict[str, tuple[str, ...]]
"""The answers that were called right, by question; () where nothing was graded."""


@dataclass(frozen=True)
class Played:
    """One play: the share of the I/O that was not the lesson's in each run, as the kernel counts
    it, the grades, and why runs count as disturbed."""

    share: float
    shares: tuple[float, ...]
    grades: Grades
    reasons: tuple[str, ...]
    iops: Mapping[str, float]

    @property
    def text(self) -> str:
        """The play as a line of text."""
        others = "/".join(f"{100 * share:.0f}" for share in self.shares)
        reasons = "; ".join(dict.fromkeys(self.reasons)) or "calm"
        return (
            f"neighbour {100 * self.share:.0f} %: others did {others} % of the reads; graded "
            f"{self.grades}; {reasons}"
        )

    def wrong(self, calm: Mapping[str, set[str]]) -> list[str]:
        """Questions graded with answers that were never right without a neighbour."""
        return [
            question
            for question, right in self.grades.items()
            if right and not set(right) & calm.get(question, set())
        ]


def play_beside_neighbours(
    name: str, device: Recipe, shares: Sequence[float], plays: int
) -> Iterator[tuple[Played, list[str]]]:
    """Play a lesson ``plays`` times, beside neighbours of these shares in turn. Yields each play,
    and the questions that were graded wrong in it."""
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="iopstui-lessons-"))
        bench = Bench(stack, Path(directory))
        bench.path = device(bench)
        calm: dict[str, set[str]] = {}
        rates: Mapping[str, float] = {}
        for _ in range(CALM_PLAYS):
            played = _play(name, bench, 0.0, {})
            rates = played.iops
            for question, right in played.grades.items():
                calm.setdefault(question, set()).update(right)
            yield played, []
        for number in range(plays - CALM_PLAYS):
            played = _play(name, bench, shares[number % len(shares)], rates)
            yield played, played.wrong(calm)


def _play(name: str, bench: Bench, share: float, rates: Mapping[str, float]) -> Played:
    roots, devices = Roots(), read_devices(Roots())
    target = resolve_targets([bench.path], bench.here, roots, devices)
    run = LessonRun(
        _shortened(find_lesson(name)), target, read_target_facts(target, devices, roots)
    )
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    session = LiveSession(target, devices, target)
    session.start(events.put)
    others: list[float] = []
    try:
        while not run.is_over:
            page = run.page()
            if page is not None and page.kind == ASK and page.choices:
                run.answer(page.choices[0][0])
            elif isinstance(run.step, RunPage) and run.step.header not in run.skipped:
                rate = rates.get(run.step.name, 0.0) * share / (1 - share)
                others.append(_measure(run, session, events, bench, rate))
            run.advance()
        verdicts = {page: run.verdict(page) for page in run.answers}
        grades = {page: verdict.right for page, verdict in verdicts.items() if verdict is not None}
        # answers that facts decide are right whatever else happens
        reasons = tuple(text for point in run.points.values() for text in point.disturbed)
        iops = {page: point.iops for page, point in run.points.items()}
        return Played(share, tuple(others), grades, reasons, iops)
    finally:
        session.close()
        run.close()


def _shortened(lesson: Lesson) -> Lesson:
    steps = [
        replace(step, seconds=SECONDS) if isinstance(step, RunPage) else step
        for step in lesson.steps
    ]
    return replace(lesson, steps=tuple(steps))


def _measure(
    run: LessonRun, session: LiveSession, events: queue.SimpleQueue[Event], bench: Bench,
    rate: float,
) -> float:  # fmt: skip
    """Make the run that the page shows. Returns the share of the device's reads that were not
    fio's."""
    with ExitStack() as stack:
        if rate >= 1:
            beside = replace(bench, stack=stack)
            loads.fio(rate_iops=round(rate), iodepth=32)(beside)
        before = _reads(bench.disk)
        session.run_request(run.request(), run.jobs.lent())
        while True:
            event = events.get()
            if run.feed(event):
                break
            if isinstance(event, SessionEnded):
                run.give_up("the session ended")
                break
        reads = _reads(bench.disk) - before
        own = sum(
            row.get("read", {}).get("total_ios", 0)
            for row in run.documents.get(run.step.name if run.step else "", {}).get("jobs", ())
        )
        return max(0.0, 1 - own / reads) if reads else 0.0


def _reads(disk: str) -> int:
    return parse_disk(Path("/proc/diskstats").read_text(), disk)["reads"]
