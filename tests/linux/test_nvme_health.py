"""Which controller is asked, and for which pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from hardware import multipath_head, nvme_disk, scsi_disk
from trees import Tree

from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.nvme import admin
from iopstui.linux.nvme.admin import DriveUnreadable
from iopstui.linux.nvme.health import (
    Drive,
    DriveHealth,
    controllers_of,
    drives_of,
    unprivileged_counters,
)


def classed(tree: Tree, *controllers: Path) -> None:
    top = tree.roots.sys / "class/nvme"
    top.mkdir()
    for controller in controllers:
        (top / controller.name).symlink_to(controller)


def test_a_drive_is_its_controller(tree: Tree) -> None:
    disk = nvme_disk(tree, nsid="3")
    tree.partition(disk, 1, "259:9")
    scsi_disk(tree)
    classed(tree, disk.parent)
    devices = read_devices(tree.roots)
    assert controllers_of(tree.roots, devices["nvme0n1"]) == ("nvme0",)
    assert drives_of(tree.roots, devices, ["nvme0n1p1", "nvme0n1", "sda", "gone"]) == {
        "nvme0": Drive(3, ("nvme0n1",))
    }


def test_of_several_paths_the_first_live_one_is_asked(tree: Tree) -> None:
    multipath_head(tree)
    controllers = sorted((tree.roots.sys / "devices").rglob("nvme/nvme[0-9]"))
    classed(tree, *controllers)
    devices = read_devices(tree.roots)
    assert controllers_of(tree.roots, devices["nvme1n1"]) == ("nvme1", "nvme2")
    everything = ["nvme1n1", *devices["nvme1n1"].slaves]
    assert drives_of(tree.roots, devices, everything) == {"nvme1": Drive(1, ("nvme1n1",))}
    (controllers[0] / "state").write_text("connecting\n")
    assert drives_of(tree.roots, devices, everything) == {"nvme2": Drive(1, ("nvme1n1",))}


def test_a_controller_that_is_not_live_is_not_asked(tree: Tree) -> None:
    disk = nvme_disk(tree)
    classed(tree, disk.parent)
    (disk.parent / "state").write_text("resetting\n")
    with pytest.raises(DriveUnreadable, match="not live"):
        DriveHealth(tree.roots).read("nvme0")


class Pages:
    """A drive's answers to log pages and Identify; keeps the requests."""

    def __init__(self, listed: tuple[int, ...], lists: bool, groups: bool) -> None:
        self.asked: list[int] = []
        self.placement = 0
        self._listed, self._lists, self._groups = listed, lists, groups

    def log_page(self, fd: int, page: int, size: int, *, specific: int = 0) -> bytes:
        self.asked.append(page)
        data = bytearray(size)
        if page == admin.SMART:
            data[1:3] = (310).to_bytes(2, "little")
        if page == admin.SUPPORTED_PAGES:
            for number in self._listed:
                data[4 * number] = 1
        if page == admin.OCP_SMART:
            data[0] = 9
            data[496:512] = admin.OCP_GUID
        if page == admin.ENDURANCE:
            assert specific == 4
            data[80] = 6
        return bytes(data)

    def identify(self, fd: int, what: int, namespace: int = 0) -> bytes:
        data = bytearray(4096)
        if what == admin.CONTROLLER:
            data[261] = 32 * self._lists
            data[96] = 16 * self._groups
            data[280] = 200
        else:
            data[102], data[130] = 4, 9
        return bytes(data)

    def feature(
        self, fd: int, number: int, size: int = 0, *, specific: int = 0
    ) -> tuple[int, bytes]:
        if number == admin.PLACEMENT:
            assert specific == 4
            return self.placement, b""
        return 1, b""


@pytest.mark.parametrize(
    ("listed", "lists", "groups", "asked"),
    [
        # an unlisted page is not requested: that would add an error to the drive's log
        ((), False, False, [2, 2]),
        ((0xC0,), False, False, [2, 2]),
        ((2,), True, False, [2, 0, 2]),
        ((2, 0xC0), True, False, [2, 0, 0xC0, 2, 0xC0]),
        ((), False, True, [2, 9, 2, 9]),
    ],
)
def test_only_what_the_drive_has_is_asked_for(
    tree: Tree,
    monkeypatch: pytest.MonkeyPatch,
    listed: tuple[int, ...],
    lists: bool,
    groups: bool,
    asked: list[int],
) -> None:
    disk = nvme_disk(tree)
    classed(tree, disk.parent)
    (tree.roots.dev / "nvme0").write_bytes(b"")
    drive = Pages(listed, lists, groups)
    monkeypatch.setattr(admin, "log_page", drive.log_page)
    monkeypatch.setattr(admin, "identify", drive.identify)
    health = DriveHealth(tree.roots)
    for _ in range(2):
        found = health.read("nvme0")
    assert drive.asked == asked
    assert found["kelvin"] == 310 and found["capacity"] == 200
    assert ("media_bytes_written" in found) == (0xC0 in asked)
    assert ("group_media_gb_written" in found) == groups


@pytest.mark.parametrize(("text", "found"), [
    ("49850", {"kelvin": 323}), ("-273150", {}), ("hot", {}), ("", {}),
])  # fmt: skip
def test_any_user_sees_the_kernel_s_temperature_in_whole_kelvins(
    tree: Tree, text: str, found: dict[str, int]
) -> None:
    disk = nvme_disk(tree)
    classed(tree, disk.parent)
    sensor = disk.parent / "hwmon3"
    sensor.mkdir()
    (sensor / "temp1_input").write_text(text + "\n")
    (sensor / "name").write_text("nvme\n")
    (disk.parent / "state").write_text("live\n")
    assert unprivileged_counters(tree.roots, "nvme0") == found
    (disk.parent / "state").write_text("resetting\n")
    assert unprivileged_counters(tree.roots, "nvme0") == {}, "a drive that is not live is not asked"
    assert unprivileged_counters(tree.roots, "nvme7") == {}


class Placing(Pages):
    """A drive with flexible data placement and two power states, of 25 W and 5 W."""

    def identify(self, fd: int, what: int, namespace: int = 0) -> bytes:
        data = bytearray(super().identify(fd, what, namespace))
        if what == admin.CONTROLLER:
            data[98], data[263] = 8, 1
            data[2048:2050], data[2080:2082] = (2500).to_bytes(2, "little"), b"\xf4\x01"
        return bytes(data)

    def log_page(self, fd: int, page: int, size: int, *, specific: int = 0) -> bytes:
        if page != admin.PLACEMENT_STATISTICS:
            return super().log_page(fd, page, size, specific=specific)
        self.asked.append(page)
        assert specific == 4
        return bytes(16) + (9).to_bytes(16, "little") + bytes(32)


@pytest.mark.parametrize(("on", "asked"), [(1, [2, 9, 0x22]), (0, [2, 9])])
def test_placement_is_asked_for_only_where_it_is_on(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, on: int, asked: list[int]
) -> None:
    disk = nvme_disk(tree)
    classed(tree, disk.parent)
    (tree.roots.dev / "nvme0").write_bytes(b"")
    drive = Placing((), False, True)
    drive.placement = on
    for name in ("log_page", "identify", "feature"):
        monkeypatch.setattr(admin, name, getattr(drive, name))
    found = DriveHealth(tree.roots).read("nvme0")
    assert drive.asked == asked
    assert found.get("fdp_media_bytes_written") == (9 if on else None)
    assert (found["power_state"], found["power_limit_mw"]) == (1, 5000)
