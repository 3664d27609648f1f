"""The rules of answers: the first row of ``TABLE`` whose function returns an answer wins. Each row
states only what was measured, and must exclude the rows below it. A program is never blamed: the
text gives its share of the I/O. If the figures contradict each other, the verdict is "unknown"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from iopstui import format as units
from iopstui.model.answer import words
from iopstui.model.answer.answer import (
    CRITICAL,
    FINDING,
    GONE,
    GOOD,
    NOTHING,
    UNKNOWN,
    WAITS,
    WARNING,
    Answer,
)
from iopstui.model.answer.job_rows import JOB_ROWS
from iopstui.model.answer.process import DISK, HIDDEN_POOL, NO_IO_SHARE, place_kind
from iopstui.model.answer.situation import (
    BUSY_UTIL,
    DEEP_QUEUE,
    ENOUGH_SECONDS,
    FEW_IOS,
    FEW_SECONDS,
    HARDLY_USED,
    MEMORY_PERCENT,
    MOST_SECONDS,
    MUCH_PRESSURE,
    SLOW_IN_FLIGHT,
    VERY_DEEP_QUEUE,
    VERY_SLOW_FACTOR,
    WAITED_PERCENT,
    Situation,
    is_used,
)
from iopstui.model.answer.use import (
    FOR_IOCOST,
    FOR_RQ_QOS,
    FOR_TAG,
    NEARLY,
    TOP_GROUP,
    BlockedTask,
)
from iopstui.model.answer.who import MAIN_SHARE
from iopstui.model.answer.words import IN_USE
from iopstui.model.findings.advice import NO_ADVICE, Advice, advise
from iopstui.model.findings.conditions import POOL_FULL, POOL_UNREADABLE
from iopstui.model.findings.finding import CRITICAL as CRITICAL_FINDING
from iopstui.model.findings.finding import Finding, severity_of

SILENT_S = 2.0
ENDED, ENDED_SECONDS = "ended", 3
"""After this many seconds without I/O, the earlier I/O has ended."""
MEMORY_SHARE = 0.5
"""A task of which only root sees what it waits for waits for memory if tasks do so for at least
this part of the time in which it is blocked."""
BUSY = 80.0
FULL_SHARE = 0.75
"""A queue is full at times if this part of it is in use on average."""
WAIT_SHARE = 0.5
"""A program that waits for the disk most of the time has a request in flight for at least this
share of the time."""
MUCH_SLOWER, SLOWER_MS = 4.0, 1.0
"""This many times the usual time, and at least this long, is worth a warning."""
SPECIFIC = ("io-errors", "kernel-errors", "scsi-errors", "media-errors", "paths", "thermal",
            "nfs-stalled", "smb-stalled", "nfs-retrans", "nfs-server", "nfs-queue", "smb-server",
            "net-loss", "net-window", "net-full", "iostats", "hot", "volume-limit")  # fmt: skip
"""Findings that say more than any row below."""
NO_WAIT = ("iostats", "hot", "media-errors", "scsi-errors", "kernel-errors")
"""Those of them that need not delay any I/O: a failed command may be a monitoring program's."""
_IN_SMART = " (SMART)"
_ONLY_USED = re.compile(r": \d+ % of its rated endurance is used \(SMART\)")
MAY_BE_SLOW = "; that may be slow for it"
MORE_BLOCKED = "; more programs than that are blocked: {}"
OR_ANOTHER = ", for this disk or another"
SLOW_MEMBER = "slow-member"
USED_IOS_S = 100.0
"""From so many requests a second on, who makes them is told, however quick they are."""
LONG_SAMPLE_S = 3.0
"""A sample that is longer is not called a second."""


WITH_MEANS = frozenset({"queue", "slow", "usual", "flush", "unclear", "busy", "quiet", "slots",
                        "held", "iocost", "near-limit", "degraded", "cpu"})  # fmt: skip
"""Rows with means of all seconds, which don't say over which."""


def with_span(situation: Situation, answer: Answer) -> Answer:
    """The answer with the time that its figures are of."""
    if answer.rule not in WITH_MEANS or not situation.ios_s:
        return answer
    return replace(answer, over_s=round(sum(one.seconds for one in situation.seconds)))


def decide(situation: Situation, quiet_words: bool = True) -> Answer:
    """The answer of the first row that applies; the last one always does. Without ``quiet_words`` a
    quiet disk's answer has no text."""
    if situation.has_job:
        return next(filter(None, (row(situation) for row in JOB_TABLE)))
    found = next(filter(None, (row(situation) for row in TABLE)), None)
    if found is not None:
        return found
    return quiet(situation) if quiet_words else Answer(situation.disk, "quiet", GOOD, "", NOTHING)


def gone(s: Situation) -> Answer | None:
    """The disk was taken away, or the file of a loop device."""
    state = s.conditions.devices.get(s.disk)
    if state is not None and state.detached and not (s.seconds and s.seconds[-1].ios_s):
        return gone_answer(s.disk, is_detached=True)
    return gone_answer(s.disk) if s.is_gone else None


