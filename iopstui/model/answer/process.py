"""What a process waits for, from how its threads were seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from iopstui import format as units
from iopstui.model.answer import words
from iopstui.model.answer.answer import FINDING, NOTHING, UNKNOWN, WAITS, Answer
from iopstui.model.answer.situation import NEARLY_ALWAYS, QUEUED_MS, SINGLE_DEPTH, Situation
from iopstui.model.answer.use import at_least
from iopstui.model.answer.who import MAIN_SHARE

DISK, SERVER, MEMORY, LOCK, CHILD, FROZEN, EVENT, UNKNOWN_WAIT = (
    "disk", "server", "memory", "lock", "child", "frozen", "event", "unknown",
)  # fmt: skip
MIN_PERCENT = 10.0
BUSY_PERCENT = 70.0
"""A process that runs, or is ready to, for this percentage of the time has little left to wait
in."""
MIN_LOOKS, LEAST_LOOKS = 20, 5
"""Fewer looks at a process prove nothing. There are 20 or 50 a second, fewer if CPUs are full. The
second number suffices for what nearly all of them show."""
WAITS_PERCENT = 30.0
"""A process that waits for this percentage of its time waits for something that matters."""
PROVEN_SHARE = 0.3
"""While a task waits for I/O, the machine counts as waiting for it (PSI). Looks find a task in
state D too often where CPUs are full, but PSI has at least this share of that time. This
proves; what busy CPUs hide of a task's wait (``Situation.blocked``) only keeps PSI from denying
it."""

IN_FLIGHT_SHARE = 0.5
"""While a process waits for a disk, the disk has a request in flight, or a flush."""
NO_IO_SHARE = 0.1
"""If requests are in flight for less than this share of the time in which tasks wait, the tasks
wait for something else."""
PAGE_PLACES = (
    "folio_wait", "__folio_lock", "wait_on_page", "filemap", "io_schedule", "wb_wait_for",
)  # fmt: skip
"""Beginnings of kernel functions in which the pages of files are waited for, on any file system."""
HIDDEN_POOL = "hidden-pool"
HELD_BACK = ("limit", "near-limit", "iocost", "suspended", "suspended-at-times", "pool",
             HIDDEN_POOL, "offline", f"{FINDING}iostats")  # fmt: skip
"""Rules of answers about requests that wait before the disk counts them, or that it never does."""
DIRTY_PLACE = "balance_dirty"

ASYNCHRONOUS = "read_events"
RING_PLACE = "io_cqring_wait"
_PLACES: tuple[tuple[str, str], ...] = (
    (r"nfs|rpc_|cifs|smb|ceph|p9_|request_wait_answer|fuse", SERVER),
    (r"shrink|reclaim|mem_cgroup|oom|kswapd|congestion", MEMORY),
    (r"futex|rwsem|mutex|percpu_down|rt_mutex|flock|posix_lock|locks_lock", LOCK),
    (r"^do_wait|^wait4|^kernel_wait4|^kernel_clone|^_?do_fork|vfork", CHILD),
    (r"refrigerator|freezer|^get_signal$", FROZEN),
    (r"io_schedule|folio_wait|wait_on_page|wait_on_buffer|filemap|blk_|bio_|dio|iomap|jbd2|"
     r"do_get_write_access|wait_transaction|ext4|xfs|xlog|btrfs|f2fs|rq_qos|rqos|wbt_|md_|raid|"
     r"read_events|balance_dirty|swap|dm_|loop|sync_inodes|writeback|_supers|submit_|zfs|zio|cv_wait|"
     r"bdev|__bread|d_alloc_parallel|lock_extent|wait_log_commit|wait_for_commit|wait_current_trans|"
     r"wb_wait_for|wait_barrier|wait_read_barrier", DISK),
)  # fmt: skip


def place_kind(place: str, blocked: bool) -> str:
    """Which of this module's kinds of waits a kernel function belongs to. ``blocked``: state D,
    which is often I/O, but not always (a frozen process keeps the name of what it slept in); other
    tasks wait for a disk only for their asynchronous I/O (io_getevents)."""
    for pattern, kind in _PLACES:
        if re.search(pattern, place):
            asleep = not blocked and kind in (DISK, MEMORY) and place != ASYNCHRONOUS
            return EVENT if asleep else kind
    return UNKNOWN_WAIT if blocked else EVENT


def waits_off_cpus(
    percents: Mapping[str, float], off_cpus: float, looks: float
) -> dict[str, float]:
    """Scale the ``percents`` of a thread to the share of the time that it was off the CPUs
    (``off_cpus``, percent). Looks find it waiting too often, because they run when it leaves a CPU,
    or too seldom (10 % instead of 58 % in a guest). ``looks`` found it waiting: too few of them
    don't tell what for in the rest of the time."""
    total = sum(percents.values())
    factor = max(0.0, off_cpus) / total if total else 1.0
    if looks < LEAST_LOOKS:
        factor = min(1.0, factor)
    return {kind: factor * percent for kind, percent in percents.items()}


