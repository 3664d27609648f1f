"""A fleet beside a screen: what can't be run is told, and it goes on."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from pathlib import Path

import pytest

from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_VERDICT, UsageError
from iopstui.fleet import scene
from iopstui.fleet.session import FleetSession, Planned, how_of
from iopstui.fleet.told import Over, Told

WITHIN_S = 30.0


def test_what_can_t_be_planned_is_told_and_the_next_run_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    asked: list[tuple[int, str, dict[str, str]]] = []
    told: queue.Queue[Told] = queue.Queue()

    def plan(number: int, job: str, options: Mapping[str, str]) -> Planned:
        asked.append((number, job, dict(options)))
        if number == 1:
            raise UsageError("That can't be.", "Something else can.")
        raise RuntimeError("a fault of ours")

    session = FleetSession(plan)
    session.start(told.put)
    session.run("one", {"bs": "8k"})
    first = told.get(timeout=WITHIN_S)
    assert isinstance(first, Over)
    assert (first.how, first.code, first.said) == (
        scene.FAILED, 2, ("That can't be. Something else can.",)
    )  # fmt: skip
    session.run("two", {})
    second = told.get(timeout=WITHIN_S)
    assert isinstance(second, Over) and second.how == scene.FAILED
    assert "internal error" in second.said[0] and not session.running
    session.close()
    assert asked == [(1, "one", {"bs": "8k"}), (2, "two", {})]


def test_a_missed_verdict_is_no_failure_of_the_run() -> None:
    assert [how_of(code) for code in (EXIT_OK, EXIT_VERDICT, EXIT_INTERRUPTED, 1)] == [
        scene.DONE, scene.DONE, scene.STOPPED, scene.FAILED
    ]  # fmt: skip
