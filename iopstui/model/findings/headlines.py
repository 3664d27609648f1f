"""How serious each rule's findings are, and their headlines: at most 60 characters, no figures."""

from __future__ import annotations

from collections.abc import Mapping

from iopstui.model.findings.finding import Finding

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
    "siblings": (INFO, "One of several like disks takes longer at such a load"),
    "above": (WARNING, "I/Os wait above the device"),
    "tags": (WARNING, "The job wants more I/Os in flight than fit"),
    "depth": (WARNING, "The job does not reach its iodepth"),
    "one-cpu": (WARNING, "One CPU completes nearly all I/O"),
    "softirq-cpu": (WARNING, "Completions fill a CPU"),
    "irq-outside": (INFO, "The interrupt runs on a CPU without a job"),
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
    "net-window": (WARNING, "The server's receive window holds sending up"),
    "net-full": (WARNING, "The only connection to the server is full"),
    "cgroup": (INFO, "One unit, container or pod does most of the I/O"),
    "cgroup-limit": (WARNING, "A cgroup's I/O limit is reached"),
    "ring": (INFO, "Pressure without I/O: programs sleep in io_uring"),
}
"""Severity and headline of every rule, by its name in JSON and metrics, in the order of
docs/rules.md."""
DEGRADED = "(degraded)"
REBUILT = (WARNING, "The array is being rebuilt or checked")
"""Headline for an array that lacks no member (the finding's text does not contain DEGRADED)."""


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
