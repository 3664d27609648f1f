"""Readers in the background of things that may hang or take long: conditions of the measurement,
who uses the disks, NVMe drives, what is usual at this hour."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from iopstui.discovery import feature_modules
from iopstui.linux.kernel_files import Roots
from iopstui.linux.own_threads import BackgroundReader
from iopstui.linux.process.limits import exhausted_limit
from iopstui.model.answer.situation import HourMedian
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.conditions import Conditions, ProcessLoad
from iopstui.model.samples import DriveReading

if TYPE_CHECKING:
    from iopstui.linux.activity.disk_use import DiskUseReader
    from iopstui.linux.counters.cgroup import CgroupLoad
    from iopstui.linux.machine.conditions import ConditionsFiles
    from iopstui.linux.nvme.health import DriveHealth
    from iopstui.linux.process.process_io import ProcessIo
    from iopstui.model.cgroups import GroupRates

MAX_PROCESSES = 30


def with_arrays(tree: Sequence[str], devices: Mapping[str, BlockDevice]) -> tuple[str, ...]:
    """These devices, and the md arrays that they are members of (arrays do I/O on their own)."""
    arrays = [holder for name in tree if name in devices for holder in devices[name].holders
              if holder in devices and devices[holder].kind == "md"]  # fmt: skip
    return tuple(dict.fromkeys((*tree, *arrays)))


class ConditionsReader(BackgroundReader):
    """Reads conditions of the measurement; poll it from time to time."""

    name = "conditions"

    def __init__(self, roots: Roots) -> None:
        super().__init__()
        self._roots = roots
        self._files: ConditionsFiles | None = None
        self._processes: ProcessIo | None = None
        self._groups: tuple[tuple[str, ...], CgroupLoad] | None = None
        self._results: deque[Conditions] = deque(maxlen=1)

    def ask(
        self,
        t: float,
        devices: Mapping[str, BlockDevice],
        names: Sequence[str],
        cpus: Sequence[int] = (),
        job_pids: frozenset[int] | None = None,
        groups: bool = False,
    ) -> None:
        """Begin a reading of these devices (names of ``devices``) and CPUs (if none are given: all
        that are online). A reading that is under way goes on. ``t`` is the session's clock.
        ``job_pids``: also read other processes that do I/O, without these. ``groups``: also read
        the cgroups that do I/O on these devices."""
        self._begin(self._read, t, dict(devices), tuple(names), tuple(cpus), job_pids, groups)

    def take(self) -> Conditions | None:
        """Return the newest reading, once; ``None`` if there is nothing new."""
        return self._results.pop() if self._results and not self._closed else None

    def close(self) -> None:
        """Forget the readings. Does not wait for a current one, which leaves nothing open."""
        super().close()
        if self._files is not None and not self._is_reading:
            self._files.close()

    def _read(
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
                # imported here, in the background, because nobody waits for this reading
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
        """The cgroups' I/O since the previous reading; ``None`` at the first one."""
        if self._groups is None or self._groups[0] != names:
            from iopstui.linux.counters.cgroup import CgroupLoad

            self._groups = (tuple(names), CgroupLoad(names, self._roots))
        return self._groups[1].rates()

    def _other_programs(
        self, job_pids: frozenset[int], devices: Mapping[str, BlockDevice]
    ) -> tuple[ProcessLoad, ...] | None:
        """Other programs' I/O since the previous reading; ``None`` at the first one."""
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


EVERY_S = 1200.0
FIRST_AT_S = 2.0
"""Seconds: a session that ends earlier does not need the figures."""


class HourBaseline(BackgroundReader):
    """Finds what is usual at this hour, if a feature of the program knows it. ``medians`` are by
    disk, and empty while nothing is known."""

    name = "hour baseline"

    def __init__(self, roots: Roots) -> None:
        super().__init__()
        self.medians: Mapping[str, HourMedian] = {}
        self._is_read = roots.real
        self._due_at = FIRST_AT_S

    def ask(self, t: float, wall_s: float, devices: Mapping[str, BlockDevice]) -> None:
        """Begin to read if that is due at ``t`` (the session's clock)."""
        if not self._is_read or t < self._due_at:
            return
        self._due_at = t + EVERY_S
        self._begin(self._read, dict(devices), wall_s)

    def _read(self, devices: Mapping[str, BlockDevice], wall_s: float) -> None:
        try:
            for module in feature_modules("hour_baseline"):
                self.medians = module.hour_medians(devices, wall_s)
        except Exception as error:
            # memory is short or limited: answers do without the figures
            if not exhausted_limit(error):
                raise


MAX_CPU_SHARE = 0.002
"""Share of a CPU for the readings: if one takes 10 ms, the next is made after 5 s."""
MIN_INTERVAL_S, LATER_INTERVAL_S = 1.0, 2.0
QUICK_READINGS = 4
"""When a disk begins to be used, this many readings are made, one a second whatever they cost, to
know soon who uses it."""
PAUSE_S = 20.0
TASKS_EVERY = 2
"""Of the later readings, one out of this many also looks for waiting tasks."""


