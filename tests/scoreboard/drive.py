"""Run a scenario's session in a process of its own, and return its findings and answers."""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from effect import (
    Effect,
    Span,
    State,
    Ticks,
    most_delayed,
    own_figures,
    own_load,
    rates,
    read_delays,
    read_done,
    read_state,
    read_ticks,
)
from judge import ReportedAnswer, ReportedFinding
from scenario import Absent, Action, Bench, Scenario

from iopstui.events import (
    AnswerGiven,
    Event,
    FindingReported,
    FrameReady,
    Notice,
    SessionEnded,
    StepFinished,
    StepStarted,
)
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_targets
from iopstui.linux.kernel_files import Roots
from iopstui.model.answer.answer import GOOD, Answer
from iopstui.model.experiment.run_request import RunRequest
from iopstui.session.live import LiveSession

PATIENCE_S = 180.0
WRITES = ("write", "randwrite", "rw", "randrw", "trim", "randtrim", "trimwrite")


@dataclass(frozen=True)
class Observation:
    """Result of a session: its findings, the kernel's counts of the same time, and the error if it
    failed. ``answers`` are those of its last run."""

    said: tuple[ReportedFinding, ...] = ()
    effect: Effect | None = None
    error: str = ""
    answers: tuple[ReportedAnswer, ...] = ()


def watched(scenario: Scenario, bench: Bench) -> Observation:
    """Run a session on the bench's path. Its process is a separate one, so that it alone enters the
    cgroups and can be ended if it hangs."""
    context = multiprocessing.get_context("fork")
    receiver, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(scenario, bench, theirs))
    process.start()
    theirs.close()
    try:
        limit = scenario.length + PATIENCE_S
        return (
            receiver.recv()
            if receiver.poll(limit)
            else Observation(error=f"no end after {limit:.0f} s")
        )
    except EOFError:
        return Observation(error="the session's process died")
    finally:
        process.join(10)
        process.kill()
        process.join()


def _child(scenario: Scenario, bench: Bench, answer: Connection) -> None:
    # this process ends what begins in mid run
    with ExitStack() as stack:
        try:
            for group in bench.groups:
                (group / "cgroup.procs").write_text(str(os.getpid()))
            os.environ["XDG_STATE_HOME"] = str(bench.here / "state")
            answer.send(_Driven(scenario, replace(bench, stack=stack)).seen())
        except Exception as error:
            answer.send(Observation(error=repr(error)))


