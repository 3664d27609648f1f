"""Settings around a device, for one scenario: cgroups with their limits, queues, interrupts."""

from __future__ import annotations

import os
import re
from pathlib import Path

from devices import put, settled, sh
from effect import read_delays
from scenario import Absent, Action, Bench, Recipe

NAME = f"iopstui-scoreboard-{os.getpid()}"
V2 = Path("/sys/fs/cgroup")
CPU_STAT = tuple(str(top / NAME / "cpu.stat") for top in (V2, V2 / "cpu"))


def queue(below: Recipe, **values: object) -> Recipe:
    """The device, with these files of /sys/block/X/queue set."""

    def make(bench: Bench) -> str:
        path = below(bench)
        for name, value in values.items():
            file = Path("/sys/block", bench.disk, "queue", name)
            before = re.sub(r".*\[(.+)\].*", r"\1", file.read_text().strip())
            bench.stack.callback(file.write_text, before)
            file.write_text(str(value))
        return path

    return make


def set_queue(**values: object) -> Action:
    """Write these files of the disk's /sys/block/X/queue in mid run; ``queue`` restores them at the
    end."""

    def act(bench: Bench) -> None:
        for name, value in values.items():
            Path("/sys/block", bench.disk, "queue", name).write_text(str(value))

    return act


def dirty_bytes(below: Recipe, most: int) -> Recipe:
    """The device, on a machine whose page cache accepts ``most`` dirty bytes."""

    def make(bench: Bench) -> str:
        path = below(bench)
        # writing the ratio back sets dirty_bytes to 0
        ratio = Path("/proc/sys/vm/dirty_ratio")
        bench.stack.callback(ratio.write_text, ratio.read_text())
        Path("/proc/sys/vm/dirty_bytes").write_text(str(most))
        return path

    return make


def one_cpu(below: Recipe) -> Recipe:
    """The device, on a machine whose other CPUs are offline. An emulated machine accounts the time
    of several busy CPUs correctly only if its host has as many free CPUs."""

    def make(bench: Bench) -> str:
        files = sorted(Path("/sys/devices/system/cpu").glob("cpu[1-9]*/online"))
        for file in files:
            put(bench, file, "0")
        return below(bench)

    return make


def scsi_depth(below: Recipe, depth: int) -> Recipe:
    """A SCSI disk that accepts ``depth`` commands at once."""

    def make(bench: Bench) -> str:
        path = below(bench)
        put(bench, Path("/sys/block", bench.disk, "device/queue_depth"), str(depth))
        return path

    return make


def take_at_once(depth: int) -> Action:
    """From now on, the SCSI disk accepts ``depth`` commands at once."""

    def act(bench: Bench) -> None:
        Path("/sys/block", bench.disk, "device/queue_depth").write_text(str(depth))

    return act


# -- cgroups


def io_max(below: Recipe, limit: str = "", above: bool = False) -> Recipe:
    """The session is in a group with this limit in io.max (cgroup v2), such as "riops=1000".
    ``above``: the limit is set on its parent group. Without a limit, it can be set later."""

    def make(bench: Bench) -> str:
        path = below(bench)
        group = group2(bench, "io")
        bench.limits = group / "io.max"
        if above:
            (group / "cgroup.subtree_control").write_text("+io")
            group = _made(bench, group / "inner")
        bench.groups.append(group)
        if limit:
            set_limit(limit)(bench)
        return path

    return make


def bfq_weight(below: Recipe, weight: int) -> Recipe:
    """The session is in a group with this io.bfq.weight; all other groups have 100."""

    def make(bench: Bench) -> str:
        path = below(bench)
        group = group2(bench, "io")
        if not (group / "io.bfq.weight").exists():
            raise Absent("this kernel has no bfq")
        (group / "io.bfq.weight").write_text(str(weight))
        bench.groups.append(group)
        return path

    return make


def set_limit(limit: str) -> Action:
    """Write a limit for the bench's disk: "riops=400" in io.max, "400" in a file of blkio."""

    def act(bench: Bench) -> None:
        assert bench.limits is not None
        bench.limits.write_text(f"{_number(bench)} {limit}\n")

    return act


def blkio(below: Recipe, name: str, limit: str = "") -> Recipe:
    """The session is in a group of cgroup v1 with a limit in ``blkio.throttle.NAME_device``."""

    def make(bench: Bench) -> str:
        path = below(bench)
        group = _group1(bench, "blkio")
        bench.limits = group / f"blkio.throttle.{name}_device"
        bench.groups.append(group)
        if limit:
            set_limit(limit)(bench)
        return path

    return make


def cost(below: Recipe, iops: int) -> Recipe:
    """iocost (Documentation/admin-guide/cgroup-v2.rst) with the model of a disk that does ``iops``;
    the session is in a group of its own."""

    def make(bench: Bench) -> str:
        path = below(bench)
        group = group2(bench, "io")
        if not (V2 / "io.cost.qos").exists():
            raise Absent("this kernel has no iocost")
        number, rate = _number(bench), f"seqiops={iops} randiops={iops}"
        sides = [f"{side}bps={iops * 1_000_000} {side}{rate.replace(' ', f' {side}')}"
                 for side in "rw"]  # fmt: skip
        (V2 / "io.cost.model").write_text(f"{number} ctrl=user model=linear {' '.join(sides)}\n")
        (V2 / "io.cost.qos").write_text(f"{number} enable=1 ctrl=user min=100.00 max=100.00\n")
        bench.stack.callback((V2 / "io.cost.qos").write_text, f"{number} enable=0\n")
        bench.groups.append(group)
        return path

    return make


