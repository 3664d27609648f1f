"""Promised figures: guess the volume's class, list what to measure, and judge the measurement."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from iopstui.model import histogram
from iopstui.model.experiment.baseline import batch_spread, percentile_spread
from iopstui.model.metrics.statistics import t_quantile
from iopstui.model.volumes.promised import (
    INSTANCE_BW,
    INSTANCE_IOPS,
    VOLUME_BW,
    VOLUME_IOPS,
    Limit,
    PromisedFigures,
)
from iopstui.model.volumes.volume import IOPS, OWN, READ, THROUGHPUT, WRITE, VolumeClass

AWS, AZURE, GOOGLE, ALIYUN = "aws", "azure", "google", "aliyun"
_VENDORS = {
    "amazon ec2": AWS, "microsoft corporation": AZURE, "google": GOOGLE,
    "alibaba cloud": ALIYUN, "kingsoft": "ksyun",
}  # fmt: skip
_MODELS = {
    "amazon elastic block store": AWS, "alibaba cloud elastic block storage": ALIYUN,
    "nvme_card-pd": GOOGLE, "persistentdisk": GOOGLE, "msft nvme accelerator": AZURE,
}  # fmt: skip
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class VisibleFacts:
    """Properties by which the machine and one disk identify themselves; "" for one that is
    missing."""

    vendor: str = ""
    model: str = ""
    serial: str = ""
    size: int | None = None
    azure_link: str = ""
    """The link in /dev/disk/azure that leads to the disk."""
    product: str = ""
    """The product name of DMI; on newer machines of Amazon it is the instance size."""


@dataclass(frozen=True, slots=True)
class VolumeGuess:
    """A guess: the ``provider`` ("" if unknown), the volume class (``None`` if several fit), the
    size in GiB, and ``why`` in words."""

    provider: str = ""
    volume: VolumeClass | None = None
    size_gib: float | None = None
    why: str = ""


def guess_volume(facts: VisibleFacts, classes: Iterable[VolumeClass]) -> VolumeGuess:
    """Guess the volume class of the disk. The user must confirm it."""
    size = facts.size / _GIB if facts.size else None
    known_classes = list(classes)
    model = facts.model.strip()
    for volume in known_classes:
        if any(fnmatch.fnmatchcase(model.upper(), pattern.upper()) for pattern in volume.models):
            return VolumeGuess(volume.provider, volume, size, f"the disk's model is {model}")
    provider, why = _guess_provider(facts, model)
    if not provider:
        return VolumeGuess(size_gib=size)
    fixed = [v for v in known_classes if v.provider == provider and v.fixed_size]
    fits = [v for v in fixed if size and v.sizes and v.sizes[0] < size <= v.sizes[1]]
    # the size identifies the class only if no other class has that size
    return VolumeGuess(
        provider, fits[0] if provider == AZURE and len(fits) == 1 else None, size, why
    )


def _guess_provider(facts: VisibleFacts, model: str) -> tuple[str, str]:
    for text, provider in _MODELS.items():
        if model.lower().startswith(text):
            return provider, f"the disk's model is {model}"
    if facts.azure_link:
        return AZURE, f"{facts.azure_link} is this disk"
    for text, provider in _VENDORS.items():
        if facts.vendor.lower().startswith(text):
            return provider, f"the machine's vendor is {facts.vendor}"
    if facts.serial.lower().startswith("vol-"):
        return AWS, f"the disk's serial number is {facts.serial}"
    return "", ""


LATENCY = "latency"
RW = {(IOPS, READ): "randread", (IOPS, WRITE): "randwrite",
      (THROUGHPUT, READ): "read", (THROUGHPUT, WRITE): "write"}  # fmt: skip
DEPTH_FACTOR = 2.0
"""The queue is this many times as deep as Little's law requires, because latencies vary."""
MIN_DEPTH, MAX_DEPTH = 4, 1024
MAX_DEPTH_PER_JOB = 128
OPEN_LOOP_FACTOR = 16
"""The queue has room for this multiple of the I/Os that arrive during the bound. If it is full
nevertheless, the bound is missed."""
MIN_OPEN_DEPTH, MAX_OPEN_DEPTH = 64, 4096
MAX_IOPS_PER_JOB = 100_000
"""Limit for the I/Os per second that are requested from one fio job."""


