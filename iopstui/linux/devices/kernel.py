"""What the running kernel is, as far as the completion of requests depends on it."""

from __future__ import annotations

from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_text
from iopstui.model.block.kernel import Kernel, parse_version


def read_kernel(roots: Roots) -> Kernel:
    """From /proc/sys/kernel/osrelease, /proc/cmdline (threadirqs) and /proc/version (PREEMPT_RT
    has all interrupts in threads)."""
    words = (read_text(roots.proc / "cmdline") or "").split()
    version = read_text(roots.proc / "version") or ""
    return Kernel(
        version=parse_version(read_text(roots.proc / "sys/kernel/osrelease") or ""),
        threaded_irqs="threadirqs" in words or "PREEMPT_RT" in version,
    )