class UseWatch(BackgroundReader):
    """Reads who uses the disks, as often as its cost allows, and only when ``ask`` is called.
    ``eager``: read every second at any cost; else at most every ``min_interval_s``, and after the
    first ones every other second."""

    name = "disk use"

    def __init__(
        self, roots: Roots, eager: bool = False, min_interval_s: float = MIN_INTERVAL_S
    ) -> None:
        super().__init__()
        self._eager = eager
        self._min_interval_s = max(MIN_INTERVAL_S, min_interval_s)
        self._roots = roots
        self._reader: DiskUseReader | None = None
        self._results: deque[DiskUse] = deque(maxlen=1)
        self._due_at = 0.0
        self._asked_at = 0.0
        self._readings = 0

    def ask(self, t: float, devices: Mapping[str, BlockDevice], tasks: bool) -> None:
        """Begin a reading if one is due at ``t`` (the session's clock)."""
        if self._closed or self._is_reading or t < self._due_at:
            return
        self._due_at = t + MIN_INTERVAL_S * 0.9
        if self._eager or t - self._asked_at > PAUSE_S:
            self._readings = 0
        self._asked_at, self._readings = t, self._readings + 1
        tasks = tasks and (self._readings <= QUICK_READINGS or not self._readings % TASKS_EVERY)
        self._begin(self._read, t, dict(devices), tasks)

    def take(self) -> DiskUse | None:
        """Return the newest reading, once."""
        return self._results.pop() if self._results and not self._closed else None

    def _read(self, t: float, devices: Mapping[str, BlockDevice], tasks: bool) -> None:
        began = time.thread_time()
        with contextlib.suppress(OSError):  # the limit of open files is reached: try again later
            if self._reader is None:
                # imported here, in the background, because nobody waits for this reading
                from iopstui.linux.activity.disk_use import DiskUseReader

                self._reader = DiskUseReader(self._roots)
            use = self._reader.read(t, devices, tasks)
            if use is not None:
                self._results.append(use)
        cost_s = time.thread_time() - began
        if self._readings > QUICK_READINGS:
            least_s = 0.9 * max(self._min_interval_s, LATER_INTERVAL_S)
            self._due_at = t + max(least_s, cost_s / MAX_CPU_SHARE)
        if self._closed:
            self._reader = None

    def close(self) -> None:
        """Also closes the files of each process, which the reader keeps open."""
        super().close()
        if not self._is_reading:
            self._reader = None


INTERVAL_S = 10.0
LAST_TIMEOUT_S = 1.0
"""How long the end of a run waits for its last reading. Most drives answer within a millisecond."""


class DriveReader(BackgroundReader):
    """Reads the counters of the NVMe drives below a target every ``INTERVAL_S`` seconds, at the
    beginning of a run and at its end; blocks only in ``read_last``. Without an NVMe drive in the
    target's tree, nothing is read and no thread is started."""

    name = "drives"

    def __init__(self, roots: Roots) -> None:
        super().__init__()
        self._roots = roots
        self._health: DriveHealth | None = None
        self._lock = threading.Lock()
        self._readings: dict[str, DriveReading] = {}
        self._first_counts: dict[str, Mapping[str, int]] = {}
        self._run = 0
        self._due_at = 0.0

    def begin(self) -> None:
        """Note that a run begins: later readings are compared with the next one."""
        with self._lock:
            self._run += 1
            self._readings, self._first_counts = {}, {}
        self._due_at = 0.0

    def start_if_due(
        self, t: float, devices: Mapping[str, BlockDevice], tree: Sequence[str]
    ) -> None:
        """Begin a reading if one is due at ``t`` (seconds of the session)."""
        if t >= self._due_at and self._start(devices, tree):
            self._due_at = t + INTERVAL_S

    def take(self) -> dict[str, DriveReading]:
        """The readings since the last call."""
        with self._lock:
            readings, self._readings = self._readings, {}
        return readings

    def read_last(
        self, devices: Mapping[str, BlockDevice], tree: Sequence[str]
    ) -> dict[str, DriveReading]:
        """Read once more at the end of a run, and wait for the result, but not for a drive that
        hangs."""
        self._wait(LAST_TIMEOUT_S)
        if self._start(devices, tree):
            self._wait(LAST_TIMEOUT_S)
        return self.take()

    def _start(self, devices: Mapping[str, BlockDevice], tree: Sequence[str]) -> bool:
        """Start a reading. False if one is under way; True also if there is nothing to read."""
        if self._closed or not any(_is_nvme(devices, name) for name in tree):
            return True
        return self._begin(self._read, self._run, dict(devices), tuple(tree))

    def _read(self, run: int, devices: Mapping[str, BlockDevice], tree: Sequence[str]) -> None:
        # imported here, in the background, because nobody waits for this reading
        from iopstui.linux.nvme.admin import DriveUnreadable
        from iopstui.linux.nvme.health import DriveHealth, drives_of, unprivileged_counters

        if self._health is None:
            self._health = DriveHealth(self._roots)
        for controller, drive in drives_of(self._roots, devices, tree).items():
            problem = ""
            try:
                counts = self._health.read(controller, drive.namespace)
            except (DriveUnreadable, OSError) as error:
                counts, problem = unprivileged_counters(self._roots, controller), str(error)
            self._keep(run, controller, DriveReading(counts, counts, problem, drive.devices))

    def _keep(self, run: int, controller: str, reading: DriveReading) -> None:
        with self._lock:
            # a reading that began before the run says nothing about it
            if run != self._run:
                return
            if not reading.problem:
                began = self._first_counts.setdefault(controller, reading.counts)
                self._readings[controller] = replace(reading, began=began)
            elif controller not in self._first_counts:
                self._readings[controller] = reading


def _is_nvme(devices: Mapping[str, BlockDevice], name: str) -> bool:
    device = devices.get(name)
    return device is not None and device.kind == "nvme"
