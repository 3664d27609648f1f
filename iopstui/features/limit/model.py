"""The search for a limit: which rate to measure next, an estimate, and the answer in words.

A p99 is within its bound as long as at most 1 % of the I/Os are slower than the bound. So each run
at a rate gives a count of slow I/Os. Slow I/Os come in groups (one that waits makes the next ones
wait). So they are counted by second, and the spread of a run's seconds determines for how many
independent I/Os the run counts. Some I/Os are slow at any rate. Above this floor, the logit of the
share of slow I/Os is assumed to be linear in the logarithm of the rate near the bound, which is
nearly true for queues."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from iopstui.format import duration
from iopstui.model.findings.evidence import SYNCHRONOUS, JobShape
from iopstui.model.fio.jobfile import Section
from iopstui.model.metrics.statistics import t_quantile

GRID = 120
"""How many rates are tried as the limit."""
STEEPNESS = tuple(0.5 * 1.5**n for n in range(18))
"""The exponents that are tried for the growth of the odds of a slow I/O with the rate: 0.5 to
490."""
FLOORS = (0.0, 0.1, 0.3, 0.6)
"""The floors that are tried: slow I/Os that occur at every rate, as a share of the allowed ones."""
NEAR_SHARES = 0.1, 10.0
"""Runs whose share of slow I/Os is between these multiples of the allowed share show how slow I/Os
are grouped near the bound."""
BEND = 0.15
"""A run may differ from the straight line by this share of its distance from the bound."""
GROUP = 1.0
"""The length of a group of slow I/Os. The unit is the I/Os that arrive during the bound, divided by
the share of time in which the device is idle (heavy traffic: a reflected Brownian motion)."""
MIN_IDLE = 0.03
STALLED = 0.9
"""A second with this share of a run's slow I/Os counts as a single stall."""
DECIDED = 6.6
"""Twice the log-likelihood ratio (99 %) at which a single run decides."""
BEHIND = 0.03
"""If a device completes fewer I/Os than requested by this share, it can't sustain the rate."""


@dataclass(frozen=True, slots=True)
class Second:
    """The I/Os completed in one second, and how many of them were ``slow``, that is, took longer
    than the bound."""

    ios: int
    slow: int


@dataclass(frozen=True)
class Run:
    """A run at one rate. In I/Os per second, ``asked`` is the requested rate and ``rate`` the
    completed one. ``allowed`` is the share that may be slow (0.01), ``bound_s`` the bound."""

    asked: float
    rate: float
    seconds: tuple[Second, ...]
    allowed: float
    bound_s: float
    capacity: float
    """The most I/Os per second that the device can complete, as far as is known."""

    @cached_property
    def ios(self) -> int:
        """The number of all I/Os."""
        return sum(second.ios for second in self.seconds)

    @cached_property
    def slow(self) -> int:
        """The number of I/Os that took longer than the bound."""
        return sum(second.slow for second in self.seconds)

    @property
    def share(self) -> float:
        """The share of slow I/Os; 1 if the device fell behind."""
        return 1.0 if self.is_behind else self.slow / self.ios if self.ios else 0.0

    @property
    def is_behind(self) -> bool:
        """Whether clearly fewer I/Os were completed than requested; the others then wait longer and
        longer."""
        chance = 4 / math.sqrt(max(1, self.ios))
        return self.rate < self.asked * (1 - BEHIND - chance)

    @property
    def load(self) -> float:
        """The rate at which I/Os arrived: the requested one, unless fio's rate was clearly
        different."""
        chance = 3 / math.sqrt(max(1, self.ios))
        sent = not self.is_behind and abs(self.rate / self.asked - 1) > chance
        return self.rate if sent else self.asked

    @property
    def grouping(self) -> float:
        """How many I/Os count as one, by queueing theory: the busier the device, the longer a queue
        lasts, and all I/Os that wait in it are slow together."""
        idle = max(MIN_IDLE, 1 - self.asked / self.capacity)
        return 1 + GROUP * self.asked * self.bound_s / idle

    @cached_property
    def spread(self) -> tuple[float, float]:
        """The variance of the seconds' counts of slow I/Os: the observed one, and that of
        independent I/Os."""
        count, share = len(self.seconds), self.slow / self.ios if self.ios else 0.0
        squares = sum((second.slow - share * second.ios) ** 2 for second in self.seconds)
        return squares, max(0, count - 1) / max(1, count) * self.slow * (1 - share)

    @property
    def is_stalled(self) -> bool:
        """Whether most slow I/Os are in a single second, because something stopped the device
        once."""
        most = max((second.slow for second in self.seconds), default=0)
        alone = len(self.seconds) > 2 and most > STALLED * self.slow
        return alone and most > 10 * self.grouping and self.slow > self.allowed * self.ios

    @property
    def is_saturated(self) -> bool:
        """Whether most I/Os, besides the share that may be slow, are slow: the queue then grows
        during the run."""
        return self.share > (1 + self.allowed) / 2

    @property
    def is_near(self) -> bool:
        """Whether the run shows how slow I/Os are grouped near the bound."""
        low, high = NEAR_SHARES
        return low * self.allowed <= self.share <= high * self.allowed and not self.is_behind

    def evidence(self) -> float:
        """Twice the log-likelihood ratio against the allowed share. If it is above 0, the run
        speaks against the bound being met; below 0, for it."""
        n, share = self.ios / self.grouping, self.share
        ratio = 2 * (_likelihood(share, n, share) - _likelihood(share, n, self.allowed))
        return ratio if share > self.allowed else -ratio

    @property
    def keeps(self) -> bool | None:
        """Whether the run met the bound; ``None`` if its share is too near the allowed one, or if
        it has too few independent I/Os to tell."""
        evidence = self.evidence()
        return None if abs(evidence) < DECIDED else evidence < 0


