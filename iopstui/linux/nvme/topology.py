"""An NVMe namespace with its paths, controllers and queues, and what the drive reports about
itself.

Sources: drivers/nvme/host/sysfs.c and multipath.c (attributes), block/blk-mq-debugfs.c (types of
queues). All but ``DriveFacts`` can be read by any user."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from iopstui.linux.counters.procfs import parse_diskstats
from iopstui.linux.devices.health import paths_of
from iopstui.linux.kernel_files import Roots, read_bytes, read_count, read_text
from iopstui.linux.nvme import admin
from iopstui.linux.nvme.admin import DriveUnreadable
from iopstui.linux.nvme.health import LIVE, controller_state, controllers_of, placement_enabled
from iopstui.model.block.device import BlockDevice
from iopstui.model.samples import DiskCounters
from iopstui.text import printable

NEWEST_ERRORS = 16
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ControllerLink:
    """A controller as the kernel sees it. ``queues`` is the number of I/O queues, ``depth`` the
    length of each, ``address`` a PCI address or a remote one. The times of a fabric are in seconds
    (``None``: not a fabric, or off)."""

    name: str
    state: str | None
    transport: str | None
    address: str | None
    queues: int | None
    depth: int | None
    node: int | None
    keep_alive_s: int | None = None
    reconnect_delay_s: int | None = None
    loss_timeout_s: int | None = None


@dataclass(frozen=True, slots=True)
class NvmePath:
    """A path to the namespace, with its own block device if there are several. ``ana`` is its
    asymmetric access state. ``queue_types`` has the type of each queue by its number ("default",
    "read", "poll"; root only)."""

    name: str
    controller: ControllerLink
    ana: str | None
    queue_types: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DriveFacts:
    """Facts about a controller that only root can read; ``placement`` says whether flexible data
    placement is on (``None``: the drive has none), ``problems`` are sentences on what could not be
    read."""

    health: Mapping[str, int] = field(default_factory=dict)
    controller: admin.Controller | None = None
    namespace: admin.Namespace | None = None
    power_state: int | None = None
    transitions: tuple[tuple[int, int, int], ...] | None = None
    host_memory: int | None = None
    placement: bool | None = None
    firmware: admin.Firmware | None = None
    errors: tuple[admin.ErrorEntry, ...] | None = None
    self_test: admin.SelfTest | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NamespaceTopology:
    """A namespace and all paths to it. ``multipath`` says whether the kernel combines paths itself,
    ``policy`` how it chooses one of them."""

    name: str
    number: int | None
    subsystem: str | None
    multipath: bool | None
    policy: str | None
    paths: tuple[NvmePath, ...]
    poll_queues: int | None
    write_queues: int | None


def read_namespace_topology(roots: Roots, device: BlockDevice) -> NamespaceTopology:
    """Read the topology of an NVMe namespace (not a partition). What cannot be read is ``None`` or
    empty."""
    block = roots.sys / "class/block" / device.name
    names = paths_of(device) or (device.name,)
    paths = tuple(path for name in names for path in _paths(roots, name))
    modules = roots.sys / "module"
    multipath = read_text(modules / "nvme_core/parameters/multipath")
    subsystem = _subsystem(roots, paths[0].controller.name) if paths else None
    return NamespaceTopology(
        name=device.name,
        number=read_count(block / "nsid"),
        subsystem=_word(read_text(subsystem / "subsysnqn")) if subsystem else None,
        multipath=None if multipath is None else multipath in ("Y", "1"),
        policy=_word(read_text(subsystem / "iopolicy")) if subsystem else None,
        paths=paths,
        poll_queues=read_count(modules / "nvme/parameters/poll_queues"),
        write_queues=read_count(modules / "nvme/parameters/write_queues"),
    )


def _paths(roots: Roots, disk: str) -> list[NvmePath]:
    block = roots.sys / "class/block" / disk
    name = os.path.basename(os.path.realpath(block / "device"))
    directory = roots.sys / "class/nvme" / name
    if not directory.is_dir():
        return []
    ana = _word(read_text(block / "ana_state"))
    return [NvmePath(disk, _controller(directory), ana, _queue_types(roots, disk))]


def _controller(directory: Path) -> ControllerLink:
    queues, depth = read_count(directory / "queue_count"), read_count(directory / "sqsize")
    return ControllerLink(
        name=directory.name,
        state=_word(read_text(directory / "state")),
        transport=_word(read_text(directory / "transport")),
        address=_word(read_text(directory / "address")),
        # the kernel's number includes the admin queue, and its queue length is counted from 0
        queues=None if not queues else queues - 1,
        depth=None if depth is None else depth + 1,
        node=read_count(directory / "numa_node"),
        keep_alive_s=read_count(directory / "kato") or None,
        reconnect_delay_s=read_count(directory / "reconnect_delay"),
        loss_timeout_s=read_count(directory / "ctrl_loss_tmo"),
    )


def _queue_types(roots: Roots, disk: str) -> dict[int, str]:
    top = roots.sys / "kernel/debug/block" / disk
    types = {}
    try:
        names = [name for name in os.listdir(top) if name.startswith("hctx")]
    except OSError:
        return {}
    for name in names:
        kind = _word(read_text(top / name / "type"))
        if kind and name[4:].isdecimal():
            types[int(name[4:])] = kind
    return dict(sorted(types.items()))


def _subsystem(roots: Roots, controller: str) -> Path | None:
    top = roots.sys / "class/nvme-subsystem"
    try:
        matches = [top / name for name in os.listdir(top) if (top / name / controller).exists()]
    except OSError:
        return None
    return matches[0] if matches else None


def _word(text: str | None) -> str | None:
    return printable(text) if text else None


def read_drive_facts(roots: Roots, device: BlockDevice, number: int) -> DriveFacts:
    """Read facts about the first live controller of the namespace ``device``, whose number is
    given. Never fails."""
    live = [c for c in controllers_of(roots, device) if controller_state(roots, c) == LIVE]
    if not live:
        return DriveFacts(problems=("No controller of this namespace is live.",))
    with ExitStack() as stack:
        try:
            fd = stack.enter_context(admin.open_controller(Path(roots.dev) / live[0]))
            health = admin.parse_smart(admin.log_page(fd, admin.SMART, admin.PAGE))
        except DriveUnreadable as error:
            return DriveFacts(problems=(str(error),))
        return _facts(fd, number, health)


def _facts(fd: int, number: int, health: dict[str, int]) -> DriveFacts:
    problems: list[str] = []

    def get(read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except DriveUnreadable as error:
            problems.append(str(error))
            return None

    controller = get(lambda: admin.parse_controller(admin.identify(fd, admin.CONTROLLER)))
    # features that the drive lacks are not requested: each refusal would add an error to its log
    tests = controller is not None and controller.self_test
    sleeps = controller is not None and controller.autonomous_power
    borrows = controller is not None and controller.host_memory > 0
    space = get(lambda: admin.parse_namespace(admin.identify(fd, admin.NAMESPACE, number)))
    places = controller is not None and controller.placement and space is not None and space.group
    size = NEWEST_ERRORS * admin.ERROR_ENTRY
    if controller is not None:
        size = min(NEWEST_ERRORS, controller.error_entries) * admin.ERROR_ENTRY
    return DriveFacts(
        health=health,
        controller=controller,
        namespace=space,
        power_state=get(lambda: admin.feature(fd, admin.POWER_STATE)[0] & 31),
        transitions=get(lambda: _transitions(fd)) if sleeps else None,
        host_memory=get(lambda: _host_memory(fd)) if borrows else None,
        placement=get(lambda: placement_enabled(fd, places)) if places else None,
        firmware=get(lambda: admin.parse_firmware(
            admin.log_page(fd, admin.FIRMWARE, admin.PAGE))),
        errors=get(lambda: admin.parse_errors(admin.log_page(fd, admin.ERRORS, size))),
        self_test=get(lambda: admin.parse_self_test(
            admin.log_page(fd, admin.SELF_TEST, 564))) if tests else None,
        problems=tuple(dict.fromkeys(problems)),
    )  # fmt: skip


def _transitions(fd: int) -> tuple[tuple[int, int, int], ...]:
    enabled, table = admin.feature(fd, admin.AUTONOMOUS_POWER, 256)
    return admin.parse_transitions(table) if enabled & 1 else ()


def _host_memory(fd: int) -> int:
    """Bytes of host memory that the drive uses; 0 if off."""
    enabled, data = admin.feature(fd, admin.HOST_MEMORY, 4096)
    return int.from_bytes(data[:4], "little") * 4096 if enabled & 1 else 0


def read_path_counters(roots: Roots, names: Sequence[str]) -> dict[str, DiskCounters]:
    """The rows of /proc/diskstats of these devices; hidden paths have such a row, too."""
    return parse_diskstats(read_bytes(roots.proc / "diskstats") or b"", names)
