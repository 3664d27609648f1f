"""Find the remains of a killed iopstui: scratch files, changed tunables, a null_blk device."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable

from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.private import abandoned_directories, remove
from iopstui.safety import journal


def clean_up(roots: Roots) -> tuple[list[str], list[str]]:
    """Undo changes that crashed sessions left; return (actions done, actions failed), in words."""
    completed, failed = _undo_noted(roots) if journal.has_notes() else ([], [])
    for directory in abandoned_directories():
        # job files and fio's output, in memory: no message needed
        remove(directory)
    return completed, failed


def _undo_noted(roots: Roots) -> tuple[list[str], list[str]]:
    # import these only if there are notes: most starts find none
    from iopstui.safety import null_block, scratch, tunables

    completed, failed = tunables.restore_abandoned(roots)
    for words, more in zip(
        (completed, failed), null_block.remove_abandoned(roots.sys / "kernel/config"), strict=True
    ):
        words += more
    for left in scratch.abandoned_scratches():
        existed = left.path.exists()
        left.close()
        if left.path.exists():
            sudo = "sudo " if os.geteuid() else ""
            failed.append(f"cannot remove {left.path}: {sudo}rm -r {shlex.quote(str(left.path))}")
        elif existed:
            completed.append(f"{left.path} is removed")
    failed += scratch.pop_staying_messages()
    return completed, failed


def clean_up_and_report(report: Callable[[str], None], roots: Roots) -> None:
    """Undo what crashed sessions left, with one sentence to ``report`` for each success and
    failure."""
    for lines in clean_up(roots):
        for line in lines:
            report(f"left by a crash: {line}")
