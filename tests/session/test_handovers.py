"""One run replaces another without a pause: each step of it with fake runs, and once with the real
fio."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iopstui.errors import IopstuiError, Refused
from iopstui.events import Event, FrameReady, Mark, Notice, StepFinished, StepStarted
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.kernel_files import Roots
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.metrics.frame import FINAL, HANDOVER, PARTIAL
from iopstui.model.metrics.run_history import RunHistory
from iopstui.session import handovers
from iopstui.session.fio.fio_run import FioEvent, PhaseFinished, ReadyToStart
from iopstui.session.fio.write_budget import WriteBudget
from iopstui.session.handovers import STARTED, TAKING_OVER, WAITING, Handovers
from iopstui.session.live import LiveSession
from iopstui.session.own_cpus import OwnCpus
from iopstui.session.run_preparation import RunOrder, StopFirst
from iopstui.session.run_rows import add_run_event

# pauses: at full speed fio takes a CPU from parallel tests
PACED = {"thinktime": "20000", "thinktime_blocks": "20", "clocksource": "clock_gettime",
         "disk_util": "0"}  # fmt: skip
SECOND = 10**9


class FakeRun:
    """A run whose reports the test writes."""

    def __init__(self, phase: str = "run") -> None:
        self.phase, self.stopping, self.failure, self.guard_pid = phase, False, "", 1
        self.news: list[FioEvent] = []
        self.calls: list[object] = []
        self.works = False
        self.prepared = SimpleNamespace(
            text="", layout_bytes=4096, close=lambda: self.calls.append("released"),
            guard=SimpleNamespace(
                active_run=lambda pid, given_up: SimpleNamespace(close=lambda: None)
            ),
        )  # fmt: skip

    def poll(self) -> list[FioEvent]:
        news, self.news = self.news, []
        return news

    def stop(self, hard: bool = False) -> None:
        self.stopping = True
        self.calls.append("kill" if hard else "stop")

    def start_phase(self) -> None:
        self.calls.append("guard")

    def start_run(self, at_ns: int) -> None:
        self.calls.append("go")

    def close(self) -> None:
        self.calls.append("closed")

    def has_done_io(self) -> bool:
        return self.works

    def bytes_written(self) -> int:
        return 5

    def bytes_written_in(self, phase: str) -> int:
        return 7

    def check_space(self) -> None:
        self.calls.append("space")

    def send_heartbeat(self) -> None:
        self.calls.append("heartbeat")


def order(job: str) -> RunOrder:
    """A job that may replace the active one."""
    return RunOrder(RunRequest(job), hand_over=True)


class Stage:
    """Handovers with an active run; ``prepare`` makes the next runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        self.events: list[Event] = []
        self.stopped_first: list[RunOrder] = []
        self.flags: list[str] = []
        self.active: Any = FakeRun()
        self.made: list[Any] = []
        self.prepare: Callable[[], object] = FakeRun
        context: Any = SimpleNamespace(
            emit=self.events.append, now=lambda: 0.0, disks=list,
            notice=lambda level, text: self.events.append(Notice(0.0, level, text)),
            clock=SimpleNamespace(monotonic_ns=lambda: self.now_ns, wall_ms=lambda: 1e3),
        )  # fmt: skip
        sampling: Any = SimpleNamespace(
            interval_s=1.0, begin_handover=lambda: self.flags.append("begin"),
            end_handover=lambda: self.flags.append("end"),
        )  # fmt: skip
        preparation: Any = SimpleNamespace(
            can_hand_over=lambda request, running: True, check_budget=self.check_budget,
            budget=WriteBudget(), scratch=SimpleNamespace(
                take_beside=lambda: None
            ),
        )  # fmt: skip
        self.budget: WriteBudget = preparation.budget
        self.over_budget: IopstuiError | None = None
        self.all = Handovers(
            context, sampling, SimpleNamespace(fio=self.active), preparation, OwnCpus(),  # type: ignore[arg-type]
            False, None, self.stopped_first.append,
        )  # fmt: skip
        monkeypatch.setattr(self.all, "_prepare", lambda *of_request: self._made())

    def _made(self) -> object:
        run = self.prepare()
        self.made.append(run)
        return run

    def check_budget(self, prepared: object, running: int) -> None:
        if self.over_budget is not None:
            raise self.over_budget

    def request(self, job: str = "j", until: str = WAITING) -> Any:
        """Request the next run, and bring it into the state ``until``."""
        assert self.all.order(order(job))
        self.join()
        if self.state is None:
            return None
        run = self.made[-1]
        if run.phase == "run":
            run.news.append(ReadyToStart())
            self.all.follow()
        if until in (STARTED, TAKING_OVER):
            self.all.document_read()
        if until == TAKING_OVER:
            run.works = True
            self.all.follow()
        return run

    def join(self) -> None:
        handover = self.all._next
        if handover is not None:
            handover.thread.join()
        self.all.follow()

    @property
    def state(self) -> str | None:
        return self.all._next.state if self.all._next is not None else None


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def refusals(stage: Stage) -> list[str]:
    return [event.text for event in stage.events if isinstance(event, Notice) and event.refused]