def cpu_group(below: Recipe) -> Recipe:
    """The session is in a group whose CPU time can be limited, of cgroup v1 if there is one, else
    of v2."""

    def make(bench: Bench) -> str:
        path = below(bench)
        try:
            group = _group1(bench, "cpu")
            bench.limits = group / "cpu.cfs_quota_us"
        except Absent:
            group = group2(bench, "cpu")
            bench.limits = group / "cpu.max"
        bench.groups.append(group)
        return path

    return make


def cpu_weight(below: Recipe, weight: int) -> Recipe:
    """The session is in a group with this cpu.weight (v2) or as many cpu.shares (v1)."""

    def make(bench: Bench) -> str:
        path = cpu_group(below)(bench)
        weights = {"cpu.weight": weight, "cpu.shares": max(2, weight)}
        for name, value in weights.items():
            if (bench.groups[-1] / name).exists():
                (bench.groups[-1] / name).write_text(str(value))
        return path

    return make


def idle_policy(bench: Bench) -> None:
    """From now on, fio's jobs have the policy SCHED_IDLE."""
    for pid in read_delays(os.getpid()):
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))


def two_limits(below: Recipe, riops: int, rbps: int) -> Recipe:
    """The session is in a group of cgroup v1 with both limits on the disk."""

    def make(bench: Bench) -> str:
        path = blkio(below, "read_iops", str(riops))(bench)
        bench.limits = bench.groups[-1] / "blkio.throttle.read_bps_device"
        set_limit(str(rbps))(bench)
        return path

    return make


def limited_below(upper: Recipe, riops: int = 100) -> Recipe:
    """A stack of two devices, the lower of which has a limit of ``riops`` reads/s for the session's
    group (cgroup v1 if there is one, else v2)."""

    def make(bench: Bench) -> str:
        path = upper(bench)
        node, lower = bench.node, sorted(Path("/sys/block", bench.disk, "slaves").glob("*"))
        # a loop device has no slaves: its backing file is the other device's node
        name = lower[0].name if lower else Path(_backing(bench.disk)).name
        bench.node = f"/dev/{name}"
        try:
            group = _group1(bench, "blkio")
            bench.limits, limit = group / "blkio.throttle.read_iops_device", f"{riops}"
        except Absent:
            group = group2(bench, "io")
            bench.limits, limit = group / "io.max", f"riops={riops}"
        set_limit(limit)(bench)
        bench.groups.append(group)
        bench.node = node
        return path

    return make


def _backing(disk: str) -> str:
    return Path("/sys/block", disk, "loop/backing_file").read_text().strip()


def cpu_limit(percent: int) -> Action:
    """From now on, the group gets ``percent`` of one CPU; 0: no limit."""

    def act(bench: Bench) -> None:
        assert bench.limits is not None
        none = "max" if bench.limits.name == "cpu.max" else "-1"
        bench.limits.write_text(str(percent * 1000) if percent else none)

    return act


def _group1(bench: Bench, controller: str) -> Path:
    top = V2 / controller
    if not (top / "cgroup.sane_behavior").exists():
        raise Absent(f"no cgroup v1 with {controller}")
    return _made(bench, top / NAME)


def group2(bench: Bench, controller: str, suffix: str = "") -> Path:
    """A new group of cgroup v2 with this controller. Raises Absent if there is no such
    controller."""
    if not (V2 / "cgroup.controllers").exists() and not any(V2.iterdir()):
        sh("mount", "-t", "cgroup2", "none", str(V2))
    offered = V2 / "cgroup.controllers"
    if not offered.exists() or controller not in offered.read_text().split():
        raise Absent(f"no cgroup v2 with {controller}")
    (V2 / "cgroup.subtree_control").write_text(f"+{controller}")
    return _made(bench, V2 / (NAME + suffix))


def _made(bench: Bench, group: Path) -> Path:
    group.mkdir(exist_ok=True)
    bench.stack.callback(settled, lambda: _removed(group))
    return group


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # its last process is about to end
        return False
    return True


def _number(bench: Bench) -> str:
    device = os.stat(bench.node).st_rdev
    return f"{os.major(device)}:{os.minor(device)}"


# -- interrupts


def move_irq(cpu: int) -> Action:
    """From now on, this CPU serves the interrupt of the bench's disk."""

    def act(bench: Bench) -> None:
        (irq,) = _irqs(bench.disk)
        Path(f"/proc/irq/{irq}/smp_affinity_list").write_text(str(cpu))

    return act


def irq_on(below: Recipe, cpu: int) -> Recipe:
    """A disk with one interrupt, which this CPU serves at first."""

    def make(bench: Bench) -> str:
        path = below(bench)
        (irq,) = _irqs(bench.disk)
        put(bench, Path(f"/proc/irq/{irq}/smp_affinity_list"), str(cpu))
        return path

    return make


def _irqs(disk: str) -> list[str]:
    place = Path("/sys/block", disk).resolve()
    for directory in place.parents:
        if (directory / "msi_irqs").is_dir():
            return sorted(os.listdir(directory / "msi_irqs"))
        if (directory / "irq").is_file():
            return [(directory / "irq").read_text().strip()]
    raise Absent(f"{disk} has no interrupt")