@dataclass(frozen=True, slots=True)
class ProcessWaits:
    """How a process was seen. ``percents``: for each kind of wait, the percentage of looks that
    found at least one of its threads waiting. ``running`` and ``ready``: percent of the time its
    busiest thread ran, and was ready but had no CPU. ``places`` are the kernel functions it waited
    in. ``state`` is the last one seen ("Z", "" if it is gone). ``of`` is the process whose thread
    this is (0: it is a process), ``threads`` how many were looked at together. Percent of the time:
    ``io_percent``, any task of the machine waited for I/O; ``most_for_disk``, this process can at
    most have waited for a disk (``None``: not known); ``busy_percent``, a disk that I/Os wait for
    had requests in flight."""

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
    of: int = 0
    threads: int = 1
    io_percent: float | None = None
    most_for_disk: float | None = None
    busy_percent: float = 0.0
    reached_quota: bool = False
    """Its cgroup used up the CPU time that it may have."""
    children_change: bool = False
    """None of ``children`` existed from the beginning: they come and go; these are names."""
    of_children: tuple[ProcessWaits, ...] = ()
    """How those that existed all the time were seen."""
    in_turn: bool = False
    """It is children that come and go, as one process: ``pid`` is that of the last one, and
    ``percents`` are of their parent's time."""
    in_idle_ring: bool = False
    """It sleeps in io_uring and does no disk I/O."""
    not_seen: float = 0.0
    """Percent of the time of a thread that was off the CPUs, for which nobody knows what."""
    may_be_vfork: bool = False
    """It was in state D for an unknown reason while it had a child that it began meanwhile."""
    not_for_io: bool = False
    """In a part of the looks that found it in state D for an unknown reason, no task of the machine
    waited for I/O; or no more tasks than in the other looks; or nothing shows that it waits for I/O
    as others do."""
    odd_place: str = ""
    """The function in which it was in state D most often, if nobody knows what that is for."""
    never_ran: bool = False
    """No thread of it ran: it neither asked for I/O nor took a result."""
    own_queue: str = ""
    """The disk in which I/Os wait, most of them this process's, nearly all the time."""

    elsewhere: bool = False
    """It has files of a server, or of a FUSE file system, open."""
    beside_servers: bool = False
    """Servers, or FUSE file systems, are mounted here."""
    all_for_disk: float = 0.0
    """Percent of the time that its threads wait for a disk, added up."""

    @property
    def may_wait_in_turn(self) -> bool:
        """Whether its threads may wait for a lock whose holder waits for a disk."""
        locked = self.percents.get(LOCK, 0.0) >= WAITS_PERCENT
        return locked and self.for_disk >= MIN_PERCENT and self.all_for_disk >= WAITS_PERCENT

    @property
    def name(self) -> str:
        """ "postgres (812)", "mysqld (thread 833 of 812)", "dd (the last was 1735)"."""
        number = f"thread {self.pid} of {self.of}" if self.of else f"{self.pid}"
        number = f"the last was {number}" if self.in_turn else number
        return f"{self.command or self.comm} ({number}{f', {self.role}' if self.role else ''})"

    @property
    def has_just_ended(self) -> bool:
        """Whether it is gone, or ended after it was seen to wait."""
        return not self.state or (self.state == "Z" and bool(self.percents))

    @property
    def for_disk(self) -> float:
        """Percent of the time that it waits for a disk. State D with an unknown reason counts as
        well if the machine's I/O pressure is high enough to explain it (else see
        ``in_unknown``)."""
        proven = 0.0 if self.in_unknown else self.percents.get(UNKNOWN_WAIT, 0.0)
        percent = min(100.0, self.percents.get(DISK, 0.0) + proven)
        return percent if self.has_looks_for(percent) else 0.0

    @property
    def child(self) -> ProcessWaits | None:
        """The child that waits most for a disk, if that matters."""
        most = max(self.of_children, key=lambda one: one.for_disk, default=None)
        return most if most is not None and most.for_disk >= WAITS_PERCENT else None

    @property
    def waiting(self) -> ProcessWaits | None:
        """The process itself if it waits for a disk and that matters, else its child that does."""
        return self if self.for_disk >= WAITS_PERCENT else self.child

    @property
    def named_child(self) -> ProcessWaits | None:
        """The child to tell about beside the process: it does not wait for a disk itself."""
        return None if self.waiting is self else self.child or self.unclear_child

    @property
    def unclear_child(self) -> ProcessWaits | None:
        """A child of which nobody can tell whether it waits for a disk, as one can of its
        parent."""
        enough = (one for one in self.of_children if one.looks >= MIN_LOOKS and not self.unclear)
        return next((one for one in enough if one.unclear), None)

    @property
    def for_disk_or_child(self) -> float:
        """Percent of the time that it waits for a disk, or for a child, which may."""
        return max(self.for_disk, self.percents.get(CHILD, 0.0))

    def has_looks_for(self, percent: float) -> bool:
        """Whether the looks suffice to say that ``percent`` of them found it waiting. If they are
        few, the lower bound (Wilson's) must reach WAITS_PERCENT."""
        if not LEAST_LOOKS <= self.looks < MIN_LOOKS:
            return self.looks >= MIN_LOOKS
        return 100 * at_least(percent / 100, self.looks) >= WAITS_PERCENT

    @property
    def in_unknown(self) -> float:
        """Percent of the time in state D for an unknown reason: the I/O pressure is too low to
        explain it. It may still be I/O: tasks that wait for the log of xfs or the journal of ext4
        are not counted, and the pressure is averaged over the CPUs that are not idle."""
        percent, pressure = self.percents.get(UNKNOWN_WAIT, 0.0), self.io_percent or 0.0
        if self.may_be_vfork or self.not_for_io or self.odd_place:
            return percent  # the pressure is of others, or of its child
        explained = pressure >= MIN_PERCENT and self.busy_percent >= IN_FLIGHT_SHARE * percent
        # waits for servers are in the pressure, too
        proven = pressure >= PROVEN_SHARE * percent and not self.beside_servers
        return 0.0 if explained or proven else percent

    @property
    def unclear(self) -> str:
        """Why nobody can tell whether it waits for a disk, in words; "" where that is known."""
        if self.looks < MIN_LOOKS and not self.for_disk:
            return f"was examined only {self.looks} times: too few to tell what it waits for"
        if self.in_unknown + self.for_disk >= WAITS_PERCENT:
            return self.unknown_text
        if self.not_seen >= WAITS_PERCENT:
            return f"is not accounted for {self.not_seen:.0f} % of its time"
        on_cpus = (self.running or 0.0) + (self.ready or 0.0)
        if self.own_queue and on_cpus >= BUSY_PERCENT > self.for_disk:
            return f"may poll for its I/Os, which wait in {self.own_queue}"
        # of several threads, another one may wait meanwhile
        busy = on_cpus >= BUSY_PERCENT and self.threads == 1
        if self.for_disk >= MIN_PERCENT or busy or self.kernel:
            return ""
        if RING_PLACE in self.places and not self.in_idle_ring:
            return "sleeps in io_uring, for a disk, a socket or a timer: it cannot be seen which"
        if not self.sleeps_unread or self.most_for_disk is not None:
            return ""
        return f"sleeps {self.percents[EVENT]:.0f} %; what it waits for cannot be read"

    @property
    def unknown_text(self) -> str:
        """How long it is in state D for an unknown reason, in words; "" if hardly ever."""
        if self.in_unknown < MIN_PERCENT:
            return ""
        where = f" in {self.odd_place}" if self.odd_place else ""
        return (f"is in state D{where} {self.in_unknown:.0f} % of its time, for I/O or for "
                "something else: it cannot be seen which")  # fmt: skip

    @property
    def sleeps_unread(self) -> bool:
        """Whether the process sleeps, and only its user or root can read what for."""
        return not self.places and self.percents.get(EVENT, 0.0) >= MIN_PERCENT