@dataclass(frozen=True, slots=True)
class Check:
    """A figure to test. ``promised`` and ``burst`` are I/Os per second of ``block_size`` (ns if
    ``kind`` is LATENCY). ``limits`` are all limits that apply, the tightest first; ``burst_limits``
    are those that apply during a burst. ``percentile`` ("p99") is the percentile of a latency to
    test (mean: ""); ``load`` is how many I/Os per second arrive while it is measured (0: single
    I/Os)."""

    kind: str
    direction: str
    rw: str
    block_size: int
    promised: float
    burst: float | None = None
    limits: tuple[Limit, ...] = ()
    burst_limits: tuple[Limit, ...] = ()
    percentile: str = ""
    load: float = 0.0

    @property
    def writes(self) -> bool:
        """Whether it writes to the target."""
        return self.direction == WRITE

    @property
    def target_iops(self) -> float:
        """The I/Os per second for which the queue must be deep enough."""
        limits = self.burst_limits if self.burst is not None else self.limits
        return min(self.burst or self.promised, limits[0].rate if limits else math.inf)


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The depth of a queue: ``iodepth`` for each of ``jobs`` jobs."""

    iodepth: int
    jobs: int

    @property
    def total(self) -> int:
        """The number of I/Os in flight."""
        return self.iodepth * self.jobs


SINGLE = QueueDepth(1, 1)


def list_checks(figures: PromisedFigures) -> tuple[Check, ...]:
    """A check for each published figure. Single I/Os come first, because they use hardly any
    credits; then random I/Os, which use the bucket of I/Os; then checks that use the bucket of
    bytes."""
    volume = figures.volume
    checks = []
    if volume.latency is not None:
        latency = volume.latency
        for rw in latency.rw.split():
            direction = WRITE if rw == "randwrite" else READ
            load = (figures.figure(IOPS, direction) or 0.0) if volume.provider == OWN else 0.0
            checks.append(Check(LATENCY, direction, rw, latency.block_size, latency.mean_ns,
                                percentile=latency.percentile, load=load))  # fmt: skip
    for kind, size in ((IOPS, volume.random_size), (THROUGHPUT, volume.sequential_size)):
        for direction in (READ, WRITE):
            if figures.figure(kind, direction) is not None:
                checks.append(_rate_check(figures, kind, direction, size))
    return tuple(checks)


def _rate_check(figures: PromisedFigures, kind: str, direction: str, size: int) -> Check:
    limits = tuple(figures.limits(direction, size))
    burst_limits = tuple(figures.limits(direction, size, burst=True))
    base = _volume_rate(limits)
    burst = _volume_rate(burst_limits)
    return Check(
        kind, direction, RW[kind, direction], size, base,
        burst if burst > base else None, limits, burst_limits,
    )  # fmt: skip


def _volume_rate(limits: Sequence[Limit]) -> float:
    """How many I/Os of this size per second the volume itself allows, by its limits on IOPS and
    MB/s."""
    return min(limit.rate for limit in limits if limit.name in (VOLUME_IOPS, VOLUME_BW))


def depth_for(check: Check, latency_ns: float | None, cpus: int) -> QueueDepth:
    """The depth that Little's law (N = X x R) requires at the latency of a single I/O; 32, as in
    common jobs, if that latency is not known."""
    depth = 32.0 if latency_ns is None else DEPTH_FACTOR * check.target_iops * latency_ns / 1e9
    total = min(max(math.ceil(depth), MIN_DEPTH), MAX_DEPTH)
    jobs = max(
        math.ceil(total / MAX_DEPTH_PER_JOB), math.ceil(check.target_iops / MAX_IOPS_PER_JOB), 1
    )
    if check.kind == THROUGHPUT:
        jobs = 1  # several jobs would not read or write one sequence
        total = min(total, 256)
    jobs = max(1, min(jobs, cpus))
    return QueueDepth(min(math.ceil(total / jobs), MAX_DEPTH), jobs)


def open_loop(check: Check, cpus: int) -> tuple[QueueDepth, dict[str, str]]:
    """The queue and fio's options for I/Os that arrive at the check's load at random times
    (Poisson), whatever the device does. So the latency includes the time that I/Os wait for one
    another."""
    jobs = max(1, min(math.ceil(check.load / MAX_IOPS_PER_JOB), cpus))
    room = max(MIN_OPEN_DEPTH, math.ceil(OPEN_LOOP_FACTOR * check.load * check.promised / 1e9))
    rate = str(max(1, round(check.load / jobs)))
    depth = QueueDepth(math.ceil(min(room, MAX_OPEN_DEPTH) / jobs), jobs)
    return depth, {"rate_iops": rate, "rate_process": "poisson"}


def deeper_queue(depth: QueueDepth) -> QueueDepth | None:
    """A queue four times as deep; ``None`` if this one is already deep enough for any volume."""
    if depth.total * 4 > 4 * MAX_DEPTH:
        return None
    return QueueDepth(depth.iodepth * 4, depth.jobs)


def max_written_bytes(todo: Sequence[Check], seconds: float) -> float:
    """The bytes that the writing checks write at the promised speed, each for ``seconds``."""
    written_bytes = 0.0
    for check in todo:
        if check.writes and check.load:
            written_bytes += check.load * check.block_size * seconds
        elif check.writes and check.kind != LATENCY:
            written_bytes += check.target_iops * check.block_size * seconds
        elif check.writes:
            written_bytes += seconds * 1e9 / check.promised * check.block_size
    return written_bytes


def credits_used(
    figures: PromisedFigures, todo: Sequence[Check], kind: str, seconds: float
) -> float:
    """How many tokens of the buckets the checks use, beyond those that the baseline refills."""
    base = figures.figure(kind, READ)
    if base is None or figures.bucket(kind) is None:
        return 0.0
    total = 0.0
    for check in todo:
        if check.kind == LATENCY:
            continue
        size = figures.volume.io_size
        ios_per_request = size.counted(check.block_size) if size else 1
        rate = check.target_iops * (ios_per_request if kind == IOPS else check.block_size)
        total += max(0.0, rate - base) * seconds
    return total


PASS, FAIL, UNDECIDED = "PASS", "FAIL", "can't tell"
BATCHES = 5
MIN_SECONDS = 30.0
"""With fewer seconds the interval would be too narrow, because neighbouring seconds are similar
(docs/statistics.md)."""
WHY_TOO_SHORT = f"a FAIL needs at least {MIN_SECONDS:g} measured seconds (--measure 30)"
WHY_INCLUDED = "the interval includes what was promised"
WHY_OTHER = "the volume is not the limit here"
BEHIND = 0.03
"""If a volume completes fewer I/Os than arrive by this share, it can't sustain the load."""
WHY_UNSTEADY = "too unsteady: the interval is wider than 1.5 times the rate"
MAX_WIDTH = 1.5
"""Limit for the width of an interval, as a multiple of the rate."""
LENGTHS_S = (30, 60, 120, 300, 600, 1800, 3600)
FULL_CPU_SHARE = 0.8
"""From this mean use on, a CPU counts as full. It is below 1, because a FAIL must be certain."""
UNQUEUED_FACTOR = 1.5
"""Up to this multiple of a single I/O's latency, I/Os have not queued."""
CPU_LIMIT = "this machine's CPU"
SHALLOW_QUEUE = "queue too shallow"
OTHER_IO = "other I/O on the device"
LIMIT_ABOVE = "a limit above the device"
MAX_ABOVE_SHARE = 0.5
"""If more than this share of the I/Os in flight waits above the device, the device may not be the
cause."""
MAX_OTHER_SHARE = 0.05
"""From this share of the device's bytes on, other programs disturb. A file system's own writes are
fewer."""
_REFUTED = "near a limit that another row exceeds, so this limit is not the reason; measure again"
_LIMIT_BY_RULE = {
    "job-cpu": CPU_LIMIT, "softirq-cpu": CPU_LIMIT, "cpu-wait": CPU_LIMIT,
    "more-jobs-than-cpus": CPU_LIMIT, "throttled": "a cgroup's CPU limit",
    "steal": "CPU time that the hypervisor takes", "above": LIMIT_ABOVE,
    "busy": OTHER_IO, "background": OTHER_IO, "neighbour": OTHER_IO,
}  # fmt: skip
"""Rules of findings (model/findings) that explain a low rate by something other than the volume."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Figures of one run: I/Os per second and mean latency (ns), each with its 95 % interval.

    ``job_cpu`` and ``machine_cpu`` are how busy the jobs' CPUs and the machine were (0 to 1);
    ``rules`` are the rules whose findings hold; ``others`` is the share of the disk's bytes that
    other programs moved (0 to 1). ``exceeded`` are the limits that the demand exceeded for at least
    a tenth of the time, by an AWS volume's own count (``None``: there is no such count)."""

    rate: float
    low: float
    high: float
    latency_ns: float | None = None
    latency_low: float | None = None
    latency_high: float | None = None
    depth: QueueDepth | None = None
    job_cpu: float | None = None
    machine_cpu: float | None = None
    rules: frozenset[str] = frozenset()
    single_ns: float | None = None
    seconds: float = MIN_SECONDS
    others: float = 0.0
    above: float = 0.0
    cpus: int | None = None
    exceeded: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A row of the answer. Rates are I/Os per second (LATENCY: ns). ``binding`` names the limit
    that was reached, ``why`` is a sentence."""

    check: Check
    burst: bool
    promised: float
    measured: float | None
    low: float | None
    high: float | None
    result: str
    binding: str = ""
    why: str = ""


def rate_interval(rates: Sequence[float]) -> tuple[float, float, float]:
    """The mean of successive rates and its 95 % interval. The interval is computed from the means
    of five parts of equal length, and widened by their correlation."""
    mean = sum(rates) / len(rates) if rates else 0.0
    per = len(rates) // BATCHES
    if per < 1:
        return mean, 0.0, math.inf
    recent_rates = rates[len(rates) - per * BATCHES :]
    variation = batch_spread(
        [sum(recent_rates[n * per : (n + 1) * per]) / per for n in range(BATCHES)]
    )
    if variation is None:
        return mean, 0.0, math.inf
    half = t_quantile(0.975, variation.freedom) * variation.error * mean
    return mean, max(0.0, mean - half), mean + half


def percentile_interval(
    seconds: Sequence[Mapping[int, int]], percent: float
) -> tuple[float | None, float | None, float | None]:
    """A percentile of all I/Os with its 95 % interval, from the histograms of successive
    seconds."""
    value = histogram.percentiles(histogram.merge(seconds), (percent,)).get(percent)
    per = len(seconds) // BATCHES
    if value is None or per < 1:
        return value, None, None
    recent = seconds[len(seconds) - per * BATCHES :]
    batches = [histogram.merge(recent[n * per : (n + 1) * per]) for n in range(BATCHES)]
    spread = percentile_spread(batches, percent)
    if spread is None or spread.below is None or spread.above is None:
        return value, 0.0, math.inf
    return value, value * math.exp(-spread.below), value * math.exp(spread.above)


def judge(check: Check, measured: Measurement, tolerance: float) -> tuple[Verdict, ...]:
    """The verdict on the baseline, and if there is a burst, one on the burst."""
    if check.kind == LATENCY:
        return (_judge_latency(check, measured, tolerance),)
    base = _judge_baseline(check, measured, tolerance)
    if check.burst is None:
        return (base,)
    if base.result == PASS and base.measured is not None and base.measured > check.promised * (
        1 + tolerance
    ):  # fmt: skip
        base = replace(base, binding="", why="delivered during a burst, so not tested alone")
    return base, _judge_burst(check, measured, tolerance, base)


def judge_drained(
    check: Check, full: Measurement, measured: Measurement, tolerance: float
) -> tuple[Verdict, ...]:
    """The verdicts on a figure with a burst, which was measured in two runs: the burst by the run
    that used up the credits (``full``), the baseline by the run after it."""
    base = _judge_baseline(check, measured, tolerance)
    burst = _judge_burst(check, full, tolerance, _judge_baseline(check, full, tolerance))
    return base, burst


def untested_rows(check: Check, why: str) -> tuple[Verdict, ...]:
    """Rows for figures that were not measured."""
    rows = [Verdict(check, False, check.promised, None, None, None, UNDECIDED, "", why)]
    if check.burst is not None:
        rows.append(replace(rows[0], burst=True, promised=check.burst))
    return tuple(rows)


def is_too_shallow(check: Check, measured: Measurement) -> bool:
    """Whether a deeper queue could help: no I/O waits yet, and the promised rate is not reached."""
    if (
        check.kind == LATENCY
        or measured.latency_ns is None
        or measured.single_ns is None
        or measured.rate >= check.target_iops
    ):
        return False
    return measured.latency_ns < UNQUEUED_FACTOR * measured.single_ns


def _judge_baseline(check: Check, measured: Measurement, tolerance: float) -> Verdict:
    row = Verdict(check, False, check.promised, measured.rate, measured.low, measured.high, PASS)
    tightest = check.limits[0]
    goal = min(check.promised, tightest.rate)
    required = check.promised * (1 - tolerance)
    if _is_unsteady(measured):
        return replace(row, result=UNDECIDED, why=WHY_UNSTEADY)
    if _lower_bound(measured) >= required:
        return replace(row, binding=_limit_reached(measured, check.limits, tolerance))
    if measured.rate >= required:
        return replace(row, result=UNDECIDED, why=_why_longer(measured, required))
    if goal < check.promised and measured.rate >= goal * (1 - tolerance):
        return _held_by_instance(row, tightest.name, measured)
    return _judge_unmet(row, check, measured, goal * (1 - tolerance))


def _held_by_instance(row: Verdict, limit: str, measured: Measurement) -> Verdict:
    """The row for a rate that equals the instance's limit in the catalog."""
    if measured.exceeded is not None and limit not in measured.exceeded:
        why = ("by the catalog the instance allows no more, but the volume counted no demand above "
               "the instance's limit")  # fmt: skip
        return replace(row, result=UNDECIDED, why=why)
    why = "the instance allows no more, and the volume delivers that"
    return replace(row, result=UNDECIDED, binding=limit, why=why)


