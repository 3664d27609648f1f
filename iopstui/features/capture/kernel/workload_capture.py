"""Capture the workload of disks: poll the kernel's ring, count the requests, and name the processes
that made them."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

from iopstui.features.capture.kernel import programs
from iopstui.features.capture.kernel.bpf_capture import Batch, BpfCapture, CaptureUnusable
from iopstui.features.capture.model.trace import TraceBuffer
from iopstui.features.capture.model.workload import (
    METADATA,
    METADATA_PROCESS,
    PID_AT,
    Workload,
    WorkloadCounter,
)
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots, read_text
from iopstui.linux.probe.regions import Region, regions
from iopstui.linux.process.processes import task_stat
from iopstui.text import printable

MAX_CACHED = 8192
ENDED = "ended processes"
"""The name for processes that had ended before their names were looked up."""
_MAX_PARENTS = 64


class Processes:
    """The names of processes by number, each looked up once. Only the processes in ``roots_of`` and
    those that they have started are chosen; if it is empty, all are."""

    def __init__(self, roots: Roots, roots_of: Collection[int] = ()) -> None:
        self._proc = roots.proc
        self._roots_of = frozenset(roots_of)
        self._names: dict[int, str] = {}
        self._chosen: dict[int, bool] = {}

    def name(self, pid: int) -> str:
        """The name of process ``pid``, or METADATA_PROCESS."""
        if pid & METADATA:
            return METADATA_PROCESS
        name = self._names.get(pid)
        if name is None:
            if len(self._names) >= MAX_CACHED:
                self._names.clear()
            name = self._names[pid] = _name(read_text(self._proc / str(pid) / "comm"))
        return name

    def is_chosen(self, pid: int) -> bool:
        """Whether the process is one of the chosen ones, or was started by one of them."""
        pid &= ~METADATA
        is_chosen = self._chosen.get(pid)
        if is_chosen is None:
            if len(self._chosen) >= MAX_CACHED:
                self._chosen.clear()
            is_chosen = self._chosen[pid] = self._descends_from_root(pid)
        return is_chosen

    def _descends_from_root(self, pid: int) -> bool:
        for _ in range(_MAX_PARENTS):
            if pid in self._roots_of:
                return True
            pid = self._parent(pid)
            if not pid:
                break
        return False

    def _parent(self, pid: int) -> int:
        try:
            fields = task_stat(f"{self._proc}/{pid}")[1]
        except OSError:
            return 0
        return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0


def _name(comm: str | None) -> str:
    if not comm:
        return ENDED
    if comm.startswith("kworker"):
        # all kworkers are counted under one name, except those for writeback
        return "kworker (writeback)" if "flush-" in comm else "kworker"
    return printable(comm) or "?"


def cgroups_below(path: Path) -> frozenset[int]:
    """The numbers of the cgroup at ``path`` and of all cgroups below it, as captured requests
    contain them: the lower 32 bits of the directories' inodes. Empty if the directory can't be
    read."""
    numbers = set()
    for place, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            numbers.add(os.stat(place).st_ino & 0xFFFFFFFF)
    return frozenset(numbers)


POLL_S = 0.05
_SETTLE_S = 0.005
# fields of /sys/block/*/stat (Documentation/block/stat.rst): completed reads, writes, discards
_COMPLETED_FIELDS = (0, 4, 11)
_CGROUPS_EVERY = 40
"""After this many polls, new cgroups below the chosen one are looked for."""


@dataclass(frozen=True, slots=True)
class ProcessFilter:
    """Which requests are counted: those of the processes ``pids`` and of processes that they start,
    or those of the cgroup with this directory. If both are empty, all are."""

    pids: tuple[int, ...] = ()
    cgroup: str = ""

    @property
    def everything(self) -> bool:
        """Whether all requests are counted."""
        return not self.pids and not self.cgroup


class WorkloadCapture:
    """A capture, which runs from its construction on. ``poll`` must be called every POLL_S. Raises
    CaptureUnusable."""

    def __init__(
        self, name: str, regions: Sequence[Region], choice: ProcessFilter, roots: Roots,
        trace: TraceBuffer | None = None,
    ) -> None:  # fmt: skip
        self._name = name
        self._roots = roots
        self._choice = choice
        self._trace = trace
        self._regions = tuple(regions)
        self._processes = Processes(roots, choice.pids)
        self._counter = WorkloadCounter(self._processes.name)
        self._cgroups: Collection[int] = ()
        self._polls = self._lost = self.seen = 0
        """``seen``: all requests so far, of all processes."""
        self._capture = BpfCapture(regions, roots)
        self._disk_began = self._completed()
        self.begin()

    def begin(self) -> None:
        """Begin to count now, and forget earlier counts."""
        self._capture.take(last=True)
        self.seen = 0
        self._disk_began = self._completed()
        self._count_from(time.monotonic_ns())

    def _count_from(self, began_ns: int) -> None:
        self._counter = WorkloadCounter(self._processes.name)
        self._counter.begin(began_ns)
        self._began = began_ns
        self._lost, self._missed = 0, self._capture.counts()

    def poll(self, last: bool = False) -> int:
        """Count the requests that have arrived. Returns their number."""
        if self._choice.cgroup and self._polls % _CGROUPS_EVERY == 0:
            self._cgroups = cgroups_below(Path(self._choice.cgroup))
        self._polls += 1
        batch = self._capture.take(last)
        self._lost += batch.lost
        self.seen += len(batch) + batch.lost
        columns = self._chosen(batch)
        if self._trace is not None:
            self._trace.add(
                columns[programs.TIME], columns[programs.SECTOR], columns[programs.SHAPE]
            )
        self._counter.add(columns[programs.TIME], *columns[programs.SHAPE :])
        return len(columns[0])

    def gone(self) -> bool:
        """Whether one of the disks has vanished."""
        places = (self._roots.sys / f"dev/block/{region.major}:{region.minor}"
                  for region in self._regions)  # fmt: skip
        return not all(place.exists() for place in places)

    def result(self, active: bool = False) -> Workload:
        """The workload so far; the capture goes on. ``active``: leave out the idle time before the
        first request and after the last."""
        # wait, so that programs that are now running complete their records
        time.sleep(_SETTLE_S)
        self.poll(last=True)
        counts, before = self._capture.counts(), self._missed
        begin, end = self._began, time.monotonic_ns()
        if active and self._counter.span is not None:
            begin, end = self._counter.span
        return self._counter.result(
            self._name, end, self._lost, counts.missed - before.missed,
            counts.requeued - before.requeued, counts.unknown - before.unknown,
            not self._choice.everything, begin,
        )  # fmt: skip

    def cut(self) -> Workload:
        """Return the workload so far, and begin to count anew; only ``disk_counted`` is not
        reset."""
        workload = self.result()
        self._count_from(self._began + round(workload.seconds * 1e9))
        return workload

    def disk_counted(self) -> int | None:
        """By how many requests the disks' own counters (/sys/block/*/stat) have grown: requests
        with data, and one write for each flush without data. ``None`` if the counters of a disk
        can't be read."""
        now, before = self._completed(), self._disk_began
        return None if now is None or before is None else now - before

    def close(self) -> None:
        """End the capture. Idempotent."""
        self._capture.close()

    def _chosen(self, batch: Batch) -> Sequence[list[int]]:
        if self._choice.everything:
            return batch.columns
        if self._choice.cgroup:
            matches = [cgroup in self._cgroups for cgroup in batch.columns[programs.CGROUP]]
        else:
            is_chosen = self._processes.is_chosen
            matches = [is_chosen(shape >> PID_AT) for shape in batch.columns[programs.SHAPE]]
        return [list(compress(column, matches)) for column in batch.columns]

    def _completed(self) -> int | None:
        counts = [self._completed_of(region) for region in self._regions]
        readable = [count for count in counts if count is not None]
        return sum(readable) if len(readable) == len(counts) else None

    def _completed_of(self, region: Region) -> int | None:
        place = self._roots.sys / "class/block" / region.name.replace("/", "!") / "stat"
        fields = [int(field) for field in (read_text(place) or "").split() if field.isdigit()]
        return sum(fields[at] for at in _COMPLETED_FIELDS if at < len(fields)) if fields else None


# A capture in its own thread, for a screen that shows it while it runs.


RESULT_EVERY = round(1 / POLL_S)
"""After this many polls, a new result is made."""
_END_S = 2.0


class LiveCapture:
    """Captures the disks called ``names`` from construction on. ``workload`` is the newest result,
    at most a second old; ``problem`` says why the capture does not work ("" if it does)."""

    def __init__(self, names: Sequence[str], roots: Roots) -> None:
        self.workload: Workload | None = None
        self.problem = ""
        self._names = tuple(names)
        self._roots = roots
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the capture. Idempotent."""
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
