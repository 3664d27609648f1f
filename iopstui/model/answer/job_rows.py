"""Rows of the table of answers for a run of fio: what a finding says of it, the slow member of a
striped array, and the figures of fio and the disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iopstui import format as units
from iopstui.model.answer import words
from iopstui.model.answer.answer import (
    CRITICAL,
    FINDING,
    GOOD,
    NOTHING,
    OF_A_SECOND,
    REST_SHARE,
    UNKNOWN,
    WAITS,
    WARNING,
    Answer,
)
from iopstui.model.answer.situation import (
    DEEP_QUEUE,
    ENOUGH_SECONDS,
    FEW_IOS,
    MOST_SECONDS,
    Situation,
)
from iopstui.model.findings.advice import NO_ADVICE, Advice, advise
from iopstui.model.findings.cpu_accounts import busy_by_job, cpu_wait_percent
from iopstui.model.findings.figures import mean_waits
from iopstui.model.findings.finding import CRITICAL as CRITICAL_FINDING
from iopstui.model.findings.finding import INFO, Finding, headline_of, period_text, severity_of
from iopstui.model.findings.finding import WARNING as WARNING_FINDING
from iopstui.model.findings.rules.counts import FIND_PROGRAM
from iopstui.model.findings.siblings import STRIPED
from iopstui.model.metrics.frame import FINAL, PARTIAL, WRONG_LATENCY, Frame
from iopstui.model.metrics.waits import SENT_SHARE, Waits, wait_parts
from iopstui.model.rates import fmean

ONE_AT_A_TIME = 0.85, 1.1
"""I/Os in flight on average of a job that does one at a time."""
SLEEPING_SHARE = 0.2
"""A job that does nothing for this part of the time holds itself back."""
BUSY_JOB_PERCENT, VERY_BUSY_JOB_PERCENT, ABOVE_SHARE = 60.0, 75.0, 0.3
"""Percent of a CPU from which on a job's I/Os wait for it noticeably, and for it alone; the part of
them that must be above the device."""
SOME_READS = 100
"""Reads per second from which on it means something that a layer sends none to its disks."""
SAME_LOAD, MEMBER_FACTOR = 1.25, 4.0
"""Members do as many I/Os if they differ by less than this factor; one that holds this many times
as many as any other is the slow one."""
OTHERS_IO = "disagree"
"""Where another program does what the disk does beyond the job, and requests wait, this is why."""
_WAIT_RULES = ("above", "neighbour", "layer", "tags", "busy", "starved", OTHERS_IO)
_EXPLAINING_RULES = ("layer", "slow-direction", "flush", "write-back", "first-write")
"""Findings that are no faults but explain what the job's I/Os wait for."""
_SAYS_LITTLE = 3
LATER_S = 10
"""Seconds for which a finding on the time before a run may be the answer."""
_JOB_STATES = {CRITICAL_FINDING: CRITICAL, WARNING_FINDING: WARNING, INFO: GOOD}


def stopped(s: Situation) -> Answer | None:
    """All of fio's processes are stopped by a signal, so older figures say nothing."""
    jobs = s.frames[-1].jobs
    if not jobs or not all(job.is_stopped for job in jobs):
        return None
    count = units.counted(len(jobs), "job does", "jobs do")
    return Answer(
        s.disk, "stopped", WARNING,
        f"fio is stopped by a signal (SIGSTOP): its {count} nothing until it is continued",
        UNKNOWN, next=advise("continue"),
    )  # fmt: skip


def job_finding(s: Situation) -> Answer | None:
    """What the rules found of the run, the most telling first."""
    found = min(s.findings, key=lambda one: _job_rank(s, one), default=None)
    if found is None or _job_rank(s, found) == _SAYS_LITTLE:
        return None
    # a finding stays active for a while, but its figures are of these seconds
    period = period_text(found)
    when = f" ({period})" if period else ""
    return Answer(s.disk, f"{FINDING}{found.rule}", _JOB_STATES[severity_of(found)],
                  f"{headline_of(found)}{when}: {found.text}",
                  WAITS if found.rule in _WAIT_RULES else NOTHING, next=found.advice,
                  period=period)  # fmt: skip