def gone_answer(disk: str, is_detached: bool = False) -> Answer:
    """The answer on a disk that the kernel has no more, or on a loop device without its file: that
    happens only once nobody uses it (losetup(8)), as each update of a snap does."""
    if is_detached:
        text = f"{disk} was detached: it has no file and no size any more"
        return Answer(disk, GONE, GOOD, text, NOTHING)
    return Answer(disk, GONE, WARNING, f"{disk} is gone: the kernel has no such disk any more",
                  UNKNOWN, next=advise("log"))  # fmt: skip


def too_short(s: Situation) -> Answer | None:
    """Not enough was measured to judge."""
    if len(s.seconds) >= ENOUGH_SECONDS:
        return None
    count, length = len(s.seconds), _sample_text(s)
    measured = f"{units.counted(count, 'sample')}{length}" if length else None
    measured = measured or units.counted(count, "second")
    return Answer(s.disk, "short", GOOD, f"{s.disk}: {measured} measured, too short to tell",
                  UNKNOWN)  # fmt: skip


def _sample_text(s: Situation) -> str:
    """How long a sample is: " of 60 s" in a thinned recording; "" for seconds."""
    each = sum(one.seconds for one in s.seconds) / max(1, len(s.seconds))
    return f" of {each:.0f} s" if each >= LONG_SAMPLE_S else ""


def suspended(s: Situation) -> Answer | None:
    """A device-mapper device lets nothing pass."""
    for name in s.below:
        state = s.conditions.devices.get(name)
        if state is not None and state.suspended and not s.ios_s:
            device = s.devices.get(name)
            node = (device.dm_name if device is not None else None) or name
            blocked = words.blocked_text(s)
            # on a busy machine, few looks may miss tasks that wait
            unseen = s.has_pressure and s.others_are_idle
            return Answer(
                s.disk, "suspended", CRITICAL,
                f"{name} ({node}) is suspended: nothing passes{blocked and f'; {blocked}'}",
                WAITS if blocked or s.now_in_flight else UNKNOWN if unseen else NOTHING,
                next=advise("resume", node),
            )  # fmt: skip
    return None


def suspended_at_times(s: Situation) -> Answer | None:
    """A device-mapper device let nothing pass in some of the seconds."""
    for name in s.below:
        share = s.use.suspended.get(name, 0.0) if s.use is not None else 0.0
        blocked = words.blocked_text(s) if share else ""
        if share and (blocked or s.has_pressure or s.ios_s):
            device = s.devices.get(name)
            node = (device.dm_name if device is not None else None) or name
            seen = blocked or (s.has_pressure and s.others_are_idle)
            return Answer(
                s.disk, "suspended-at-times", WARNING,
                f"{name} ({node}) was suspended in {100 * share:.0f} % of the checks, and let "
                f"nothing pass then{blocked and f'; {blocked}'}",
                WAITS if seen and share >= FEW_SECONDS else UNKNOWN,
                next=advise("longer", s.disk),
            )  # fmt: skip
    return None


def full_pool(s: Situation) -> Answer | None:
    """A thin pool that can't be written."""
    state = s.conditions.devices.get(s.disk)
    if state is None or state.pool in ("", POOL_UNREADABLE):
        return None
    name = (s.devices[s.disk].dm_name if s.disk in s.devices else None) or s.disk
    what = {
        POOL_FULL: "is full: writes to new blocks wait, or fail",
        "ro": "is read-only: it has no room for its metadata, or an error in it",
    }
    blocked = words.blocked_text(s)
    # its pool counts no request that waits for room
    may_wait = s.use is not None and (s.use.ring_waiters or s.use.aio_waiters)
    return Answer(
        s.disk, "pool", CRITICAL,
        f"The thin pool {s.disk} ({name}) {what.get(state.pool, 'has failed')}"
        f"{blocked and f'; {blocked}'}",
        WAITS if blocked or s.now_in_flight
        else UNKNOWN if may_wait and state.pool == POOL_FULL else NOTHING,
        next=advise("thin-pool", name),
    )  # fmt: skip


def hidden_pool(s: Situation) -> Answer | None:
    """What may be a thin pool, without any I/O: only root sees its state, and a full one counts no
    request that waits for room."""
    for name in s.below:
        state = s.conditions.devices.get(name)
        if state is None or state.pool != POOL_UNREADABLE or s.ios_s:
            continue
        # others write to it
        if any(frame.disks[name].writes for frame in s.frames if name in frame.disks):
            continue
        device = s.devices.get(name)
        dm_name = (device.dm_name if device is not None else None) or name
        whose = "it" if name == s.disk else f"{name} ({dm_name}) below it"
        return Answer(
            s.disk, HIDDEN_POOL, GOOD,
            f"{words.quiet_parts(s)[0]}; only root sees whether {whose} is a full thin pool, in "
            "which writes wait uncounted", UNKNOWN, next=advise("root", s.disk),
        )  # fmt: skip
    return None