def process_verdict(waits: ProcessWaits, of_disks: str) -> str:
    """The verdict on a process; ``of_disks`` is that on the disks that it may wait for. It is
    unknown if the process waits for a disk (or in state D), or for a child, for a small part of its
    time, unless nothing waits there. Who waits longer for a CPU than for a disk waits for the CPU,
    unless I/Os wait for the disk."""
    if waits.has_just_ended:
        return UNKNOWN
    if (waiting := waits.waiting) is not None:
        return WAITS if (waiting.ready or 0.0) <= waiting.for_disk else of_disks
    some = max(waits.for_disk, waits.in_unknown) >= MIN_PERCENT and of_disks != NOTHING
    child = waits.percents.get(CHILD, 0.0) >= MIN_PERCENT and of_disks != NOTHING
    unclear = waits.unclear or waits.unclear_child is not None or waits.may_wait_in_turn
    return UNKNOWN if some or child or unclear else NOTHING


def beside(waits: ProcessWaits, pairs: Sequence[tuple[Situation, Answer]]) -> ProcessWaits:
    """``waits`` of a process and its children, with what the machine's disks did meanwhile."""
    waits = _with_servers(waits, pairs)
    busy = (s.busy or 0.0 for s, answer in pairs if answer.verdict == WAITS)
    idle_rings = {ring.pid for s, _ in pairs for ring in s.idle_rings}
    if any(_may_hold_back(*pair) for pair in pairs):
        idle_rings = set()  # an I/O that it asked for long ago may be there
    percents = dict(waits.percents)
    own_queue = _own_queue(waits, pairs)
    if RING_PLACE in waits.places and own_queue:
        percents[DISK] = min(100.0, percents.get(DISK, 0.0) + percents.pop(EVENT, 0.0))
    return replace(
        waits, percents=percents, io_percent=next((s.waited_percent for s, _ in pairs), None),
        most_for_disk=0.0 if waits.never_ran and _had_no_request(pairs) else most_for_disk(pairs),
        busy_percent=max(busy, default=0.0),
        of_children=tuple(beside(child, pairs) for child in waits.of_children),
        in_idle_ring=(waits.of or waits.pid) in idle_rings, own_queue=own_queue,
        beside_servers=any(s.use is not None and s.use.remote for s, _ in pairs),
    )  # fmt: skip


