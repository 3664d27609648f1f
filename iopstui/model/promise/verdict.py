"""Compare promised with measured figures: PASS, FAIL, or the reason for no verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from iopstui.model.experiment.baseline import spread
from iopstui.model.metrics.statistics import t_quantile
from iopstui.model.promise.checks import LATENCY, Check, Depth
from iopstui.model.volumes.promised import Limit

PASS, FAIL, CANT_TELL = "PASS", "FAIL", "can't tell"
BATCHES = 5
MIN_SECONDS = 30.0
"""With less the interval is too narrow: neighbouring seconds are alike (docs/statistics.md)."""
TOO_SHORT = f"a FAIL needs at least {MIN_SECONDS:g} measured seconds (--measure 30)"
INCLUDES = "the interval includes what was promised"
LENGTHS_S = (30, 60, 120, 300, 600, 1800, 3600)
CPU_FULL = 0.8
"""Mean over the run; a FAIL must be certain."""
UNQUEUED = 1.5
"""Up to this multiple of the latency of a single I/O nothing has queued."""
CPU_LIMIT = "this machine's CPU"
SHALLOW = "queue too shallow"
OTHER_IO = "other I/O on the device"
LIMIT_ABOVE = "a limit above the device"
MAX_ABOVE = 0.5
"""Share of the I/Os in flight; if the device holds less than half of them, it need not be it."""
MAX_OTHERS = 0.05
"""Share of the device's bytes; a file system's own are less."""
_RULES = {
    "job-cpu": CPU_LIMIT, "softirq-cpu": CPU_LIMIT, "cpu-wait": CPU_LIMIT,
    "more-jobs-than-cpus": CPU_LIMIT, "throttled": "a cgroup's CPU limit",
    "steal": "CPU time that the hypervisor takes", "above": LIMIT_ABOVE,
    "busy": OTHER_IO, "background": OTHER_IO, "neighbour": OTHER_IO,
}  # fmt: skip
"""Findings by rule (model/findings) that explain a low rate without the volume."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: I/Os per second with their 95 % interval, the mean latency (ns) with its own, how
    busy the fio jobs (share of their CPUs) and the machine were, which findings held, the
    latency of a single I/O before (``None``: not measured), the seconds it rests on, which share of
    the device's bytes were not this job's, which share of its I/Os in flight was above the
    device, and how many CPUs fio may use."""

    rate: float
    low: float
    high: float
    latency_ns: float | None = None
    latency_low: float | None = None
    latency_high: float | None = None
    depth: Depth | None = None
    job_cpu: float | None = None
    machine_cpu: float | None = None
    rules: frozenset[str] = frozenset()
    single_ns: float | None = None
    seconds: float = MIN_SECONDS
    others: float = 0.0
    above: float = 0.0
    cpus: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """One row of the answer. Rates are I/Os per second (LATENCY: ns); ``binding`` names the limit
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