def offline(s: Situation) -> Answer | None:
    """A SCSI disk that did not answer is offline: each I/O fails at once. A lost path is judged at
    the multipath device above."""
    state = s.conditions.devices.get(s.disk)
    if state is None or not state.offline or s.ios_s:
        return None
    device = s.devices.get(s.disk)
    above = [s.devices.get(name) for name in (device.holders if device is not None else ())]
    if any(one is not None and one.layer == "dm-multipath" for one in above):
        return None
    return Answer(
        s.disk, "offline", CRITICAL,
        f"{s.disk} is {state.offline}: the kernel sends it no I/O; each I/O fails at once",
        WAITS if s.now_in_flight else NOTHING, next=advise("log"),
    )  # fmt: skip


def lost_count(s: Situation) -> Answer | None:
    """The counter of requests in flight is above 0 and everything else contradicts it. With blk-mq
    the counter is right: it counts the requests themselves, such as those of a multipath device
    without a path."""
    if not s.lower.get(s.disk) or s.silent_s < SILENT_S:
        return None
    if len({rates.in_flight for rates in s.seconds}) > 1:
        return None
    if s.disk in s.devices and s.devices[s.disk].hctxs:
        return None
    below = [frame.disks[name] for frame in s.frames for name in s.lower[s.disk]
             if name in frame.disks]  # fmt: skip
    if any(rates.in_flight or rates.ios_s for rates in below) or words.tasks_wait(s):
        return None
    return Answer(
        s.disk, "counter", GOOD,
        f"{s.disk}: its counter says {s.now_in_flight} in flight, but no task waits and the "
        "devices below have none", UNKNOWN, next=advise("counter", s.disk),
    )  # fmt: skip


def silent(s: Situation) -> Answer | None:
    """Requests are in flight and none completes."""
    if not s.now_in_flight or s.silent_s < SILENT_S:
        return None
    count = units.counted(s.now_in_flight, "request is", "requests are")
    return Answer(
        s.disk, "silent", CRITICAL,
        f"{s.disk} has answered nothing for {s.silent_s:.1f} s; {count} in flight",
        WAITS, next=advise("log"),
    )  # fmt: skip


def finding(s: Situation) -> Answer | None:
    """A finding that a disk's figures don't show."""
    for found in s.findings:
        if found.rule in SPECIFIC and _is_about(found, s):
            state = CRITICAL if severity_of(found) == CRITICAL_FINDING else WARNING
            waits = found.rule not in NO_WAIT
            waits = waits or max(s.queue_share, s.slow_share) >= MOST_SECONDS
            return Answer(
                s.disk, f"{FINDING}{found.rule}", state, found.text, WAITS if waits else UNKNOWN,
                next=found.advice,
            )  # fmt: skip
    return None


def _is_about(found: Finding, s: Situation) -> bool:
    """Whether a finding is about this disk: names it or one below, or there is no other disk."""
    if found.disk or s.disk not in s.devices:
        return found.disk in ("", *s.below)
    return all(name in s.below for name in (s.frames[-1].disks if s.frames else ()))


def idle_seconds(s: Situation) -> int:
    """How many of the last seconds had little or no I/O."""
    return next((n for n, one in enumerate(reversed(s.seconds)) if is_used(one)), len(s.seconds))


def ended(s: Situation) -> Answer | None:
    """The I/O has ended: the seconds before no longer count."""
    count = len(s.seconds) - idle_seconds(s)
    rest = s.seconds[count:]
    if len(rest) < ENDED_SECONDS or not count:
        return None
    # the pressure of those seconds alone: over all seconds, their waits are hardly any
    before = replace(s, frames=s.frames[: len(s.frames) - len(rest)], machine_facts=None)
    rest_s = sum(one.seconds for one in rest)
    # in so short a time, none of such requests need have completed
    if before.in_flight < IN_USE or (before.mean_ms or 0.0) >= 1e3 * rest_s:
        return None
    rate = units.number(sum(one.ios_s or 0.0 for one in rest) / len(rest))
    state = f"has little I/O ({rate}/s)" if any(one.ios_s for one in rest) else "is idle: no I/O"
    waited = max(before.queue_share, before.slow_share) > FEW_SECONDS or before.waits_at_times
    # processes that have ended meanwhile did more than was seen
    who = re.sub(r" does .* of its bytes$", " did most of it", words.who(s))
    return Answer(
        s.disk, ENDED, GOOD,
        f"{s.disk} {state} for {rest_s:.0f} s; before that "
        f"{words.mean(before)}, {units.size(before.bytes_s)}/s, {words.count(before.in_flight)} in "
        "flight",
        UNKNOWN if waited else NOTHING, who.replace(" does ", " did "),
        advise("longer", s.disk) if waited else NO_ADVICE,
    )  # fmt: skip