def _with_servers(
    waits: ProcessWaits, pairs: Sequence[tuple[Situation, Answer]]
) -> ProcessWaits:  # fmt: skip
    """``waits``, unless servers or FUSE file systems are mounted, and the disks had hardly any
    request while the process waited: it waits for one of these if it has files there. Nobody knows
    if it has none, or if it has them only there and others use the disks."""
    for_disk = waits.percents.get(DISK, 0.0)
    waited = for_disk + waits.percents.get(UNKNOWN_WAIT, 0.0)
    places = [place for place in waits.places if place_kind(place, blocked=True) == DISK]
    if waited < MIN_PERCENT or not all(one.startswith(PAGE_PLACES) for one in places):
        return waits
    if any(s.use is None or not s.use.remote or _may_hold_back(s, answer) for s, answer in pairs):
        return waits
    flushing = sum(s.flushing for s, _ in pairs)
    held = 100 * max((s.all_in_flight + flushing for s, _ in pairs), default=1.0)
    is_idle = held < NO_IO_SHARE * waited
    if not is_idle and (waits.devices or not waits.elsewhere):
        return waits
    kind = SERVER if is_idle and waits.elsewhere else UNKNOWN_WAIT
    percents = {name: percent for name, percent in waits.percents.items() if name != DISK}
    if for_disk:
        percents[kind] = min(100.0, percents.get(kind, 0.0) + for_disk)
    return replace(waits, percents=percents, not_for_io=True,
                   odd_place=waits.odd_place or next(iter(places), ""))  # fmt: skip


def _own_queue(waits: ProcessWaits, pairs: Sequence[tuple[Situation, Answer]]) -> str:
    """The disk that I/Os wait for on which the process nearly always has some in flight: it does
    most of that disk's I/O, so these are the I/Os it sleeps for in io_uring. "" if none."""
    pid = waits.of or waits.pid
    return next((
        answer.disk for s, answer in pairs for one in s.shares
        if answer.verdict == WAITS and one.pid == pid and one.share >= MAIN_SHARE
        and one.share * s.in_flight >= NEARLY_ALWAYS
    ), "")  # fmt: skip