def test_it_starts_after_a_document_and_the_old_one_ends_after_its_first_io(stage: Stage) -> None:
    run = stage.request()
    assert (stage.state, run.calls, stage.active.calls) == (WAITING, [], [])
    stage.all.document_read()
    assert (stage.state, run.calls) == (STARTED, ["go"])
    stage.all.follow()
    assert stage.active.calls == [] and stage.flags == [], "only one of them has done I/O"
    run.works = True
    stage.all.follow()
    assert (stage.state, stage.active.calls) == (TAKING_OVER, ["stop"])
    assert stage.flags == ["begin"]
    handover = stage.all.active_ended(failed=False)
    assert handover is not None and handover.run is run and stage.flags == ["begin", "end"]
    assert stage.state is None and handover.first_io_ms == 1e3


def test_its_news_are_kept_until_the_old_one_has_ended(stage: Stage) -> None:
    run = stage.request(until=TAKING_OVER)
    ended = PhaseFinished("run", 1, "it failed")
    run.news.append(ended)
    stage.all.follow()
    assert stage.state == TAKING_OVER and run.calls[-1] == "heartbeat" and run.news == [ended]
    assert not refusals(stage), "after its first I/O it is a failed run as any other"


def test_one_that_ends_before_its_first_io_leaves_the_old_one_running(stage: Stage) -> None:
    run = stage.request(until=STARTED)
    run.guard_pid = None
    run.news.append(PhaseFinished("run", 1, "no memory"))
    stage.all.follow()
    assert stage.state is None and stage.active.calls == [] and run.calls[-1] == "closed"
    assert "no memory" in refusals(stage)[0] and "begin" not in stage.flags


@pytest.mark.parametrize("error", [Refused("not this one", "look"), StopFirst()])
def test_a_refusal_is_one_notice_and_what_is_unsure_stops_the_old_one(
    error: Exception, stage: Stage
) -> None:
    def refuse() -> object:
        raise error

    stage.prepare = refuse
    assert stage.request() is None
    unsure = isinstance(error, StopFirst)
    assert len(stage.events) == len(refusals(stage)) == (0 if unsure else 1)
    assert len(stage.stopped_first) == unsure and stage.active.calls == []


def test_a_budget_that_does_not_last_for_both_is_a_refusal(stage: Stage) -> None:
    stage.over_budget = Refused("too much")
    assert stage.request() is None
    assert refusals(stage) == ["too much The running job goes on."]
    assert stage.made[-1].calls == ["kill"]


def test_only_the_last_of_many_requests_counts(stage: Stage) -> None:
    for name in "abc":
        assert stage.all.order(order(name))
    stage.all.wait()
    first = stage.made[0]
    assert first.calls == ["kill"], "it was prepared when the next one was asked for"
    stage.all.follow()
    stage.join()
    waiting = stage.all._next
    assert waiting is not None and waiting.order.request.job == "c" and len(stage.made) == 2
    stage.request("d")
    waiting = stage.all._next
    assert (
        waiting is not None and waiting.order.request.job == "d" and stage.made[1].calls == ["kill"]
    )


