"""A fleet beside a screen: what can't be run is told, and it goes on."""

from __future__ import annotations

import errno
import queue
from collections.abc import Mapping
from pathlib import Path

import pytest

from iopstui.cli.fleet_screen import Recorder
from iopstui.cli.fleet_words import launch_words
from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_VERDICT, JobFailed, UsageError
from iopstui.fleet import scene
from iopstui.fleet.fleet import Fleet, Terms, Voices
from iopstui.fleet.merger import Merger
from iopstui.fleet.nodes import nodes_of
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


def test_a_full_disk_is_told_on_the_screen_at_once(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path / "all.jsonl"))
    told: list[str] = []
    recorder.on_trouble = told.append
    assert recorder._file is not None
    recorder._file._give_up(OSError(errno.ENOSPC, "No space left on device"))
    assert told and "the run goes on" in told[0]
    recorder.close()
    assert len(told) == 1


def test_a_launcher_is_a_command_and_becomes_root_only_where_that_is_asked() -> None:
    (node,) = nodes_of("web1")
    with pytest.raises(UsageError, match="names no command"):
        launch_words(node, " ", False, False)
    words = launch_words(node, "run {host}", False, True)
    assert words[:2] == ["run", "web1"] and "sudo -n" in words[2]


def test_the_program_that_can_t_be_begun_is_named(tmp_path: Path) -> None:
    (node,) = nodes_of("web1")
    voices = Voices(lambda text: None, lambda second: None, lambda name, row: None,
                    lambda second: "")  # fmt: skip
    fleet = Fleet((node,), lambda node: [str(tmp_path / "kubectl")], lambda node: {}, Merger(),
                  Terms(1), voices)  # fmt: skip
    with pytest.raises(JobFailed, match="kubectl: No such file") as found:
        fleet.run()
    assert "kubectl installed?" in str(found.value.hint)
