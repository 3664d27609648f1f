"""Conditions around the measurement of devices and CPUs: limits, health, settings.

Whatever is missing, unreadable or garbage is ``None`` or empty. Where the files of a device are is
found once, and looked up again in turns: one device with each reading. So a reading of 10 disks in
a group five levels deep and 64 CPUs takes 2 ms of CPU time, the first one 20.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iopstui.linux.counters.io_limits import CgroupLimits, IoLimits
from iopstui.linux.devices.health.driver_health import (
    paths_of,
    read_array,
    read_errors,
    read_lost_paths,
    read_queue_depth,
)
from iopstui.linux.devices.health.pcie import LinkFiles, find_link, read_link
from iopstui.linux.devices.health.temperature import Sensor, Temperatures, find_sensors
from iopstui.linux.machine.cpu_state import MAX_CPUS, CpuStates
from iopstui.linux.machine.topology import online_cpus, read_nodes
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_int
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.conditions import (
    Conditions,
    CpuState,
    DeviceState,
    Link,
    Temperature,
)

Devices = Mapping[str, BlockDevice]


@dataclass(frozen=True, slots=True)
class _DeviceFiles:
    """Files of a device: in its own directory, and in those of its links and sensors (of all paths,
    if it has several)."""

    device: BlockDevice
    directory: str
    links: tuple[LinkFiles, ...]
    sensors: tuple[Sensor, ...]


class ConditionsFiles:
    """Reads the conditions repeatedly, for at most ``most`` CPUs. Not thread-safe."""

    def __init__(self, roots: Roots, most: int = MAX_CPUS) -> None:
        self._roots = roots
        self._limits = IoLimits(roots)
        self._temperatures = Temperatures()
        self._states = CpuStates(roots, most)
        self._online: tuple[int, ...] | None = None
        self._nodes: Mapping[int, int] = {}
        self._files: dict[str, _DeviceFiles] = {}
        self._readings = 0

    def read(
        self, devices: Devices, names: Sequence[str], t: float, cpus: Sequence[int] = ()
    ) -> Conditions:
        """Read the conditions of these devices and CPUs (none given: all that are online). ``t`` is
        seconds. Never fails, but lasts as long as a disk takes to tell its temperature."""
        states, nodes = self._cpus(cpus)
        return Conditions(t, self._devices(devices, names, t), states, nodes)

    def _cpus(self, cpus: Sequence[int]) -> tuple[Mapping[int, CpuState], Mapping[int, int]]:
        online = online_cpus(self._roots)
        if online != self._online:
            self._online, self._nodes = online, read_nodes(self._roots)
            self._states.forget()
        present = set(online or cpus)
        states = self._states.read([cpu for cpu in cpus if cpu in present] or online)
        return states, self._nodes

    def _devices(self, devices: Devices, names: Sequence[str], t: float) -> dict[str, DeviceState]:
        present = [name for name in dict.fromkeys(names) if name in devices]
        if present:
            self._files.pop(present[self._readings % len(present)], None)
            self._readings += 1
        limits = self._limits.read()
        disks: dict[str, DeviceState] = {}
        states: dict[str, DeviceState] = {}
        for name in present:
            disk = _disk_of(devices[name], devices)
            if disk.name not in disks:
                disks[disk.name] = self._disk(disk, limits, t)
            place = self._files_of(devices[name])
            states[name] = replace(
                disks[disk.name], alignment_offset=read_int(f"{place.directory}/alignment_offset")
            )
        return states

    def _disk(self, device: BlockDevice, groups: CgroupLimits, t: float) -> DeviceState:
        place = self._files_of(device)
        number = f"{device.major}:{device.minor}"
        scsi, md = device.kind == "scsi", device.kind == "md"
        errors, timeouts = read_errors(place.directory) if scsi else (None, None)
        return DeviceState(
            queue_depth=read_queue_depth(place.directory) if scsi else None,
            limits=groups.limits.get(number, ()),
            iocost_wait_us=groups.cost_wait_us.get(number),
            has_iocost=number in groups.iocost_disks,
            temperature=self._temperature(place.sensors, t),
            link=_link(place.links),
            errors=errors,
            timeouts=timeouts,
            array=read_array(place.directory) if md else None,
            lost_paths=read_lost_paths(device, self._roots),
            paths=len(paths_of(device)),
            suspended=device.kind == "dm" and read_int(f"{place.directory}/dm/suspended") == 1,
        )

    def _temperature(self, sensors: Sequence[Sensor], t: float) -> Temperature | None:
        temperatures = (self._temperatures.now(sensor, t) for sensor in sensors)
        return next((temperature for temperature in temperatures if temperature is not None), None)

    def _files_of(self, device: BlockDevice) -> _DeviceFiles:
        files = self._files.get(device.name)
        if files is None or files.device != device:
            directory = self._directory(device.name)
            hardware = tuple(self._hardware_directories(device, directory))
            files = self._files[device.name] = _DeviceFiles(
                device=device,
                directory=str(directory),
                links=tuple(dict.fromkeys(link for link in map(self._link_of, hardware) if link)),
                sensors=tuple(
                    sensor for directory in hardware for sensor in find_sensors(directory)
                ),
            )
        return files

    def _link_of(self, directory: Path) -> LinkFiles | None:
        return find_link(directory, self._roots)

    def _hardware_directories(self, device: BlockDevice, directory: Path) -> Iterator[Path]:
        """The directories whose hardware the device's is: an NVMe head has its paths' alone."""
        paths = paths_of(device) if device.kind == "nvme" else ()
        yield from map(self._directory, paths)
        if not paths:
            yield directory

    def _directory(self, name: str) -> Path:
        link = self._roots.sys / "class/block" / name.replace("/", "!")
        return Path(os.path.realpath(link))


def _disk_of(device: BlockDevice, devices: Devices) -> BlockDevice:
    return devices.get(device.disk or "", device)


def _link(links: Sequence[LinkFiles]) -> Link | None:
    read_links = (read_link(link) for link in links)
    return next((link for link in read_links if link is not None), None)
