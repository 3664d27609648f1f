"""The tree of a frame's figures.

``FRAME`` defines a frame event (``--format jsonl``); the rows of each subject are next to its code
(fio/interval.py, figures/disk.py, metrics/probe.py ...)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from iopstui.format import utc
from iopstui.model.cgroups import GROUP_ROWS as GROUP
from iopstui.model.cgroups import SOURCE as GROUPS
from iopstui.model.figures.disk import DISK, NOT_ADDED
from iopstui.model.figures.figure import (
    BOOLEAN,
    BY_KEY,
    DEVICE,
    IN_LIST,
    SECONDS,
    TEXT,
    TOTAL,
    WAIT,
    Figure,
    Part,
    Rows,
)
from iopstui.model.fio.interval import FIO as FIO_ROWS
from iopstui.model.metrics.aws import SOURCE as AWS
from iopstui.model.metrics.aws import VOLUME
from iopstui.model.metrics.cpus import CPU
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.nvme import DIAG, DIAG_ROWS, DRIVE_ROWS, NVME
from iopstui.model.metrics.probe import PROBE as PROBE_ROWS
from iopstui.model.metrics.probe import ProbedRequests
from iopstui.model.metrics.shares import NFS, NFS_ROWS, SMB, SMB_ROWS, Share
from iopstui.model.metrics.waits import WAITS
from iopstui.model.network import CONNECTION
from iopstui.model.network import SOURCE as TCP
from iopstui.model.sources import SOURCES, Source

FLAGS = (
    "RAMP fio warms up; PARTIAL short interval, or a job ended in it; "
    "HANDOVER another run worked in it, too (in no mean); "
    "LATE no status of fio in time; RESET fio's counters began again; NO_FIO no job; "
    "NO_LATENCY the job measures none; SOME_LATENCY only some of its I/Os have one; "
    "FINAL fio's last status; SUBMITTED I/Os are submissions, completions are not known; "
    "WRONG_LATENCY fio's latencies would need many more I/Os in flight than the job has; "
    "APPROX_IOPS I/Os per second are of clearly other seconds than the rest of the row; "
    "APPROX_BW bytes per second likewise; "
    "APART fio's and the kernel's figures are of clearly different seconds"
)


def _of_all(row: Figure) -> Figure:
    """A disk's figure for all devices that the jobs work on together."""
    if row.part in NOT_ADDED:
        return replace(row, meaning="of the one device that the jobs work on; null for several, as "
                       "shares don't add up")  # fmt: skip
    method = {"ms": ": their waiting over their requests", "KiB": ": their bytes over their "
              "requests"}.get(row.unit, "")  # fmt: skip
    of = f"of all devices that the jobs work on together, each once{method}"
    return replace(row, meaning=f"{of}: {row.meaning}")


def _more(source: Source) -> Part:
    place = source.place or f"/proc/{source.file}"
    rows = (Figure(figure.name, figure.unit, figure.meaning, over=SECONDS)
            for figure in source.figures)  # fmt: skip
    return Part(source.name, tuple(rows), lambda frame: frame.more.get(source.name, {}),
                always=True, source=place)  # fmt: skip


def _share(frame: Frame, on_smb: bool) -> Share | None:
    share = frame.share
    return share if share is not None and on_smb == (share.smb is not None) else None


def _probed(frame: Frame) -> ProbedRequests | None:
    return None if frame.probe is None else ProbedRequests(frame.probe, frame.opened, frame.t)


