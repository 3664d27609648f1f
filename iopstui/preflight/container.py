"""What a container shows of its host, and what to mount for the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from iopstui.linux.counters.cgroup import unified_root
from iopstui.linux.counters.procfs import parse_diskstats
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import list_names, read_bytes, read_text

_FIRST_PID = "pid:[4026531836]"
_FIRST_CGROUP = "cgroup:[4026531835]"
"""The namespaces of the machine itself (PROC_PID_INIT_INO, PROC_CGROUP_INIT_INO)."""


@dataclass(frozen=True, slots=True)
class ContainerView:
    """What a container shows of its host: the disks in /proc/diskstats, the devices in /sys, how
    many of these have a node in /dev, and whether the host's programs and cgroups are visible."""

    kind: str
    disk_count: int
    device_count: int
    node_count: int
    sees_programs: bool
    sees_cgroups: bool

    def missing_features(self) -> Iterator[tuple[str, str]]:
        """Yield (what is not shown, what to mount or set) for each missing part."""
        if self.disk_count > self.device_count:
            yield "disks' queues, models and layers, watch and live of a disk", "-v /sys:/sys:ro"
        if self.node_count < self.device_count:
            yield "jobs on block devices", "--device=/dev/NAME (or -v /dev:/dev --privileged)"
        if not self.sees_programs:
            yield "other programs by name", "--pid=host"
        if not self.sees_cgroups:
            yield "other containers' cgroups", "--cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:ro"

    def summary(self) -> str:
        """What is visible."""
        programs = "the host's programs" if self.sees_programs else "only its own programs"
        groups = "the host's cgroups" if self.sees_cgroups else "only its own cgroup"
        return (
            f"{self.kind}: {self.disk_count} disks in /proc/diskstats, {self.device_count} devices "
            f"in /sys, {self.node_count} of them in /dev; {programs} and {groups}"
        )


def inspect_container(roots: Roots) -> ContainerView | None:
    """Return what a container shows of its host; ``None`` on the host itself."""
    pids, groups = (_namespace(roots, name) for name in ("pid", "cgroup"))
    devices = read_devices(roots)
    disk_count = len(_active_disks(roots))
    if pids in ("", _FIRST_PID) and groups in ("", _FIRST_CGROUP) and (devices or not disk_count):
        return None
    nodes = [device for device in devices.values() if not device.hidden and device.size]
    device_count = len(nodes)
    return ContainerView(
        _kind(roots),
        disk_count,
        device_count,
        sum(os.path.exists(node.path) for node in nodes),
        pids in ("", _FIRST_PID),
        groups in ("", _FIRST_CGROUP) and bool(list_names(unified_root(roots.sys / "fs/cgroup"))),
    )


def _active_disks(roots: Roots) -> list[str]:
    """Devices that have done I/O, of those that the kernel counts."""
    stats = parse_diskstats(read_bytes(roots.proc / "diskstats") or b"")
    return [name for name, disk in stats.items() if disk.reads or disk.writes]


def _namespace(roots: Roots, name: str) -> str:
    try:
        return os.readlink(roots.proc / "self/ns" / name)
    except OSError:
        return ""


def _kind(roots: Roots) -> str:
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes container"
    runtime = os.environ.get("container") or ""  # noqa: SIM112 (systemd names it so)
    if (roots.run / ".containerenv").exists() or runtime == "podman":
        return "Podman container"
    if (roots.dev.parent / ".dockerenv").exists():
        return "Docker container"
    systemd = (read_text(roots.run / "systemd/container") or runtime).strip()
    return f"{systemd} container" if systemd.isalnum() else "container"
