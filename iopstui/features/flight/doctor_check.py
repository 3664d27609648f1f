"""Check whether the flight recorder is installed as a service, and records."""

from __future__ import annotations

import os
import time

from iopstui.features.flight.directory import SERVICE_DIRECTORY, is_recorded, stored_files
from iopstui.format import duration
from iopstui.linux.kernel_files import Roots
from iopstui.preflight.doctor import Check

UNIT = "iopstui-flight.service"
STATE = str(SERVICE_DIRECTORY).lstrip("/")
ENABLE = "sudo systemctl enable --now iopstui-flight"
NAME, OK, LACKS = "flight recorder", "ok", "lacks"
LATE_S = 60.0
"""A recorder that has written nothing for this long (s) counts as not recording."""


def check(roots: Roots) -> Check | None:
    """The service's state, judged only by files; ``None`` if it is not installed."""
    top = roots.proc.parent
    places = [top / place / UNIT for place in ("etc/systemd/system", "usr/lib/systemd/system",
                                               "lib/systemd/system")]  # fmt: skip
    if not any(place.exists() for place in places):
        return None
    state = top / STATE
    if not os.access(state, os.R_OK | os.X_OK) and state.exists():
        return Check(NAME, OK, f"{UNIT} is installed; only root sees its recordings",
                     f"sudo iopstui why /{STATE} --at TIME")  # fmt: skip
    files = stored_files(state)
    if not is_recorded(state):
        enabled = os.path.lexists(top / "etc/systemd/system/multi-user.target.wants" / UNIT)
        if enabled:
            return Check(NAME, LACKS, f"{UNIT} is enabled and does not record",
                         "systemctl status iopstui-flight")  # fmt: skip
        return Check(NAME, OK, f"{UNIT} is installed and not enabled", ENABLE)
    if not files or time.time() - files[-1].written_s > LATE_S:
        return Check(NAME, LACKS, f"it runs, and has written nothing for more than {LATE_S:.0f} s",
                     "journalctl -u iopstui-flight")  # fmt: skip
    size = sum(file.size for file in files) >> 20
    length = duration(3600 * ((time.time() - files[0].name.began_s) // 3600))
    return Check(NAME, OK, f"records to /{STATE}: the last {length}, {size} MiB")
