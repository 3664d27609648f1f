"""Counters of errors and recovery that new kernels keep for NVMe objects, in their directory diag.
Written from the kernel patches of 2026, without a kernel that has the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from iopstui.linux.devices.health import paths_of
from iopstui.linux.nvme.health import controllers_of
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import list_names, read_count
from iopstui.model.block.device import BlockDevice
from iopstui.model.metrics.nvme import NVME_COUNTERS, counter_name


def read_nvme_counters(roots: Roots, device: BlockDevice) -> dict[str, Mapping[str, int]]:
    """The counters of an NVMe namespace, of its paths and of its controllers, by object ("nvme0")
    and file; files that this kernel lacks are left out."""
    if device.kind != "nvme":
        return {}
    disks = (device.name, *paths_of(device))
    places = {name: f"{roots.sys}/class/block/{name}/diag" for name in disks}
    places |= {
        name: f"{roots.sys}/class/nvme/{name}/diag" for name in controllers_of(roots, device)
    }
    counters: dict[str, Mapping[str, int]] = {}
    for name, directory in places.items():
        files = [file for file in list_names(directory) if file in NVME_COUNTERS]
        values = {file: read_count(f"{directory}/{file}") for file in files}
        known = {file: value for file, value in values.items() if value is not None}
        if known:
            counters[name] = known
    return counters


def counter_reader(
    roots: Roots, devices: Iterable[BlockDevice]
) -> Callable[[], dict[str, int] | None]:
    """A function that reads the counters of all these, by the names of model/metrics/nvme.py;
    ``None`` if there are none."""
    disks = [device for device in devices if device.kind == "nvme" and not device.hidden]

    def read() -> dict[str, int] | None:
        objects: dict[str, Mapping[str, int]] = {}
        for disk in disks:
            objects |= read_nvme_counters(roots, disk)
        return {counter_name(file, name): value for name, values in objects.items()
                for file, value in values.items()} or None  # fmt: skip

    return read
