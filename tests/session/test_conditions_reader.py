"""Readings beside the session: they never delay it, and the newest one is returned once."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hardware import nvme_disk, nvme_sensor
from trees import Tree

from iopstui.linux.devices import health
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.machine import conditions
from iopstui.linux.process import process_io
from iopstui.linux.process.process_io import ProcessRates
from iopstui.model.findings.conditions import ProcessLoad, Temperature
from iopstui.session.tick.readers import ConditionsReader


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    nvme_sensor(tree, nvme_disk(tree).parent / "hwmon0")
    return tree


class Hang:
    """A disk that does not answer until the test releases it."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        self.times = 0

    def __call__(self, sensor: health.Sensor) -> Temperature:
        self.times += 1
        self.asked.set()
        assert self.go.wait(60)
        return Temperature(50.0)


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hang]:
    hang = Hang()
    monkeypatch.setattr(health, "read_temperature", hang)
    yield hang
    hang.go.set()
    finish()


def finish() -> None:
    for thread in threading.enumerate():
        if thread.name == "conditions":
            thread.join(60)


def ask(reader: ConditionsReader, tree: Tree, t: float = 1.0) -> None:
    reader.ask(t, read_devices(tree.roots), ("nvme0n1",))


def test_other_processes_are_read_on_demand(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    found = [ProcessRates(os.getpid(), "python", 9e6, 0.0), ProcessRates(7, "fio", 5e6, 0.0),
             ProcessRates(42, "backup", 1e6, 2.0)]  # fmt: skip
    monkeypatch.setattr(process_io.ProcessIo, "rates", lambda self: found)
    reader = ConditionsReader(tree.roots)
    ask(reader, tree)
    finish()
    read = reader.take()
    assert read is not None and read.processes is None, "nobody asked"
    reader.ask(2.0, read_devices(tree.roots), ("nvme0n1",), job_pids=frozenset({7}))
    finish()
    read = reader.take()
    assert read is not None and read.processes == (ProcessLoad(42, "backup", 1e6, 2.0),)


def test_a_disk_that_hangs_stops_neither_the_session_nor_a_later_reading(
    tree: Tree, hang: Hang
) -> None:
    reader = ConditionsReader(tree.roots)
    ask(reader, tree, 1.0)
    assert hang.asked.wait(60)
    for t in (3.0, 5.0, 7.0):
        ask(reader, tree, t)
        assert reader.take() is None
    hang.go.set()
    finish()
    assert hang.times == 1
    found = reader.take()
    assert found is not None and found.t == 1.0
    ask(reader, tree, 100.0)
    finish()
    found = reader.take()
    assert found is not None and found.t == 100.0


def test_a_closed_one_waits_for_nothing_and_gives_nothing(tree: Tree, hang: Hang) -> None:
    reader = ConditionsReader(tree.roots)
    ask(reader, tree)
    assert hang.asked.wait(60)
    reader.close()
    assert not hang.go.is_set()
    hang.go.set()
    finish()
    assert reader.take() is None
    ask(reader, tree, 1000.0)
    finish()
    assert hang.times == 1


def test_a_process_that_may_have_no_more_threads(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    reader = ConditionsReader(tree.roots)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        ask(reader, tree)
    assert reader.take() is None
    ask(reader, tree, 5.0)
    finish()
    found = reader.take()
    assert found is not None and found.t == 5.0


def test_a_process_that_may_open_no_more_files(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    reader = ConditionsReader(tree.roots)
    uncaught: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(threading, "excepthook", uncaught.append)
        patch.setattr(conditions, "ConditionsFiles", refused)
        ask(reader, tree)
        finish()
    assert reader.take() is None and uncaught == []
    ask(reader, tree, 5.0)
    finish()
    found = reader.take()
    assert found is not None and found.t == 5.0