def _judge_unmet(row: Verdict, check: Check, measured: Measurement, required: float) -> Verdict:
    if measured.high >= required:
        return replace(row, result=UNDECIDED, why=_why_longer(measured, required))
    other_reason = other_limit(check, measured)
    if other_reason:
        return replace(row, result=UNDECIDED, binding=other_reason, why=WHY_OTHER)
    needed = cpus_needed(check, measured)
    if needed is not None and measured.cpus is not None and needed > measured.cpus:
        why = (f"what was promised would take {needed:,.0f} CPUs at this machine's cost of an I/O, "
               f"but fio may use only {measured.cpus}")  # fmt: skip
        return replace(row, result=UNDECIDED, binding=CPU_LIMIT, why=why)
    if round(measured.seconds) < MIN_SECONDS:
        return replace(row, result=UNDECIDED, why=WHY_TOO_SHORT)
    for name in measured.exceeded or ():
        if name in (INSTANCE_IOPS, INSTANCE_BW):
            why = "by the volume's own count, the demand exceeded the instance's limit"
            return replace(row, result=UNDECIDED, binding=name, why=why)
    if measured.exceeded:
        why = "by the volume's own count, the demand exceeded the volume's limit"
        return replace(row, result=FAIL, binding=measured.exceeded[0], why=why)
    why = "the queue was full, and nothing on this machine was the limit"
    return replace(row, result=FAIL, binding="the volume", why=why)


