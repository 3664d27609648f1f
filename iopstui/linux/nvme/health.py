"""The NVMe controllers below a target, and the health and error counters of each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.devices.health import paths_of, read_temperature, sensors_near
from iopstui.linux.kernel_files import Roots, list_names, read_count, read_text
from iopstui.linux.nvme import admin
from iopstui.linux.nvme.admin import DriveUnreadable
from iopstui.model.block.device import BlockDevice
from iopstui.model.metrics.nvme import NVME_COUNTERS, counter_name

_CONTROLLER = re.compile(r"nvme[0-9]{1,9}")
LIVE = "live"


@dataclass(frozen=True, slots=True)
class _Abilities:
    """Optional features of a controller."""

    ocp: bool
    group: int
    capacity: int | None
    placement: bool = False
    limits_mw: tuple[int | None, ...] = ()
    """The maximum power of each power state in mW (``None``: not stated)."""


def controllers_of(roots: Roots, device: BlockDevice) -> tuple[str, ...]:
    """The controllers of an NVMe namespace ("nvme0"); several if it has several paths."""
    if device.kind != "nvme":
        return ()
    names = (_controller(roots, name) for name in paths_of(device) or (device.name,))
    return tuple(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True, slots=True)
class Drive:
    """A drive that can be read: the number of one ``namespace`` on it, and the names of its
    disks."""

    namespace: int
    devices: tuple[str, ...]


def drives_of(
    roots: Roots, devices: Mapping[str, BlockDevice], names: Sequence[str]
) -> dict[str, Drive]:
    """The drives under these devices, by the name of the first live controller. The controllers of
    one drive share its counters."""
    drives: dict[str, Drive] = {}
    for name in names:
        device = devices.get(name)
        device = devices.get(device.disk or "", device) if device else None
        if device is None or device.hidden:
            continue
        for controller in controllers_of(roots, device):
            if controller_state(roots, controller) == LIVE:
                number = read_count(f"{roots.sys}/class/block/{device.name}/nsid") or 1
                drive = drives.get(controller, Drive(number, ()))
                disks = dict.fromkeys((*drive.devices, device.name))
                drives[controller] = Drive(drive.namespace, tuple(disks))
                break
    return drives


def controller_state(roots: Roots, controller: str) -> str | None:
    """The state of a controller: "live", "connecting" ...; ``None`` if unknown."""
    return read_text(f"{roots.sys}/class/nvme/{controller}/state")


def _controller(roots: Roots, disk: str) -> str | None:
    name = os.path.basename(os.path.realpath(roots.sys / "class/block" / disk / "device"))
    return name if _CONTROLLER.fullmatch(name) else None


def unprivileged_counters(roots: Roots, controller: str) -> dict[str, int]:
    """The drive's figures that any user may read, named as in SMART: only ``kelvin``, from the
    kernel's temperature sensor."""
    for sensor in sensors_near(roots.sys / "class/nvme" / controller):
        temperature = read_temperature(sensor)
        if temperature is not None:
            # the kernel subtracts 273.15 from SMART's whole kelvins
            return {"kelvin": round(temperature.current + 273.15)}
    return {}


class DriveHealth:
    """Reads health counters repeatedly, and each drive's features once. Not thread-safe."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._abilities: dict[str, _Abilities] = {}

    def read(self, controller: str, namespace: int = 1) -> dict[str, int]:
        """The counters of SMART, of OCP's page and of the endurance group if the drive has them
        (linux/nvme/admin.py), and its ``capacity`` in bytes if it reports that. Raises
        DriveUnreadable. Blocks until the drive answers."""
        if controller_state(self._roots, controller) != LIVE:
            raise DriveUnreadable(f"{controller} is not live, so it is not asked for its figures.")
        with admin.open_controller(Path(self._roots.dev) / controller) as fd:
            counters = admin.parse_smart(admin.log_page(fd, admin.SMART, admin.PAGE))
            abilities = self._abilities.get(controller)
            if abilities is None:
                abilities = self._abilities[controller] = _abilities(fd, namespace)
            if abilities.ocp:
                counters |= _read_or_empty(
                    lambda: admin.parse_ocp(admin.log_page(fd, admin.OCP_SMART, admin.PAGE))
                )
            if abilities.group:
                group = abilities.group
                counters |= _read_or_empty(lambda: admin.parse_endurance(
                    admin.log_page(fd, admin.ENDURANCE, admin.PAGE, specific=group)
                ))  # fmt: skip
            if abilities.placement:
                counters |= _read_or_empty(lambda: admin.parse_placement(
                    admin.log_page(fd, admin.PLACEMENT_STATISTICS, 64, specific=abilities.group)
                ))  # fmt: skip
            counters |= _read_or_empty(lambda: _power(fd, abilities.limits_mw))
        return (
            counters if abilities.capacity is None else {**counters, "capacity": abilities.capacity}
        )


def supports(fd: int, controller: admin.Controller, page: int) -> bool:
    """Whether the drive lists this log page. If it lists no pages, the answer is no: requesting an
    unknown page would add an error to its log."""
    if not controller.lists_pages:
        return False
    try:
        return page in admin.parse_supported(admin.log_page(fd, admin.SUPPORTED_PAGES, 1024))
    except DriveUnreadable:
        return False


def _abilities(fd: int, namespace: int) -> _Abilities:
    try:
        controller = admin.parse_controller(admin.identify(fd, admin.CONTROLLER))
        group = 0
        if controller.endurance_groups:
            group = admin.parse_namespace(admin.identify(fd, admin.NAMESPACE, namespace)).group
    except DriveUnreadable:
        return _Abilities(False, 0, None)
    return _Abilities(
        supports(fd, controller, admin.OCP_SMART),
        group,
        controller.capacity,
        bool(group) and controller.placement and placement_enabled(fd, group),
        tuple(
            None if state.watts is None else round(1000 * state.watts)
            for state in controller.states
        ),
    )


def placement_enabled(fd: int, group: int) -> bool:
    """Whether flexible data placement is on: if it is off, requesting its statistics would add an
    error to the drive's log."""
    try:
        return bool(admin.feature(fd, admin.PLACEMENT, specific=group)[0] & 1)
    except DriveUnreadable:
        return False


def _power(fd: int, limits_mw: Sequence[int | None]) -> dict[str, int]:
    """The current power state, and its maximum power if the drive reports that."""
    if not limits_mw:
        return {}
    state = admin.feature(fd, admin.POWER_STATE)[0] & 31
    limit = limits_mw[state] if state < len(limits_mw) else None
    return {"power_state": state, **({} if limit is None else {"power_limit_mw": limit})}


def _read_or_empty(read: Callable[[], dict[str, int]]) -> dict[str, int]:
    with suppress(DriveUnreadable):
        return read()
    return {}


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
    """A function that reads the counters of all these disks, by the names of model/metrics/nvme.py;
    ``None`` if there are none."""
    disks = [device for device in devices if device.kind == "nvme" and not device.hidden]

    def read() -> dict[str, int] | None:
        objects: dict[str, Mapping[str, int]] = {}
        for disk in disks:
            objects |= read_nvme_counters(roots, disk)
        return {counter_name(file, name): value for name, values in objects.items()
                for file, value in values.items()} or None  # fmt: skip

    return read
