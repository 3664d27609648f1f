"""A capture in a thread of its own, for a screen that shows it while it runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from iopstui.features.capture.kernel.bpf_capture import CaptureUnusable
from iopstui.features.capture.kernel.workload_capture import POLL_S, ProcessFilter, WorkloadCapture
from iopstui.features.capture.model.workload import Workload
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.probe.regions import regions
from iopstui.linux.roots import Roots

RESULT_EVERY = round(1 / POLL_S)
"""Polls after which a new result is made."""
_END_S = 2.0


class LiveCapture:
    """Captures the disks called ``names`` from construction on. ``workload`` is the newest result,
    a second old at most; ``problem`` says why there is none, "" if nothing is wrong."""

    def __init__(self, names: Sequence[str], roots: Roots) -> None:
        self.workload: Workload | None = None
        self.problem = ""
        self._names = tuple(names)
        self._roots = roots
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it. Idempotent."""
        self._end.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        try:
            devices = read_devices(self._roots)
            selected = [region for region in regions(self._names, devices, self._roots)
                     if region.name in self._names]  # fmt: skip
            if not selected:
                raise CaptureUnusable("there is no disk below the target")
            if len({region.bios for region in selected}) > 1:
                raise CaptureUnusable("a stacked device and a disk cannot be captured together")
            names = ", ".join(region.name for region in selected)
            running = WorkloadCapture(names, selected, ProcessFilter(), self._roots)
        except (CaptureUnusable, OSError) as error:
            self.problem = str(error)
            return
        try:
            self._follow(running)
        finally:
            running.close()

    def _follow(self, running: WorkloadCapture) -> None:
        polls = 0
        while not self._end.wait(POLL_S):
            running.poll()
            polls += 1
            if polls % RESULT_EVERY == 0:
                self.workload = running.result()
                if running.gone():
                    self.problem = "the disk has vanished"
                    return