def _likelihood(share: float, n: float, expected: float) -> float:
    """The log-likelihood of observing a ``share`` among ``n`` if ``expected`` is the true share."""
    slow = share * math.log(expected) if share else 0.0
    fast = (1 - share) * math.log(1 - expected) if share < 1 else 0.0
    return n * (slow + fast)


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _curve(logit: float, least: float) -> float:
    """The share of slow I/Os: the ``least`` share, plus those that queue, whose log odds are
    ``logit``."""
    queued = 1 / (1 + math.exp(-logit)) if logit > -30 else 1e-13
    return min(1 - 1e-9, least + queued)


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of the limit. With 95 % confidence it is between ``low`` and ``high``; ``best``
    is the most likely value. An end beyond which nothing was measured is ``None``. ``steepness`` is
    the exponent with which the odds of a slow I/O grow with the rate."""

    low: float | None
    high: float | None
    best: float
    steepness: float

    @property
    def half_width(self) -> float:
        """Half of the interval's width, as a share of its middle."""
        if self.low is None or self.high is None:
            return math.inf
        return (self.high - self.low) / (self.high + self.low)


def estimate(runs: Sequence[Run]) -> Estimate | None:
    if not runs:
        return None
    weights = _weights(runs, 1.0)
    fitted = _Fit(runs, weights)
    near = [run for run in runs if run.is_near]
    if len(near) > 2:
        # if the runs scatter around the line more than their seconds explain, give each less weight
        excess = fitted.scatter(near) / (len(near) - 2)
        if excess > 1:
            fitted = _Fit(runs, _weights(runs, excess))
    freedom = max(4, sum(len(run.seconds) - 1 for run in near))
    return fitted.interval(t_quantile(0.975, freedom) ** 2)


def _weights(runs: Sequence[Run], excess: float) -> list[float]:
    """For how many independent I/Os each run counts. The grouping is computed from all runs
    together: with a grouping of its own, a run that happened to see a long queue would count
    least."""
    near = [run for run in runs if run.is_near]
    squares = sum(run.spread[0] for run in near)
    expected = sum(run.grouping * run.spread[1] for run in near)
    excess *= max(1.0, squares / expected) if expected else 1.0
    weights = []
    for run in runs:
        n = run.ios / run.grouping / excess
        share = (run.share * run.ios + 0.5) / (run.ios + 1)
        distance = BEND * (_logit(share) - _logit(run.allowed))
        most = 1 / distance**2 / (share * (1 - share)) if distance else math.inf
        # in a growing queue the share of slow I/Os depends on the run's length, so the run only
        # shows that the rate is beyond the limit
        weights.append(min(n, 1.0) if run.is_saturated else min(n, most))
    return weights


