"""Which rate to measure next, and when there is an answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from iopstui.features.limit.model.estimate import DECIDED, Estimate, Run, estimate
from iopstui.model.findings.evidence import SYNCHRONOUS, JobShape
from iopstui.model.fio.jobfile import Section

SHORT_S, LONG_S = 5.0, 12.0
"""The measured seconds of a run that looks for the range of the limit, and of one near the
limit."""
UP, DOWN, APART, BEYOND = 1.35, 2.0, 1.25, 1.05
NARROW = 0.045
"""Half of the interval, as a share of its middle: narrow enough to end."""
NEAR = 0.25
PLACES = (0.5, 0.2, 0.8)
"""Where in the interval the next rates are."""
MIN_NEAR = 3
SLOWED = 0.9
"""A device that falls behind at less than this share of what it did before is slower now."""
LIKELY = 3.84
"""Twice the log-likelihood ratio of 95 %."""
REPEATED = 2
"""Times in a row that runs may be disturbed before a lower rate is tried."""


@dataclass(frozen=True, slots=True)
class Step:
    """What to run next."""

    rate: float
    seconds: float


@dataclass
class Search:
    """A search. ``first`` is the rate to begin with, ``lowest`` the lowest rate to try, and
    ``capacity`` the most I/Os per second that the device has completed."""

    first: float
    lowest: float
    capacity: float
    runs: list[Run] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    """What runs contradict of the runs before them."""
    disturbed: list[float] = field(default_factory=list)
    """Rates of runs that something else disturbed, since one as fast was not."""
    _found: Estimate | None = None

    @property
    def is_never_kept(self) -> bool:
        """Whether even the lowest rate certainly fails."""
        lowest = [run.evidence() for run in self.runs if run.asked <= self.lowest * 1.01]
        return sum(lowest) >= DECIDED

    def add(self, run: Run) -> None:
        """Count a run. If it contradicts earlier runs, the device has changed, and those no longer
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
        """By the runs so far."""
        return self._found

    @property
    def ceiling(self) -> float:
        """The rate from which on runs were disturbed repeatedly."""
        return min(self.disturbed) if len(self.disturbed) >= REPEATED else math.inf

    def next(self) -> Step | None:
        """The next run; ``None`` if the interval is narrow enough, or there is no lower rate to
        try."""
        step, ceiling = self._wanted(), self.ceiling
        if step is None or step.rate < ceiling:
            return step
        # a disturbance may be harmless at a lower rate, at which hardly any I/O is slow
        kept = [run.asked for run in self.runs if run.asked < ceiling and run.share <= run.allowed]
        rate = math.sqrt(max(kept) * ceiling) if kept else ceiling / DOWN
        is_found = kept and ceiling < max(kept) * APART
        return None if is_found or rate < self.lowest else Step(rate, step.seconds)

    def _wanted(self) -> Step | None:
        """The next run, if nothing is disturbed."""
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
            # the less busy the device, the sooner a run shows that the bound is kept
            return Step(max(self.lowest, min(rates) / APART), LONG_S)
        if high is None:
            return Step(max(rates) * BEYOND, SHORT_S)
        near = [run for run in self.runs if low / 1.1 <= run.asked <= high * 1.1]
        half = (high - low) / (high + low)
        # a line only through runs on one side of the limit would have to be exactly straight
        sides = {run.share > run.allowed for run in near if not run.is_saturated}
        if found.half_width <= NARROW and len(near) >= MIN_NEAR and len(sides) == 2:
            return None
        place = PLACES[len(near) % len(PLACES)]
        rate = math.exp(math.log(low) + place * math.log(high / low))
        return Step(rate, LONG_S if half < NEAR else SHORT_S)

    def _higher(self, rate: float) -> float:
        """The next rate above all rates that kept the bound, but not far beyond what the device can
        do."""
        if rate < 0.95 * self.capacity:
            return math.sqrt(rate * self.capacity)
        return max(rate * 1.06, 1.06 * self.capacity) if rate < self.capacity else rate * UP

    def _lowest_fails(self) -> bool:
        lowest = min(self.runs, key=lambda run: run.asked)
        return lowest.share > lowest.allowed


# A job that sends I/Os at a given rate whatever the disk does: its options, and which jobs can't.


MIN_DEPTH, MAX_DEPTH = 64, 4096
MAX_BUFFER_BYTES = 256 << 20
DEPTH_FACTOR = 16
"""The queue has room for this multiple of the I/Os that arrive within the bound. If it is full
nevertheless, all I/Os in it are slow."""
DEEPER = 4
_MIXED = ("rw", "randrw", "readwrite")
_SYNCS = ("fsync", "fdatasync", "sync_file_range")


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """How a job's load is set. ``jobs`` is its number of jobs; ``mixed`` is the share of reads if
    it both reads and writes (``None`` if it does one of them)."""

    jobs: int
    mixed: float | None
    largest_block: int

    def depth(self, rate: float, bound_s: float, deeper: int = 0) -> int:
        """How many I/Os each job may have in flight."""
        room = max(MIN_DEPTH, math.ceil(DEPTH_FACTOR * rate * bound_s)) * int(DEEPER**deeper)
        return max(1, math.ceil(min(room, self.most_in_flight) / self.jobs))

    @property
    def most_in_flight(self) -> int:
        """The most I/Os in flight of all jobs together: fio has a buffer for each."""
        return min(MAX_DEPTH, max(MIN_DEPTH, MAX_BUFFER_BYTES // self.largest_block))

    def options(self, rate: float, depth: int, seed: int) -> dict[str, str]:
        """The options for ``rate``. With another ``seed`` the I/Os arrive at other random times."""
        each = rate / self.jobs
        rates = [each] if self.mixed is None else [each * self.mixed, each * (1 - self.mixed)]
        return {
            "rate_iops": ",".join(str(max(1, round(part))) for part in rates),
            "rate_process": "poisson", "iodepth": str(depth), "randseed": str(seed),
        }  # fmt: skip

    def asked(self, rate: float) -> float:
        """The rate that ``options`` sets, in whole I/Os a second."""
        parts = self.options(rate, 1, 0)["rate_iops"].split(",")
        return float(self.jobs * sum(map(int, parts)))


def open_loop(shape: JobShape, section: Section, largest_block: int) -> OpenLoop:
    """The ``OpenLoop`` of a job that can be sent at a rate."""
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
        return ("libaio waits in the submission of I/Os that go through the page cache",
                "Add --set direct=1, or --set ioengine=io_uring.")  # fmt: skip
    if shape.paced:
        return "the job sets its own pace", "Remove its rate, thinktime, flow and latency_target."
    for name in _SYNCS:
        if options.get(name, "0") != "0":
            return (f"the job waits for its own syncs ({name}={options[name]})",
                    f"Add --set {name}=0, or limit another job.")  # fmt: skip
    return None


def may_be_full(per_second: float, slowest_s: float, room: int) -> bool:
    """Whether I/Os may have filled the queue in a second: no more can be in flight at once than
    arrived within the time of the slowest one."""
    most = per_second * slowest_s
    return most + 4 * math.sqrt(most) + 4 >= room