def other_limit(check: Check, measured: Measurement) -> str:
    """The reason for a low rate if it is not the volume; "" if none was seen."""
    full = max(measured.job_cpu or 0.0, measured.machine_cpu or 0.0) >= FULL_CPU_SHARE
    for rule, name in _LIMIT_BY_RULE.items():
        if rule in measured.rules:
            return name
    if measured.others > MAX_OTHER_SHARE:
        return OTHER_IO
    if full:
        return CPU_LIMIT
    # not if the device's own queue is full, because then the device is the limit
    if measured.above > MAX_ABOVE_SHARE and "tags" not in measured.rules:
        return LIMIT_ABOVE
    return SHALLOW_QUEUE if is_too_shallow(check, measured) else ""


def cpus_needed(check: Check, measured: Measurement) -> float | None:
    """How many CPUs fio would keep busy at the promised rate, if each I/O took as much CPU time as
    measured; ``None`` if fio's CPU time is unknown."""
    if measured.job_cpu is None or measured.depth is None or not measured.rate:
        return None
    return measured.job_cpu * measured.depth.jobs * check.promised / measured.rate


def _lower_bound(measured: Measurement) -> float:
    """The lower end of the interval; half the rate if the run was too short for an interval."""
    return measured.low if math.isfinite(measured.high) else measured.rate / 2