class _Fit:
    """The likelihood of every limit on a grid, each with its best steepness."""

    def __init__(self, runs: Sequence[Run], weights: Sequence[float]) -> None:
        self._runs, self._weights = runs, weights
        self._logs = [math.log(run.load) for run in runs]
        first, last = min(self._logs) - 0.3, max(self._logs) + 0.3
        self._limits = [first + (last - first) * n / (GRID - 1) for n in range(GRID)]
        self._ends = min(self._logs), max(self._logs)
        self._allowed = runs[0].allowed
        ends = [(_logit(self._allowed * (1 - floor)), floor) for floor in FLOORS]
        self._curves = [(steepness, *end) for steepness in STEEPNESS for end in ends]
        self._profile = [self._best_curve(limit) for limit in self._limits]
        top = max(range(GRID), key=lambda n: self._profile[n][0])
        # use the middle of a plateau
        level = self._profile[top][0] - 0.05
        flat = [n for n in range(GRID) if self._profile[n][0] >= level]
        self.best = sum(self._limits[n] for n in flat) / len(flat)
        self.most, self.steepness, self.floor = self._profile[top]

    def _best_curve(self, limit: float) -> tuple[float, float, float]:
        """The likelihood of the most likely curve through this limit, with its steepness and its
        floor."""
        data = [(weight, run.share, log - limit)
                for run, weight, log in zip(self._runs, self._weights, self._logs, strict=True)
                ]  # fmt: skip
        best = -math.inf, 0.0, 0.0
        for steepness, middle, floor in self._curves:
            total, least = 0.0, floor * self._allowed
            for weight, slow, distance in data:
                share = _curve(middle + steepness * distance, least)
                total += weight * (slow * math.log(share) + (1 - slow) * math.log1p(-share))
                if total < best[0]:  # stop: further runs can only lower the likelihood
                    break
            else:
                best = max(best, (total, steepness, floor))
        return best

    def scatter(self, near: Sequence[Run]) -> float:
        """The squared distances of the runs from the curve, in units of their own errors."""
        total = 0.0
        middle, least = _logit(self._allowed * (1 - self.floor)), self.floor * self._allowed
        for run, weight, log in zip(self._runs, self._weights, self._logs, strict=True):
            if run in near:
                share = _curve(middle + self.steepness * (log - self.best), least)
                total += weight * (run.share - share) ** 2 / (share * (1 - share))
        return total

    def interval(self, drop: float) -> Estimate:
        """The interval of all limits whose log-likelihood is at most half of ``drop`` below the
        best one's."""
        inside = [limit for limit, (value, *_) in zip(self._limits, self._profile, strict=True)
                  if 2 * (self.most - value) <= drop]  # fmt: skip
        step = self._limits[1] - self._limits[0]
        low, high = min(inside) - step, max(inside) + step
        return Estimate(
            None if low < self._ends[0] else math.exp(low),
            None if high > self._ends[1] else math.exp(high),
            math.exp(self.best), self.steepness,
        )  # fmt: skip


SHORT_S, LONG_S = 5.0, 12.0
"""The measured seconds of a run that looks for the range of the limit, and of a run near the
limit."""
UP, DOWN, APART, BEYOND = 1.35, 2.0, 1.25, 1.05
NARROW = 0.045
"""If half of the interval, as a share of its middle, is at most this, the search ends."""
NEAR = 0.25
PLACES = (0.5, 0.2, 0.8)
"""The positions within the interval at which the next rates are measured."""
MIN_NEAR = 3
SLOWED = 0.9
"""If a device falls behind at less than this share of what it did before, it has become slower."""
LIKELY = 3.84
"""Twice the log-likelihood ratio for 95 %."""
REPEATED = 2
"""How many runs in a row may be disturbed before a lower rate is tried."""


@dataclass(frozen=True, slots=True)
class Step:
    """The rate of the next run, and its measured seconds."""

    rate: float
    seconds: float