def _job_rank(s: Situation, found: Finding) -> int:
    """A finding on the time before the run ranks last, and later the run itself is the answer."""
    if found.rule == "background":
        is_old = found.until is not None and s.frames[-1].t > found.until + LATER_S
        return _SAYS_LITTLE if is_old else 1
    if severity_of(found) != INFO:
        return 0
    if found.rule == OTHERS_IO and found.advice == FIND_PROGRAM:
        return 2 if s.queue_share >= MOST_SECONDS else _SAYS_LITTLE
    return 2 if found.rule in _EXPLAINING_RULES else _SAYS_LITTLE


def slow_stripe(s: Situation) -> Answer | None:
    """The job waits for the member of a striped array that holds most of its I/Os though each
    member does as many: the array is as fast as this one."""
    waits = mean_waits(_whole_seconds(s)[-ENOUGH_SECONDS:])
    if waits is None or not waits.layers:
        return None
    name = max(waits.layers, key=lambda layer: waits.layers[layer])
    held = waits.layers[name]
    for array, members in s.lower.items():
        device = s.devices.get(array)
        if name not in members or device is None or device.layer not in STRIPED:
            continue
        ios_s = [fmean([frame.disks[member].ios_s or 0.0 for frame in s.frames
                        if member in frame.disks] or [0.0]) for member in members]  # fmt: skip
        most = max((waits.layers.get(one, 0.0) for one in members if one != name), default=held)
        is_same_load = max(ios_s) <= SAME_LOAD * min(ios_s)
        if is_same_load and held >= max(MOST_SECONDS * waits.ios, MEMBER_FACTOR * most, 2.0):
            return Answer(
                s.disk, "member", WARNING,
                f"The job waits for {name}: it holds {held:.1f} of {waits.ios:.1f} I/Os in flight, "
                f"but does as many as the other members of {array}", WAITS,
                next=advise("slow-member", name),
            )  # fmt: skip
    return None


def _whole_seconds(s: Situation) -> list[Frame]:
    """Those of the run. Its first and last second are parts of one, which fio and the kernel divide
    differently."""
    return [frame for frame in s.frames
            if frame.fio is not None and not frame.flags & {PARTIAL, FINAL}]  # fmt: skip


def _in_flight(waits: Waits) -> str:
    """Where the I/Os of the second are that IOPS and latency are of."""
    # the largest first: a short line leaves out the last ones
    largest = sorted(wait_parts(waits), key=lambda part: -part[1])
    places = [f"{name} {ios:.1f}" for name, ios in largest if ios >= FEW_IOS]
    rest = waits.ios - sum(ios for _, ios in largest)
    if places and rest >= REST_SHARE * waits.ios:
        places.append(f"elsewhere {rest:.1f}")
    return f"in flight {waits.ios:.1f}{': ' * bool(places)}{', '.join(places)}"


def job(s: Situation) -> Answer:
    """The figures of fio and the disk, for a run without findings."""
    frames = _whole_seconds(s) or [frame for frame in s.frames if frame.fio is not None][-1:]
    fio = frames[-1].fio if frames else None
    total = fio.total if fio is not None else None
    if fio is None or total is None or total.iops is None:
        return Answer(s.disk, OF_A_SECOND, GOOD, f"no report from fio yet; {words.quiet_text(s)}")
    parts = [f"fio does {units.number(total.iops)} IOPS"]
    if WRONG_LATENCY in frames[-1].flags:
        total = replace(total, lat_ns=None, percentiles={})
        parts.append("its latencies are impossible")
    if total.lat_ns is not None:
        means = {name: one.lat_ns for name, one in fio.directions.items() if one.lat_ns is not None}
        both = ", ".join(f"{name}s {units.latency(ns)}" for name, ns in means.items())
        parts.append(f"{both if len(means) > 1 else units.latency(total.lat_ns)} on average")
    if total.percentiles.get("p99") is not None:
        parts.append(f"p99 {units.latency(total.percentiles['p99'])}")
    waits = mean_waits(frames[-ENOUGH_SECONDS:])
    if waits is None or waits.above is None or not waits.ios:
        return Answer(s.disk, OF_A_SECOND, GOOD, ", ".join(parts))
    verdict, next_step = _job_step(s, waits)
    if _holds_itself_back(s, frames[-ENOUGH_SECONDS:], waits):
        parts[0] = f"{parts[0]}, as its {s.shape.pace} allows"
        next_step = advise("pace", s.shape.pace)
    reasons = []
    if unsent := _not_sent_below(s, frames[-ENOUGH_SECONDS:]):
        reasons.append(unsent)
        verdict, next_step = NOTHING, advise("never-written")
    elif (used := _used_by_job(s, frames[-ENOUGH_SECONDS:], waits)) >= BUSY_JOB_PERCENT:
        reasons.append(f"each job uses {used:.0f} % of a CPU, and its I/Os may wait for it")
        next_step = next_step or advise("numjobs")
        # an unseen limit could hardly hold such a job back
        verdict = NOTHING if verdict == UNKNOWN and used >= VERY_BUSY_JOB_PERCENT else verdict
    if s.may_wait_in_bfq:
        reasons.append(f"some of those in {s.disk} may wait in its scheduler bfq")
        next_step = advise("scheduler")
    text = "; ".join(
        (", ".join(parts), _in_flight(mean_waits(frames[-1:]) or waits), *reasons)
    )  # fmt: skip
    return Answer(s.disk, OF_A_SECOND, GOOD, text, verdict, next=next_step,
                  reason="; ".join(reasons))  # fmt: skip