KERNEL: Rows = (
    Part("disks", DISK, many=BY_KEY, always=True, source="/proc/diskstats"),
    Part(TOTAL, tuple(_of_all(row) for row in DISK if isinstance(row, Figure)),
         source="/proc/diskstats"),
    Part("cpus", CPU, many=BY_KEY, always=True, bulky=True),
    Figure("irqs", "1/s", "one of the target device's interrupts (first key) on one CPU (second "
           "key)", keys=2, always=True, bulky=True, title="irq", source="/sys/kernel/irq"),
    *map(_more, SOURCES),
    Part(NFS, NFS_ROWS, partial(_share, on_smb=False), source="/proc/self/mountstats"),
    Part(SMB, SMB_ROWS, partial(_share, on_smb=True), source="/proc/fs/cifs/Stats"),
    Part(TCP, CONNECTION, "connections", many=IN_LIST, source="sock_diag"),
    Part(GROUPS, GROUP, "groups", many=IN_LIST, source="cgroup v2"),
    Part(AWS, VOLUME, many=BY_KEY, about="this AWS volume", source="NVMe log page D0h"),
    Part(DIAG, DIAG_ROWS, many=BY_KEY, about="this NVMe controller, path or namespace",
         source="diag/ in sysfs"),
)  # fmt: skip
JOB: Rows = (
    Figure("index", "", "number of the job, in the order fio started them"),
    Figure("cpu", "", "CPU it ran on last"),
    Figure("pinned", "", "true if it may run only on that CPU", kind=BOOLEAN),
    Figure("busy", "% of a CPU", "user and system time; null in its first interval"),
    Figure("pid", "", "number of its process, or of its thread"),
    Figure("cpu_wait", "%", "share of the interval in which it was ready to run and had no CPU"),
    Figure("workers_wait", "%", "the same share of its io_uring workers, added up; null if it has "
           "none"),
    Figure("nice", "", "its nice value (-20 to 19)"),
    Figure("policy", "", "its scheduling policy (0: SCHED_OTHER, 5: SCHED_IDLE)"),
    Figure("state", "", "its state in the kernel: R runs, S sleeps, D waits for I/O or a lock",
           kind=TEXT),
)  # fmt: skip
FRAME: Rows = (
    Figure("event", "", 'always "frame"', lambda frame: "frame", kind=TEXT, always=True),
    Figure("seq", "", "number of the sample that ends this frame", always=True),
    Figure("step", "", "number of the fio run in this session, 0 without one", always=True),
    Figure("t", "s", "time since the session's first sample, monotonic clock", always=True,
           title="time"),
    Figure("wall_ms", "ms", "wall clock at the tick, since 1970", always=True, title="clock"),
    Figure("utc", "", "wall clock at the tick as date and time (ISO 8601, UTC, to the millisecond)",
           lambda frame: utc(frame.wall_ms), kind=TEXT, always=True, title="UTC"),
    Figure("seconds", "s", "interval of the kernel's rates, monotonic clock"),
    Figure("flags", "", FLAGS, lambda frame: sorted(frame.flags), keys=1, kind=TEXT, always=True),
    Figure("fio_age_s", "s", "time since fio's last status arrived; grows while fio stalls",
           title="fio age"),
    Figure("skew_ms", "ms", "kernel's reading minus fio's time stamp", title="skew"),
    Figure("own_cpu", "% of a CPU", "CPU time of iopstui itself", over=SECONDS, title="own"),
    Figure("throttled", "%", "share of the time in which a cgroup's CPU limit stopped iopstui and "
           "fio", over=SECONDS),
    Part("fio", FIO_ROWS, source="fio json+"),
    Part(WAIT, WAITS, "waits", source="fio, diskstats"),
    Part("kernel", KERNEL, lambda frame: frame, always=True),
    Part(DEVICE, PROBE_ROWS, _probed, source="probe"),
    Part(NVME, DRIVE_ROWS, lambda frame: frame.nvme or None, about="all drives",
         source="NVMe SMART"),
    Part("jobs", tuple(replace(row, title=f"job {row.name}") for row in JOB
                       if isinstance(row, Figure)),
         many=IN_LIST, always=True, bulky=True, source="/proc/PID/stat"),
)  # fmt: skip
HOST = Figure("host", "", "machine that was measured", kind=TEXT, always=True)
EVENT: Rows = (FRAME[0], HOST, *FRAME[1:])
"""A frame as an event: writers put the host right after the event's kind."""


@cache
def row_at(path: tuple[str, ...]) -> Figure | None:
    """The figure at a path (``*`` may stand for a key); ``None`` if there is none, or if it is one
    of many in a list."""
    rows, keys = FRAME, list(path)
    while keys:
        row: Any = next((row for row in rows if row.name == keys[0]), None)
        del keys[0]
        if isinstance(row, Figure):
            return row if len(keys) == row.keys else None
        if row is None or row.many == IN_LIST:
            return None
        rows = row.rows
        del keys[: row.many == BY_KEY]
    return None


def owners_of(frame: Frame, path: Sequence[str]) -> tuple[Any, ...]:
    """The object that has the figure at ``path``, then the objects around it up to the frame; empty
    if one is missing."""
    owners: tuple[Any, ...] = (frame,)
    rows, keys = FRAME, list(path)
    while True:
        row: Any = next(row for row in rows if row.name == keys[0])
        if isinstance(row, Figure):
            return owners
        value = row.value(owners[0])
        del keys[0]
        if row.many == BY_KEY and value is not None:
            # the keys of CPUs are numbers
            value = value.get(keys[0]) or (value.get(int(keys[0])) if keys[0].isdigit() else None)
            del keys[0]
        value = row.none if value is None else value
        if value is None:
            return ()
        rows, owners = row.rows, (value, *owners)
