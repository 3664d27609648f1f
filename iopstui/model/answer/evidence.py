"""The evidence for an answer in words: figures, excluded causes, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui import format as units
from iopstui.model.answer.answer import Answer
from iopstui.model.answer.situation import FEW_IOS, WAITED_PERCENT, Situation
from iopstui.model.answer.who import LEAST_REST, are_alike, moved_s, who_rows

MAX_LINES, MAX_UPPER, MAX_LOWER = 5, 2, 8
LITTLE = 10.0
"""A cause counts as excluded if tasks wait for it for at most this percentage of the time."""
CPU_IDLE = 10.0
LOG_S = 11.0
"""The kernel logs at most ten errors of a kind in each 5 s, and this time contains one such span as
a whole."""


def evidence(s: Situation, answer: Answer) -> list[str]:
    """At most ``MAX_LINES`` lines, the most telling first."""
    return list(_lines(s, answer))[:MAX_LINES]


def _lines(s: Situation, answer: Answer) -> Iterator[str]:
    if not s.seconds:
        return
    busy = "" if s.busy is None else f", at least one in flight {s.busy:.0f} % of the time"
    in_flight = s.in_flight or s.now_in_flight
    yield (
        f"{s.disk}: {units.number(s.reads_s)} reads/s, {units.number(s.writes_s)} "
        f"writes/s, {units.size(s.bytes_s)}/s, {units.number(in_flight)} in flight{busy}"
    )
    if s.p99_ns is not None and s.mean_ms is not None:
        yield (
            f"latency of single requests: p99 {units.latency(s.p99_ns)} in the device; on average "
            f"{units.milliseconds(s.mean_ms)} with the queue"
        )
    yield from _layers(s)
    if s.waited_percent is not None:
        few = s.waited_percent < WAITED_PERCENT and s.in_flight >= 1.0
        hidden = " (waits of libaio are not counted)" * few
        yield f"tasks waited for I/O of any kind {s.waited_percent:.0f} % of the time{hidden}"
    if s.idle_rings and (s.waited_percent or 0.0) >= LITTLE:
        yield f"{s.idle_rings[0].name} sleeps in io_uring without disk I/O, which counts as waiting"
    rows = [*who_rows(s.shares, s.below, s.probes)]
    when = _in_other_seconds(s)
    # the sentence names a single user already
    if rows[1:] or (rows and (when or not answer.who or not rows[0].endswith("%"))):
        yield f"who, of its bytes{when}: {', '.join(rows)}"
    if s.blocked:
        names = ", ".join(f"{task.comm} ({task.pid})" for task in s.blocked[:3])
        yield f"blocked most of the time: {names}"
    usual = s.use.boot_ms.get(s.disk) if s.use is not None else None
    up_s = (s.use.up_s if s.use is not None else None) or 0.0
    if usual is not None and up_s >= 60:
        yield (
            f"{s.disk} since boot: {units.milliseconds(usual)} a request on average "
            f"({units.duration(60 * (up_s // 60))})"
        )


def _layers(s: Situation) -> Iterator[str]:
    """The I/Os in flight in the devices below it and in those above, of which one may have been
    asked for."""
    held = s.machine.in_flight
    lower = [name for name in s.lower.get(s.disk, ()) if name in held]
    if len(lower) == 1:
        yield f"{lower[0]} below it: {units.number(held[lower[0]])} in flight"
    elif lower:
        lower.sort(key=lambda name: -held[name])
        more = f" and {len(lower) - MAX_LOWER} more" if len(lower) > MAX_LOWER else ""
        most = ", ".join(f"{name} {units.number(held[name])}" for name in lower[:MAX_LOWER])
        yield f"in flight below it: {most}{more}"
    for name in sorted(s.above, key=lambda one: (-held.get(one, 0.0), one))[:MAX_UPPER]:
        if held.get(name, 0.0) >= FEW_IOS:
            node = s.devices[name].dm_name if name in s.devices else None
            called = f"{name} ({node})" if node else name
            yield f"{called} above it: {units.number(held[name])} in flight"


def _in_other_seconds(s: Situation) -> str:
    """What the disk did while its users were read; "" if that is about the same as now."""
    did_s = moved_s(s.disk, s.below, s.use, s.parts_of_below)
    return "" if are_alike(s.bytes_s, did_s) else f" while {s.disk} did {units.size(did_s)}/s"


def excluded(s: Situation, answer: Answer) -> list[str]:
    """Other causes that were checked and excluded."""
    causes = []
    if s.cpus_idle and min(s.cpus_idle) >= CPU_IDLE:
        causes.append(f"full CPUs (at least {min(s.cpus_idle):.0f} % idle)")
    if s.memory_percent is not None and not s.memory_is_short:
        causes.append("short memory")
    logged, span_s = s.conditions.logged, s.frames[-1].t - s.frames[0].t if s.frames else 0.0
    if logged is not None and span_s >= LOG_S and not any(name in s.below for name in logged):
        causes.append("new errors in the kernel's log")
    looked = s.use is not None and s.use.sees_all_limits
    looked = looked and not s.has_iocost and answer.rule not in ("above", "iocost")
    if looked and s.use is not None and not s.use.limits and not s.use.near_limits:
        causes.append("I/O limits of cgroups")
    if s.use is not None and s.other_in_flight < 1.0:
        causes.append("other disks")
    return causes


def _hidden_users(s: Situation) -> str:
    """Processes whose I/O could not be read; for root only where users of this disk are missing:
    it can do nothing about it."""
    if s.use is None or not s.use.hidden:
        return ""
    if not s.use.as_root:
        return f"the I/O of {s.use.hidden_text} of other users (root sees it)"
    is_known = not s.bytes_s or 1 - sum(one.share for one in s.shares) < LEAST_REST
    return "" if is_known else f"the I/O of {s.use.hidden_text} closed even to root"


def not_seen(s: Situation, no_probe: str = "") -> list[str]:
    """What could not be read, and what it needs."""
    missing = []
    if s.use is None:
        missing.append("who uses it, blocked tasks, limits of cgroups (not read in these seconds)")
    if hidden := _hidden_users(s):
        missing.append(hidden)
    if s.use is not None and s.use.outer_processes:
        missing.append("processes outside this container (the host sees them)")
    if s.use is not None and not s.use.as_root and s.conditions.logged is None:
        missing.append("errors in the kernel's log (root reads it)")
    if s.use is not None and not s.use.limits_readable:
        missing.append("I/O limits of cgroups (no hierarchy that has them is mounted here)")
    elif s.use is not None and s.use.outer_groups:
        missing.append("limits of the cgroups that this container is in (the host sees them)")
    if s.cpus_idle == [] and s.frames:
        missing.append("how much of the CPUs is idle (no /proc/stat here)")
    waits = {"io": s.waited_percent, "memory": s.memory_percent,
             "cpu": s.use.cpu_some if s.use is not None else 0.0}  # fmt: skip
    without = [f"/proc/pressure/{name}" for name, percent in waits.items() if percent is None]
    if s.waited_percent is None and s.memory_percent is None:
        missing.append("pressure (the kernel needs CONFIG_PSI, or psi=1)")
    elif without:
        missing.append(f"how long tasks wait: no {', '.join(without)} here")
    if no_probe:
        missing.append(no_probe)
    elif s.sent_again:
        missing.append("percentiles of single requests: some were sent again, and are timed from "
                       "their last try")  # fmt: skip
    elif s.p99_ns is None and any(frame.probe is not None for frame in s.frames):
        missing.append("percentiles of single requests: too few, or not counted all the time")
    return missing
