"""Answers on all disks of a target, the worst first; follow its seconds and compare each disk
with its own past."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from iopstui.model.answer.situation import (
    ENOUGH_SECONDS,
    MIN_INTERVAL_S,
    HourMedian,
    Machine,
    Situation,
    Usual,
)
from iopstui.model.answer.table import (
    SLOW_MEMBER,
    USED_IOS_S,
    busy,
    decide,
    finding,
    is_pressure_alone,
    quiet,
    with_span,
)
from iopstui.model.answer.use import DiskUse, mean_use
from iopstui.model.answer.words import ONLY_ROOT, holds_most
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.figures.disk import DiskRates, mean_ms
from iopstui.model.findings.advice import advise
from iopstui.model.findings.conditions import Conditions
from iopstui.model.findings.evidence import NO_CONDITIONS, NO_SHAPE, JobShape
from iopstui.model.findings.figures import fio_iops
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.shares import Share
from iopstui.model.rates import median
from iopstui.model.samples import RawSample

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
    # of an array that is named, the members are looked at by themselves, too
    covered = _covered([pair for pair in by_name.values() if pair[1].state != GOOD], by_name)
    found = [pair for name, pair in chosen.items() if name not in covered]
    pairs = list(_once(sorted(found, key=_rank)))
    if pairs:
        situation, first = pairs[0]
        pairs[0] = situation, with_span(situation, first if first.text else quiet(situation))
    return [(situation, _with_root(answer)) for situation, answer in pairs]


def _with_root(answer: Answer) -> Answer:
    """If only root sees who does the I/O, that is the next step where there is no other."""
    if answer.who != ONLY_ROOT or answer.next:
        return answer
    return replace(answer, next=advise("root", answer.disk))


def combined_verdict(pairs: Sequence[Pair], was_read: bool = True) -> str:
    """The verdict on several disks: that on the one that needs attention first. Unless blocked
    tasks and limits were read (``was_read``), nobody knows that nothing waits."""
    verdicts = {answer.verdict for _, answer in pairs}
    found = next((one for one in (WAITS, UNKNOWN, NOTHING) if one in verdicts), UNKNOWN)
    return found if was_read or found != NOTHING else UNKNOWN


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
    covered = _covered(faults, by_name)
    below = [pair for pair in below if pair[1].disk not in covered]
    if below and _is_held_by_crypt(*by_name.get(top, below[0])):
        yield by_name[top]
    elif below:
        rules = [pair[1].rule for pair in below]
        # all members of an array wait for the slow one
        lowest = rules[0] if _SLOW_MEMBER not in rules else _SLOW_MEMBER
        same_rule = [pair for pair in below if pair[1].rule == lowest]
        names = {pair[1].disk for pair in same_rule}
        yield from (pair for pair in same_rule if not names & {*pair[0].below} - {pair[1].disk})
    elif top in by_name:
        yield by_name[top]


def _is_held_by_crypt(situation: Situation, answer: Answer) -> bool:
    """Whether most requests wait for dm-crypt, which needs CPUs, and not for the disk below. Others
    that hold requests back (thin, md) may do that for a disk."""
    device = situation.devices.get(situation.disk)
    is_crypt = device is not None and device.layer == "dm-crypt"
    return is_crypt and answer.state != GOOD and holds_most(situation)


def _covered(faults: Sequence[Pair], by_name: Mapping[str, Pair]) -> set[str]:
    """The devices below an array whose used members are all at fault for the same reason, so that
    the array itself is to be named; and the hidden paths of an NVMe namespace, which have no node,
    unless another path is better."""
    rules = {pair[1].disk: pair[1].rule for pair in faults}
    covered: set[str] = set()
    for situation, answer in faults:
        lower = situation.lower.get(answer.disk, ())
        used = [name for name in lower if name in by_name and by_name[name][0].ios_s]
        devices = [situation.devices.get(name) for name in used]
        paths = all(device is not None and device.hidden for device in devices)
        same = all(rules.get(name) == answer.rule for name in used)
        if used and same and (paths or len(used) > 1):
            covered |= {*situation.below} - {answer.disk}
    return covered


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


MIN_SECONDS = 120
"""Seconds at a similar load that a comparison with them needs."""
MAX_SECONDS = 600
"""How many of the last seconds are kept for each load."""
RECENT_SECONDS = 30
"""The last seconds are what is compared."""
WORTH_SAYING = 2.0
HOUR_WORTH_SAYING, HOUR_LEAST_MS = 3.0, 1.0
"""Loads differ from day to day, so a comparison with other days needs a larger factor."""
MINUTE_S = 60.0
SECOND_S = (0.5, 1.5)
"""Intervals that are a second."""

_Load = tuple[int, int, int]


class DiskHistory:
    """The past of one disk, by its load; feed each second."""

    def __init__(self) -> None:
        self._by_load: dict[_Load, deque[tuple[float, float]]] = {}
        self._minute: deque[tuple[float, float]] = deque(maxlen=round(MINUTE_S))

    def feed(self, t: float, rates: DiskRates) -> None:
        """Count the second that ended at ``t`` (the session's clock)."""
        ms = mean_ms(rates)
        if ms is None:
            return
        load, second = _load(rates), (t, ms)
        alike = self._by_load.get(load)
        if alike is None:
            alike = self._by_load[load] = deque(maxlen=MAX_SECONDS)
        alike.append(second)
        if SECOND_S[0] <= rates.seconds <= SECOND_S[1]:
            self._minute.append(second)

    def slowest_ms(self, t: float) -> float:
        """The slowest second of the last minute; 0.0 without requests."""
        return max((ms for at, ms in self._minute if at > t - MINUTE_S), default=0.0)

    def times_usual(self, t: float, now: Sequence[DiskRates]) -> tuple[float, float] | None:
        """Compare the last seconds ``now`` with earlier ones at the same load. Returns their median
        time over that of the earlier ones, and the age of the oldest earlier one in seconds;
        ``None`` if there are too few seconds."""
        seconds = [(at, ms) for at, ms in self._by_load.get(_load(now[-1]), ())
                   if at < t - RECENT_SECONDS]  # fmt: skip
        last = [ms for ms in map(mean_ms, now) if ms is not None]
        if not last or len(seconds) < MIN_SECONDS:
            return None
        usual = median([past for _, past in seconds])
        return (median(last) / usual, t - seconds[0][0]) if usual else None


def usual_text(times: float, age_s: float) -> str:
    """ "6× its median at this load (last 2 h)"; "" if it is not worth saying."""
    if times < WORTH_SAYING:
        return ""
    return f"{times:.0f}× its median at this load (last {units.duration(60 * (age_s // 60))})"


def hour_text(slowest_ms: float, median: HourMedian | None) -> str:
    """ "slowest second 12× the usual of this hour (last 3 recorded days)"; "" if it is not worth
    saying."""
    if median is None or slowest_ms < HOUR_LEAST_MS:
        return ""
    times = slowest_ms / median.ms
    if times < HOUR_WORTH_SAYING:
        return ""
    return (f"slowest second {times:.0f}× the usual of this hour (last {median.days} recorded "
            "days)")  # fmt: skip


def _load(rates: DiskRates) -> _Load:
    """Requests per second and their size, each to a factor of two, and the share of writes."""
    ios, writes = (rates.reads or 0) + (rates.writes or 0), rates.writes or 0
    rate, size = int(ios / rates.seconds), (rates.data or 0) // ios if ios else 0
    return (rate + 1).bit_length(), (size + 1).bit_length(), round(2 * writes / ios) if ios else 0


WINDOW = 5
"""Seconds that are judged together."""
AGAIN_S = 5.0
"""Seconds after which the same answer is given again with newer figures, or another one that also
finds all well."""
MUCH = 1.5
"""Figures of the disk that differ by a larger factor are given at once on the screen."""
NEWS_SHARE = 0.1
"""fio's IOPS that differ by a larger share are given at once."""
MAX_USE_AGE_S = 15.0
IN_USE_PERCENT = 10.0


def _is_within(use: DiskUse, begin: float) -> bool:
    """Whether a reading covers only time after ``begin``."""
    return use.t - use.seconds > begin - 0.5


class SecondFilter:
    """Skips samples less than a second apart: shorter intervals can't be judged, and no count is
    lost."""

    def __init__(self) -> None:
        self._due_ns = 0

    def passes(self, raw: RawSample) -> bool:
        """Whether the sample ends a second, or is the first."""
        if raw.interval_s < 1.0 and raw.arrived_ns < self._due_ns:
            return False
        self._due_ns = raw.arrived_ns + int(1e9 * (1.0 - raw.interval_s / 2))
        return True


class AnswerTracker:
    """Finds the answer of each frame fed to it. ``needs_use``: who uses the disks is worth reading;
    ``needs_tasks``: which tasks wait, too. ``idle_rings`` names the programs that sleep in
    io_uring, if nothing else is the machine's I/O pressure. ``every_second``: newer figures are
    given each second, for a screen that shows others beside them."""

    def __init__(self, target: Target, every_second: bool = False) -> None:
        self._target = target
        self._every_second = every_second
        self._frames: deque[Frame] = deque(maxlen=WINDOW)
        self._uses: list[DiskUse] = []
        self._use: DiskUse | None = None
        """The mean of ``_uses``, which change only every few seconds."""
        self._history = {name: DiskHistory() for name in target.tree}
        self._last: Answer | None = None
        self._figures = False, 0.0
        self._loads = 0.0, 0.0
        self._said_at = self._rule_at = 0.0
        self._step = 0
        self.hours: Mapping[str, HourMedian] = {}
        """The usual figure at this hour, by disk; mentioned if the session knows no similar load.
        It blames no disk."""
        # the first answer must not wait for it: nobody may wait for a slow disk that md checks
        self.needs_use = self.needs_tasks = True
        self.idle_rings: tuple[str, ...] = ()

    def note_use(self, use: DiskUse) -> None:
        """Add a reading of who uses the disks. One that spans a long pause is not used."""
        if use.seconds <= MAX_USE_AGE_S:
            self._keep_uses([*self._uses, use])

    def _keep_uses(self, uses: Sequence[DiskUse]) -> None:
        self._uses = [*uses[-WINDOW:]]
        # shares are of the time of the figures beside them; what tasks wait for needs more looks
        recent = [use for use in self._uses if _is_within(use, self._uses[-1].t - WINDOW)]
        self._use = mean_use(self._uses, recent or self._uses[-1:])

    def feed(
        self, frame: Frame, devices: Mapping[str, BlockDevice], conditions: Conditions,
        findings: Sequence[Finding], looks: bool = True, shape: JobShape = NO_SHAPE,
    ) -> Answer | None:  # fmt: skip
        """The answer of the last seconds, if it has changed or was last given a while ago. Without
        ``looks`` the frame is only stored. ``shape`` is the running job's."""
        if not frame.seconds:
            return None
        if frame.step != self._step:
            self._step = frame.step
            self._frames.clear()
            self._keep_uses([])
        self._frames.append(frame)
        oldest = frame.t - MAX_USE_AGE_S
        if self._uses and self._uses[0].t < oldest:
            self._keep_uses([use for use in self._uses if use.t >= oldest])
        for name, rates in frame.disks.items():
            if not frame.step and name in self._history:
                self._history[name].feed(frame.t, rates)
        if len(self._frames) < ENOUGH_SECONDS or not looks:
            return None
        seen = Seen(
            self._target, list(self._frames), devices, conditions, self._use, findings,
            partial(self._usual, frame), shape,
        )  # fmt: skip
        pairs = judge(seen, quiet_words=False)
        return self._changed(pairs, frame.t) if pairs else None

    def _changed(self, pairs: Sequence[Pair], t: float) -> Answer | None:
        situation, answer = pairs[0]
        if answer.rule == "short":
            return None
        rings = situation.idle_rings if is_pressure_alone(situation) else ()
        self.idle_rings = tuple(waiter.name for waiter in rings)
        waited = situation.has_pressure
        used = any((one.busy or 0.0) >= IN_USE_PERCENT or one.ios_s >= USED_IOS_S
                   for one, _ in pairs)  # fmt: skip
        self.needs_use = used or waited or answer.state != GOOD
        self.needs_tasks = waited or answer.state != GOOD
        last, figures = self._last, (not situation.ios_s, fio_iops(situation.frames[-1:]))
        loads = situation.bytes_s, situation.in_flight
        if last is not None and last.key == answer.key:
            turned = bool(answer.who) != bool(last.who) or self._contradict(*figures)
            same = last == answer and (last.over_s == answer.over_s or not self._every_second)
            if same or not (turned or self._is_due(last.rule != answer.rule, t, loads)):
                return None
        if last is None or last.rule != answer.rule:
            self._rule_at = t
        self._figures, self._loads = figures, loads
        self._last, self._said_at = answer, t
        return answer

    def _is_due(self, is_other: bool, t: float, loads: tuple[float, float]) -> bool:
        """Whether to give newer figures. Another rule (``is_other``) that finds all well, too, has
        to wait: two of them would alternate."""
        if not self._every_second:
            return t - self._said_at >= AGAIN_S
        differ = any(max(pair) > MUCH * min(pair) for pair in zip(loads, self._loads, strict=True))
        return not is_other or t - self._rule_at >= AGAIN_S or differ

    def _contradict(self, idle: bool, iops: float) -> bool:
        """Whether the last answer is wrong by now, not merely some seconds old."""
        was_idle, iops_before = self._figures
        return idle != was_idle or abs(iops - iops_before) > NEWS_SHARE * iops_before

    def _usual(self, frame: Frame, name: str) -> Usual | None:
        now = [one.disks[name] for one in self._frames if name in one.disks]
        if not now or frame.step or name not in self._history:
            return None
        found = self._history[name].times_usual(frame.t, now)
        if found is not None:
            return Usual(usual_text(*found), found[0])
        text = hour_text(self._history[name].slowest_ms(frame.t), self.hours.get(name))
        return Usual(text, 0.0) if text else None
