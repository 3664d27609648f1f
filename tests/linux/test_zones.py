"""Zones of zoned devices: sysfs for all users, conditions from the device's own report."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import asdict
from pathlib import Path

import pytest
from hardware import nvme_disk
from hypothesis import given
from hypothesis import strategies as st
from json_schema import check
from trees import Tree

from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.zones import REPORT_ZONES, Zone, Zones, parse_zones, read_zones
from iopstui.output.pages.devices import zones_text

SECTORS = 32768
QUEUE = {"queue__zoned": "host-managed", "queue__chunk_sectors": str(SECTORS),
         "queue__nr_zones": "5", "queue__max_open_zones": "8",
         "queue__max_active_zones": "0"}  # fmt: skip


def zone(number: int, condition: int, capacity: int = SECTORS - 64) -> bytes:
    start = number * SECTORS
    return struct.pack("=QQQBBBB4xQ24x", start, SECTORS, start, 2, condition, 0, 0, capacity)


class Device:
    """A device that reports at most two zones in one answer, as a kernel may."""

    def __init__(self, conditions: list[int], stuck: bool = False) -> None:
        self.conditions, self.stuck, self.asked = conditions, stuck, 0

    def __call__(self, fd: int, request: int, buffer: bytearray) -> int:
        assert request == REPORT_ZONES
        self.asked += 1
        sector, wanted, _ = struct.unpack_from("=QII", buffer)
        first = 0 if self.stuck else sector // SECTORS
        zones = [zone(n, c) for n, c in enumerate(self.conditions)][first:][: min(wanted, 2)]
        report = struct.pack("=QII", sector, len(zones), 1) + b"".join(zones)
        buffer[: len(report)] = report
        return 0


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    nvme_disk(tree, **QUEUE)
    (tree.roots.dev / "nvme0n1").write_bytes(b"")
    return tree


def zones(tree: Tree) -> Zones:
    found = read_zones(tree.roots, read_devices(tree.roots)["nvme0n1"])
    assert found is not None
    return found


def test_zones_by_condition(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fcntl.ioctl", Device([0xE, 0xE, 2, 4, 1]))
    found = zones(tree)
    assert found == Zones(
        "host-managed", 5, 16 << 20, 8, None, (SECTORS - 64) * 512,
        {"full": 2, "implicitly open": 1, "closed": 1, "empty": 1},
    )  # fmt: skip
    text = zones_text(found)
    assert text.startswith("Zones: 5 of 16 MiB of which 16 MiB can be written, host-managed; at")
    assert "most 8 open\n" in text and "Now: 2 full, 1 implicitly open" in text
    whole = {"schema": 1, "devices": [], "zones": asdict(found)}
    check(json.loads(json.dumps(whole)), "document.devices")


@pytest.mark.parametrize("device", [Device([1] * 9), Device([1] * 5, stuck=True), Device([])])
def test_a_report_that_does_not_end_is_left(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, device: Device
) -> None:
    monkeypatch.setattr("fcntl.ioctl", device)
    assert sum(zones(tree).conditions.values()) <= 5 and device.asked <= 3


def test_what_is_not_zoned_has_none(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    nvme_disk(tree, queue__zoned="none")
    assert read_zones(tree.roots, read_devices(tree.roots)["nvme0n1"]) is None


def test_without_root_the_sizes_are_there_and_a_sentence(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr("fcntl.ioctl", refused)
    found = zones(tree)
    assert (found.count, found.size, found.conditions) == (5, 16 << 20, {})
    assert zones_text(found).endswith("need root: run with sudo.\n")


def test_a_device_that_reports_none(tree: Tree) -> None:
    # a plain file does not accept this command
    assert "Cannot read the zones of /dev/nvme0n1" in zones(tree).problem


@given(st.binary(max_size=400))
def test_no_report_does_harm(report: bytes) -> None:
    assert all(isinstance(one, Zone) for one in parse_zones(report))
