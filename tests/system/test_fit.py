"""`iopstui fit` with a real fio, on scratch files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from program import iopstui

from iopstui.errors import UsageError
from iopstui.events import Event, FrameReady, StepStarted
from iopstui.features.fit import run as fit_runner
from iopstui.features.fit import setup as fit
from iopstui.features.fit.model import UNDECIDED, Program
from iopstui.features.fit.run import FitRunner
from iopstui.features.fit.setup import read_programs
from iopstui.model.experiment.run_request import RunRequest

PROGRAMS = read_programs(Path("/nowhere"))


@pytest.fixture(autouse=True)
def any_file_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Allow file systems in memory, because temporary files of tests may be there; ignore other
    programs' use of the disks."""
    monkeypatch.setattr(fit, "IN_MEMORY", ())
    # other programs that use this machine's disks are not tested here
    monkeypatch.setattr(fit_runner, "IDLE_S", 0.0)
    monkeypatch.setattr(fit_runner, "DiskLoads", lambda: lambda names: {})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "disk").mkdir()
    yield
    assert not list((tmp_path / "disk").iterdir()), "something is left behind"


def small(name: str) -> Program:
    program = PROGRAMS.choose([name])[0]
    return replace(program, job={**program.job, "size": "4m"})


def set_up(tmp_path: Path, *names: str) -> fit.FitSetup:
    return fit.set_up(str(tmp_path / "disk"), [small(name) for name in names], RunRequest(), 1.0)


def test_a_file_that_is_not_a_number_of_blocks_is_no_lack_of_room(tmp_path: Path) -> None:
    setup = set_up(tmp_path, "sqlite")
    assert setup.file_bytes["sqlite"] < 4 << 20
    assert not any("no room" in line for line in fit.plan_lines(setup))
    less = replace(setup, file_bytes={"sqlite": 2 << 20})
    assert any("no room" in line for line in fit.plan_lines(less))


def test_each_program_is_measured_as_its_file_says(tmp_path: Path) -> None:
    events: list[Event] = []
    runner = FitRunner(set_up(tmp_path, "etcd", "postgresql"), events.append, lambda text: None)
    runner.run()
    etcd, postgresql = runner.judgements
    assert etcd.rows[0].figure.value and postgresql.rows[0].figure.value
    assert etcd.rows[0].result == UNDECIDED, "a second gives no interval"
    assert "20" in etcd.rows[0].why
    titles = [event.title for event in events if isinstance(event, StepStarted)]
    assert "2300" in titles[0], "its own sizes, not those of the shipped job"
    syncs = [
        event.frame.fio for event in events
        if isinstance(event, FrameReady) and event.frame.fio and event.frame.fio.sync
    ]  # fmt: skip
    # fio syncs once more after each pass over the file, for etcd's 4 MiB after 1,823 writes
    assert syncs and all(
        fio.sync and abs(fio.sync.ios - fio.total.ios) <= 2 + fio.total.ios // 1000 for fio in syncs
    )


def test_a_stop_leaves_nothing_behind_and_ends_all(tmp_path: Path) -> None:
    begun: list[str] = []

    def stop(event: Event) -> None:
        if isinstance(event, FrameReady) and event.frame.fio is not None:
            runner.loop.stop()

    runner = FitRunner(set_up(tmp_path, "sqlite", "etcd"), stop, begun.append)
    runner.run()
    assert runner.loop.interrupted
    assert not runner.judgements and len(begun) == 1


def test_what_is_written_and_for_how_long_is_said_before(tmp_path: Path) -> None:
    lines = list(fit.plan_lines(set_up(tmp_path, "etcd", "prometheus")))
    assert lines[0].startswith(f"2 programs in {tmp_path}/disk, about ")
    assert "etcd: a scratch file of 4 MiB, written for 4 s" in lines[1]
    assert "200 MiB at most" in lines[2]
    seconds = [PROGRAMS.by_name[name].seconds for name in PROGRAMS.by_name]
    assert max(seconds) + fit.SETTLE_S + 1 <= 30


def test_memory_is_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fstype = set_up(tmp_path, "etcd").target.fstype
    monkeypatch.setattr(fit, "IN_MEMORY", (fstype,))
    with pytest.raises(UsageError, match="which is memory"):
        set_up(tmp_path, "etcd")


def test_a_file_or_a_missing_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, why in (("file", "no directory"), ("none", "does not exist")):
        with pytest.raises(UsageError, match=why):
            fit.set_up(str(tmp_path / name), [small("etcd")], RunRequest(), None)


def test_a_wrong_name_and_a_broken_file_are_named(tmp_path: Path) -> None:
    fits = tmp_path / "config/iopstui/fits"
    fits.mkdir(parents=True)
    (fits / "mine.toml").write_text('title = "')
    done = iopstui("fit", "etdc", cwd=tmp_path / "disk", XDG_CONFIG_HOME=str(tmp_path / "config"))
    assert done.returncode == 2
    assert "Did you mean etcd?" in done.stderr and "mine.toml is not used" in done.stderr
    assert os.listdir(tmp_path / "disk") == []