def resync_alone(s: Situation) -> Answer | None:
    """The kernel checks or rebuilds an array with this disk, and hardly anybody uses either: a file
    system on it may write its journal. Between two checks root sees it, too: nobody but md itself
    reads the disk."""
    # before users are read, the array's own counters and the pressure tell
    if (s.use is None and not s.syncing) or s.blocked or not s.ios_s:
        return None
    if any(one.through not in s.above for one in s.shares):
        return None
    if s.waited_percent is None or s.waited_percent >= words.SOME_WAIT_PERCENT:
        return None
    array, who = s.syncing[0] if s.syncing else _array_above(s), words.who(s)
    if array in {*s.below} - {s.disk}:
        return None  # what lies on the array has users of its own
    of_array = [frame.disks.get(array) for frame in s.frames]
    if not s.syncing:
        if not array or not _as_root(s) or not all(of_array):
            return None
        who = f"{array} (md) does it by itself"
    # where the array is not watched, root has seen all its users
    if not all(of_array) and not _as_root(s):
        return None
    # of an idle array the kernel may count requests in flight that have not begun
    if max(sum((one.aqu_sz or 0.0) for one in of_array if one) / len(of_array),
           max((one.in_flight or 0 for one in of_array if one and not one.ios), default=0)
           ) >= FEW_IOS:  # fmt: skip
        return None
    return Answer(
        s.disk, "resync", GOOD,
        f"{s.disk}{s.layer} is in use: {words.mean(s)}, {units.size(s.bytes_s)}/s, "
        f"{words.count(s.in_flight)} in flight; {words.nothing(s)}", NOTHING, who,
    )  # fmt: skip


def _as_root(s: Situation) -> bool:
    return s.use is not None and s.use.as_root


def _array_above(s: Situation) -> str:
    """The md array above this disk, if nothing else is but what lies on the array."""
    above = [name for name in s.above if name in s.devices and s.disk in s.lower.get(name, ())]
    return above[0] if len(above) == 1 and s.devices[above[0]].kind == "md" else ""


def limit(s: Situation) -> Answer | None:
    """A cgroup is at its limit, and the disk itself has no queue."""
    if s.use is None or not s.use.limits or max(s.queue_share, s.slow_share) >= MOST_SECONDS:
        return None
    for reached in s.use.limits:
        if reached.disk in s.below:
            whose = f"{'the cgroup ' * (reached.group != TOP_GROUP)}{reached.group}"
            return Answer(
                s.disk, "limit", WARNING,
                f"Not the disk: {reached.group} is at its limit of {reached.text} on "
                f"{reached.disk} ({reached.file})", WAITS,
                next=advise("limit", reached.file, whose),
            )  # fmt: skip
    return None


def near_limit(s: Situation) -> Answer | None:
    """A cgroup's limit was reached at times, or nearly, while tasks wait. If they wait much longer
    than requests are in flight, they wait for the limit."""
    for near in s.use.near_limits if s.use is not None else ():
        likely = near.share >= NEARLY or words.tasks_wait(s)
        if likely and (near.disk == s.disk or (near.disk in s.below and s.ios_s)):
            much, times = f"at {100 * near.share:.0f} % of", ""
            if near.share >= NEARLY:
                much, times = "at or near", " at times"
            waits = _is_beyond_disks(s) and s.use is not None and not s.use.remote
            end = f"; tasks wait for I/O {s.waited_percent:.0f} % of the time" * waits
            return Answer(
                s.disk, "near-limit", WARNING if waits else GOOD,
                f"{_load_text(s)}; {near.group} is {much} its limit of {near.text} "
                f"({near.file}){times}{end}", WAITS if waits else UNKNOWN,
                next=advise("longer", s.disk),
            )  # fmt: skip
    return None


def held_back(s: Situation) -> Answer | None:
    """The kernel delays a program before its I/O reaches the queue. Only root can read where a task
    waits; a container cannot see whether io.cost is on."""
    if max(s.queue_share, s.slow_share) >= MOST_SECONDS:
        return None
    on_this_disk = bool(s.ios_s) and s.others_are_idle
    if (held := _tasks_in(s, FOR_IOCOST)) and (s.has_iocost or on_this_disk):
        return _held_answer(s, held, "for io.cost (io.cost.qos, io.weight)", "iocost")
    if held := _tasks_in(s, FOR_RQ_QOS):
        why = "for io.latency of a cgroup, or the throttling of write-back (wbt_lat_usec)"
        if on_this_disk:
            return _held_answer(s, held, why, "held")
        if s.in_flight >= HARDLY_USED:
            return Answer(
                s.disk, "held", GOOD,
                f"{_load_text(s)}; {words.tasks_text(held)}, {why}, of this disk or another",
                UNKNOWN, words.who(s),
            )  # fmt: skip
    if full := _full_slots(s):
        return full
    if not s.has_iocost or not (
        s.has_pressure or s.blocked or (words.waited_for_cpu(s) and s.ios_s)
    ):
        return None
    return Answer(
        s.disk, "iocost", GOOD,
        f"{_load_text(s)}; io.cost may hold I/O back (io.cost.qos, io.weight)", UNKNOWN,
        words.who(s), advise("root", s.disk),
    )  # fmt: skip


