"""Scratch files are kept for the next run of a session, if it needs the same files."""

from __future__ import annotations

import queue
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iopstui.errors import UsageError
from iopstui.events import Event, FrameReady, StepFinished, StepStarted
from iopstui.fio.inspect import JobFacts
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.kernel_files import Roots
from iopstui.model.experiment.run_request import RunRequest
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.preflight.staging import LentScratch
from iopstui.safety import journal
from iopstui.safety.scratch import make_scratch
from iopstui.session.live import LiveSession
from iopstui.session.run_preparation import SessionScratch, StopFirst

# pauses: at full speed fio takes a CPU from parallel tests
PACED = {"thinktime": "20000", "thinktime_blocks": "20", "clocksource": "clock_gettime",
         "disk_util": "0"}  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def prepared(lent: LentScratch | None, size: int = 4096, writes: bool = False) -> PreparedJob:
    """Prepare a job like preflight: an existing file is not laid out again."""
    assert lent is not None
    path = lent.scratch.path / "a"
    layout = None if path.exists() and path.stat().st_size >= size else "[layout]\n"
    one = PreparedJob(
        "j", "t", "[a]\n", JobFacts((), writes), (str(path),), path.parent, layout, size
    )
    one.scratch, one.shares_scratch, one.file_sizes = lent.scratch, True, {str(path): size}
    return one


def run(kept: SessionScratch, size: int = 4096, **more: Any) -> PreparedJob:
    """A run from beginning to end; ``laid_out``, ``hanging`` and ``writes`` describe it."""
    one = kept.prepared(None, lambda asked: prepared(asked, size, more.get("writes", False)))
    if one.layout_text is not None and more.get("laid_out", True):
        Path(one.files[0]).write_bytes(b"x" * size)
    fio: Any = SimpleNamespace(prepared=one, hanging=more.get("hanging", ()))
    kept.release_run(fio, more.get("laid_out", True))
    return one


def ended(one: PreparedJob) -> Any:
    return SimpleNamespace(prepared=one, hanging=())


def names(here: Path) -> list[str]:
    return [path.name for path in here.rglob("*") if path.is_file()]


def test_the_next_run_reads_the_same_file(here: Path) -> None:
    kept = SessionScratch([here])
    first, second = run(kept), run(kept)
    assert first.files == second.files and second.layout_text is None
    assert len(list(journal._journal_notes("scratch"))) == 1
    kept.close()
    kept.close()
    assert list(here.iterdir()) == [] and list(journal._journal_notes("scratch")) == []


@pytest.mark.parametrize("size", [2048, 8192])
def test_another_size_gets_files_of_its_own(size: int, here: Path) -> None:
    kept = SessionScratch([here])
    first, second = run(kept), run(kept, size)
    assert first.files != second.files and second.layout_text is not None
    assert names(here) == ["a"], "the first one's is gone"
    kept.close()


@pytest.mark.parametrize("how", [{"writes": True}, {"laid_out": False}])
def test_what_may_have_changed_is_removed_with_its_run(how: Mapping[str, Any], here: Path) -> None:
    kept = SessionScratch([here])
    run(kept, **how)
    assert list(here.iterdir()) == []
    assert run(kept).layout_text is not None
    kept.close()


def test_a_file_that_somebody_has_removed_is_made_anew(here: Path) -> None:
    kept = SessionScratch([here])
    first = run(kept)
    shutil.rmtree(Path(first.files[0]).parent)
    assert run(kept).layout_text is not None
    kept.close()
    assert list(here.iterdir()) == []


def test_an_experiment_s_own_files_take_their_place(here: Path) -> None:
    kept = SessionScratch([here])
    run(kept)
    own = make_scratch(here)
    one = kept.prepared(LentScratch(own), prepared)
    assert one.scratch is own and names(here) == []
    kept.release_run(SimpleNamespace(prepared=one, hanging=()), True)  # type: ignore[arg-type]
    assert own.path.exists()
    own.close()


