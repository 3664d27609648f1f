"""`iopstui devices`: list the block devices."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui.cli.command import Command
from iopstui.cli.terminal import show, width
from iopstui.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from iopstui.linux.devices.smart import DiskHealth
    from iopstui.model.block.device import BlockDevice
    from iopstui.model.figures.disk import DiskRates
    from iopstui.output.pages.nvme import NamespaceReport


RATES_S = 1.0
"""How long the I/O on the paths of a namespace is measured."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", nargs="?", metavar="DEVICE",
                        help="only this device; for an NVMe drive also paths, queues, format, "
                             "power states and health, for a SATA or SAS disk "
                             "its health")  # fmt: skip
    parser.add_argument("--format", choices=("table", "json"), default="table",
                        help="output format (default: table)")  # fmt: skip
    parser.add_argument("--all", action="store_true", help="include empty and hidden devices")


def run(arguments: argparse.Namespace) -> int:
    import json

    from iopstui.linux.devices.sysfs import read_devices
    from iopstui.linux.kernel_files import Roots
    from iopstui.linux.machine.topology import online_cpus
    from iopstui.output.pages.devices import devices_json, devices_table

    devices = read_devices(Roots())
    if arguments.device is not None:
        return _show_device(arguments, devices)
    if arguments.format == "json":
        print(json.dumps(devices_json(devices, online_cpus(Roots())), indent=2))
    else:
        show(devices_table(devices, width(), all=arguments.all))
    return EXIT_OK


def _show_device(arguments: argparse.Namespace, devices: Mapping[str, BlockDevice]) -> int:
    import json
    from dataclasses import asdict

    from iopstui.linux.devices.zones import read_zones
    from iopstui.linux.kernel_files import Roots
    from iopstui.linux.machine.topology import online_cpus
    from iopstui.output.pages.devices import devices_json, devices_table, health_text, zones_text

    device = _find_device(arguments.device, devices)
    only = {device.name: device}
    detail = _namespace_report(device, devices)
    zones = read_zones(Roots(), devices.get(device.disk or "", device))
    health = _disk_health(device, devices)
    if arguments.format == "json":
        report = devices_json(only, online_cpus(Roots()))
        if detail is not None:
            report["nvme"] = detail.json()
        if zones is not None:
            report["zones"] = asdict(zones)
        if health is not None:
            report["smart"] = asdict(health)
        print(json.dumps(report, indent=2))
        return EXIT_OK
    text = devices_table(devices, width(), only=device.name)
    if zones is not None:
        text += "\n" + zones_text(zones, width())
    if health is not None:
        text += "\n" + health_text(health, width())
    show(text if detail is None else text + detail.text(devices, width()))
    return EXIT_OK


def _find_device(name: str, devices: Mapping[str, BlockDevice]) -> BlockDevice:
    import os

    from iopstui.linux.devices.aliases import namespaces_of_node
    from iopstui.linux.kernel_files import Roots
    from iopstui.linux.shares import require_answer
    from iopstui.text import printable

    if "/" in name and "\0" not in name:
        require_answer(Path.cwd() / name, Roots())
    real = os.path.realpath(name) if "/" in name else f"/dev/{name}"
    for device in devices.values():
        if real == device.path or name == device.name:
            return device
    namespaces = [
        namespace for namespace in namespaces_of_node(Roots(), real) if namespace in devices
    ]
    if len(namespaces) == 1:
        return devices[namespaces[0]]
    hint = "List: iopstui devices"
    if namespaces:
        hint = f"Name one of its namespaces: {', '.join(namespaces)}"
    raise UsageError(f"There is no block device {printable(name) or '(empty)'}.", hint)


def _disk_health(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> DiskHealth | None:
    """Health of a SATA or SAS disk; ``None`` for other disks."""
    from iopstui.linux.devices.smart import read_disk_health

    disk = devices.get(device.disk or "", device)
    if disk.kind != "scsi" or disk.transport in ("virtio", "iscsi", "usb"):
        return None
    return read_disk_health(disk.path)


def _namespace_report(
    device: BlockDevice, devices: Mapping[str, BlockDevice]
) -> NamespaceReport | None:
    from iopstui.linux.kernel_files import Roots
    from iopstui.linux.nvme.topology import read_drive_facts, read_namespace_topology
    from iopstui.output.pages.nvme import NamespaceReport

    disk = devices.get(device.disk or "", device)
    if disk.kind != "nvme":
        return None
    topology = read_namespace_topology(Roots(), disk)
    facts = read_drive_facts(Roots(), disk, topology.number or 1)
    # the figures of a single path are those of the device itself, which `watch` shows
    names = [path.name for path in topology.paths] if len(topology.paths) > 1 else []
    return NamespaceReport(topology, facts, _measure_rates(names))


def _measure_rates(names: list[str]) -> dict[str, DiskRates]:
    """Measure the rates of these devices for one second; empty without devices."""
    import time

    from iopstui.linux.kernel_files import Roots
    from iopstui.linux.nvme.topology import read_path_counters
    from iopstui.model.figures.disk import disk_rates

    if not names:
        return {}
    before, began = read_path_counters(Roots(), names), time.monotonic()
    time.sleep(RATES_S)
    after, seconds = read_path_counters(Roots(), names), time.monotonic() - began
    rates_by_device = {name: disk_rates(after[name], old, seconds) for name, old in before.items()
                       if name in after}  # fmt: skip
    return {name: rates for name, rates in rates_by_device.items() if rates is not None}


COMMAND = Command(
    "devices",
    80,
    "list block devices with queues, CPUs, IRQs and use",
    add_arguments,
    run,
    without_directory=True,
    needs_proc=True,
)
