"""Which kernel runs, and whether its interrupt handlers are threads.

Sources: Documentation/admin-guide/kernel-parameters.txt (threadirqs), proc_version(5).
"""

from __future__ import annotations

from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_text
from iopstui.model.block.device import Kernel, parse_version


def read_kernel(roots: Roots) -> Kernel:
    """Read the running kernel; it does not change while the machine runs."""
    return Kernel(
        version=parse_version(read_text(roots.proc / "sys/kernel/osrelease") or ""),
        threaded_irqs=parse_threaded(
            read_text(roots.proc / "cmdline") or "", read_text(roots.proc / "version") or ""
        ),
    )


def parse_threaded(cmdline: str, version: str) -> bool:
    """Whether /proc/cmdline asks for threads, or a kernel built for real time has nothing else
    ("#1 SMP PREEMPT_RT Debian ..." in /proc/version)."""
    # what follows "--" is for init
    kernel_options, _, _ = f" {cmdline} ".partition(" -- ")
    return "threadirqs" in kernel_options.split() or "PREEMPT_RT" in version.split()