def interval(rates: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval of rates that follow each other: of the means of five equal stretches,
    widened by their correlation."""
    mean = sum(rates) / len(rates) if rates else 0.0
    per = len(rates) // BATCHES
    if per < 1:
        return mean, 0.0, math.inf
    used = rates[len(rates) - per * BATCHES :]
    found = spread([sum(used[n * per : (n + 1) * per]) / per for n in range(BATCHES)])
    if found is None:
        return mean, 0.0, math.inf
    half = t_quantile(0.975, found.freedom) * found.error * mean
    return mean, max(0.0, mean - half), mean + half


def judge(check: Check, found: Measured, tolerance: float) -> tuple[Verdict, ...]:
    """A row for the baseline, and one for the burst where there is one."""
    if check.kind == LATENCY:
        return (_latency(check, found, tolerance),)
    base = _baseline(check, found, tolerance)
    if check.burst is None:
        return (base,)
    if base.result == PASS and base.measured is not None and base.measured > check.promised * (
        1 + tolerance
    ):  # fmt: skip
        base = replace(base, binding="", why="delivered during a burst, so not tested alone")
    return base, _burst(check, found, tolerance, base)


def judge_drained(
    check: Check, full: Measured, found: Measured, tolerance: float
) -> tuple[Verdict, ...]:
    """The rows of a figure with a burst whose credits were used up in between: the burst by the
    run that did it (``full``), the baseline by the run after it."""
    base = _baseline(check, found, tolerance)
    burst = _burst(check, full, tolerance, _baseline(check, full, tolerance))
    return base, burst


def untested(check: Check, why: str) -> tuple[Verdict, ...]:
    """Rows for figures that were not measured."""
    rows = [Verdict(check, False, check.promised, None, None, None, CANT_TELL, "", why)]
    if check.burst is not None:
        rows.append(replace(rows[0], burst=True, promised=check.burst))
    return tuple(rows)


def too_shallow(check: Check, found: Measured) -> bool:
    """Whether a deeper queue could bring more: nothing waits yet, and the aim is not reached."""
    if found.latency_ns is None or found.single_ns is None or found.rate >= check.aim:
        return False
    return found.latency_ns < UNQUEUED * found.single_ns


def _baseline(check: Check, found: Measured, tolerance: float) -> Verdict:
    row = Verdict(check, False, check.promised, found.rate, found.low, found.high, PASS)
    tightest = check.limits[0]
    goal = min(check.promised, tightest.rate)
    required = check.promised * (1 - tolerance)
    if _at_least(found) >= required:
        return replace(row, binding=_limit_reached(found.rate, check.limits, tolerance))
    if found.rate >= required:
        return replace(row, result=CANT_TELL, why=_longer(found, required))
    if goal < check.promised and found.rate >= goal * (1 - tolerance):
        why = "the instance allows no more, and that is delivered"
        return replace(row, result=CANT_TELL, binding=tightest.name, why=why)
    return _not_met(row, check, found, goal * (1 - tolerance))


def _not_met(row: Verdict, check: Check, found: Measured, required: float) -> Verdict:
    if found.high >= required:
        return replace(row, result=CANT_TELL, why=_longer(found, required))
    other = other_limit(check, found)
    if other:
        return replace(row, result=CANT_TELL, binding=other, why="the volume is not the limit here")
    needed = cpus_needed(check, found)
    if needed is not None and found.cpus is not None and needed > found.cpus:
        why = (f"what was promised takes {needed:,.0f} CPUs at what an I/O costs here, and fio may "
               f"use {found.cpus}")  # fmt: skip
        return replace(row, result=CANT_TELL, binding=CPU_LIMIT, why=why)
    if round(found.seconds) < MIN_SECONDS:
        return replace(row, result=CANT_TELL, why=TOO_SHORT)
    why = "the queue was full, and nothing on this machine was the limit"
    return replace(row, result=FAIL, binding="the volume", why=why)


def other_limit(check: Check, found: Measured) -> str:
    """A reason other than the volume for a low rate; "": none seen."""
    full = max(found.job_cpu or 0.0, found.machine_cpu or 0.0) >= CPU_FULL
    for rule, name in _RULES.items():
        if rule in found.rules:
            return name
    if found.others > MAX_OTHERS:
        return OTHER_IO
    if full:
        return CPU_LIMIT
    # a full queue of the device's own is the device
    if found.above > MAX_ABOVE and "tags" not in found.rules:
        return LIMIT_ABOVE
    return SHALLOW if too_shallow(check, found) else ""


def cpus_needed(check: Check, found: Measured) -> float | None:
    """CPUs that fio would keep busy at the promised rate, if each I/O costs what it did; ``None``
    where fio's CPU time is unknown."""
    if found.job_cpu is None or found.depth is None or not found.rate:
        return None
    return found.job_cpu * found.depth.jobs * check.promised / found.rate


def _at_least(found: Measured) -> float:
    """The low end of the interval; half the rate where the run was too short for one."""
    return found.low if math.isfinite(found.high) else found.rate / 2


def _longer(found: Measured, required: float) -> str:
    """How long to measure until the interval is narrow enough: it shrinks with the square root."""
    margin, half = abs(found.rate - required), found.high - found.rate
    if not margin or not math.isfinite(half):
        return f"{INCLUDES}; measure longer"
    needed = found.seconds * (half / margin) ** 2
    for seconds in LENGTHS_S:
        if seconds >= needed and seconds > found.seconds:
            return f"{INCLUDES}; measure longer (--measure {seconds})"
    return f"{INCLUDES}, and the rate is too near to it or too unsteady to tell"


def _limit_reached(rate: float, limits: Sequence[Limit], tolerance: float) -> str:
    for one in limits:
        if abs(rate - one.rate) <= max(tolerance, 0.02) * one.rate:
            return one.name
    return ""


def _burst(check: Check, found: Measured, tolerance: float, base: Verdict) -> Verdict:
    promised = check.burst or 0.0
    row = Verdict(check, True, promised, found.rate, found.low, found.high, PASS)
    tightest = check.burst_limits[0]
    if _at_least(found) >= promised * (1 - tolerance):
        return replace(row, binding=_limit_reached(found.rate, check.burst_limits, tolerance))
    if found.rate >= promised * (1 - tolerance):
        return replace(row, result=CANT_TELL, why=_longer(found, promised * (1 - tolerance)))
    if base.result != PASS:
        return replace(row, result=base.result, binding=base.binding, why=base.why)
    if found.rate > check.promised * (1 + tolerance) and found.high >= promised * (1 - tolerance):
        return replace(row, result=CANT_TELL, why=INCLUDES)
    if tightest.rate < promised and found.rate >= tightest.rate * (1 - tolerance):
        why = "the instance allows no more, and that is delivered"
        return replace(row, result=CANT_TELL, binding=tightest.name, why=why)
    other = other_limit(check, found)
    why = "the credits may have been used up before this test"
    return replace(row, result=CANT_TELL, binding=other, why=why if not other else
                   "the volume is not the limit here")  # fmt: skip


def _latency(check: Check, found: Measured, tolerance: float) -> Verdict:
    mean, low, high = found.latency_ns, found.latency_low, found.latency_high
    row = Verdict(check, False, check.promised, mean, low, high, PASS)
    limit = check.promised * (1 + tolerance)
    if mean is None:
        return replace(row, result=CANT_TELL, why="fio measured no latency")
    if mean <= limit and (high is None or high <= limit):
        return row
    if mean <= limit or low is None or low <= limit:
        return replace(row, result=CANT_TELL, why=f"{INCLUDES}; measure longer")
    if round(found.seconds) < MIN_SECONDS:
        return replace(row, result=CANT_TELL, why=TOO_SHORT)
    return replace(row, result=FAIL, binding="latency of the volume")


def met(rows: Sequence[Verdict]) -> bool:
    """Whether the promise counts as kept: nothing failed, and something passed."""
    results = {one.result for one in rows}
    return FAIL not in results and PASS in results
