from __future__ import annotations

from pathlib import Path

import pytest
from hardware import nvme_disk, nvme_sensor, scsi_disk
from trees import PCI, Tree, virtio_disk

from iopstui.linux.devices.health import (
    NVME_INTERVAL_S,
    Temperatures,
    find_sensors,
    parse_degrees,
    read_temperature,
)
from iopstui.model.findings.conditions import Temperature


def temperatures(disk: Path) -> list[Temperature | None]:
    return [read_temperature(sensor) for sensor in find_sensors(disk)]


@pytest.mark.parametrize(
    ("text", "degrees"),
    [
        ("45850\n", 45.85),
        ("-12000", -12.0),
        ("0", 0.0),
        ("-273150\n", None),  # 0 kelvins: there is no sensor
        ("65261850\n", None),  # 65535 kelvins: a threshold that was never set
        ("45.8", None),
        ("", None),
        ("9" * 5000, None),
    ],
)
def test_degrees(text: str, degrees: float | None) -> None:
    assert parse_degrees(text) == degrees


def test_or_at_the_controller_s_pci_device(tree: Tree) -> None:
    disk = nvme_disk(tree)
    nvme_sensor(tree, disk.parents[2] / "hwmon/hwmon0")
    assert temperatures(disk) == [Temperature(45.85, 81.85)]


def test_no_sensor_no_temperature(tree: Tree) -> None:
    disk = nvme_disk(tree)
    (disk.parent / "hwmon3").mkdir()
    # the sensor of a PCI device with virtio
    tree.sys(f"{PCI}7.0/hwmon/hwmon1/temp1_input", "1000\n")
    for other in (disk, scsi_disk(tree), virtio_disk(tree)):
        assert temperatures(other) == []


@pytest.mark.parametrize("state", ["resetting", "connecting", "dead", ""])
def test_a_disk_that_is_not_in_order_is_not_asked(tree: Tree, state: str) -> None:
    disk = nvme_disk(tree)
    nvme_sensor(tree, disk.parent / "hwmon0")
    (sensor,) = find_sensors(disk)
    tree.attributes(disk.parent, state=state)
    assert read_temperature(sensor) is None


def test_it_is_read_seldom(tree: Tree) -> None:
    disk = nvme_disk(tree)
    place = nvme_sensor(tree, disk.parent / "hwmon0")
    (sensor,) = find_sensors(disk)
    temperatures = Temperatures()
    assert temperatures.now(sensor, 5.0) == Temperature(45.85, 81.85)
    tree.attributes(place, temp1_input="70000")
    assert temperatures.now(sensor, 4.9 + NVME_INTERVAL_S) == Temperature(45.85, 81.85)
    assert temperatures.now(sensor, 5.0 + NVME_INTERVAL_S) == Temperature(70.0, 81.85)
    (place / "temp1_input").unlink()
    assert temperatures.now(sensor, 5.0 + 2 * NVME_INTERVAL_S) is None