def _held_answer(s: Situation, held: Sequence[BlockedTask], why: str, rule: str) -> Answer:
    return Answer(s.disk, rule, WARNING, f"Not the disk: {words.tasks_text(held)}, {why}", WAITS,
                  next=advise(rule))  # fmt: skip


def _full_slots(s: Situation) -> Answer | None:
    """The queue is so short that requests wait for a place in it."""
    queue = s.devices[s.disk].queue if s.disk in s.devices else None
    slots = queue.nr_requests if queue is not None else None
    if slots is None or s.in_flight < FULL_SHARE * slots or not s.blocked:
        return None
    text = f"{_load_text(s)}, and its queue takes {slots} at once (nr_requests)"
    if held := _tasks_in(s, FOR_TAG):
        return Answer(s.disk, "slots", WARNING, f"{text}: {words.tasks_text(held)}", WAITS,
                      words.who(s), advise("nr-requests"))  # fmt: skip
    if all(task.place for task in s.blocked):
        return None
    return Answer(s.disk, "slots", GOOD, f"{text}; whether others wait for it cannot be told",
                  UNKNOWN, words.who(s), advise("root", s.disk))  # fmt: skip


def _tasks_in(s: Situation, function: str) -> list[BlockedTask]:
    return [task for task in s.blocked if task.place.startswith(function)]


def _load_text(s: Situation) -> str:
    return f"{s.disk}: {words.mean(s)}, {words.count(s.in_flight)} in flight"


def memory(s: Situation) -> Answer | None:
    """The machine is short of memory, and swaps on this disk. A task that waits for its own
    swapped-out page counts as waiting for I/O, and not always for memory."""
    if not s.swaps or s.in_flight < SLOW_IN_FLIGHT:
        return None
    if not any(words.is_swap(s, name) for name in s.below):
        return None
    if (s.memory_percent or 0.0) >= MEMORY_PERCENT:
        waits = (f"Memory is short, and swap is on {s.disk}: tasks wait for memory "
                 f"{s.memory_percent or 0.0:.0f} % of the time")  # fmt: skip
    elif s.may_have_pressure and s.swapped_share >= MAIN_SHARE:
        waits = (f"Memory is short: most of the I/O of {s.disk} is swap, and tasks wait for I/O "
                 f"{s.waited_percent:.0f} % of the time")  # fmt: skip
    else:
        return None
    return Answer(s.disk, "memory", WARNING, waits, WAITS, next=advise("memory-users"))


def slow_member(s: Situation) -> Answer | None:
    """The disk is slow for its load, compared with the other members of its array."""
    for found in s.findings:
        if found.rule == SLOW_MEMBER and found.disk == s.disk:
            waits = max(s.queue_share, s.slow_share) >= MOST_SECONDS
            return Answer(
                s.disk, f"{FINDING}{SLOW_MEMBER}", WARNING, found.text, WAITS if waits else NOTHING,
                words.who(s), found.advice,
            )  # fmt: skip
    return None


def full_queue(s: Situation) -> Answer | None:
    """Requests wait behind others in this disk."""
    if s.queue_share < MOST_SECONDS:
        return None
    held, step = words.held_by_layer(s)
    return Answer(
        s.disk, "queue", WARNING,
        f"{s.disk}{s.layer} is busy: I/Os take {words.mean(s)} with {words.count(s.in_flight)} in "
        f"flight{words.usual(s)}{held}{_if_degraded(s)}{words.cpus_text(s)}", WAITS, words.who(s),
        step or words.about_users(s),
    )  # fmt: skip


def _if_degraded(s: Situation) -> str:
    missing, _ = _missing(s)
    return missing and f"; {missing}"


def _missing(s: Situation) -> tuple[str, Advice]:
    """An array here that lacks members, or what a drive warns of, and the next step; "" if none.
    Used up endurance is a finding, but no fault: drives go on for long."""
    if text := words.degraded(s):
        return text, advise("array")
    for found in s.findings:
        if found.rule == "wear" and _is_about(found, s) and not _ONLY_USED.search(found.text):
            return found.text.partition(_IN_SMART)[0] + _IN_SMART, found.advice
    return "", NO_ADVICE


def blocked_programs(s: Situation) -> Answer | None:
    """Programs wait for the few requests of this disk, as for the commits of a journal: each waits
    at least as long as a request, and for those of the others."""
    remote = s.use is not None and s.use.remote
    tasks = [task for task in _blocked_for_disks(s)
             if task.place or not remote or s.journal_waits]  # fmt: skip
    slow = (s.mean_ms or 0.0) >= s.slow_ms and (s.busy or 0.0) >= BUSY
    if len(tasks) < DEEP_QUEUE or not slow or not s.others_are_idle:
        return None
    return Answer(
        s.disk, "queue", WARNING,
        f"{s.disk}{s.layer} is busy: I/Os take {words.mean(s)} with {words.count(s.in_flight)} in "
        f"flight{words.usual(s)}; {words.tasks_text(tasks)}{words.cpus_text(s)}", WAITS,
        words.who(s), words.about_users(s),
    )  # fmt: skip


