"""Find the remains of a killed iopstui: scratch files, changed tunables, a null_blk device."""

from __future__ import annotations

import os
from collections.abc import Callable

from iopstui.linux.process.private import abandoned_directories, remove
from iopstui.linux.roots import Roots
from iopstui.safety import null_block
from iopstui.safety.scratch import abandoned_scratches, pop_staying_messages
from iopstui.safety.tunables import restore_abandoned


def clean_up(roots: Roots) -> tuple[list[str], list[str]]:
    """Undo it; return (actions done, actions failed), in words."""
    completed, failed = restore_abandoned(roots)
    for words, more in zip(
        (completed, failed), null_block.remove_abandoned(roots.sys / "kernel/config"), strict=True
    ):
        words += more
    for scratch in abandoned_scratches():
        existed = scratch.path.exists()
        scratch.close()
        if scratch.path.exists():
            sudo = "sudo " if os.geteuid() else ""
            import shlex

            quoted_path = shlex.quote(str(scratch.path))
            failed.append(f"cannot remove {scratch.path}: {sudo}rm -r {quoted_path}")
        elif existed:
            completed.append(f"{scratch.path} is removed")
    failed += pop_staying_messages()
    for directory in abandoned_directories():
        # job files and fio's output, in memory: not worth a message
        remove(directory)
    return completed, failed


def clean_up_and_report(report: Callable[[str], None], roots: Roots) -> None:
    """Undo it; ``report`` prints one sentence for each success and failure."""
    for lines in clean_up(roots):
        for line in lines:
            report(f"left by a crash: {line}")