def _is_unsteady(measured: Measurement) -> bool:
    """Whether the rate's interval is too wide to be useful. A run that is too short has no
    interval."""
    width = measured.high - measured.low
    return math.isfinite(measured.high) and width > MAX_WIDTH * measured.rate


def _why_longer(measured: Measurement, required: float) -> str:
    """How long to measure until the interval is narrow enough, in words: its width shrinks with the
    square root of the time."""
    margin, half = abs(measured.rate - required), measured.high - measured.rate
    if not margin or not math.isfinite(half):
        return f"{WHY_INCLUDED}; measure longer"
    needed = measured.seconds * (half / margin) ** 2
    for seconds in LENGTHS_S:
        if seconds >= needed and seconds > measured.seconds:
            return f"{WHY_INCLUDED}; measure longer (--measure {seconds})"
    return f"{WHY_INCLUDED}, and the rate is too near to it or too unsteady to tell"


def _limit_reached(measured: Measurement, limits: Sequence[Limit], tolerance: float) -> str:
    """The limit that determines the rate: by the volume's own count if there is one, else by the
    rate."""
    for limit in limits:
        if measured.exceeded is not None:
            if limit.name in measured.exceeded:
                return limit.name
        elif abs(measured.rate - limit.rate) <= max(tolerance, 0.02) * limit.rate:
            return limit.name
    return ""


