"""Where a changed program can do no harm: it removes files, kills processes and turns settings.

Root's `make mutants` runs in a mount and process namespace of its own: all but build/ is read only
or thrown away afterwards, and no other process can be seen. Others can't do much harm, but what
they can is their own risk.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

_INSIDE = "IOPSTUI_MUTANTS_INSIDE"
_SCRIPT = """
set -e
mount --bind "$0" "$0"
mount -o remount,ro,bind /
mount -o remount,ro /sys
mkdir -p "$0/tmp"
for place in "$0/tmp" /dev/shm; do mount -t tmpfs -o mode=1777 mutants "$place"; done
TMPDIR="$0/tmp" exec "$@"
"""


def enter(writable: Path) -> None:
    """Begin again inside, as root."""
    if os.environ.get(_INSIDE) or os.geteuid():
        return
    unshare = shutil.which("unshare")
    if not unshare:
        raise SystemExit("mutants: root needs unshare(1) of util-linux, to do no harm")
    writable.mkdir(parents=True, exist_ok=True)
    os.environ[_INSIDE] = "yes"
    os.execv(
        unshare,
        [unshare, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
         "sh", "-c", _SCRIPT, str(writable), sys.executable, *sys.argv],
    )  # fmt: skip