def _holds_itself_back(s: Situation, frames: Sequence[Frame], waits: Waits) -> bool:
    """Whether a job sleeps by itself for a good part of the time: it has few I/Os in flight and
    neither uses nor waits for a CPU. The time of syncs is not in its latencies."""
    busy = [value for values in busy_by_job(frames).values() for value in values]
    if not s.shape.pace or s.shape.syncs or not busy:
        return False
    waited = [cpu_wait_percent(frame) or 0.0 for frame in frames]
    used = waits.ios / s.shape.depth + (fmean(busy) + fmean(waited)) / 100
    return used <= 1 - SLEEPING_SHARE


def _not_sent_below(s: Situation, frames: Sequence[Frame]) -> str:
    """That a layer answers a job's direct reads by itself, as dm-thin does those of blocks it does
    not have; "" if it sends them to its disks or this is not known."""
    device, disks = s.devices.get(s.disk), s.lower.get(s.disk, ())
    # a loop device's reads may be in the page cache
    if device is None or device.kind != "dm" or not disks:
        return ""
    if s.shape.writes or s.shape.direct is not True:
        return ""
    seen = [
        (frame.disks[s.disk].r_s or 0.0, sum(frame.disks[name].r_s or 0.0 for name in disks))
        for frame in frames if {s.disk, *disks} <= frame.disks.keys()
    ]  # fmt: skip
    if not seen or any(read < SOME_READS or sent > SENT_SHARE * read for read, sent in seen):
        return ""
    return (
        f"{s.disk} sends hardly any to {' and '.join(disks)}: blocks that were never written "
        "need no read"
    )


def _used_by_job(s: Situation, frames: Sequence[Frame], waits: Waits) -> float:
    """Percent of a CPU that each job uses on average; 0 if it has one I/O at a time or few are
    above the device, where those are that were submitted or completed and wait for their job."""
    each = [fmean(values) for values in busy_by_job(frames).values()]
    is_above = (waits.above or 0.0) >= ABOVE_SHARE * waits.ios
    return fmean(each) if each and is_above and (s.shape.iodepth or 1) > 1 else 0.0


def _job_step(s: Situation, waits: Waits) -> tuple[str, Advice]:
    """(verdict, next step) by where most of a job's I/Os are."""
    most = MOST_SECONDS * waits.ios
    if (waits.above or 0.0) >= max(most, DEEP_QUEUE):
        return UNKNOWN, NO_ADVICE
    verdict = WAITS if max(s.queue_share, s.slow_share) >= MOST_SECONDS else NOTHING
    if waits.in_devices < most:
        return verdict, NO_ADVICE
    name = max(waits.layers, key=lambda layer: waits.layers[layer])
    node = s.devices[name].dm_name if name in s.devices else ""
    if node and s.lower.get(name):
        return verdict, advise("table", node)
    if ONE_AT_A_TIME[0] <= waits.ios <= ONE_AT_A_TIME[1] and s.shape.depth == 1:
        return verdict, advise("deeper")
    # beside another program's many, fewer of its own change little
    is_own = s.queue_share >= MOST_SECONDS and waits.in_devices >= MOST_SECONDS * s.in_flight
    return verdict, advise("shallower") if is_own else NO_ADVICE


JOB_ROWS = (stopped, job_finding, slow_stripe, job)