def _judge_burst(check: Check, measured: Measurement, tolerance: float, base: Verdict) -> Verdict:
    promised = check.burst or 0.0
    row = Verdict(check, True, promised, measured.rate, measured.low, measured.high, PASS)
    tightest = check.burst_limits[0]
    if _is_unsteady(measured):
        return replace(row, result=UNDECIDED, why=WHY_UNSTEADY)
    if _lower_bound(measured) >= promised * (1 - tolerance):
        return replace(row, binding=_limit_reached(measured, check.burst_limits, tolerance))
    if measured.rate >= promised * (1 - tolerance):
        return replace(row, result=UNDECIDED, why=_why_longer(measured, promised * (1 - tolerance)))
    if base.result != PASS:
        return replace(row, result=base.result, binding=base.binding, why=base.why)
    if measured.rate > check.promised * (1 + tolerance) and measured.high >= promised * (
        1 - tolerance
    ):
        return replace(row, result=UNDECIDED, why=WHY_INCLUDED)
    if tightest.rate < promised and measured.rate >= tightest.rate * (1 - tolerance):
        return _held_by_instance(row, tightest.name, measured)
    other_reason = other_limit(check, measured)
    why = "the credits may have been used up before this test"
    return replace(row, result=UNDECIDED, binding=other_reason, why=why if not other_reason else
                   WHY_OTHER)  # fmt: skip


