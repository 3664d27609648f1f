"""Drives are read beside the session: deltas begin with the run, and a hung drive delays
nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hardware import nvme_disk, scsi_disk
from trees import Tree

from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.nvme import health
from iopstui.linux.nvme.admin import DriveUnreadable
from iopstui.model.block.device import BlockDevice
from iopstui.model.samples import DriveReading
from iopstui.session.tick import readers
from iopstui.session.tick.readers import INTERVAL_S, DriveReader

TREE = ("nvme0n1",)


class Drive:
    """Answers with the number of requests so far; hangs while ``go`` is not set."""

    def __init__(self) -> None:
        self.asked, self.go, self.times = threading.Event(), threading.Event(), 0
        self.go.set()
        self.failing = False

    def read(self, _: object, controller: str, namespace: int = 1) -> dict[str, int]:
        self.times += 1
        times = self.times
        self.asked.set()
        assert self.go.wait(60)
        if self.failing:
            raise DriveUnreadable("The drive's own figures need root.")
        return {"media_errors": times}


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Iterator[Drive]:
    drive = Drive()
    monkeypatch.setattr(health.DriveHealth, "read", lambda *given: drive.read(*given))
    yield drive
    drive.go.set()
    finish()


@pytest.fixture
def devices(tmp_path: Path) -> Mapping[str, BlockDevice]:
    return read_devices(made(tmp_path).roots)


def made(base: Path) -> Tree:
    tree = Tree(base)
    controller = nvme_disk(tree).parent
    scsi_disk(tree)
    (tree.roots.sys / "class/nvme").mkdir()
    (tree.roots.sys / "class/nvme/nvme0").symlink_to(controller)
    return tree


@pytest.fixture
def reader(tmp_path: Path, devices: Mapping[str, BlockDevice], drive: Drive) -> DriveReader:
    from iopstui.linux.kernel_files import Roots

    return DriveReader(Roots.under(tmp_path))


def finish() -> None:
    for thread in threading.enumerate():
        if thread.name == "drives":
            thread.join(60)


def test_a_reading_every_ten_seconds(
    reader: DriveReader, devices: Mapping[str, BlockDevice], drive: Drive
) -> None:
    for t in (0.0, 1.0, INTERVAL_S - 1, INTERVAL_S, INTERVAL_S + 1):
        reader.start_if_due(t, devices, TREE)
        finish()
    assert drive.times == 2
    assert reader.take() == {
        "nvme0": DriveReading({"media_errors": 2}, {"media_errors": 1}, devices=TREE)
    }
    assert reader.take() == {}


def test_a_reading_that_was_under_way_when_the_run_began_does_not_count(
    reader: DriveReader, devices: Mapping[str, BlockDevice], drive: Drive
) -> None:
    drive.go.clear()
    reader.start_if_due(0.0, devices, TREE)
    assert drive.asked.wait(60)
    reader.begin()
    drive.go.set()
    finish()
    assert reader.take() == {}
    reader.start_if_due(0.1, devices, TREE)
    finish()
    assert reader.take()["nvme0"].began == {"media_errors": 2}


def test_a_hung_drive_holds_up_neither_the_session_nor_its_end(
    reader: DriveReader,
    devices: Mapping[str, BlockDevice],
    drive: Drive,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readers, "LAST_TIMEOUT_S", 0.01)
    drive.go.clear()
    reader.start_if_due(0.0, devices, TREE)
    assert drive.asked.wait(60)
    reader.start_if_due(INTERVAL_S, devices, TREE)
    assert reader.read_last(devices, TREE) == {}
    reader.close()
    assert drive.times == 1


def test_a_drive_that_can_not_be_read_says_why(
    reader: DriveReader, devices: Mapping[str, BlockDevice], drive: Drive
) -> None:
    drive.failing = True
    why = "The drive's own figures need root."
    assert reader.read_last(devices, TREE) == {"nvme0": DriveReading({}, {}, why, TREE)}
    assert drive.times == 1


def test_what_was_read_is_not_lost_when_a_later_reading_fails(
    reader: DriveReader, devices: Mapping[str, BlockDevice], drive: Drive
) -> None:
    reader.start_if_due(0.0, devices, TREE)
    finish()
    assert reader.take()["nvme0"].counts == {"media_errors": 1}
    drive.failing = True
    assert reader.read_last(devices, TREE) == {}
