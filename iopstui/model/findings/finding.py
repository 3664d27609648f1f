"""A finding: a rule's sentence with its numbers, its severity and its headline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.advice import NO_ADVICE, Advice


@dataclass(frozen=True, slots=True)
class Finding:
    """``rule`` names what fired, ``text`` is the sentence, ``advice`` what to try ("" if nothing
    helps), ``key`` the key to press for it ("" if none). ``test`` are the options of a run that
    decides whether it is true (empty: none does). ``since`` and ``until`` are the seconds of the
    session that it is about (``None``: none, or an older recording). ``disk`` is the disk that it
    is about ("": several, or not given)."""

    rule: str
    text: str
    advice: Advice = NO_ADVICE
    key: str = ""
    test: tuple[tuple[str, str], ...] = ()
    since: float | None = None
    until: float | None = None
    disk: str = ""

    @property
    def options(self) -> str:
        """The options of ``test`` in words: "bs=8k"; "" if it has none."""
        return " ".join(f"{name}={value}" for name, value in self.test)


def period_text(finding: Finding) -> str:
    """The seconds that a finding is about: "0:05-0:08"; "" if none."""
    if finding.since is None or finding.until is None:
        return ""
    return f"{units.clock(finding.since)}-{units.clock(finding.until)}"


def end_text(since: float, until: float, why: str = "") -> str:
    """When a finding's cause ended, and how long it lasted: "ended at 0:36, after 24 s". A finding
    that later seconds contradict is "withdrawn: vda counts its I/Os all the same"."""
    if why:
        return f"withdrawn: {why}"
    return f"ended at {units.clock(until)}, after {units.duration(until - since)}"


def device_names_text(devices: Sequence[BlockDevice], most: int = 4) -> str:
    """A list of devices as text: "vda", "vda and vdb", "vda, vdb, vdc and 5 more"."""
    names = [device.name for device in devices]
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def cpus_text(cpus: Sequence[int], most: int = 6) -> str:
    """A list of CPUs as text: "CPU 0, 1, 5"; long lists are cut: "CPU 0, 1, 2 ... (64 CPUs)"."""
    listed = ", ".join(map(str, cpus[:most]))
    return f"CPU {listed}" + (f" ... ({len(cpus)} CPUs)" if len(cpus) > most else "")


INFO, WARNING, CRITICAL = "info", "warning", "critical"
MAX_HEADLINE_LENGTH = 60

HEADLINES: Mapping[str, tuple[str, str]] = {
    "iostats": (WARNING, "The kernel does not count the device's I/O"),
    "throttled": (WARNING, "A cgroup's CPU limit slows the job"),
    "steal": (WARNING, "The hypervisor takes CPU time away"),
    "kernel-errors": (CRITICAL, "The kernel logs I/O errors of the disk"),
    "scsi-errors": (CRITICAL, "The device reports I/O errors"),
    "nvme-errors": (WARNING, "NVMe resets, failovers, retries or errors"),
    "paths": (CRITICAL, "A multipath device has lost paths"),
    "array": (CRITICAL, "The array is degraded"),
    "hot": (CRITICAL, "The device is near its temperature limit"),
    "thermal": (CRITICAL, "The drive throttled itself: too hot"),
    "media-errors": (CRITICAL, "The drive reports media errors"),
    "wear": (CRITICAL, "The drive is worn or degraded"),
    "amplification": (WARNING, "The drive writes much more than it is given"),
    "volume-limit": (WARNING, "Demand exceeds a limit of the volume or instance"),
    "slow-member": (WARNING, "One member of the array is slow for its load"),
    "siblings": (INFO, "One of several like disks takes longer at a similar load"),
    "above": (WARNING, "I/Os wait above the device"),
    "tags": (WARNING, "The job wants more I/Os in flight than fit"),
    "depth": (WARNING, "The job does not reach its iodepth"),
    "one-cpu": (WARNING, "One CPU completes nearly all I/O"),
    "softirq-cpu": (WARNING, "Completions fill a CPU"),
    "irq-outside": (INFO, "The interrupt runs outside its queue's CPUs"),
    "irq-moved": (INFO, "The device's interrupt moved to another CPU"),
    "numa-remote": (WARNING, "The job runs on another NUMA node than the device"),
    "crossing": (WARNING, "Completions cross to another NUMA node"),
    "disagree": (INFO, "fio and the device count different I/Os"),
    "flush": (INFO, "Synced writes wait for cache flushes"),
    "misaligned": (WARNING, "Writes do not fit the disk's physical blocks"),
    "job-cpu": (WARNING, "The job's CPU is the limit, not the disk"),
    "scheduler": (WARNING, "The I/O scheduler may cost CPU time"),
    "more-jobs-than-cpus": (WARNING, "There are more jobs than CPUs"),
    "burst": (WARNING, "IOPS fell at an unchanged load"),
    "cap": (WARNING, "More load adds no throughput: a limit is reached"),
    "saturated": (INFO, "The queue is deep enough"),
    "link": (WARNING, "The PCIe link runs below its maximum"),
    "cpu-sleep": (INFO, "The CPU's power saving may add to every latency"),
    "busy": (WARNING, "Other I/O keeps the device's queue full"),
    "background": (WARNING, "The device was not idle before this run"),
    "moved": (INFO, "A setting was changed"),
    "answer": (INFO, "Result of the test run"),
    "stalled": (CRITICAL, "No I/O completes"),
    "io-errors": (CRITICAL, "I/Os fail while the job continues"),
    "cpu-wait": (WARNING, "The job waits for a CPU"),
    "layer": (INFO, "I/Os wait in a layer above the disk"),
    "neighbour": (WARNING, "Another program uses the same disk"),
    "memory": (WARNING, "Tasks wait for memory"),
    "parity": (WARNING, "Small writes must read first to compute parity"),
    "first-write": (INFO, "Writes cause extra I/O below the device"),
    "starved": (WARNING, "The I/O scheduler may let one direction wait"),
    "slow-direction": (INFO, "The device answers one direction far more slowly"),
    "write-back": (INFO, "Buffered writes wait for write-back"),
    "nfs-retrans": (CRITICAL, "NFS requests are sent again"),
    "nfs-server": (WARNING, "The NFS server or the network is slow"),
    "nfs-queue": (WARNING, "NFS requests wait in this client"),
    "nfs-rsize": (WARNING, "I/Os are split into small NFS requests"),
    "nfs-attributes": (WARNING, "Most NFS requests ask for attributes"),
    "nfs-stalled": (CRITICAL, "The NFS server does not answer"),
    "smb-stalled": (CRITICAL, "The SMB server does not answer"),
    "smb-reconnect": (CRITICAL, "The connection to an SMB server was lost"),
    "smb-server": (WARNING, "SMB reads and writes take long"),
    "smb-rsize": (WARNING, "I/Os are split into small SMB requests"),
    "net-loss": (WARNING, "Packets to the server are lost or late"),
    "net-window": (WARNING, "The server's receive window slows down sending"),
    "net-full": (WARNING, "The only connection to the server is full"),
    "cgroup": (INFO, "One unit, container or pod does most of the I/O"),
    "cgroup-limit": (WARNING, "A cgroup's I/O limit is reached"),
    "ring": (INFO, "Pressure without I/O: programs sleep in io_uring"),
}
"""Severity and headline of every rule, by its name in JSON and metrics, in the order of
docs/rules.md."""
DEGRADED = "(degraded)"
REBUILT = (WARNING, "The array is being rebuilt or checked")
"""Headline for an array that is rebuilt or checked but lacks no member (the finding's text does not
contain DEGRADED)."""


def _entry(finding: Finding) -> tuple[str, str] | None:
    if finding.rule == "array" and DEGRADED not in finding.text:
        return REBUILT
    return HEADLINES.get(finding.rule)


def severity_of(finding: Finding) -> str:
    """The severity of a finding: INFO, WARNING or CRITICAL."""
    return (_entry(finding) or (INFO, ""))[0]


def headline_of(finding: Finding) -> str:
    """Return the headline; a rule without one gets the first clause of its sentence."""
    entry = _entry(finding)
    if entry is not None:
        return entry[1]
    first = finding.text.partition(": ")[0].partition("; ")[0]
    return (
        first
        if len(first) <= MAX_HEADLINE_LENGTH
        else first[: MAX_HEADLINE_LENGTH - 1].rpartition(" ")[0] + "…"
    )