def _judge_latency(check: Check, measured: Measurement, tolerance: float) -> Verdict:
    mean, low, high = measured.latency_ns, measured.latency_low, measured.latency_high
    row = Verdict(check, False, check.promised, mean, low, high, PASS)
    limit = check.promised * (1 + tolerance)
    if mean is None:
        return replace(row, result=UNDECIDED, why="fio measured no latency")
    is_behind = _is_behind(check.load, measured)
    if is_behind or (check.load and mean > limit):
        reason = other_limit(check, measured)
        if reason:
            return replace(row, result=UNDECIDED, binding=reason, why=WHY_OTHER)
    if is_behind:
        why = f"only {measured.rate:,.0f} of {check.load:,.0f}/s were done"
        short = round(measured.seconds) < MIN_SECONDS
        return replace(row, result=UNDECIDED if short else FAIL,
                       why=f"{why}; {WHY_TOO_SHORT}" if short else why)  # fmt: skip
    if mean <= limit and (high is None or high <= limit):
        return row
    if mean <= limit or low is None or low <= limit:
        return replace(row, result=UNDECIDED, why=f"{WHY_INCLUDED}; measure longer")
    if round(measured.seconds) < MIN_SECONDS:
        return replace(row, result=UNDECIDED, why=WHY_TOO_SHORT)
    return replace(row, result=FAIL, binding="latency of the volume")


def _is_behind(load: float, measured: Measurement) -> bool:
    """Whether clearly fewer I/Os were completed than arrived at this ``load``, which varies
    randomly."""
    chance = 4 / math.sqrt(max(1.0, load * measured.seconds))
    return measured.rate < load * (1 - BEHIND - chance)


def without_refuted_limits(rows: Sequence[Verdict], tolerance: float) -> list[Verdict]:
    """Drop the binding limits that other rows exceed: a rate near such a limit is a coincidence."""
    return [
        replace(row, binding="", why=_REFUTED if row.result == UNDECIDED else row.why)
        if any(_exceeds_limit_of(other, row, tolerance) for other in rows)
        else row
        for row in rows
    ]


def without_volume_limits(rows: Sequence[Verdict]) -> list[Verdict]:
    """The rows for figures that the user gave, without limits of a volume, because none are
    known."""
    return [
        replace(row, binding="") if row.binding in (VOLUME_IOPS, VOLUME_BW) else row for row in rows
    ]


def _exceeds_limit_of(other: Verdict, row: Verdict, tolerance: float) -> bool:
    """Whether another row's rate is impossible under the limit that this row names."""
    if other.measured is None or LATENCY in (other.check.kind, row.check.kind):
        return False
    limit, named = _limit_named(other.check, row.binding), _limit_named(row.check, row.binding)
    if limit is None or named is None:
        return False
    # a limit must be shared: a volume may have separate limits for reads and writes
    sizes = other.check.block_size, row.check.block_size
    is_shared = limit.name in (INSTANCE_IOPS, INSTANCE_BW) or (
        limit.name == VOLUME_BW and math.isclose(limit.rate * sizes[0], named.rate * sizes[1])
    )
    is_shared |= other.check.direction == row.check.direction
    return is_shared and other.measured > limit.rate * (1 + max(tolerance, MAX_OTHER_SHARE))


def _limit_named(check: Check, name: str) -> Limit | None:
    """The limit with this name; during a burst, the one that then applies."""
    limits = check.limits if check.burst is None else check.burst_limits
    return next((limit for limit in limits if limit.name == name), None)


def is_promise_met(rows: Sequence[Verdict]) -> bool:
    """Whether the promise counts as kept: no figure failed, and at least one passed."""
    results = {row.result for row in rows}
    return FAIL not in results and PASS in results
