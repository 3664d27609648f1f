"""Conditions around the measurement of devices and CPUs: limits, health, settings, clock
frequencies and the deepest idle states allowed.

Sources: Documentation/admin-guide/pm/cpufreq.rst, Documentation/admin-guide/pm/cpuidle.rst.

Missing, unreadable or garbage values are ``None`` or empty. The paths of a device's files are found
once, and looked up again in turn, one device per reading. So a reading of 10 disks in a group five
levels deep and 64 CPUs takes 2 ms of CPU time, the first one 20."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from iopstui.linux.counters.cgroup import read_cpu_limits
from iopstui.linux.counters.io_limits import CgroupLimits, IoLimits
from iopstui.linux.devices.health import (
    LinkFiles,
    Sensor,
    Temperatures,
    find_link,
    find_sensors,
    paths_of,
    read_array,
    read_errors,
    read_ext4_errors,
    read_link,
    read_lost_paths,
    read_offline,
    read_pool_state,
    read_queue_depth,
)
from iopstui.linux.kernel_files import Roots, decode, list_names, read_count, read_int, read_text
from iopstui.linux.machine.topology import online_cpus, read_nodes
from iopstui.linux.nvme.health import read_nvme_counters
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.conditions import (
    POOL_UNREADABLE,
    Conditions,
    CpuState,
    DeviceState,
    Link,
    LoggedErrors,
    Temperature,
)
from iopstui.text import printable

MAX_CPUS = 64
# governors and C-states are settings: each CPU's are read again only once in this many readings
CPU_GROUPS = 4
_GOVERNOR = re.compile(r"[a-z][a-z0-9_-]{0,30}")
_STATE = re.compile(r"state[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class _Files:
    """Files of one CPU. ``sleeps`` are its C-states: for each, the time to leave it, and the file
    that says whether it is disabled."""

    governor: str
    khz: str
    khz_most: int | None
    sleeps: tuple[tuple[int, str], ...]


def parse_governor(text: str) -> str | None:
    """Check the text of scaling_governor, such as "powersave"."""
    text = text.strip()
    return text if _GOVERNOR.fullmatch(text) else None


class CpuStates:
    """Reads CPU states repeatedly, for at most ``most`` CPUs; their files are looked up once."""

    def __init__(self, roots: Roots, most: int = MAX_CPUS) -> None:
        self._base = roots.sys / "devices/system/cpu"
        self._max_cpus = most
        self._files: dict[int, _Files] = {}
        self._settings: dict[int, tuple[str | None, int | None]] = {}
        self._group = 0

    def forget(self) -> None:
        """Look up the files again, because other CPUs are online now."""
        self._files, self._settings = {}, {}

    def read(self, cpus: Sequence[int]) -> Mapping[int, CpuState]:
        """The states of the first ``most`` of these CPUs. Frequencies are read each time."""
        self._group = (self._group + 1) % CPU_GROUPS
        states: dict[int, CpuState] = {}
        for place, cpu in enumerate(cpus[: self._max_cpus]):
            files = self._files.get(cpu)
            if files is None:
                files = self._files[cpu] = self._find(cpu)
            last = self._settings.get(cpu)
            if last is None or place % CPU_GROUPS == self._group:
                last = parse_governor(read_text(files.governor) or ""), _wake(files)
                self._settings[cpu] = last
            governor, wake_us = last
            khz = read_count(files.khz) or None
            states[cpu] = CpuState(governor, khz, files.khz_most, wake_us)
        return states

    def _find(self, cpu: int) -> _Files:
        clock, idle = self._base / f"cpu{cpu}/cpufreq", self._base / f"cpu{cpu}/cpuidle"
        sleeps = []
        for name in list_names(idle):
            latency = read_count(idle / name / "latency") if _STATE.fullmatch(name) else None
            if latency is not None:
                sleeps.append((latency, str(idle / name / "disable")))
        return _Files(
            governor=str(clock / "scaling_governor"),
            khz=str(clock / "scaling_cur_freq"),
            khz_most=read_count(clock / "cpuinfo_max_freq") or None,
            sleeps=tuple(sorted(sleeps, reverse=True)),
        )


def _wake(files: _Files) -> int | None:
    """The wake-up time (µs) of the deepest C-state that is not disabled; shallower ones are not
    read."""
    return next((latency for latency, off in files.sleeps if not read_count(off)), None)


Devices = Mapping[str, BlockDevice]


@dataclass(frozen=True, slots=True)
class _DeviceFiles:
    """Files of a device: those in its own directory, and those of its links and sensors (of all
    paths, if it has several)."""

    device: BlockDevice
    directory: str
    links: tuple[LinkFiles, ...]
    sensors: tuple[Sensor, ...]


class ConditionsFiles:
    """Reads the conditions repeatedly, for at most MAX_CPUS. Not thread-safe."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._limits = IoLimits(roots)
        self._temperatures = Temperatures()
        self._states = CpuStates(roots)
        self._online: tuple[int, ...] | None = None
        self._nodes: Mapping[int, int] = {}
        self._files: dict[str, _DeviceFiles] = {}
        self._readings = 0
        self._stopped_us: Mapping[str, int] = {}
        self._log = KernelLog(roots.dev / "kmsg")

    def read(
        self, devices: Devices, names: Sequence[str], t: float, cpus: Sequence[int] = ()
    ) -> Conditions:
        """Read the conditions of these devices and CPUs (if none are given: all that are online).
        ``t`` is in seconds. Never fails, but may block until a disk reports its temperature."""
        states, nodes = self._cpus(cpus)
        logged = self._log.errors(t)
        return Conditions(t, self._devices(devices, names, t), states, nodes, logged=logged,
                          cpu_limit=self._cpu_limit())  # fmt: skip

    def _cpu_limit(self) -> str:
        """The file of the limit that has stopped this process most since the last reading."""
        before, self._stopped_us = self._stopped_us, read_cpu_limits(self._roots)
        grown = {file: us - before.get(file, us) for file, us in self._stopped_us.items()}
        most = max(grown, key=lambda file: grown[file], default="")
        return most if grown.get(most) else ""

    def close(self) -> None:
        """Close the kernel's log. Nothing can be read afterwards."""
        self._log.close()

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
            passes_iocost=groups.in_top,
            temperature=self._temperature(place.sensors, t),
            link=_link(place.links),
            errors=errors,
            timeouts=timeouts,
            array=read_array(place.directory) if md else None,
            lost_paths=read_lost_paths(device, self._roots),
            paths=len(paths_of(device)),
            suspended=device.kind == "dm" and read_int(f"{place.directory}/dm/suspended") == 1,
            pool=self._pool_state(device),
            offline=read_offline(place.directory) if scsi else "",
            detached=device.backing_file is not None
            and read_text(f"{place.directory}/loop/backing_file") is None,
            nvme=read_nvme_counters(self._roots, device),
            file_system=read_ext4_errors(device, self._roots, time.time()),
        )

    def _pool_state(self, device: BlockDevice) -> str:
        """As of ``DeviceState``. Who may not ask device-mapper knows a pool by LVM's name; a device
        made with dmsetup alone may be one if the machine has any."""
        if not device.dm_name or not any(name.startswith("dm-") for name in device.holders):
            return ""
        state = read_pool_state(device.dm_name, self._roots)
        if state != POOL_UNREADABLE or device.dm_name.endswith("-tpool"):
            return state
        users = read_int(self._roots.sys / "module/dm_thin_pool/refcnt") or 0
        return state if users and device.layer == "device-mapper" else ""

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
        """The sysfs directories of the device's hardware; for an NVMe head, those of its paths."""
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