def slow_device(s: Situation) -> Answer | None:
    """The device takes very long though few requests are in flight."""
    if s.slow_share < MOST_SECONDS:
        return None
    held, step = words.held_by_layer(s)
    return Answer(
        s.disk, "slow", WARNING,
        f"{s.disk}{s.layer} answers slowly: {words.mean(s)} with {words.count(s.in_flight)} in "
        f"flight{words.stalls(s)}{words.usual(s)}{held}{_if_degraded(s)}{words.cpus_text(s)}",
        WAITS, words.who(s),
        step or words.resync_step(s) or words.about_hog(s) or advise("slow", s.disk),
    )  # fmt: skip


def pressure_alone(s: Situation) -> Answer | None:
    """Tasks count as waiting for I/O, and no disk has a request: they sleep in io_uring."""
    if not is_pressure_alone(s):
        return None
    waiters = s.idle_rings
    pressure = f"{s.waited_percent:.0f} % I/O pressure, but {_hardly_text(s)}"
    if not waiters:
        return Answer(s.disk, "pressure", GOOD, f"Pressure without I/O: {pressure}", NOTHING)
    names = ", ".join(one.name for one in waiters[:3])
    verb = "sleep" if len(waiters) > 1 else "sleeps"
    return Answer(
        s.disk, "ring", GOOD, f"Pressure without I/O: {names} {verb} in io_uring; {pressure}",
        NOTHING, next=advise("ring"),
    )  # fmt: skip


def _hardly_text(s: Situation) -> str:
    if s.all_in_flight < NO_IO_SHARE * (s.waited_percent or 0.0) / 100:
        return "the disks have hardly any request"
    return f"requests are in flight at most {100 * s.all_in_flight:.0f} % of the time"


def is_pressure_alone(s: Situation) -> bool:
    """Whether much of the machine's I/O pressure cannot come from a disk, a server or a limit."""
    if s.use is None or s.use.remote or not s.use.disks or s.blocked or s.use.limits:
        return False
    return _is_beyond_disks(s) and (s.memory_percent or 0.0) < MEMORY_PERCENT


def _is_beyond_disks(s: Situation) -> bool:
    """Whether tasks wait for I/O for much more of the time than requests are in flight (which is at
    most their mean number)."""
    waited, with_io = s.waited_percent or 0.0, 100 * s.all_in_flight
    return with_io <= waited / 2 and waited - with_io >= MUCH_PRESSURE


def waits_elsewhere(s: Situation) -> Answer | None:
    """Tasks wait for I/O, but no disk has it and no visible limit holds it."""
    if s.use is None or (s.use.remote and not _blocked_for_disks(s)) or not _is_beyond_disks(s):
        return None
    blocked = words.blocked_text(s)
    if not blocked:
        return None
    why = "; a file server or FUSE may be why" * s.use.remote
    if s.use.limits or s.use.near_limits:
        why = "; the limit of a cgroup may be why"
    step = advise("log") if s.use.as_root else advise("root", s.disk * bool(s.ios_s))
    return Answer(
        s.disk, "above", WARNING,
        f"Tasks wait for I/O {s.waited_percent:.0f} % of the time, but {_hardly_text(s)}: "
        f"{blocked}{why}",
        UNKNOWN, next=_device_on_it(s) or step,
    )  # fmt: skip


def _device_on_it(s: Situation) -> Advice:
    """The next step for a disk below another device, where I/Os may wait instead."""
    device = s.devices.get(s.disk)
    holder = device.holders[0] if device is not None and device.holders else ""
    return advise("upper", holder) if holder and s.ios_s and not s.above else NO_ADVICE


def cpus_full(s: Situation) -> Answer | None:
    """Tasks wait for a CPU, not for the disk."""
    waited = words.waited_for_cpu(s)
    if not waited or s.in_flight >= IN_USE:
        return None
    cleared = s.in_flight < HARDLY_USED and not words.blocked_text(s)
    begin = "Not the disk: the" if cleared else "The"
    user = s.use.cpu_user if s.use is not None else ""
    busiest = f"; the busiest program is {user} of a CPU" if user else ""
    return Answer(
        s.disk, "cpu", GOOD,
        f"{begin} CPUs are full (tasks wait {waited:.0f} % of the time); "
        f"{words.quiet_text(s).removesuffix(f'; {words.NOTHING_WAITS}')}{busiest}",
        next=advise("cpu-users"),
    )  # fmt: skip


