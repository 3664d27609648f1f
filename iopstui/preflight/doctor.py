"""Check permissions and features of this machine, look for remains of a crash, and describe what a
container shows of its host."""

from __future__ import annotations

import errno
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from iopstui.discovery import feature_modules
from iopstui.errors import Missing
from iopstui.fio.fence import LANDLOCK, NAMESPACE, fence_kind
from iopstui.fio.fence_exec import landlock_abi
from iopstui.fio.inspect import find_fio
from iopstui.format import counted, first_of
from iopstui.linux.counters.cgroup import unified_root
from iopstui.linux.counters.energy import why_no_energy
from iopstui.linux.counters.procfs import parse_diskstats, parse_softirqs_block
from iopstui.linux.counters.smb_stats import why_incomplete
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.usage.mounts import read_own_mounts
from iopstui.linux.kernel_files import Roots, list_names, read_bytes, read_text
from iopstui.linux.probe.bpf import why_no_probe
from iopstui.linux.probe.bpf_probe import ProbeUnusable, loadable_parts
from iopstui.linux.process.limits import PERMISSION_ERRNOS, how_to_open, open_error
from iopstui.linux.shares import (
    ANSWER_TIMEOUT_S,
    find_hung_mount,
    find_hung_paths,
    how_to_unmount,
    is_network_mount,
    mount_text,
)
from iopstui.model.block.target import SMB
from iopstui.model.metrics.probe import PARTS, REFUSED
from iopstui.safety.leftovers import clean_up
from iopstui.safety.scratch import supports_direct
from iopstui.text import printable

_FIRST_PID = "pid:[4026531836]"
_FIRST_CGROUP = "cgroup:[4026531835]"
"""The machine's own namespaces, outside of any container (PROC_PID_INIT_INO,
PROC_CGROUP_INIT_INO)."""


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
        """Yield a pair for each missing part: its name, and what to mount or set."""
        if self.disk_count > self.device_count:
            yield "disks' queues, models and layers, watch and live of a disk", "-v /sys:/sys:ro"
        if self.node_count < self.device_count:
            yield "jobs on block devices", "--device=/dev/NAME (or -v /dev:/dev --privileged)"
        if not self.sees_programs:
            yield "other programs by name", "--pid=host"
        if not self.sees_cgroups:
            yield "other containers' cgroups", "--cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:ro"

    def summary(self) -> str:
        """What is visible, in words."""
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
    """The devices that have done I/O, by the kernel's counts."""
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


OK, LACKS, NEEDED = "ok", "lacks", "needed"
MAX_LISTED = 4
# errors of a drive without a medium, which say nothing about permissions
_NO_MEDIUM_ERRNOS = (errno.ENOMEDIUM, errno.ENXIO)
_ON_THE_HOST = "run the container with --privileged -v /sys:/sys, or run iopstui on the host"


@dataclass(frozen=True, slots=True)
class Check:
    """A line of the report. ``state`` is "ok", "lacks" (something is not shown without it) or
    "needed" (nothing can be measured without it); ``fix`` is the command that fixes it."""

    name: str
    state: str
    message: str
    fix: str = ""


def examine() -> list[Check]:
    """All checks, the most important first."""
    roots = Roots()
    checks: tuple[Callable[[Roots], Check | None], ...] = (
        _fio, _kernel, _container, _diskstats, _interrupts, _softirqs, _block_devices, _raw_reading,
        _tunables, _fence, _probe, _energy, _shares, _smb, _direct, _udev, _terminal, _left_over,
    )  # fmt: skip
    more = [module.check for module in feature_modules("doctor_check")]
    return [result for check in (*checks, *more) if (result := check(roots)) is not None]


def _fio(roots: Roots) -> Check:
    try:
        fio = find_fio()
    except Missing as error:
        return Check("fio", NEEDED, error.message, error.hint)
    if fio.version < (3, 16):
        return Check("fio", LACKS, f"{fio.banner} at {fio.path}: works; job runtimes, fsync "
                     "latencies and io_uring need 3.16", "Install a newer fio")  # fmt: skip
    return Check("fio", OK, f"{fio.banner} at {fio.path}")


def _kernel(roots: Roots) -> Check:
    version = f"Linux {platform.release()}, Python {platform.python_version()}"
    return Check("system", OK, version)