# Errors of disks in the kernel's log (Documentation/ABI/testing/dev-kmsg). Many I/Os, such as
# writes from the page cache, fail without telling a program.


MAX_RECORDS = 1000
"""Most records per reading; the kernel itself limits the rate of its messages."""
_RECORD_BYTES = 8192
_KERNEL_BELOW = 8
"""Messages below this priority have facility 0 (the kernel), at any level: programs may write to
the log, too."""
_NAME = r"([\w!./-]{1,32})"
_PATTERNS = (
    # texts from block/blk-core.c; an unsupported command is tried once and is no error
    rf"(?<!operation not supported) error, dev {_NAME}, sector \d+"
    r"(?!.*:\((?:DISCARD|SECURE_ERASE|WRITE_ZEROES)\))",
    rf"Buffer I/O error on dev(?:ice)? {_NAME}, logical block",
    rf"EXT4-fs error \(device {_NAME}\)",
    rf"EXT4-fs \({_NAME}\): Remounting filesystem read-only",
    rf"XFS \({_NAME}\): .*(?:I/O error|error -5|[Ss]hut(?:ting)? down|Corruption)",
    rf"BTRFS (?:error|critical) \(device {_NAME}\).*(?:I/?O|errs)",
)  # fmt: skip
_ERROR = re.compile("|".join(_PATTERNS))


def disk_of_error(message: str) -> str:
    """The device whose error a line of the log reports; "" if it reports no disk's error."""
    found = _ERROR.search(message)
    return next(filter(None, found.groups()), "") if found is not None else ""


class KernelLog:
    """Counts the disk errors in the kernel's log from now on. On most machines only root, or
    CAP_SYSLOG, may read the log."""

    def __init__(self, path: Path) -> None:
        self._errors: dict[str, LoggedErrors] = {}
        self._file: FileIO | None = None
        with contextlib.suppress(OSError):
            self._file = FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            self._file.seek(0, os.SEEK_END)

    def errors(self, t: float) -> Mapping[str, LoggedErrors] | None:
        """The errors of each device so far; ``t`` is the session's clock. ``None``: the log can't
        be read."""
        if self._file is None:
            return None
        for _ in range(MAX_RECORDS):
            try:
                record = self._file.read(_RECORD_BYTES)
            except BrokenPipeError:  # records were overwritten before they were read
                continue
            except OSError:
                break
            if not record:
                break
            self._add(decode(record), t)
        return dict(self._errors)

    def _add(self, record: str, t: float) -> None:
        # "6,339,5140900,-;message\n SUBSYSTEM=block\n": facility and level, number, microseconds
        priority, _, rest = record.partition(",")
        message = printable(rest.partition(";")[2].partition("\n")[0])
        if priority.isdecimal() and int(priority) < _KERNEL_BELOW:
            name = disk_of_error(message)
            if name:
                before = self._errors.get(name)
                self._errors[name] = LoggedErrors((before.count if before else 0) + 1, t, message)

    def close(self) -> None:
        """Close the log. It can't be read afterwards."""
        if self._file is not None:
            self._file.close()
            self._file = None