def unsteady(s: Situation) -> Answer | None:
    """Requests waited in some of the seconds. If it was a third of them, at least three, for very
    long, and tasks waited for this disk, that is no matter of a few seconds more."""
    share = max(s.queue_share, s.slow_share)
    if not s.waits_at_times:
        return None
    count, length = round(share * len(s.seconds)), _sample_text(s)
    samples = f" samples{length}" if length else " s"
    text = (f"{s.disk} is busy at times: I/Os waited in {count} of {len(s.seconds)}{samples}, "
            f"{words.mean(s)} over all")  # fmt: skip
    tasks_wait = s.has_pressure and s.others_are_idle and not s.idle_rings
    often = share > FEW_SECONDS and count >= ENOUGH_SECONDS
    if often and _is_very_slow(s) and tasks_wait:
        return Answer(
            s.disk, "unsteady", WARNING,
            f"{text}; tasks wait for I/O {s.waited_percent:.0f} % of the time", WAITS,
            words.who(s), words.about_users(s),
        )  # fmt: skip
    return Answer(s.disk, "unsteady", GOOD, text, UNKNOWN, words.who(s), advise("longer", s.disk))


def begun(s: Situation) -> Answer | None:
    """Many requests are in flight at the end, and there were hardly any before: how long they wait
    is not known yet. Write-back comes in such bursts, and waits for nobody."""
    *before, last = s.seconds
    count = last.in_flight or 0
    if count < VERY_DEEP_QUEUE or any(map(is_used, before)) or s.writes_only:
        return None
    seconds = sum(one.seconds for one in before)
    return Answer(
        s.disk, "begun", GOOD,
        f"{s.disk}{s.layer} had little or no I/O for {seconds:.0f} s, then many I/Os began: "
        f"{count} requests were in flight at the end", UNKNOWN, words.who(s),
        advise("longer", s.disk),
    )  # fmt: skip


def _is_very_slow(s: Situation) -> bool:
    return (s.mean_ms or 0.0) >= VERY_SLOW_FACTOR * s.slow_ms


def slower_than_usual(s: Situation) -> Answer | None:
    """The disk takes much longer than usual at such a load."""
    if (s.mean_ms or 0.0) < SLOWER_MS or s.in_flight < IN_USE:
        return None  # a few requests say little about a disk
    if s.compared is None or s.compared.times < MUCH_SLOWER:
        return None
    return Answer(
        s.disk, "usual", WARNING,
        f"{s.disk} answers slower than usual: {words.mean(s)}{words.usual(s)}",
        WAITS, words.who(s), advise("slow", s.disk),
    )  # fmt: skip


def degraded(s: Situation) -> Answer | None:
    """An array that lacks members answers, but one more failure may end it; so does a drive that
    warns of its own."""
    missing, step = _missing(s)
    if not missing:
        return None
    rest = write_back(s) or unclear(s) or busy(s) or quiet(s)
    return Answer(
        s.disk, "degraded", CRITICAL, f"{missing}; {rest.text}", rest.verdict, words.who(s), step
    )


def write_back(s: Situation) -> Answer | None:
    """Writes that are most likely write-back of the page cache: programs hardly wait for these. The
    kernel counts write-back for all disks together, so it proves nothing about this one."""
    if (
        s.in_flight < DEEP_QUEUE
        or not s.writes_only
        or s.writes_are_waited_for
        or words.is_quick(s)
    ):
        return None
    verdict, end = UNKNOWN, "whether programs wait for them is not known"
    if s.write_back is not None:
        verdict = NOTHING
        end = f"the kernel is writing {units.size(s.write_back)} of the page cache to disks"
    if s.has_pressure and not s.idle_rings:
        verdict = UNKNOWN
        end = f"tasks wait for I/O {s.waited_percent:.0f} % of the time{OR_ANOTHER}"
    elif s.waited_percent is not None and s.waited_percent < WAITED_PERCENT:
        # in bursts, no reading may find a request; else they may be direct: libaio is not counted
        known = s.write_back is not None or (s.busy or 0.0) < BUSY
        verdict, end = (
            NOTHING if known else UNKNOWN,
            f"tasks wait for I/O {s.waited_percent:.0f} % of the time",
        )
    # beside 15 busy CPUs, one that waits all the time counts for 6 %
    if blocked := words.blocked_text(s, "is blocked", "are blocked"):
        verdict, end = UNKNOWN, blocked
    return Answer(
        s.disk, "flush", GOOD,
        f"{s.disk} is busy with writes: {units.size(s.bytes_s)}/s, {words.mean(s)} with "
        f"{words.count(s.in_flight)} in flight; {end}", verdict, words.who(s),
    )  # fmt: skip


def unclear(s: Situation) -> Answer | None:
    """Several requests are in flight; whether the device does them in parallel is unknown."""
    if s.unclear_share < MOST_SECONDS and not s.may_wait_in_bfq:
        return None
    return Answer(
        s.disk, "unclear", GOOD,
        f"{s.disk}{s.layer} is in use: {words.mean(s)}, {units.size(s.bytes_s)}/s, "
        f"{words.count(s.in_flight)} in flight{words.usual(s)}; whether they wait for each other "
        "cannot be told", UNKNOWN, words.who(s),
    )  # fmt: skip


