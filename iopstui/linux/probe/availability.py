"""Check whether the probe can run here, and explain how to enable it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from iopstui.linux.probe.process import PROGRAM
from iopstui.linux.probe.script import Region, missing_features
from iopstui.linux.probe.tracepoints import read_tracepoints, tracefs
from iopstui.linux.roots import Roots

_WHOLE_DISK = (Region("", 0, 0),)
LOCKDOWN = "kernel/security/lockdown"
ONLY_ROOT = "only root may load BPF programs"


def why_no_probe(
    roots: Roots, parts: Sequence[str] = (), regions: Sequence[Region] = _WHOLE_DISK
) -> tuple[str, str] | None:
    """(why the probe can't run, the command that fixes it); ``None`` if nothing is known to be in
    its way."""
    # before bpftrace: as root the probe's own programs may do without it
    if os.geteuid() != 0:
        return ONLY_ROOT, "sudo iopstui ..."
    if shutil.which(PROGRAM) is None:
        return "bpftrace is not installed", "sudo apt-get install bpftrace, or dnf, zypper, pacman"
    if locked_down(roots):
        return (
            "the kernel is locked down (lockdown=confidentiality) and does not load BPF programs",
            "boot without lockdown=confidentiality",
        )
    if tracefs(roots) is None:
        return (
            "tracefs is not mounted",
            "mount -t tracefs tracefs /sys/kernel/tracing; in a container: run iopstui on the host",
        )
    without = missing_features(parts, regions, read_tracepoints(roots))
    if without:
        return f"this kernel has no {', '.join(without)}", "a kernel with these tracepoints"
    return None


def locked_down(roots: Roots) -> bool:
    """Whether kernel lockdown hides kernel data even from root."""
    try:
        return "[confidentiality]" in (roots.sys / LOCKDOWN).read_text()
    except OSError:
        return False