def most_for_disk(pairs: Sequence[tuple[Situation, Answer]]) -> float | None:
    """Percent of the time in which the disks had requests in flight, if that is little; ``None``
    if a process may have waited longer, also before a disk."""
    if any(
        _may_hold_back(s, answer) or s.has_pressure or s.use is None for s, answer in pairs
    ):  # fmt: skip
        return None
    flushing = sum(s.flushing for s, _ in pairs)
    most = 100 * max((s.all_in_flight + flushing for s, _ in pairs), default=1.0)
    return most if most < WAITS_PERCENT else None


def _had_no_request(pairs: Sequence[tuple[Situation, Answer]]) -> bool:
    """Whether each disk had no request at some moment, nor a limit one before it. Whoever sleeps
    from before that moment until after it does not wait for one."""
    return all(
        s.all_were_empty and not _may_hold_back(s, answer)
        and s.use is not None and s.use.sees_all_limits
        for s, answer in pairs
    )  # fmt: skip


def own_disks(
    waits: ProcessWaits, pairs: Sequence[tuple[Situation, Answer]]
) -> list[tuple[Situation, Answer]]:
    """The disks on which the process has files open, if it may wait for one of these. Otherwise all
    of them: it may wait for swap, a closed file or another disk's page cache."""
    own = [pair for pair in pairs if pair[1].disk in waits.devices]
    waited = waits.for_disk_or_child >= MIN_PERCENT
    if waited and not any(_may_be_waited_for(waits, *pair) for pair in own):
        return [*pairs]
    return own or [*pairs]


def waited_disk(waits: ProcessWaits, pairs: Sequence[tuple[Situation, Answer]]) -> str:
    """The only disk that it may wait for (of a stack, the device it opened); "" if there are
    several."""
    own = [pair for pair in pairs if pair[1].disk in waits.devices]
    likely = [s for s, answer in own if _may_be_waited_for(waits, s, answer)]
    tops = [s.disk for s in likely if all(other.disk in s.below for other in likely)]
    return tops[0] if tops else ""


def quick_disk(
    waits: ProcessWaits, pairs: Sequence[tuple[Situation, Answer]]
) -> Situation | None:  # fmt: skip
    """The disk that the process waits for, if nothing waits long there: it waits for many I/Os that
    are quick, and so are its flushes, which are not in the mean time of the I/Os."""
    waiting = waits.waiting
    disk = waited_disk(waiting, pairs) if waiting is not None else ""
    # another user's files cannot be seen: it waits for the only disk that is used
    only = all(answer.verdict == NOTHING for _, answer in pairs)
    found = (s for s, answer in pairs if answer.verdict == NOTHING and words.is_quick(s)
             and (s.disk == disk if disk else only and s.others_are_idle)
             and not _may_hold_back(s, answer))  # fmt: skip
    s = next(found, None)
    if s is None or waiting is None:
        return None
    flushes = _flushes_matter(s, waiting.for_disk)
    return None if flushes and (s.flush_ms or 0.0) >= QUEUED_MS else s


def _flushes_matter(s: Situation, percent: float) -> bool:
    return 100 * s.flushing >= IN_FLIGHT_SHARE * percent


def quick_text(s: Situation, percent: float) -> str:
    """Why a process waits ``percent`` of its time for a quick disk."""
    how = ": it waits for one I/O after the other"
    if s.in_flight >= SINGLE_DEPTH:
        how = ", so it waits often, not long"
    flushes = ""
    if _flushes_matter(s, percent):
        flushes = f", flushes {units.milliseconds(s.flush_ms)}"
    return f"{s.disk} is quick, {words.mean(s)}{flushes}{how}"


def _may_be_waited_for(waits: ProcessWaits, s: Situation, answer: Answer) -> bool:
    if _may_hold_back(s, answer):
        return True
    if not s.others_are_idle and (s.swaps or any(DIRTY_PLACE in one for one in waits.places)):
        return False  # swap may be on any disk, and the page cache has pages of all
    return 100 * (s.in_flight + s.flushing) >= IN_FLIGHT_SHARE * waits.for_disk_or_child