def busy(s: Situation) -> Answer | None:
    """Much I/O, answered as fast as such a disk can."""
    if (s.busy or 0.0) < BUSY and s.in_flight < IN_USE:
        return None
    quick = words.is_quick(s)
    queue = ", no long queue" if s.in_flight < DEEP_QUEUE else ""
    if queue == "" and not quick and s.busy is not None and s.busy < BUSY_UTIL:
        queue = f", none for {100 - s.busy:.0f} % of the time"
    others, end = _more_than_in_flight(s), ""
    if others:
        end = MORE_BLOCKED.format(words.names_text(s.blocked))
    elif (s.may_be_slow and s.may_have_pressure) or s.may_wait_in_turn:
        end = f"; tasks wait for I/O {s.waited_percent:.0f} % of the time"
    elif s.may_be_slow:
        end = MAY_BE_SLOW + words.cpus_text(s)
    elif s.has_pressure and not s.idle_rings and _is_very_slow(s):
        end = f"; tasks wait for I/O {s.waited_percent:.0f} % of the time{OR_ANOTHER}"
    return Answer(
        s.disk, "busy", GOOD,
        f"{s.disk}{s.layer} is in use{' and quick' * quick}: {words.mean(s)}, "
        f"{units.size(s.bytes_s)}/s, {words.count(s.in_flight)} in flight{queue}"
        f"{words.usual(s)}{end}",
        UNKNOWN if end else NOTHING, words.who(s),
        _step_if_slow(s) if s.may_be_slow and not others else NO_ADVICE,
    )  # fmt: skip


def _more_than_in_flight(s: Situation) -> bool:
    """Whether more programs are blocked than requests are in flight: some may wait above the
    disk."""
    tasks = _blocked_for_disks(s)
    # a device above may hold requests that are not here yet
    above = sum(s.machine.in_flight.get(name, 0.0) for name in s.above)
    least = min(WAIT_SHARE * len(tasks), sum(task.share for task in tasks))
    return s.others_are_idle and s.in_flight + s.flushing + above < least


def _blocked_for_disks(s: Situation) -> list[BlockedTask]:
    """The programs that are blocked in a function for disks, or where that cannot be read and the
    pressure on memory does not explain it. Waits for servers don't count."""
    return [
        task for task in s.blocked
        if (place_kind(task.place, True) == DISK if task.place
            else (s.memory_percent or 0.0) < MEMORY_SHARE * 100 * task.share)
    ]  # fmt: skip


def quiet(s: Situation) -> Answer:
    """Nothing to report: what was looked at."""
    # util is sampled: of a quick disk it misses most
    is_used = s.in_flight >= HARDLY_USED if s.busy is None else s.busy >= 1.0
    who = words.who(s) if is_used or s.syncing or s.ios_s >= USED_IOS_S else ""
    # one program's pressure may be below 1 %, and waits for a file system's log are not in it
    of_disks = s.has_pressure and not s.idle_rings and not (s.use is not None and s.use.remote)
    rest = s.others_are_idle and not _works_below(s)
    stuck = rest and (
        _more_than_in_flight(s) or (not s.ios_s and (of_disks or bool(_blocked_for_disks(s))))
    )
    does, waits = words.quiet_parts(s)
    text = f"{does}; {waits}"
    step = _device_on_it(s) if stuck else NO_ADVICE
    if stuck and s.blocked and waits == words.no_queue(s):
        text += MORE_BLOCKED.format(words.names_text(s.blocked))
    if s.may_be_slow:
        text, stuck = f"{does}{MAY_BE_SLOW}{words.cpus_text(s)}", True
        step = step or _step_if_slow(s)
    return Answer(s.disk, "quiet", GOOD, text, UNKNOWN if stuck else NOTHING, who, step)


def _step_if_slow(s: Situation) -> Advice:
    return advise("cpu-users") if words.cpus_text(s) else advise("slow", s.disk)


def _works_below(s: Situation) -> bool:
    """Whether a disk below this one also does I/O of others, for which tasks may wait."""
    disks = s.use.disks if s.use is not None else {}
    below = [disks[name] for name in s.below if name in disks and name != s.disk]
    return any(read + written and held >= HARDLY_USED for read, written, held in below)


Row = Callable[[Situation], "Answer | None"]
TABLE: Sequence[Row] = (
    gone,
    too_short,
    suspended,
    full_pool,
    offline,
    lost_count,
    silent,
    suspended_at_times,
    finding,
    ended,
    resync_alone,
    limit,
    memory,
    slow_member,
    full_queue,
    slow_device,
    held_back,
    near_limit,
    blocked_programs,
    waits_elsewhere,
    hidden_pool,
    pressure_alone,
    cpus_full,
    unsteady,
    begun,
    slower_than_usual,
    degraded,
    write_back,
    unclear,
    busy,
)


JOB_TABLE: Sequence[Row] = (gone, too_short, suspended, silent, *JOB_ROWS)
