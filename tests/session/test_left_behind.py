"""The end of a run if one of its processes hangs in the kernel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED
from iopstui.events import LAYOUT, RUN, StepFinished
from iopstui.linux.counters.signal_flag import SignalFlag
from iopstui.session import runs as module
from iopstui.session.fio.write_budget import WriteBudget
from iopstui.session.runs import POLL_S, SPACE_CHECK_S, Runs
from iopstui.session.tick.context import CurrentRun


class Context:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.warnings: list[str] = []
        self.emit = self.events.append
        self.warn = self.warnings.append

    def now(self) -> float:
        return 1.0


def made_runs(context: Any, current: CurrentRun, knobs: Any, budget: WriteBudget) -> Any:
    nothing: Any = None
    sampling: Any = SimpleNamespace(end_run=lambda: ())
    return Runs(context, sampling, current, knobs, nothing, None, budget, SignalFlag())


@pytest.mark.parametrize(
    ("stopping", "failure", "code"),
    [(True, "", EXIT_INTERRUPTED), (False, "", EXIT_JOB_FAILED),
     (True, "the device is gone", EXIT_JOB_FAILED)],
)  # fmt: skip
def test_a_run_that_the_user_stopped_is_an_interrupted_one(
    stopping: bool, failure: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "hanging_text", lambda pids: f"process {pids[0]} hangs")
    context, current = Context(), CurrentRun()
    current.step += 1
    runs = made_runs(context, current, None, WriteBudget())
    fio: Any = SimpleNamespace(
        hanging=(5,), pid=5, stopping=stopping, failure=failure, last_status=None, messages=[],
        document={}, close=lambda: None, prepared=SimpleNamespace(slow_ios=dict),
    )  # fmt: skip
    current.fio = fio
    runs.leave_behind()
    (finished,) = context.events
    assert isinstance(finished, StepFinished)
    assert (finished.exit_code, finished.interrupted) == (code, code == EXIT_INTERRUPTED)
    assert runs.exit_code == code
    assert runs.left_behind == "process 5 hangs"
    assert finished.error == (failure or "process 5 hangs" if code == EXIT_JOB_FAILED else "")
    assert context.warnings == (["process 5 hangs"] if code == EXIT_INTERRUPTED else [])


@pytest.mark.parametrize(
    ("wakes", "phase", "most", "wait", "patience"),
    [(True, RUN, None, False, SPACE_CHECK_S), (False, RUN, None, False, POLL_S),
     (True, LAYOUT, None, False, POLL_S), (True, RUN, 1 << 30, False, POLL_S),
     (True, RUN, None, True, POLL_S)],
)  # fmt: skip
def test_a_run_is_looked_at_more_often_only_while_there_is_something_to_see(
    wakes: bool, phase: str, most: int | None, wait: bool, patience: float
) -> None:
    context, current, knobs = Context(), CurrentRun(), SimpleNamespace(has_delayed=wait)
    runs = made_runs(context, current, knobs, WriteBudget(most))
    assert runs.patience_s() is None
    fio: Any = SimpleNamespace(wakes_on_output=wakes, phase=phase)
    current.fio = fio
    assert runs.patience_s() == patience