class _Driven:
    """One session from beginning to end."""

    def __init__(self, scenario: Scenario, bench: Bench) -> None:
        self._scenario, self._bench = scenario, bench
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._said: list[ReportedFinding] = []
        self._error = ""
        self._log: list[str] = []
        self._marks: list[tuple[float, int]] = []
        self._own: list[float] = []
        self._ticks: list[Ticks] = []
        self._delays: list[tuple[float, dict[int, int]]] = []
        self._began: float | None = None
        self._answers: list[ReportedAnswer] = []
        self._runs = False

    def seen(self) -> Observation:
        """Run the session. Returns the observation."""
        scenario, path = self._scenario, self._bench.path
        devices = read_devices(Roots())
        target = resolve_targets([path], self._bench.here, Roots(), devices)
        session = LiveSession(target, devices, target, RunRequest(size=scenario.size))
        session.start(self._events.put)
        try:
            if scenario.job is None:
                timers = self._timers(0)
                spans = [self._idle(scenario.quiet + scenario.seconds)]
                for timer in timers:
                    timer.cancel()
            else:
                self._idle(scenario.quiet)
                spans = [self._run(session, number) for number in range(len(scenario.runs))]
        finally:
            session.close()
        while not self._events.empty():
            self._take(self._events.get())
        return Observation(tuple(self._said), Effect(spans), self._error, tuple(self._answers))

    def _idle(self, seconds: float) -> Span:
        before = self._state()
        self._began = time.monotonic()
        deadline = time.monotonic() + seconds
        while (seconds_left := deadline - time.monotonic()) > 0:
            try:
                self._take(self._events.get(timeout=seconds_left))
            except queue.Empty:
                break
        return Span(before, self._state())

    def _run(self, session: LiveSession, number: int) -> Span:
        request, before = self._request(number), self._state()
        self._marks, self._ticks = [], [read_ticks()]
        session.run_request(request)
        timers: list[threading.Timer] = []
        try:
            while True:
                event = self._events.get()
                self._take(event)
                if isinstance(event, StepStarted) and event.phase == "run":
                    before = self._state()
                    self._marks, self._ticks, self._delays = [], [read_ticks()], []
                    self._own, self._answers, self._runs = [], [], True
                    self._began = time.monotonic()
                if isinstance(event, FrameReady) and event.frame.fio is not None and not timers:
                    timers = self._timers(number)
                if isinstance(event, StepFinished):
                    self._runs = False
                    self._error = self._error or self._wrong_end(event.error)
                    ticks = self._ticks[min(1, len(self._ticks) - 1)], self._ticks[-1]
                    return Span(before, self._state(), *own_figures(event.document),
                                rates(self._marks), ticks,
                                most_delayed(self._delays), *own_load(event.document),
                                tuple(self._own))  # fmt: skip
                if isinstance(event, SessionEnded):
                    raise RuntimeError("the session ended: " + "; ".join(self._log))
        finally:
            for timer in timers:
                timer.cancel()

    def _wrong_end(self, error: str) -> str:
        if not self._scenario.fails:
            return error
        return "" if error else "fio ended without an error"

    def _timers(self, number: int) -> list[threading.Timer]:
        if number < len(self._scenario.runs) - 1:
            return []
        timers = [threading.Timer(at, self._act, (action,))
                  for at, action in self._scenario.during]  # fmt: skip
        for timer in timers:
            timer.start()
        return timers

    def _act(self, action: Action) -> None:
        self._began = time.monotonic()
        action(self._bench)

    def _request(self, number: int) -> RunRequest:
        scenario, bench = self._scenario, self._bench
        file = bench.here / "job.fio"
        file.write_text(job_text(scenario))
        may_write = (scenario.job or {}).get("rw") in WRITES or "write" in scenario.more
        writes = may_write and Path(bench.path).is_block_device()
        return RunRequest(
            str(file), dict(scenario.runs[number]), scenario.size,
            (bench.path,) if writes else (), no_fence=False,
        )  # fmt: skip

    def _take(self, event: Event) -> None:
        if isinstance(event, FindingReported):
            finding = event.finding
            text = f"{finding.text} [{finding.advice}]" if finding.advice else finding.text
            after = None if self._began is None else round(time.monotonic() - self._began, 1)
            self._said.append(ReportedFinding(finding.rule, text, after))
        elif isinstance(event, AnswerGiven):
            self._note_answer(event.answer)
        elif isinstance(event, FrameReady):
            self._marks.append((time.monotonic(), read_done(self._bench.disk)))
            if event.frame.fio is not None:
                self._own.append(event.frame.fio.total.iops or 0.0)
                self._ticks.append(read_ticks())
                self._delays.append((time.monotonic(), read_delays(os.getpid())))
        elif isinstance(event, Notice) and event.level != "info":
            self._log.append(event.text)

    def _note_answer(self, answer: Answer) -> None:
        """Keep the answer. If the scenario expects no finding of a job, an answer that names a
        fault is kept as a finding, too."""
        after = None if self._began is None else round(time.monotonic() - self._began, 1)
        if self._runs:
            self._answers.append(
                ReportedAnswer(answer.rule, answer.state == GOOD, answer.sentence, after)
            )
        alone = self._scenario.job is None or not self._scenario.expected
        if alone and answer.state != GOOD and not answer.repeats_finding:
            self._said.append(ReportedFinding(f"answer-{answer.rule}", answer.sentence))

    def _state(self) -> State:
        return read_state(time.monotonic(), self._bench.disk, self._scenario.watch)


COMMON: Mapping[str, Any] = {"ioengine": "libaio", "direct": 1, "rw": "randread", "bs": "4k",
                             "group_reporting": 1, "time_based": 1}  # fmt: skip


def job_text(scenario: Scenario) -> str:
    """The scenario's job file."""
    if scenario.job is None:
        raise Absent("it has no job")
    options = {**COMMON, "runtime": f"{scenario.seconds:g}s", **scenario.job}
    first = "[scoreboard]\n" + "".join(f"{name}={value}\n" for name, value in options.items())
    return first + scenario.more
