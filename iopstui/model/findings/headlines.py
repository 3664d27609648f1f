"""How serious each rule's findings are, and their headlines: at most 60 characters, no figures."""

from __future__ import annotations

from collections.abc import Mapping

from iopstui.model.findings.finding import Finding

INFO, WARNING, CRITICAL = "info", "warning", "critical"
MAX_HEADLINE_LENGTH = 60

HEADLINES: Mapping[str, tuple[str, str]] = {
    "above": (WARNING, "I/Os wait above the device"),
    "amplification": (WARNING, "The drive writes much more than it is given"),
    "answer": (INFO, "Result of the test run"),
    "array": (CRITICAL, "The array is degraded"),
    "background": (WARNING, "The device was not idle before this run"),
    "burst": (WARNING, "IOPS fell at an unchanged load"),
    "busy": (WARNING, "Other I/O keeps the device's queue full"),
    "cap": (WARNING, "More load adds no throughput: a limit is reached"),
    "cgroup": (INFO, "One unit, container or pod does most of the I/O"),
    "cgroup-limit": (WARNING, "A cgroup's I/O limit is reached"),
    "cpu-sleep": (INFO, "The CPU's power saving may add to every latency"),
    "cpu-wait": (WARNING, "The job waits for a CPU"),
    "crossing": (WARNING, "Completions cross to another NUMA node"),
    "depth": (WARNING, "The job does not reach its iodepth"),
    "disagree": (INFO, "fio and the device count different I/Os"),
    "first-write": (INFO, "Writes cause extra I/O below the device"),
    "flush": (INFO, "Synced writes wait for cache flushes"),
    "hot": (CRITICAL, "The device is near its temperature limit"),
    "io-errors": (CRITICAL, "I/Os fail while the job continues"),
    "iostats": (WARNING, "The kernel does not count the device's I/O"),
    "irq-moved": (INFO, "The device's interrupt moved to another CPU"),
    "irq-outside": (INFO, "The interrupt runs on a CPU without a job"),
    "job-cpu": (WARNING, "The job's CPU is the limit, not the disk"),
    "kernel-errors": (CRITICAL, "The kernel logs I/O errors of the disk"),
    "layer": (INFO, "I/Os wait in a layer above the disk"),
    "link": (WARNING, "The PCIe link runs below its maximum"),
    "media-errors": (CRITICAL, "The drive reports media errors"),
    "memory": (WARNING, "Tasks wait for memory"),
    "misaligned": (WARNING, "Writes do not fit the disk's physical blocks"),
    "more-jobs-than-cpus": (WARNING, "There are more jobs than CPUs"),
    "moved": (INFO, "A setting was changed"),
    "neighbour": (WARNING, "Another program uses the same disk"),
    "net-full": (WARNING, "The only connection to the server is full"),
    "net-loss": (WARNING, "Packets to the server are lost or late"),
    "net-window": (WARNING, "The server's receive window holds sending up"),
    "nfs-attributes": (WARNING, "Most NFS requests ask for attributes"),
    "nfs-queue": (WARNING, "NFS requests wait in this client"),
    "nfs-retrans": (CRITICAL, "NFS requests are sent again"),
    "nfs-rsize": (WARNING, "I/Os are split into small NFS requests"),
    "nfs-server": (WARNING, "The NFS server or the network is slow"),
    "nfs-stalled": (CRITICAL, "The NFS server does not answer"),
    "numa-remote": (WARNING, "The job runs on another NUMA node than the device"),
    "nvme-errors": (WARNING, "NVMe resets, failovers, retries or errors"),
    "one-cpu": (WARNING, "One CPU completes nearly all I/O"),
    "parity": (WARNING, "Small writes must read first to compute parity"),
    "paths": (CRITICAL, "A multipath device has lost paths"),
    "ring": (INFO, "Pressure without I/O: programs sleep in io_uring"),
    "saturated": (INFO, "The queue is deep enough"),
    "scheduler": (WARNING, "The I/O scheduler may cost CPU time"),
    "scsi-errors": (CRITICAL, "The device reports I/O errors"),
    "siblings": (INFO, "One of several like disks takes longer at such a load"),
    "slow-direction": (INFO, "The device answers one direction far more slowly"),
    "slow-member": (WARNING, "One member of the array is slow for its load"),
    "smb-reconnect": (CRITICAL, "The connection to an SMB server was lost"),
    "smb-rsize": (WARNING, "I/Os are split into small SMB requests"),
    "smb-server": (WARNING, "SMB reads and writes take long"),
    "smb-stalled": (CRITICAL, "The SMB server does not answer"),
    "softirq-cpu": (WARNING, "Completions fill a CPU"),
    "stalled": (CRITICAL, "No I/O completes"),
    "starved": (WARNING, "The I/O scheduler may let one direction wait"),
    "steal": (WARNING, "The hypervisor takes CPU time away"),
    "tags": (WARNING, "The job wants more I/Os in flight than fit"),
    "thermal": (CRITICAL, "The drive throttled itself: too hot"),
    "throttled": (WARNING, "A cgroup's CPU limit slows the job"),
    "volume-limit": (WARNING, "Demand exceeds a limit of the volume or instance"),
    "wear": (CRITICAL, "The drive is worn or degraded"),
    "write-back": (INFO, "Buffered writes wait for write-back"),
}
"""Severity and headline by rule."""
DEGRADED = "(degraded)"
REBUILT = (WARNING, "The array is being rebuilt or checked")
"""Of an array that lacks no member: its finding's text has no DEGRADED."""


def _entry(finding: Finding) -> tuple[str, str] | None:
    if finding.rule == "array" and DEGRADED not in finding.text:
        return REBUILT
    return HEADLINES.get(finding.rule)


def severity_of(finding: Finding) -> str:
    """INFO, WARNING or CRITICAL."""
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
