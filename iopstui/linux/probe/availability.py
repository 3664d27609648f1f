"""Check whether the probe can run here, and explain how to enable it."""

from __future__ import annotations

import os

from iopstui.linux.roots import Roots

LOCKDOWN = "kernel/security/lockdown"
ONLY_ROOT = "only root may load BPF programs"


def why_no_probe(roots: Roots) -> tuple[str, str] | None:
    """(why the probe can't run, the command that fixes it); ``None`` if nothing is known to be in
    its way."""
    if os.geteuid() != 0:
        return ONLY_ROOT, "sudo iopstui ..."
    if locked_down(roots):
        return (
            "the kernel is locked down (lockdown=confidentiality) and does not load BPF programs",
            "boot without lockdown=confidentiality",
        )
    return None


def locked_down(roots: Roots) -> bool:
    """Whether kernel lockdown hides kernel data even from root."""
    try:
        return "[confidentiality]" in (roots.sys / LOCKDOWN).read_text()
    except OSError:
        return False