@dataclass
class Search:
    """A search. ``first`` is the rate to begin with, ``lowest`` the lowest rate to try, and
    ``capacity`` the most I/Os per second that the device has completed so far."""

    first: float
    lowest: float
    capacity: float
    runs: list[Run] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    """Sentences on how runs contradict earlier runs."""
    disturbed: list[float] = field(default_factory=list)
    """The rates of disturbed runs, without those up to the rate of a later undisturbed run."""
    _found: Estimate | None = None

    @property
    def is_never_kept(self) -> bool:
        """Whether even the lowest rate certainly misses the bound."""
        lowest = [run.evidence() for run in self.runs if run.asked <= self.lowest * 1.01]
        return sum(lowest) >= DECIDED

    def add(self, run: Run) -> None:
        """Add a run. If it contradicts earlier runs, the device has changed, and those no longer
        count."""
        self.disturbed = [rate for rate in self.disturbed if rate > run.asked]
        most, self.capacity = self.capacity, max(self.capacity, run.rate)
        self.runs = [replace(each, capacity=self.capacity) for each in (*self.runs, run)]
        change, first = self._change(self.runs[-1], most)
        if change:
            self.changes.append(change)
            self.capacity = run.rate
            self.runs = [replace(each, capacity=run.rate) for each in self.runs[first:]]
        self._found = estimate(self.runs)

    def _change(self, run: Run, most: float) -> tuple[str, int]:
        """What has changed ("" if nothing has), and the first run that shows the device as it is
        now."""
        if run.is_behind and run.asked < SLOWED * most:
            return (f"{most:,.0f}/s were completed, and later only {run.rate:,.0f} of "
                    f"{run.asked:,.0f}/s"), len(self.runs) - 1  # fmt: skip
        before = [n for n, other in enumerate(self.runs[:-1])
                  if other.share <= other.allowed and other.asked >= run.asked * 1.02]  # fmt: skip
        evidence = -sum(self.runs[n].evidence() for n in before)
        if run.keeps is False and evidence >= LIKELY:
            return (f"{self.runs[before[-1]].asked:,.0f}/s kept the bound, and later "
                    f"{run.asked:,.0f}/s did not"), before[-1] + 1  # fmt: skip
        return "", 0

    def estimate(self) -> Estimate | None:
        return self._found

    @property
    def ceiling(self) -> float:
        """The rate from which on runs were repeatedly disturbed."""
        return min(self.disturbed) if len(self.disturbed) >= REPEATED else math.inf

    def next(self) -> Step | None:
        """The next run; ``None`` if the interval is narrow enough, or if no lower rate is left to
        try."""
        step, ceiling = self._wanted(), self.ceiling
        if step is None or step.rate < ceiling:
            return step
        # a lower rate may be unaffected, because hardly any I/O is slow there
        kept = [run.asked for run in self.runs if run.asked < ceiling and run.share <= run.allowed]
        rate = math.sqrt(max(kept) * ceiling) if kept else ceiling / DOWN
        is_found = kept and ceiling < max(kept) * APART
        return None if is_found or rate < self.lowest else Step(rate, step.seconds)

    def _wanted(self) -> Step | None:
        """The next run, if no run had been disturbed."""
        if not self.runs:
            return Step(self.first, SHORT_S)
        found = self._found
        assert found is not None
        rates = [run.asked for run in self.runs]
        low, high = found.low, found.high
        if low is None and self._lowest_fails():
            if self.is_never_kept:
                return None
            return Step(max(self.lowest, min(rates) / DOWN), SHORT_S)
        if high is None and not any(run.share > run.allowed for run in self.runs):
            return Step(self._higher(max(rates)), SHORT_S)
        if low is None:
            # at a lower rate the device is less busy, and a run shows sooner that the bound is met
            return Step(max(self.lowest, min(rates) / APART), LONG_S)
        if high is None:
            return Step(max(rates) * BEYOND, SHORT_S)
        near = [run for run in self.runs if low / 1.1 <= run.asked <= high * 1.1]
        half = (high - low) / (high + low)
        # also require runs on both sides: with runs on only one side, the line is an extrapolation
        sides = {run.share > run.allowed for run in near if not run.is_saturated}
        if found.half_width <= NARROW and len(near) >= MIN_NEAR and len(sides) == 2:
            return None
        place = PLACES[len(near) % len(PLACES)]
        rate = math.exp(math.log(low) + place * math.log(high / low))
        return Step(rate, LONG_S if half < NEAR else SHORT_S)

    def _higher(self, rate: float) -> float:
        """The next rate above all rates that met the bound, but not far beyond the device's
        capacity."""
        if rate < 0.95 * self.capacity:
            return math.sqrt(rate * self.capacity)
        return max(rate * 1.06, 1.06 * self.capacity) if rate < self.capacity else rate * UP

    def _lowest_fails(self) -> bool:
        lowest = min(self.runs, key=lambda run: run.asked)
        return lowest.share > lowest.allowed


# A job that sends I/Os at a given rate, whatever the disk does: its options, and which jobs can't.


