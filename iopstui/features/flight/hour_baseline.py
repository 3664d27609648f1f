"""The usual latencies of this machine's disks at this hour. The answers on the live screen compare
with them."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Mapping

from iopstui.errors import IopstuiError
from iopstui.features.flight.directory import HOUR_S, stored_files
from iopstui.features.flight.recording_directory import recorded_directories
from iopstui.model.answer.situation import HourMedian
from iopstui.model.block.device import BlockDevice


def hour_medians(devices: Mapping[str, BlockDevice], now_s: float) -> dict[str, HourMedian]:
    """The usual latency by disk, from the first flight recording of this machine that has enough
    days."""
    booted_s = now_s - time.clock_gettime(time.CLOCK_BOOTTIME)
    for one in recorded_directories():
        # imported only now, because most machines have no recording
        from iopstui.features.flight.history import usual_at
        from iopstui.recording.reader import Recording

        with contextlib.suppress(IopstuiError, OSError, IndexError):
            with Recording(stored_files(one.path)[-1].path) as recording:
                if recording.header.host != os.uname().nodename:
                    continue
            usual = usual_at(one.path, now_s, _SameDisk(devices, booted_s))
            found = {
                name: HourMedian(each.ms, each.days) for name, each in usual.items() if each.ms
            }
            if found:
                return found
    return {}


class _SameDisk:
    """Tells whether a name meant the same disk at an earlier time. Names may change with each boot,
    and serial numbers are not recorded. So if the machine has several disks of the same kind, a
    name is only trusted since the last boot."""

    def __init__(self, devices: Mapping[str, BlockDevice], booted_s: float) -> None:
        self._kinds = {name: _kind(device) for name, device in devices.items()}
        self._counts = Counter(self._kinds.values())
        self._booted_s = booted_s

    def __call__(self, name: str, recorded: BlockDevice | None, at_s: float) -> bool:
        kind = self._kinds.get(name)
        if recorded is None or kind is None or _kind(recorded) != kind:
            return False
        return self._counts[kind] == 1 or at_s - HOUR_S > self._booted_s


def _kind(device: BlockDevice) -> tuple[str, str | None, int | None]:
    return device.kind, device.model, device.size
