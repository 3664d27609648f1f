"""Phrases that rows of the table share: what a disk does, who waits for what, who uses it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iopstui import format as units
from iopstui.model.answer.situation import (
    DEEP_QUEUE,
    QUEUE_FACTOR,
    QUEUED_MS,
    SINGLE_DEPTH,
    SLOW_MS,
    VERY_SLOW_FACTOR,
    WAITED_PERCENT,
    Situation,
)
from iopstui.model.answer.use import MUCH_CPU_WAIT, BlockedTask, DiskUse
from iopstui.model.answer.who import MAIN_SHARE, moved_s, perhaps_text, who_text
from iopstui.model.findings.advice import NO_ADVICE, Advice, advise
from iopstui.model.findings.conditions import Array

IN_USE = 1.0
LITTLE_IDLE = 3.0
SOME_WAIT_PERCENT = 0.5
"""Percent of the time; less counts as nothing, and would be shown as 0 %."""
TOO_FEW = 10
"""Fewer in all seconds together have no latency worth telling."""
LOWER_SHARE = 0.25
"""A layer holds requests back if the devices below it have less than this part of them."""
NOTHING_WAITS = "nothing waits"
ONLY_ROOT = "only root sees who uses it"


def quiet_text(s: Situation) -> str:
    return "; ".join(quiet_parts(s))


def quiet_parts(s: Situation) -> tuple[str, str]:
    """What a disk does, and what waits."""
    seconds = sum(rates.seconds for rates in s.seconds)
    if not s.ios_s:
        if s.now_in_flight:
            return f"{s.disk}: no I/O completed in {seconds:.0f} s", f"{s.now_in_flight} in flight"
        if re.fullmatch(r"ram\d+", s.disk):
            return f"{s.disk} is in memory: the kernel does not count its I/Os", _idle_waits(s)
        return f"{s.disk} is idle: no I/O for {seconds:.0f} s", _idle_waits(s)
    busy = "" if s.busy is None else f" at {units.percent(s.busy)} % busy"
    if s.ios_s * seconds < TOO_FEW and (s.busy or 0.0) < 1.0 and not s.may_be_slow:
        # the kernel counts whole milliseconds: a mean of so few says nothing
        does = f"did {units.counted(round(s.ios_s * seconds), 'I/O')} in {seconds:.0f} s"
    elif s.mean_ms is None:
        does = f"does {units.number(s.ios_s)} I/Os/s{busy}"
    else:
        does = f"answers in {_latency(s)}{busy}{usual(s)}"
    return f"{s.disk}{s.layer} {does}", _nothing_waits(s)


def _idle_waits(s: Situation) -> str:
    """What waits though the disk is idle. A process on a frozen file system is blocked, but does
    not count as waiting for I/O."""
    waited = s.waited_percent
    blocked = blocked_text(s, "is blocked", "are blocked")
    if waited is None:
        return blocked or "nothing is in flight"
    if (waited or 0.0) >= WAITED_PERCENT or ((waited or 0.0) >= SOME_WAIT_PERCENT and not blocked):
        return f"tasks wait for I/O {waited:.0f} % of the time, but it has none"
    if not blocked:
        return nothing(s)
    some = f"tasks wait for I/O {waited:.0f} % of the time" if waited >= SOME_WAIT_PERCENT else ""
    memory = f"; tasks wait for memory {s.memory_percent or 0.0:.0f} % of the time"
    return f"{some or 'no task waits for I/O'}, but {blocked}{memory * s.memory_is_short}"


def _nothing_waits(s: Situation) -> str:
    waited = s.waited_percent
    if waited is None or waited >= WAITED_PERCENT or s.in_flight >= IN_USE:
        return no_queue(s)
    # tasks that wait for the log of xfs or the journal of ext4 don't count as waiting for I/O
    blocked = blocked_text(s, "is blocked", "are blocked")
    if blocked:
        return blocked if s.others_are_idle else no_queue(s)
    if waited >= SOME_WAIT_PERCENT:
        return f"tasks wait for I/O {waited:.0f} % of the time"
    return nothing(s)


def no_queue(s: Situation) -> str:
    return f"no queue ({units.number(s.in_flight)} in flight)"


def nothing(s: Situation) -> str:
    """Says that nothing waits. Tasks that are blocked without counting as waiting for I/O, as on a
    frozen file system, are seen only if tasks were read."""
    looked = s.use is not None and s.use.with_tasks
    if s.memory_is_short and (s.memory_percent or 0.0) >= SOME_WAIT_PERCENT:
        return f"tasks wait for memory {s.memory_percent:.0f} % of the time"
    return NOTHING_WAITS if looked else "no task waits for I/O"


def _latency(s: Situation) -> str:
    """The mean latency as text, and the percentile of the device's part if single requests were
    measured and none waits in a queue."""
    if s.p99_ns is not None and s.in_flight < IN_USE:
        return f"{mean(s)} (device p99 {units.latency(s.p99_ns)})"
    return mean(s)


def mean(s: Situation) -> str:
    if s.mean_ms is None:
        discards_s = sum(one.d_s or 0.0 for one in s.seconds) / max(1, len(s.seconds))
        return f"{units.number(discards_s)} discards/s" if discards_s else "no reads or writes"
    # the kernel counts whole milliseconds for all requests of a second together
    return f"{units.milliseconds(s.mean_ms)} on average" if s.mean_ms else "less than 1 ms"


def cpus_text(s: Situation) -> str:
    """Full CPUs as a possible cause: completions, loop devices and dm-crypt need a CPU."""
    return "; the CPUs are full, which may be why" if waited_for_cpu(s) else ""


def is_quick(s: Situation) -> bool:
    """Whether latency (p99, too) is short for such a disk and not several times its mean since
    boot. If the latency without a queue is unknown, only very short ones count; of a disk of
    unknown kind, what is short for flash."""
    since_boot = s.use.boot_ms.get(s.disk) if s.use is not None else None
    short = SLOW_MS["disk" if s.kind == "disk" else "flash"]
    most = min(short, QUEUE_FACTOR * since_boot if since_boot else short)
    slowest_ms = 0.0 if s.p99_ns is None else s.p99_ns / 1e6
    if s.mean_ms is None or s.mean_ms >= most:
        return False
    known = any(alone.is_known or s.in_flight < DEEP_QUEUE for alone in s.alone)
    return (s.mean_ms < QUEUED_MS or known) and slowest_ms < VERY_SLOW_FACTOR * SLOW_MS[s.kind]


def count(value: float) -> str:
    return units.number(round(value)) if value >= 2 else f"{value:.1f}"


def stalls(s: Situation) -> str:
    seconds = s.stalled_seconds
    return f", and nothing in {seconds} of {len(s.seconds)} s" if seconds else ""


def usual(s: Situation) -> str:
    return f", {s.compared.text}" if s.compared is not None and s.compared.text else ""


def who(s: Situation) -> str:
    array = s.syncing
    # what lies on the array has users of its own
    if array is not None and array[0] not in {*s.below} - {s.disk}:
        return _sync_text(*array)
    text = who_text(s.shares, s.conditions.groups, s.disk) or s.kernel_role
    seen, in_use = sum(one.share for one in s.shares), s.in_flight >= IN_USE
    if not text and s.use is not None and s.use.hidden and seen < MAIN_SHARE and in_use:
        if not _was_read_meanwhile(s, s.use):
            return ""
        if not s.use.as_root:
            return ONLY_ROOT
        return _perhaps(s) or "who uses it cannot be seen"
    return text or ("" if s.shares else _perhaps(s))


def _sync_text(name: str, array: Array) -> str:
    if array.is_syncing:
        return f"{array.action} of {name} (md) is under way"
    return f"{array.ended} of {name} (md) has just ended"


def _perhaps(s: Situation) -> str:
    return perhaps_text(s.disk, s.below, s.use, s.parts_of_below)


def _was_read_meanwhile(s: Situation, use: DiskUse) -> bool:
    """Whether who uses the disk was read while this I/O was under way, not before it began."""
    held = use.disks[s.disk][2] if s.disk in use.disks else 0.0
    moved = moved_s(s.disk, s.below, use, s.parts_of_below)
    return moved >= s.bytes_s / 2 or held >= s.in_flight / 2


def about_users(s: Situation) -> Advice:
    """Advice about the programs that fill the queue."""
    if step := resync_step(s):
        return step
    if s.shares and s.shares[0].share >= MAIN_SHARE:
        return _about_main_user(s)
    may_see_all = s.use is None or s.use.as_root
    return advise("many" if may_see_all else "root", s.disk)


def about_hog(s: Situation) -> Advice:
    """Advice about the program that does most of the I/O, if another one waits beside it."""
    first = s.shares[0] if s.shares else None
    if first is None or first.share < MAIN_SHARE or s.in_flight < SINGLE_DEPTH:
        return NO_ADVICE
    others = [task for task in s.blocked if task.pid != first.pid]
    return _about_main_user(s) if others and s.others_are_idle else NO_ADVICE


def _about_main_user(s: Situation) -> Advice:
    queue = s.devices[s.disk].queue if s.disk in s.devices else None
    name = "hog-bfq" if queue is not None and queue.scheduler == "bfq" else "hog"
    return advise(name, s.shares[0].pid)


def tasks_wait(s: Situation) -> bool:
    return s.has_pressure or bool(s.use and s.use.blocked)


def blocked_text(s: Situation, one: str = "waits", many: str = "wait") -> str:
    return tasks_text(s.blocked, one, many) if s.blocked else ""


def tasks_text(tasks: Sequence[BlockedTask], one: str = "waits", many: str = "wait") -> str:
    return names_text(tasks, f" {many if len(tasks) > 1 else one}")


def names_text(tasks: Sequence[BlockedTask], verb: str = "") -> str:
    first = tasks[0]
    more = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
    place = f" in {first.place}" if first.place else ""
    return f"{first.comm} ({first.pid}){more}{verb}{place}"


def held_by_layer(s: Situation) -> tuple[str, Advice]:
    """Says which devices below are not the cause, with advice on how to examine the layer; or which
    one of them has most of the requests."""
    lower = [name for name in s.lower.get(s.disk, ()) if name in s.machine.in_flight]
    if not lower:
        return "", NO_ADVICE
    below = [s.machine.in_flight[name] for name in lower]
    if max(below) >= s.in_flight / 2:
        most = lower[below.index(max(below))]
        return f"; {most} below it has {count(max(below))} in flight", NO_ADVICE
    if not holds_most(s):
        return "", NO_ADVICE
    device = s.devices.get(s.disk)
    step = advise("table", device.dm_name) if device and device.dm_name else NO_ADVICE
    return f"; they are in {s.disk}, not in {' or '.join(lower)} below it", step


def holds_most(s: Situation) -> bool:
    """Whether the devices below it have only a small part of its requests."""
    below = [s.machine.in_flight[name] for name in s.lower.get(s.disk, ())
             if name in s.machine.in_flight]  # fmt: skip
    return bool(below) and sum(below) < LOWER_SHARE * s.in_flight


def degraded(s: Situation) -> str:
    """ "md0 is degraded: 1 of 2 members is missing"; "" if no array here lacks any."""
    for name, state in s.conditions.devices.items():
        array = state.array
        if array is not None and array.degraded and name in s.below:
            verb = "is" if array.degraded == 1 else "are"
            missing = f"{array.degraded} of " if array.members else ""
            members = units.counted(array.members or array.degraded, "member")
            return f"{name} is degraded: {missing}{members} {verb} missing"
    return ""


def resync_step(s: Situation) -> Advice:
    array = s.syncing
    is_syncing = array is not None and array[1].is_syncing
    return advise("resync", array[0], "20000") if array and is_syncing else NO_ADVICE


def is_swap(s: Situation, name: str) -> bool:
    device = s.devices.get(name)
    if device is None:
        return False
    return device.swap or any(s.devices[part].swap for part in device.partitions
                              if part in s.devices)  # fmt: skip


def waited_for_cpu(s: Situation) -> float:
    """Percent of the time in which a task waited for a CPU if the CPUs are full; else 0."""
    waited = (s.use.cpu_some if s.use is not None else None) or 0.0
    if waited < MUCH_CPU_WAIT or not s.cpus_idle:
        return 0.0
    return waited if max(s.cpus_idle) < LITTLE_IDLE else 0.0