def test_files_of_a_process_that_hangs_are_left_to_the_guards(here: Path) -> None:
    kept = SessionScratch([here])
    run(kept, hanging=(5,))
    kept.close()
    assert names(here) == ["a"]
    kept._hanging[0].close()
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("writes", [True, False])
def test_a_run_that_replaces_another_works_on_its_files(writes: bool, here: Path) -> None:
    kept = SessionScratch([here])
    first = kept.prepared(None, lambda asked: prepared(asked, writes=writes))
    Path(first.files[0]).write_bytes(b"x" * 4096)
    second = kept.prepared_beside(prepared, first)
    assert second.files == first.files and second.layout_text is None
    kept.release_run(ended(first), True, second)
    assert names(here) == ["a"]
    kept.release_run(ended(second), True)
    assert names(here) == ([] if writes else ["a"]), "a run that writes may have changed them"
    kept.close()
    assert list(here.iterdir()) == []


def test_a_run_that_needs_other_files_gets_them_beside_those_in_use(here: Path) -> None:
    kept = SessionScratch([here])
    first = kept.prepared(None, prepared)
    Path(first.files[0]).write_bytes(b"x" * 4096)
    second = kept.prepared_beside(lambda asked: prepared(asked, 8192), first)
    Path(second.files[0]).write_bytes(b"x" * 8192)
    assert second.files != first.files and names(here) == ["a", "a"]
    kept.release_run(ended(first), True, second)
    assert names(here) == ["a"] and Path(second.files[0]).exists()
    kept.release_run(ended(second), True)
    assert run(kept, 8192).files == second.files
    kept.close()
    assert list(here.iterdir()) == []


def test_without_room_for_both_the_running_job_is_stopped_first(here: Path) -> None:
    def make(asked: LentScratch | None) -> PreparedJob:
        if asked is not None and asked.scratch.path != Path(first.files[0]).parent:
            raise UsageError("no room")
        return prepared(asked, 8192)

    kept = SessionScratch([here])
    first = kept.prepared(None, prepared)
    Path(first.files[0]).write_bytes(b"x" * 4096)
    with pytest.raises(StopFirst):
        kept.prepared_beside(make, first)
    assert names(here) == ["a"] and kept.take_beside() is None
    kept.close()


def test_a_job_that_is_refused_leaves_nothing(here: Path) -> None:
    def refuse(asked: LentScratch | None) -> PreparedJob:
        raise UsageError("no")

    kept = SessionScratch([here])
    with pytest.raises(UsageError):
        kept.prepared(None, refuse)
    assert list(here.iterdir()) == []
    run(kept)
    with pytest.raises(UsageError):
        kept.prepared(None, refuse)
    assert run(kept).layout_text is None, "what was there is still good"
    kept.close()


def test_without_directories_nothing_is_kept(here: Path) -> None:
    asked: list[LentScratch | None] = []
    one = PreparedJob("j", "t", "[a]\n", JobFacts((), False), (), here)
    assert SessionScratch().prepared(None, lambda r: asked.append(r) or one) is one  # type: ignore[func-returns-value]
    assert asked == [None]


def test_a_restarted_job_is_not_laid_out_again(here: Path) -> None:
    """With the real fio: a run with another depth needs the same file."""
    devices = read_devices(Roots())
    target = resolve_target(str(here), here, Roots(), devices)
    session = LiveSession(target, devices, target, RunRequest(size="4m", interval_s=0.25))
    told: queue.SimpleQueue[Event] = queue.SimpleQueue()
    phases: list[tuple[int, str]] = []

    def until(kind: type, step: int) -> None:
        while True:
            event = told.get(timeout=45)
            if isinstance(event, StepStarted):
                phases.append((event.step, event.phase))
            assert not (isinstance(event, StepFinished) and event.error), event
            if isinstance(event, FrameReady) and event.frame.fio is None:
                continue
            of = event.frame.step if isinstance(event, FrameReady) else getattr(event, "step", 0)
            if isinstance(event, kind) and of == step:
                return

    session.start(told.put)
    try:
        for step in (1, 2):
            options = {"iodepth": str(step), "runtime": "60", **PACED}
            session.run_job("randread-4k", options)
            until(FrameReady, step)
        session.stop_job()
        until(StepFinished, 2)
        assert phases == [(1, "layout"), (1, "run"), (2, "run")]
        assert names(here) == ["randread-4k.scratch"], "it waits for the next run"
    finally:
        session.close()
    assert list(here.iterdir()) == []
