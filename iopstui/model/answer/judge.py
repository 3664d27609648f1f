"""Answers on all disks of a target: one for each, the worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from iopstui import format as units
from iopstui.model.answer.answer import (
    CRITICAL,
    FINDING,
    GOOD,
    NOTHING,
    RANKS,
    UNKNOWN,
    WAITS,
    WARNING,
    Answer,
)
from iopstui.model.answer.situation import ENOUGH_SECONDS, MIN_INTERVAL_S, Machine, Situation, Usual
from iopstui.model.answer.table import SLOW_MEMBER, busy, decide, finding, quiet
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.findings.advice import advise
from iopstui.model.findings.conditions import Conditions
from iopstui.model.findings.evidence import NO_CONDITIONS, NO_SHAPE, JobShape
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.shares import Share

SLOW_SERVER_MS = 30.0
"""A server that takes longer on average keeps its clients waiting."""
OF_THE_MACHINE = ("ring", "pressure", "cpu", "above", "memory")
"""Rows whose answer is the same for every disk."""
Pair = tuple[Situation, Answer]
_SLOW_MEMBER = f"{FINDING}{SLOW_MEMBER}"
_VERDICT_RANKS = {WAITS: 0, UNKNOWN: 1}


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a target in some seconds. ``usual`` compares a disk with its own past."""

    target: Target
    frames: Sequence[Frame]
    devices: Mapping[str, BlockDevice]
    conditions: Conditions = NO_CONDITIONS
    use: DiskUse | None = None
    findings: Sequence[Finding] = ()
    usual: Callable[[str], Usual | None] | None = None
    shape: JobShape = NO_SHAPE


def judge(seen: Seen, quiet_words: bool = True) -> list[Pair]:
    """A situation and its answer for each disk of the target, the one that needs attention first.
    If a disk below another is at fault, its answer replaces that of the upper one. Without
    ``quiet_words`` only the first of the quiet disks gets a text: for many disks this saves two
    thirds of the time."""
    stacks = seen.target.stacks
    lower = {link.name: link.below for link in seen.target.links}
    frames = [frame for frame in seen.frames if (frame.seconds or 0.0) >= MIN_INTERVAL_S]
    machine = Machine(frames)
    by_name = {}
    for name in seen.target.tree:
        situation = _situation(name, stacks, lower, machine, seen)
        by_name[name] = situation, decide(situation, quiet_words)
    chosen: dict[str, Pair] = {}
    for top in seen.target.devices_below:
        for pair in _from_below(top, stacks.get(top, ()), by_name):
            chosen.setdefault(pair[1].disk, pair)
    pairs = list(_once(sorted(chosen.values(), key=_rank)))
    if pairs and not pairs[0][1].text:
        pairs[0] = pairs[0][0], quiet(pairs[0][0])
    return pairs


def combined_verdict(pairs: Sequence[Pair]) -> str:
    """The verdict on several disks: that on the one that needs attention first."""
    verdicts = {answer.verdict for _, answer in pairs}
    return next((one for one in (WAITS, UNKNOWN, NOTHING) if one in verdicts), UNKNOWN)


def judge_share(seen: Seen) -> list[Pair]:
    """As ``judge``, for an NFS or SMB mount, whose times the kernel counts by operation."""
    shares = [frame.share for frame in seen.frames if frame.share is not None]
    if not seen.target.shares or seen.target.devices_below:
        return []
    place = next((one.share for one in seen.target.places if one.share), seen.target.path)
    situation = Situation(place, seen.frames, (place,), use=seen.use, findings=seen.findings)
    return [(situation, finding(situation) or _share_answer(place, shares))]


def _share_answer(place: str, shares: Sequence[Share]) -> Answer:
    if len(shares) < ENOUGH_SECONDS:
        return Answer(place, "short", GOOD, f"{place}: too short to tell", UNKNOWN)
    operations = [one for share in shares for one in share.operations.values()]
    count = sum(one.ops for one in operations)
    waited = sum(one.exe_ms or 0 for one in operations)
    if not count:
        unanswered = shares[-1].unanswered
        if unanswered:
            return Answer(
                place,
                "server",
                CRITICAL,
                f"{place} answers nothing; {unanswered} requests are unanswered",
                WAITS,
                next=advise("server"),
            )
        return Answer(place, "quiet", GOOD, f"{place} is idle: no request; nothing waits")
    mean_ms = waited / count
    text = f"{place} answers in {units.milliseconds(mean_ms)} on average, {count} requests"
    if not waited:
        text = f"{place} answered {count} requests; this kernel does not count their times"
    if mean_ms >= SLOW_SERVER_MS:
        return Answer(place, "server", WARNING, text, WAITS, next=advise("server"))
    return Answer(place, "share", GOOD, text)


def _situation(
    name: str, stacks: Mapping[str, Sequence[str]], lower: Mapping[str, Sequence[str]],
    machine: Machine, seen: Seen,
) -> Situation:  # fmt: skip
    below = [name, *stacks[name]] if name in stacks else _below(name, lower)
    device = seen.devices.get(name)
    if device is not None and device.disk:
        below = [*below, device.disk]
    past = partial(seen.usual, name) if seen.usual is not None else None
    return Situation(
        name, machine.frames, tuple(dict.fromkeys(below)), seen.devices, lower, seen.conditions,
        seen.use, seen.findings, past, machine, seen.shape,
    )  # fmt: skip


def _below(name: str, lower: Mapping[str, Sequence[str]]) -> list[str]:
    found, waiting = [], [name]
    while waiting:
        current = waiting.pop(0)
        if current not in found:
            found.append(current)
            waiting += lower.get(current, ())
    return found


def _from_below(top: str, stack: Sequence[str], by_name: Mapping[str, Pair]) -> Iterator[Pair]:
    """The lowest devices that are at fault; the top one if none is."""
    faults = [by_name[name] for name in reversed((top, *stack))
              if name in by_name and by_name[name][1].state != GOOD]  # fmt: skip
    # a finding on a job is the answer on each disk that the job reaches
    same = by_name[top][1].text if top in by_name and by_name[top][0].has_job else ""
    below = [pair for pair in faults if pair[1].disk != top and pair[1].text != same
             and pair[1].rule not in OF_THE_MACHINE]  # fmt: skip
    if below:
        rules = [pair[1].rule for pair in below]
        # all members of an array wait for the slow one
        lowest = rules[0] if _SLOW_MEMBER not in rules else _SLOW_MEMBER
        yield from (pair for pair in below if pair[1].rule == lowest)
    elif top in by_name:
        yield by_name[top]


def _rank(pair: Pair) -> tuple[float, ...]:
    situation, answer = pair
    return (RANKS[answer.state], _VERDICT_RANKS.get(answer.verdict, 2), -situation.in_flight,
            -situation.ios_s)  # fmt: skip


def _once(pairs: Sequence[Pair]) -> Iterator[Pair]:
    said: set[str] = set()
    used = any(situation.ios_s for situation, _ in pairs)
    explained = any(answer.verdict == WAITS for _, answer in pairs)
    for situation, answer in pairs:
        # full CPUs slow down the disks that are used
        unused = answer.rule == "cpu" and used and not situation.ios_s
        known = answer.rule == "above" and explained
        if unused or known or (answer.rule in OF_THE_MACHINE and answer.rule in said):
            answer = busy(situation) or quiet(situation)
        said.add(answer.rule)
        yield situation, answer
