"""Read the measurement conditions in the background; a hung disk must not stop the session."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from iopstui.discovery import feature_modules
from iopstui.linux.process.limits import exhausted_limit
from iopstui.linux.roots import Roots
from iopstui.model.answer.situation import HourMedian
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.conditions import Conditions, ProcessLoad

if TYPE_CHECKING:
    from iopstui.linux.counters.cgroup_load import CgroupLoad
    from iopstui.linux.machine.conditions import ConditionsFiles
    from iopstui.linux.process.process_io import ProcessIo
    from iopstui.model.cgroups.rates import GroupRates

MAX_PROCESSES = 30


def with_arrays(tree: Sequence[str], devices: Mapping[str, BlockDevice]) -> tuple[str, ...]:
    """These devices, and the md arrays that they are members of, because arrays do I/O on their
    own."""
    arrays = [holder for name in tree if name in devices for holder in devices[name].holders
              if holder in devices and devices[holder].kind == "md"]  # fmt: skip
    return tuple(dict.fromkeys((*tree, *arrays)))


class ConditionsReader:
    """Reads conditions in the background; poll it from time to time. To be used by one thread,
    which never blocks."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._files: ConditionsFiles | None = None
        self._processes: ProcessIo | None = None
        self._groups: tuple[tuple[str, ...], CgroupLoad] | None = None
        self._thread: threading.Thread | None = None
        self._results: deque[Conditions] = deque(maxlen=1)
        self._closed = False

    def ask(
        self,
        t: float,
        devices: Mapping[str, BlockDevice],
        names: Sequence[str],
        cpus: Sequence[int] = (),
        job_pids: frozenset[int] | None = None,
        groups: bool = False,
    ) -> None:
        """Begin a reading of these devices (names of ``devices``) and CPUs (none given: all that
        are online); one that is under way goes on. ``t`` is the session's clock. ``job_pids``: also
        read other processes that do I/O, without these. ``groups``: also read the cgroups that do
        I/O on these devices."""
        if self._closed or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = threading.Thread(
            target=self._read_in_thread,
            args=(t, dict(devices), tuple(names), tuple(cpus), job_pids, groups),
            name="conditions",
            daemon=True,
        )
        with contextlib.suppress(RuntimeError):  # the limit of threads is reached: try again later
            self._thread.start()

    def take(self) -> Conditions | None:
        """The newest reading, once; ``None`` if there is nothing new."""
        return self._results.pop() if self._results and not self._closed else None

    def close(self) -> None:
        """Forget the readings. Does not wait for a current one, which leaves nothing open."""
        self._closed = True
        if self._files is not None and not (self._thread and self._thread.is_alive()):
            self._files.close()

    def _read_in_thread(
        self,
        t: float,
        devices: Mapping[str, BlockDevice],
        names: Sequence[str],
        cpus: Sequence[int],
        job_pids: frozenset[int] | None,
        groups: bool,
    ) -> None:
        with contextlib.suppress(OSError):  # the limit of open files is reached: try again later
            if self._files is None:
                # imported by the first reading, because nobody waits for it
                from iopstui.linux.machine.conditions import ConditionsFiles

                self._files = ConditionsFiles(self._roots)
            conditions = self._files.read(devices, names, t, cpus)
            if job_pids is not None:
                conditions = replace(conditions, processes=self._other_programs(job_pids, devices))
            if groups:
                conditions = replace(conditions, groups=self._cgroups(names))
            self._results.append(conditions)
            if self._closed:
                self._files.close()

    def _cgroups(self, names: Sequence[str]) -> tuple[GroupRates, ...] | None:
        """The cgroups' I/O since the reading before; ``None`` at the first one."""
        if self._groups is None or self._groups[0] != names:
            from iopstui.linux.counters.cgroup_load import CgroupLoad

            self._groups = (tuple(names), CgroupLoad(names, self._roots))
        return self._groups[1].rates()

    def _other_programs(
        self, job_pids: frozenset[int], devices: Mapping[str, BlockDevice]
    ) -> tuple[ProcessLoad, ...] | None:
        """Other programs' I/O since the reading before; ``None`` at the first one."""
        if self._processes is None:
            from iopstui.linux.process.process_io import ProcessIo

            self._processes = ProcessIo()
        from iopstui.linux.activity.disk_use import group_of

        rates = self._processes.rates()
        if rates is None:
            return None
        from iopstui.linux.devices.open_devices import OpenDevices

        finder = OpenDevices(devices, self._roots)
        excluded = job_pids | {os.getpid()}
        return tuple(
            ProcessLoad(
                process.pid,
                process.comm,
                process.read_s,
                process.write_s,
                group_of(process.pid, self._roots),
                *(finder.sole(process.pid, process.faults) or (None, None)),
            )
            for process in [process for process in rates if process.pid not in excluded][
                :MAX_PROCESSES
            ]
        )


# Find in the background what is usual at this hour, if a feature knows it.


EVERY_S = 1200.0
FIRST_AT_S = 2.0
"""A session that lasts shorter needs none."""


class HourBaseline:
    """To be used by one thread, which never blocks. ``medians`` are by disk; empty while nothing is
    known."""

    def __init__(self, roots: Roots) -> None:
        self.medians: Mapping[str, HourMedian] = {}
        self._is_read = roots.real
        self._due_at = FIRST_AT_S
        self._thread: threading.Thread | None = None

    def ask(self, t: float, wall_s: float, devices: Mapping[str, BlockDevice]) -> None:
        """Begin to read if that is due at ``t`` (the session's clock)."""
        if not self._is_read or t < self._due_at:
            return
        self._due_at = t + EVERY_S
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = threading.Thread(
            target=self._read, args=(dict(devices), wall_s), name="hour baseline", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError:  # the limit of threads is reached: try again later
            self._thread = None

    def _read(self, devices: Mapping[str, BlockDevice], wall_s: float) -> None:
        try:
            for module in feature_modules("hour_baseline"):
                self.medians = module.hour_medians(devices, wall_s)
        except Exception as error:
            # memory is short or limited: answers do without it
            if not exhausted_limit(error):
                raise
