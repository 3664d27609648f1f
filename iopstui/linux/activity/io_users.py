"""Which program does most of the I/O of others on a disk (/proc/PID/io, proc(5))."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from iopstui.linux.devices.open_devices import OpenDevices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.cpu_users import CpuUsers
from iopstui.linux.process.process_io import ProcessIo, ProcessRates
from iopstui.linux.process.processes import is_within, task_stat
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.experiment.disturbance import DisturbanceMeter, OtherIo
from iopstui.model.findings.evidence import JobShape

MOST, NEARLY_ALL = 0.5, 0.9
"""The share of others' bytes that the named program did at least; of I/Os only the bytes of each
program are known, so that it must have done nearly all of them."""
MORE_THAN_ALL = 1.25
"""A program with so many times the bytes of the whole disk did most of them elsewhere, or in
seconds that were not measured."""
_PARENT = 1
"""ppid in /proc/PID/stat, counted after the name."""


class IoUsers:
    """The I/O of all processes since this object was made, other than this program's own."""

    def __init__(
        self, devices: Mapping[str, BlockDevice], roots: Roots | None = None,
        own_pid: int | None = None,
    ) -> None:  # fmt: skip
        self._devices, self._roots = devices, roots or Roots()
        self._own_pid = os.getpid() if own_pid is None else own_pid
        self._processes = ProcessIo(0.0, self._roots)
        self._rates()

    def _rates(self) -> Sequence[ProcessRates]:
        """The rates since the reading before. There are two in a run: until then no file of each
        process stays open."""
        rates = self._processes.rates()
        self._processes.close_files()
        return rates or ()

    def most_of(self, other: OtherIo) -> str:
        """ "backupd 11939", the program that did most of this I/O; "" if none did, or if it is not
        known: it has ended, or not all of its files are seen to be on that disk."""
        finder = OpenDevices(self._devices, self._roots)
        least = (MOST if other.of_bytes else NEARLY_ALL) * other.others.bytes_s
        for process in self._rates():
            rates = process.read_s, process.write_s
            if sum(rates) < least:
                break  # the busiest are first
            if process.kernel or process.children:
                continue
            if is_within(process.pid, self._own_pid, self._parent_of):
                continue
            places = finder.sole(process.pid, process.faults) or ((), ())
            there = sum(rate for rate, place in zip(rates, places, strict=True)
                        if other.name in place)  # fmt: skip
            if 0 < least <= there <= MORE_THAN_ALL * other.total.bytes_s:
                return f"{process.comm} {process.pid}"
        return ""

    def _parent_of(self, pid: int) -> int:
        try:
            return int(task_stat(f"{self._roots.proc}/{pid}")[1][_PARENT])
        except (OSError, ValueError, IndexError):
            return 0


def disturbance_meter(
    target: Target, shape: JobShape, devices: Mapping[str, BlockDevice], roots: Roots | None = None
) -> DisturbanceMeter:
    """A meter for a run of a job of this ``shape`` that can name who uses CPUs and disks now."""
    users = CpuUsers().busiest, IoUsers(devices, roots).most_of
    return DisturbanceMeter(target, shape, *users)
