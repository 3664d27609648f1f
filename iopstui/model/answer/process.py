"""What a process waits for, from how its threads were seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

DISK, SERVER, MEMORY, LOCK, CHILD, EVENT, UNKNOWN_WAIT = (
    "disk", "server", "memory", "lock", "child", "event", "unknown",
)  # fmt: skip
MIN_PERCENT = 10.0
BUSY_PERCENT = 70.0
"""A process that runs or wants to for so much of its time has little left to wait in."""
WAITS_PERCENT = 30.0
"""A process that waits so much of its time waits for something that matters."""

ASYNCHRONOUS = "read_events"
RING_PLACE = "io_cqring_wait"
_PLACES: tuple[tuple[str, str], ...] = (
    (r"nfs|rpc_|cifs|smb|ceph|p9_|request_wait_answer|fuse", SERVER),
    (r"shrink|reclaim|mem_cgroup|oom|kswapd|congestion", MEMORY),
    (r"futex|rwsem|mutex|percpu_down|rt_mutex|flock|posix_lock|locks_lock", LOCK),
    (r"^do_wait|^wait4|^kernel_wait4", CHILD),
    (r"io_schedule|folio_wait|wait_on_page|wait_on_buffer|filemap|blk_|bio_|dio|iomap|jbd2|"
     r"do_get_write_access|wait_transaction|ext4|xfs|xlog|btrfs|f2fs|rq_qos|wbt_|md_|raid|"
     r"read_events|balance_dirty|swap|dm_|loop|sync_inodes|writeback|submit_|zfs|zio|cv_wait|"
     r"bdev|__bread|d_alloc_parallel|lock_extent", DISK),
)  # fmt: skip


def place_kind(place: str, blocked: bool) -> str:
    """Which of this module's kinds of waits a kernel function belongs to. ``blocked``: state D,
    which is I/O unless the name says another thing; other tasks wait for a disk only for their
    asynchronous I/O (io_getevents)."""
    for pattern, kind in _PLACES:
        if re.search(pattern, place):
            asleep = not blocked and kind in (DISK, MEMORY) and place != ASYNCHRONOUS
            return EVENT if asleep else kind
    if blocked:
        return UNKNOWN_WAIT if not place else DISK
    return EVENT


def waits_off_cpus(percents: Mapping[str, float], off_cpus: float) -> dict[str, float]:
    """The same of a single thread, which waits no longer than it is ``off_cpus`` (percent): looks
    find it waiting too often, because they run themselves when it leaves a CPU."""
    total = sum(percents.values())
    factor = 1.0 if total <= max(0.0, off_cpus) else max(0.0, off_cpus) / total
    return {kind: factor * percent for kind, percent in percents.items()}


@dataclass(frozen=True, slots=True)
class ProcessWaits:
    """How a process was seen: ``percents`` of the looks at which at least one of its threads waited
    for each kind. ``running`` and ``ready`` are percent of the time on a CPU, and ready without
    one, of its busiest thread. ``places`` are the kernel functions it waited in. ``state`` is the
    last one seen ("Z", "" if it is gone)."""

    pid: int
    comm: str
    command: str
    looks: int
    state: str
    percents: Mapping[str, float] = field(default_factory=dict)
    running: float | None = None
    ready: float | None = None
    places: tuple[str, ...] = ()
    readable: bool = True
    kernel: bool = False
    devices: frozenset[str] = frozenset()
    parent: int = 0
    children: tuple[str, ...] = ()
    role: str = ""

    @property
    def name(self) -> str:
        """ "postgres (812)"."""
        return f"{self.command or self.comm} ({self.pid}{f', {self.role}' if self.role else ''})"

    @property
    def for_disk(self) -> float:
        """Percent of the time that it waits for a disk; in state D, whose reason is not readable,
        it nearly always is one."""
        return min(100.0, self.percents.get(DISK, 0.0) + self.percents.get(UNKNOWN_WAIT, 0.0))

    @property
    def unclear(self) -> str:
        """Why nobody can tell whether it waits for a disk, in words; "" where that is known."""
        on_cpus = (self.running or 0.0) + (self.ready or 0.0)
        if self.for_disk >= MIN_PERCENT or on_cpus >= BUSY_PERCENT or self.kernel:
            return ""
        if RING_PLACE in self.places:
            return "sleeps in io_uring, for a disk, a socket or a timer: which cannot be seen"
        unread = not self.places and self.percents.get(EVENT, 0.0) >= MIN_PERCENT
        return "sleeps: what for cannot be read" if unread else ""


_TEXTS = {
    SERVER: "for a file server", MEMORY: "for memory", LOCK: "for a lock or another thread",
}  # fmt: skip


def process_text(waits: ProcessWaits, disk: str) -> str:
    """ "fio (965) waits for vda 83 % of its time, and runs 12 %"."""
    if waits.state == "Z":
        return (f"{waits.comm} ({waits.pid}) has ended: its parent ({waits.parent}) has not asked "
                "for its exit code; it does no I/O")  # fmt: skip
    parts = []
    if waits.for_disk >= MIN_PERCENT:
        sure = waits.percents.get(DISK, 0.0) >= waits.for_disk / 2
        what = f"for {disk or 'a disk'}" if sure else "in state D, most likely for a disk,"
        parts.append(f"waits {what} {waits.for_disk:.0f} % of its time")
    for kind, text in _TEXTS.items():
        if waits.percents.get(kind, 0.0) >= MIN_PERCENT:
            parts.append(f"waits {text} {waits.percents[kind]:.0f} %")
    if waits.percents.get(CHILD, 0.0) >= MIN_PERCENT:
        names = f" {', '.join(waits.children[:3])}" if waits.children else ""
        parts.append(f"waits for its child{names} {waits.percents[CHILD]:.0f} %")
    if (waits.ready or 0.0) >= MIN_PERCENT:
        parts.append(f"waits for a CPU {waits.ready:.0f} %")
    if (waits.running or 0.0) >= MIN_PERCENT:
        parts.append(f"runs {waits.running:.0f} %")
    if waits.unclear:
        parts.append(waits.unclear)
    if not parts:
        parts.append("waits for no disk, lock or CPU: it sleeps until something happens")
    return f"{waits.name} {', '.join(parts)}"