def _container(roots: Roots) -> Check | None:
    view = inspect_container(roots)
    if view is None:
        return None
    missing = list(view.missing_features())
    if not missing:
        return Check("container", OK, view.summary())
    features = "; ".join(feature for feature, _ in missing)
    return Check("container", LACKS, f"{view.summary()}. Not shown: {features}",
                 f"Start it with: {' '.join(option for _, option in missing)}")  # fmt: skip


def _readable(path: Path, name: str, figures: str, parse: Callable[[bytes], object]) -> Check:
    """Whether the file can be read and ``parse`` finds figures in it."""
    problem = ""
    try:
        data = path.read_bytes()
        if not parse(data):
            problem = "no line has the kernel's form" if data.strip() else "it is empty"
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        return Check(name, LACKS, f"{path}: {problem}; {figures} are not shown",
                     "In a container: run iopstui on the host")  # fmt: skip
    return Check(name, OK, f"{path} can be read")


def _diskstats(roots: Roots) -> Check:
    path = roots.proc / "diskstats"
    return _readable(path, "disk statistics", "the kernel's figures", parse_diskstats)


def _interrupts(roots: Roots) -> Check:
    path = roots.proc / "interrupts"
    return _readable(path, "interrupts", "interrupts per CPU", lambda data: b"CPU" in data[:4096])


def _softirqs(roots: Roots) -> Check:
    path = roots.proc / "softirqs"
    return _readable(path, "softirqs", "BLOCK softirqs per CPU", parse_softirqs_block)


def _block_devices(roots: Roots) -> Check:
    devices = read_devices(roots)
    count = len(devices)
    if not count:
        return Check("block devices", LACKS, f"{roots.sys}/class/block shows none",
                     "In a container: docker run -v /sys:/sys:ro ...")  # fmt: skip
    empty = sum(not device.size for device in devices.values())
    note = f", {empty} of them without a size (iopstui devices --all)" if empty else ""
    return Check("block devices", OK, f"{count} found{note}")


def _raw_reading(roots: Roots) -> Check | None:
    # hidden paths of NVMe multipath have no node
    disks = [d for d in read_devices(roots).values()
             if d.size and d.kind != "partition" and not d.hidden]  # fmt: skip
    if not disks:
        return None
    errors = {disk.path: error for disk in disks if (error := open_error(disk.path)) is not None}
    errors = {path: error for path, error in errors.items() if error.errno not in _NO_MEDIUM_ERRNOS}
    if not errors:
        return Check("raw reading", OK, "block devices can be opened")
    texts = [f"{path} ({error.strerror})" for path, error in errors.items()]
    text = f"cannot open {first_of(texts, MAX_LISTED)}; files and directories work"
    return Check("raw reading", LACKS, text, _how_to_open(errors))


def _how_to_open(errors: Mapping[str, OSError]) -> str:
    """How to make the first of the disks that can't be opened accessible."""
    for path, error in errors.items():
        if error.errno in PERMISSION_ERRNOS:
            return how_to_open(path)
    for path, error in errors.items():
        if error.errno == errno.ENOENT:
            return (
                f"In a container: pass it the device (docker run --device={printable(path)}) "
                "or all of /dev (-v /dev:/dev --privileged)"
            )
    return "See: iopstui devices"


def _tunables(roots: Roots) -> Check | None:
    paths = sorted((roots.sys / "block").glob("*/queue/rq_affinity"))
    if not paths:
        return None
    if any(os.access(path, os.W_OK) for path in paths):
        return Check("tunables", OK, "can be changed")
    fix = "sudo iopstui ..." if os.geteuid() else f"In a container: {_ON_THE_HOST}"
    return Check("tunables", LACKS, "can be read, not changed", fix)


def _energy(roots: Roots) -> Check:
    reason = why_no_energy(roots)
    if not reason:
        return Check("energy", OK, "the CPU's energy counters (RAPL) can be read")
    message = f"{reason}; watts and I/Os per joule are not shown"
    # sudo helps only if root can read them: most machines without these counters are virtual
    return Check("energy", LACKS, message, "sudo iopstui ...") if "root" in reason else Check(
        "energy", OK, message)  # fmt: skip