def test_a_request_after_the_start_waits_for_that_run_to_take_over(stage: Stage) -> None:
    run = stage.request(until=STARTED)
    assert stage.all.order(order("later"))
    assert stage.state == STARTED and "kill" not in run.calls
    assert stage.all.active_ended(failed=False) is not None
    stage.all._current.fio = run
    stage.join()
    assert stage.state is not None and stage.all._next.order.request.job == "later"  # type: ignore[union-attr]


@pytest.mark.parametrize("state", [WAITING, STARTED, TAKING_OVER])
def test_a_stop_ends_the_next_one_too(state: str, stage: Stage) -> None:
    run = stage.request(until=state)
    stage.all.stop(hard=False)
    taking_over = state == TAKING_OVER
    assert run.calls[-1] == ("stop" if taking_over else "kill")
    assert stage.state == (TAKING_OVER if taking_over else None)
    assert stage.budget.used == (5 if state == STARTED else 0), "what it wrote is counted"


def test_a_stop_does_not_wait_for_a_preparation(stage: Stage) -> None:
    goes_on = threading.Event()

    def prepare() -> object:
        goes_on.wait(60)
        return FakeRun()

    stage.prepare = prepare
    assert stage.all.order(order("j"))
    stage.all.stop(hard=False)
    assert stage.all.active_ended(failed=False) is None and stage.all.poll_s is not None
    goes_on.set()
    stage.all.close()
    assert stage.made[0].calls == ["kill", "closed"] and stage.all.poll_s is None


def test_a_dropped_one_is_closed_only_when_its_processes_are_gone(stage: Stage) -> None:
    run = stage.request()
    stage.all.drop()
    stage.all.follow()
    assert "closed" not in run.calls, "its guard would remove files that the old one uses"
    run.news.append(PhaseFinished("run", -9, ""))
    stage.all.follow()
    assert run.calls[-1] == "closed" and stage.all.poll_s is None


@pytest.mark.parametrize("failed", [True, False])
def test_an_old_one_that_ends_by_itself_is_followed_at_once_unless_it_failed(
    failed: bool, stage: Stage
) -> None:
    run = stage.request()
    handover = stage.all.active_ended(failed)
    assert (handover is None) == failed and run.calls == (["kill"] if failed else ["go"])


@pytest.mark.parametrize("state", [STARTED, TAKING_OVER])
def test_after_a_failure_only_a_run_that_works_already_goes_on(state: str, stage: Stage) -> None:
    run = stage.request(until=state)
    handover = stage.all.active_ended(failed=True)
    assert (handover is not None) == (state == TAKING_OVER)
    assert ("kill" in run.calls) == (state == STARTED)


def test_an_old_one_that_does_not_report_is_stopped_first(stage: Stage) -> None:
    run = stage.request()
    stage.now_ns += 1 * SECOND
    stage.all.follow()
    assert stage.stopped_first == []
    stage.now_ns += 1 * SECOND
    stage.all.follow()
    assert [order.request.job for order in stage.stopped_first] == ["j"] and run.calls == ["kill"]


def test_a_next_one_whose_io_is_never_seen_takes_over_in_the_end(stage: Stage) -> None:
    stage.request(until=STARTED)
    stage.now_ns += int(handovers.FIRST_IO_TIMEOUT_S * SECOND) + 1
    stage.all.follow()
    assert stage.state == TAKING_OVER and stage.active.calls == ["stop"]


