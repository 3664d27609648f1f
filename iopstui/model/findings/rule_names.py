"""Names of the findings' rules, in JSON, in metrics and in docs/rules.md."""

from __future__ import annotations

RULE_NAMES = (
    "iostats", "throttled", "steal", "kernel-errors", "scsi-errors", "nvme-errors",
    "paths", "array", "hot", "thermal", "media-errors", "wear", "amplification", "volume-limit",
    "slow-member", "siblings", "above", "tags",
    "depth", "one-cpu", "softirq-cpu", "irq-outside", "irq-moved", "numa-remote", "crossing",
    "disagree", "flush", "misaligned", "job-cpu", "scheduler", "more-jobs-than-cpus", "burst",
    "cap", "saturated", "link", "cpu-sleep", "busy", "background", "moved", "answer", "stalled",
    "io-errors", "cpu-wait", "layer", "neighbour", "memory", "parity", "first-write", "starved",
    "slow-direction",
    "write-back", "nfs-retrans", "nfs-server", "nfs-queue", "nfs-rsize", "nfs-attributes",
    "nfs-stalled", "smb-stalled", "smb-reconnect", "smb-server", "smb-rsize",
    "net-loss", "net-window", "net-full",
    "cgroup", "cgroup-limit", "ring",
)  # fmt: skip
