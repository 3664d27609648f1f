"""What a killed iopstui left: scratch files and changed settings."""

from __future__ import annotations

import shutil

from iopstui.session.scratch import abandoned
from iopstui.session.tunables import restore_abandoned
from iopstui.sources.fio_process import abandoned_directories
from iopstui.sources.roots import Roots


def clean_up(roots: Roots) -> tuple[list[str], list[str]]:
    """Undo it: (what was done, what could not be), in words."""
    done, failed = restore_abandoned(roots)
    for scratch in abandoned():
        existed = scratch.path.exists()
        scratch.close()
        if scratch.path.exists():
            failed.append(f"{scratch.path} can't be removed: sudo rm -r {scratch.path}")
        elif existed:
            done.append(f"{scratch.path} is removed")
    for directory in abandoned_directories():
        # job files and fio's output, in memory: not worth a word
        shutil.rmtree(directory, ignore_errors=True)
    return done, failed