MIN_DEPTH, MAX_DEPTH = 64, 4096
MAX_BUFFER_BYTES = 256 << 20
DEPTH_FACTOR = 16
"""The queue has room for this multiple of the I/Os that arrive during the bound. If it is full
nevertheless, all I/Os in it are slow."""
DEEPER = 4
_MIXED = ("rw", "randrw", "readwrite")
_SYNCS = ("fsync", "fdatasync", "sync_file_range")


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """How a job's rate is set. ``jobs`` is its number of jobs; ``mixed`` is the share of reads if
    it reads and writes, else ``None``."""

    jobs: int
    mixed: float | None
    largest_block: int

    def depth(self, rate: float, bound_s: float, deeper: int = 0) -> int:
        """The number of I/Os that each job may have in flight."""
        room = max(MIN_DEPTH, math.ceil(DEPTH_FACTOR * rate * bound_s)) * int(DEEPER**deeper)
        return max(1, math.ceil(min(room, self.most_in_flight) / self.jobs))

    @property
    def most_in_flight(self) -> int:
        """Limit for the I/Os in flight of all jobs together, because fio has a buffer for each."""
        return min(MAX_DEPTH, max(MIN_DEPTH, MAX_BUFFER_BYTES // self.largest_block))

    def options(self, rate: float, depth: int, seed: int) -> dict[str, str]:
        """The options for ``rate``. With another ``seed``, the I/Os have other random blocks and
        arrive at other random times (see jobfile.other_blocks)."""
        each = rate / self.jobs
        rates = [each] if self.mixed is None else [each * self.mixed, each * (1 - self.mixed)]
        return {
            "rate_iops": ",".join(str(max(1, round(part))) for part in rates),
            "rate_process": "poisson", "iodepth": str(depth),
            "randrepeat": "0", "randseed": str(seed),
        }  # fmt: skip

    def asked(self, rate: float) -> float:
        """The rate that ``options`` sets, in whole I/Os per second."""
        parts = self.options(rate, 1, 0)["rate_iops"].split(",")
        return float(self.jobs * sum(map(int, parts)))


def open_loop(shape: JobShape, section: Section, largest_block: int) -> OpenLoop:
    """The ``OpenLoop`` of a job, which can be sent at a rate."""
    rw = section.options.get("rw", section.options.get("readwrite", "read")).partition(":")[0]
    mixed = None
    if rw in _MIXED:
        read, write = section.options.get("rwmixread"), section.options.get("rwmixwrite")
        mixed = float(read) / 100 if read else 1 - float(write) / 100 if write else 0.5
    return OpenLoop(shape.jobs, mixed if mixed not in (0, 1) else None, largest_block)


def why_no_open_loop(shape: JobShape, options: Mapping[str, str]) -> tuple[str, str] | None:
    """Why a job's I/Os can't arrive independently of the disk, and what to do; ``None`` if they
    can."""
    synchronous = shape.engine in SYNCHRONOUS and not shape.offloads
    if synchronous:
        return (f"the engine {shape.engine} waits for each I/O before it sends the next one",
                "Add --set ioengine=libaio, or io_uring.")  # fmt: skip
    if shape.engine == "libaio" and not shape.direct:
        return ("libaio blocks while it submits I/Os that go through the page cache",
                "Add --set direct=1, or --set ioengine=io_uring.")  # fmt: skip
    if shape.paced:
        return "the job sets its own pace", "Remove its rate, thinktime, flow and latency_target."
    for name in _SYNCS:
        if options.get(name, "0") != "0":
            return (f"the job waits for its own syncs ({name}={options[name]})",
                    f"Add --set {name}=0, or limit another job.")  # fmt: skip
    return None


def may_be_full(per_second: float, slowest_s: float, room: int) -> bool:
    """Whether I/Os may have filled the queue in a second: at most as many can be in flight at once
    as arrive during the slowest one."""
    most = per_second * slowest_s
    return most + 4 * math.sqrt(most) + 4 >= room


FOUND, NEVER, NO_LIMIT, UNSURE = "found", "never", "no-limit", "unsure"
WIDE = 0.25
"""If half of the interval, as a share of its middle, is more than this, the interval is too wide to
be useful."""
ENOUGH = 0.07
"""If it is less than this, the interval needs no comment."""
MEASURED_SHARE = 0.7
"""The share of a search's time that is spent measuring; the rest is for starts and settling."""
MORE = 1.3
STEP_S = 60
MAX_CHANGES = 1
CAUSES = "the end of a burst, a cache that filled, throttling"
MAX_SPOILED = 4
"""How many runs in a row may be disturbed: one at a rate, one more at that rate, and two at lower
rates."""
INTERRUPTED = "interrupted"
DISTURBED = "too many runs were disturbed. Next: end what disturbed them, and run it again"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a search. ``kind`` is a constant of this module. With 95 % confidence the limit
    is between ``low`` and ``high``, as far as they are known. ``text`` says so, and ``notes`` say
    what else happened."""

    kind: str
    low: float | None
    high: float | None
    best: float | None
    text: str
    notes: tuple[str, ...] = ()


def conclude(
    search: Search, bound: str, spoiled: Sequence[str], ended: str = "", spoiled_runs: int = 0
) -> Answer:
    """The answer of a search. ``bound`` is written as the user did; ``spoiled`` says why
    ``spoiled_runs`` do not count; ``ended`` says why nothing more could be measured ("" if the
    search found its answer or ran out of time)."""
    found = search.estimate()
    notes = [f"The disk changed: {change} ({CAUSES}). The limit is for the time after that."
             for change in search.changes]  # fmt: skip
    notes += dict.fromkeys(spoiled)
    if found is None:
        why = ended or (DISTURBED if spoiled else "time ran out before a rate was measured")
        return Answer(UNSURE, None, None, None, f"can't tell: {why}", tuple(notes))
    kind, text = _result(search, found, bound, ended, spoiled_runs)
    if kind == FOUND:
        measured_s = sum(len(run.seconds) for run in search.runs)
        notes.append(f"Measured for {duration(measured_s)} in all: later changes, such as the end "
                     "of a longer burst, are not included.")  # fmt: skip
        if found.half_width > ENOUGH:
            more = max(MORE, (found.half_width / ENOUGH) ** 2)
            longer = measured_s / MEASURED_SHARE * more
            notes.append(f"The interval is ±{100 * found.half_width:.0f} % wide: slow I/Os come "
                         f"in groups. For about ±{100 * ENOUGH:.0f} %: --time "
                         f"{STEP_S * math.ceil(longer / STEP_S)}.")  # fmt: skip
    return Answer(kind, found.low, found.high, found.best, text, tuple(notes))


def _result(
    search: Search, found: Estimate, bound: str, ended: str, spoiled: int
) -> tuple[str, str]:
    runs = search.runs
    if len(search.changes) > MAX_CHANGES:
        return UNSURE, "can't tell: the disk became slower more than once in this time"
    if found.half_width > WIDE and (search.disturbed or spoiled >= MAX_SPOILED):
        kept = [run.asked for run in runs if run.keeps]
        least = f"{max(kept):,.0f}/s keeps it even so; " if kept else ""
        return UNSURE, f"can't tell: {least}{DISTURBED}"
    if search.is_never_kept:
        lowest = min(run.asked for run in runs)
        return NEVER, f"{bound} is not kept at any rate: not even at {lowest:,.0f}/s"
    if found.high is None and all(run.share <= run.allowed for run in runs):
        highest = max(run.asked for run in runs)
        why = ended or "time ran out before a rate was too high"
        return NO_LIMIT, f"no limit found up to {highest:,.0f}/s: {why}"
    if found.low is None or found.high is None or found.half_width > WIDE:
        why = ended if ended == INTERRUPTED else "too unsteady"
        return UNSURE, f"can't tell: {why} (so far {range_text(found)})"
    return FOUND, f"{_rates(found.low, found.high)} (95 %)"


def _rates(low: float, high: float) -> str:
    """A range such as "1,680 to 1,810/s", with no more digits than the interval justifies."""
    unit = 10 ** max(0, len(str(int(high - low))) - 2)
    return f"{unit * int(low / unit):,} to {unit * -int(-high // unit):,}/s"


def range_text(found: Estimate) -> str:
    """The known range of the limit, such as "909 to 990/s at 95 %" or "above 931/s"."""
    if found.low is not None and found.high is not None:
        return f"{_rates(found.low, found.high)} at 95 %"
    if found.high is not None:
        return f"below {found.high:,.0f}/s"
    return f"above {found.low:,.0f}/s" if found.low is not None else "at any of the rates"