def _shares(roots: Roots) -> Check | None:
    """Check file systems of servers and programs, but not autofs, because a look would mount unused
    ones."""
    mounts = {Path(mount.mountpoint): mount for mount in read_own_mounts(roots)
              if is_network_mount(mount) and mount.fstype != "autofs"}  # fmt: skip
    if not mounts:
        return None
    dead = [mounts[path] for path in find_hung_paths(list(mounts))]
    if not dead:
        return Check("served mounts", OK, f"{len(mounts)} found (NFS, SMB, FUSE ...); all answer")
    names = first_of([mount_text(mount) for mount in dead], MAX_LISTED)
    return Check("served mounts", LACKS,
                 f"no answer from {names} within {ANSWER_TIMEOUT_S:g} s",
                 how_to_unmount(dead[0]))  # fmt: skip


def _smb(roots: Roots) -> Check | None:
    """Check what can be measured on SMB mounts, without asking a server."""
    shares = dict.fromkeys(mount.source for mount in read_own_mounts(roots) if mount.fstype in SMB)
    if not shares:
        return None
    reasons = {share: reason for share in shares if (reason := why_incomplete(share, roots))}
    if not reasons:
        return Check("SMB", OK, f"{counted(len(shares), 'share')}: operations and latencies")
    share, reason = next(iter(reasons.items()))
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return Check("SMB", LACKS, f"{printable(share)}{more}: {reason}")


def _direct(roots: Roots) -> Check:
    directory = Path.cwd()
    mount = find_hung_mount(directory, roots)
    if mount is not None:
        return Check("scratch files", LACKS, f"{directory}: {mount_text(mount)} does not answer",
                     "Change to a directory that does: cd ~")  # fmt: skip
    if not os.access(directory, os.W_OK):
        return Check("scratch files", LACKS, f"{directory} is not writable: no scratch file here",
                     "Use a directory: iopstui run DIRECTORY ...")  # fmt: skip
    if not supports_direct(directory):
        return Check("scratch files", LACKS, f"{directory} has no O_DIRECT (direct=1)",
                     "Choose a directory on a disk")  # fmt: skip
    free = shutil.disk_usage(directory).free >> 20
    return Check("scratch files", OK, f"{directory}: O_DIRECT works, {free} MiB free")


def _udev(roots: Roots) -> Check:
    if (roots.run / "udev/control").exists():
        return Check("udev", OK, "running")
    return Check("udev", OK, "not running; names and serials come from /sys instead")


def _terminal(roots: Roots) -> Check:
    term = os.environ.get("TERM", "")
    if term in ("", "dumb"):
        return Check("terminal", LACKS, f"TERM={term or '(not set)'}: no live screen",
                     "Set TERM, e.g. TERM=xterm-256color; or use: iopstui run")  # fmt: skip
    size = shutil.get_terminal_size()
    return Check("terminal", OK, f"TERM={term}, {size.columns}×{size.lines}")


def _fence(roots: Roots) -> Check:
    kind = fence_kind()
    if kind == LANDLOCK:
        return Check(
            "fence", OK, f"Landlock {landlock_abi()}: fio can open only what it is granted"
        )
    if kind == NAMESPACE:
        return Check("fence", OK, "namespaces: everything else is read-only for fio (no "
                                  "Landlock: it needs Linux 5.13, lsm=landlock,...)")  # fmt: skip
    return Check("fence", LACKS, "no Landlock, no namespaces: your own job files that write are "
                                 "refused without --no-fence",
                 "Linux 5.13 or newer with lsm=landlock,...; or: sudo iopstui ...")  # fmt: skip


def _probe(roots: Roots) -> Check:
    reason = why_no_probe(roots)
    if reason is not None:
        return Check("probe", LACKS, f"{reason[0]}: no device latencies", reason[1])
    try:
        missing = [part for part in PARTS if part not in loadable_parts(roots)]
    except ProbeUnusable as error:
        return Check("probe", LACKS, f"{error}: no device latencies",
                     "Linux 5.15 or newer with CONFIG_DEBUG_INFO_BTF")  # fmt: skip
    if missing:
        return Check("probe", OK, f"--probe works, but {REFUSED}: {', '.join(missing)}")
    return Check("probe", OK, "--probe works: latencies, CPUs, processes and the slowest requests")


def _left_over(roots: Roots) -> Check:
    cleaned, failed = clean_up(roots)
    if failed:
        return Check("left by a crash", LACKS, "; ".join(failed),
                     "sudo iopstui doctor" if os.geteuid() else "")  # fmt: skip
    return Check("left by a crash", OK, "; ".join(cleaned) if cleaned else "nothing")