def _may_hold_back(s: Situation, answer: Answer) -> bool:
    """Whether I/Os may wait before the disk counts them, or in a disk that completes none."""
    return answer.rule in HELD_BACK or bool(s.now_in_flight and not s.ios_s)


_TEXTS = {
    SERVER: "waits for a file server (NFS, SMB, FUSE)", MEMORY: "waits for memory",
    LOCK: "waits for a lock or another thread", FROZEN: "is frozen (cgroup freezer)",
}  # fmt: skip
STOPPED = {"T": "by a signal (SIGCONT lets it go on)", "t": "by a debugger"}


def process_text(waits: ProcessWaits, disk: str) -> str:
    """ "fio (965) waits for vda 83 % of its time, runs 12 %"."""
    if waits.state == "Z":
        when = " while it was looked at" * waits.has_just_ended
        return (f"{waits.comm} ({waits.pid}) has ended{when}: its parent ({waits.parent}) has not "
                "asked for its exit code; it does no I/O")  # fmt: skip
    if waits.state in STOPPED:
        return f"{waits.name} is stopped {STOPPED[waits.state]}"
    if waits.looks < MIN_LOOKS and waits.unclear:
        return f"{waits.name} {waits.unclear}"
    parts = list(_parts(waits, disk))
    if parts and waits.threads == 1 and waits.looks >= MIN_LOOKS:
        parts += _rest(waits)
    if waits.threads > 1 and parts:
        # different ones, so that the parts may add up to more than 100 %
        return f"{waits.name}, {waits.threads} threads: at least one {', one '.join(parts)}"
    if not parts and waits.named_child:
        parts.append("sleeps")
    if not parts and waits.sleeps_unread:
        most = f"at most {waits.most_for_disk:.0f} % of its time" if waits.most_for_disk else "not"
        parts.append(f"sleeps, {most} for a disk; what it waits for cannot be read")
    if not parts:
        parts.append("waits for no disk, lock or CPU: it sleeps until something happens"
                     if waits.running is not None else "waits for no disk or lock")  # fmt: skip
    return f"{waits.name} {', '.join(parts)}"


def _rest(waits: ProcessWaits) -> Iterator[str]:
    """What the other parts leave of the time of a single thread."""
    asleep = waits.percents.get(EVENT, 0.0)
    if asleep >= MIN_PERCENT and not (waits.in_turn or waits.unclear or waits.in_idle_ring):
        yield f"sleeps otherwise {asleep:.0f} %"
    if MIN_PERCENT <= waits.not_seen < WAITS_PERCENT:
        yield f"{waits.not_seen:.0f} % not accounted for"


def _parts(waits: ProcessWaits, disk: str) -> Iterator[str]:
    if waits.for_disk >= MIN_PERCENT:
        sure = waits.percents.get(DISK, 0.0) >= waits.for_disk / 2
        what = f"for {disk or 'a disk'}" if sure else "in state D, most likely for I/O,"
        if waits.looks < MIN_LOOKS:
            seen = round(waits.for_disk * waits.looks / 100)
            yield f"waits {what} most of its time ({seen} of {waits.looks} looks)"
            return
        yield f"waits {what} {waits.for_disk:.0f} % of {'the' if waits.in_turn else 'its'} time"
    for kind, text in _TEXTS.items():
        if waits.percents.get(kind, 0.0) >= MIN_PERCENT:
            yield f"{text} {waits.percents[kind]:.0f} %"
    if waits.percents.get(CHILD, 0.0) >= MIN_PERCENT:
        names = ", ".join(waits.children[:3])
        whom = f"children ({names})" if names and waits.children_change else f"child {names}"
        yield f"waits for its {whom.rstrip()} {waits.percents[CHILD]:.0f} %"
    if (waits.ready or 0.0) >= MIN_PERCENT:
        quota = " (its cgroup reached its CPU quota)" * waits.reached_quota
        yield f"waits for a CPU {waits.ready:.0f} %{quota}"
    if (waits.running or 0.0) >= MIN_PERCENT:
        yield f"runs {waits.running:.0f} %"
    if waits.in_idle_ring and RING_PLACE in waits.places:
        yield "sleeps in io_uring without disk I/O"
    if text := waits.unclear or waits.unknown_text:
        yield text
