"""Read the CPUs and their topology.

Sources: Documentation/ABI/stable/sysfs-devices-node, Documentation/ABI/testing/
sysfs-devices-system-cpu (online, isolated, cache/indexN/shared_cpu_list)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from iopstui.linux.counters.procfs import parse_stat_cpus
from iopstui.linux.kernel_files import (
    Roots,
    list_names,
    parse_cpu_list,
    read_bytes,
    read_count,
    read_text,
)
from iopstui.model.block.topology import Topology

# this many ticks of softirq time without any irq time mean that the kernel does not account irq
# time
ENOUGH_TICKS = 20


def read_topology(roots: Roots) -> Topology:
    """Read the machine's CPUs, without parts that can't be read. Costs a few ms on 256 CPUs: call
    it when a session begins and when the set of CPUs changes, not every second."""
    system = roots.sys / "devices/system"
    possible = _cpus(system / "cpu/possible") or _numbered(system / "cpu", "cpu")
    online = _cpus(system / "cpu/online") or possible
    return Topology(
        online=online,
        possible=possible,
        isolated=_cpus(system / "cpu/isolated"),
        nodes=read_nodes(roots),
        caches=_caches(system / "cpu", online),
        irq_time=_irq_time(roots),
    )


def _irq_time(roots: Roots) -> bool | None:
    """Whether interrupt time is accounted (CONFIG_IRQ_TIME_ACCOUNTING and the like); ``None`` if
    this is not known yet. If it is not accounted, the irq column of /proc/stat is 0 since boot on
    every CPU."""
    times = parse_stat_cpus(read_bytes(roots.proc / "stat") or b"").values()
    if any(times.irq for times in times):
        return True
    return False if sum(times.softirq for times in times) >= ENOUGH_TICKS else None


def online_cpus(roots: Roots) -> tuple[int, ...]:
    """The CPUs that are online, whether or not this process may use them; empty if unknown."""
    return _cpus(roots.sys / "devices/system/cpu/online")


def possible_cpus(roots: Roots) -> tuple[int, ...]:
    """The CPUs that may ever be online; empty if unknown."""
    return _cpus(roots.sys / "devices/system/cpu/possible")


def _cpus(path: Path) -> tuple[int, ...]:
    return parse_cpu_list(read_text(path) or "")


def _numbered(directory: Path, prefix: str) -> tuple[int, ...]:
    names = (name[len(prefix) :] for name in list_names(directory) if name.startswith(prefix))
    return tuple(sorted(int(name) for name in names if name.isascii() and name.isdigit()))


def read_nodes(roots: Roots) -> Mapping[int, int]:
    """The NUMA node of each CPU; empty if the kernel knows none."""
    directory = roots.sys / "devices/system/node"
    return {
        cpu: node
        for node in _numbered(directory, "node")
        for cpu in _cpus(directory / f"node{node}/cpulist")
    }


def _caches(directory: Path, online: tuple[int, ...]) -> dict[int, int]:
    """For each CPU the lowest CPU of its last-level-cache domain (an offline CPU has no cache
    files)."""
    domains: dict[int, int] = {}
    for cpu in online:
        if cpu in domains:
            continue
        sharers = _last_level(directory / f"cpu{cpu}/cache")
        if cpu in sharers:
            domains.update(dict.fromkeys(sharers, min(sharers)))
    return domains


def _last_level(cache: Path) -> tuple[int, ...]:
    """The CPUs that share the cache with the highest level."""
    levels = [(read_count(cache / f"index{n}/level") or 0, n) for n in _numbered(cache, "index")]
    return _cpus(cache / f"index{max(levels)[1]}/shared_cpu_list") if levels else ()