def test_files_of_its_own_are_laid_out_beside_and_said_as_load(stage: Stage) -> None:
    stage.prepare = lambda: FakeRun("layout")
    monitored = stage.request()
    assert "loads the disk beside" in stage.events[0].text  # type: ignore[union-attr]
    assert stage.flags == ["begin"] and monitored.calls == ["guard"]
    monitored.phase = "run"
    monitored.news.append(PhaseFinished("layout", 0, ""))
    stage.all._timeouts = SimpleNamespace(check_layout=lambda run, step: None)  # type: ignore[assignment]
    stage.all.follow()
    assert stage.state == WAITING and monitored.calls == ["guard", "guard"]
    assert stage.budget.used == 7 and stage.flags == ["begin", "end"]


def test_budget_space_and_heartbeats_cover_both(stage: Stage) -> None:
    assert stage.all.bytes_written() == 0
    run = stage.request(until=STARTED)
    stage.all.check_space()
    stage.all.send_heartbeat()
    assert stage.all.bytes_written() == 5 and run.calls == ["go", "space", "heartbeat"]


def test_the_next_one_is_stopped_at_the_budget_while_the_old_one_ends(stage: Stage) -> None:
    run = stage.request(until=TAKING_OVER)
    stage.budget.most = 11
    stage.all.follow()
    assert not run.stopping
    stage.budget.most = 10
    stage.all.follow()
    assert run.stopping and "write budget" in run.failure


def test_with_the_real_fio_only_the_last_of_ten_requests_runs(tmp_path: Path) -> None:
    """The rows of the last run and of the run before it add up to fio's own totals."""
    devices = read_devices(Roots())
    target = resolve_target(str(tmp_path), tmp_path, Roots(), devices)
    session = LiveSession(target, devices, target, RunRequest(size="4m", interval_s=0.25))
    told: queue.SimpleQueue[Event] = queue.SimpleQueue()
    seen: list[Event] = []

    def until(is_last: Callable[[Event], bool]) -> None:
        while not seen or not is_last(seen[-1]):
            seen.append(told.get(timeout=45))

    def row(step: int, count: int) -> Callable[[Event], bool]:
        return lambda event: (
            count
            <= sum(
                1
                for e in seen
                if isinstance(e, FrameReady) and e.frame.fio and e.frame.step == step
            )
        )

    def request_ten() -> None:
        for depth in range(2, 12):
            options = {"iodepth": str(depth), "runtime": "60", **PACED}
            session.run_job("randread-4k", options, mark=f"QD {depth}")

    session.start(told.put)
    try:
        session.run_job("randread-4k", {"iodepth": "1", "runtime": "60", **PACED})
        until(row(1, 2))
        # in the session's thread, because this thread may wait for a CPU until an earlier request
        # has begun
        session._command(request_ten)
        until(row(2, 2))
        session.stop_job()
        until(lambda event: isinstance(event, StepFinished) and event.step == 2)
    finally:
        session.close()
    kinds = [event for event in seen if isinstance(event, StepStarted | StepFinished | Mark)]
    assert [type(event) for event in kinds[-4:]] == [StepFinished, Mark, StepStarted, StepFinished]
    assert [event.text for event in kinds if isinstance(event, Mark)] == ["QD 11"]
    start = kinds[-2]
    assert isinstance(start, StepStarted) and "QD 11" in start.title
    assert start.overlap_s is not None
    frames = [event.frame for event in seen if isinstance(event, FrameReady)]
    around = [frame for frame in frames if HANDOVER in frame.flags]
    assert all(PARTIAL in frame.flags for frame in around)
    assert any(FINAL in f.flags for f in around) and [f for f in around if f.step == 2]
    for end in [event for event in kinds if isinstance(event, StepFinished)]:
        ios = sum(f.fio.total.ios for f in frames if f.step == end.step and f.fio)
        total: Any = end.summary["total"]
        assert ios == total["read"]["total_ios"], end.step
    runs = RunHistory()
    for event in seen:
        add_run_event(runs, event)
    counted = sum(f.fio.seconds or 0 for f in frames if f.step == 1 and f.fio and f not in around)
    assert runs.rows[0].seconds == pytest.approx(counted), "rows around it are in no mean"
    assert list(tmp_path.iterdir()) == []
