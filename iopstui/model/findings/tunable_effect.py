"""Effect of a changed tunable: on CPUs and requests, and separately on IOPS. A tunable moves work,
whether or not that helps, so the two are reported apart. The seconds before and after one change
are not a comparison (the load drifts, too); repeated, interleaved runs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.tunable import irq_of
from iopstui.model.findings.advice import advise
from iopstui.model.findings.cpu_accounts import mean_by_cpu
from iopstui.model.findings.evidence import frame_start_s, measured_frames
from iopstui.model.findings.figures import device_figures, fio_iops
from iopstui.model.findings.finding import Finding, cpus_text
from iopstui.model.metrics.cpus import rate_of
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.statistics import Difference, compare_paired
from iopstui.model.rates import fmean

ENOUGH_SECONDS = 3
SECONDS_COMPARED = 5
QUIET_RATE = 50.0
MOVED_SHARE = 0.1
# most BLOCK softirqs per I/O of these devices: there is one per request, and few I/Os are split
SOFTIRQS_PER_IO = 1.5
MAX_NAMED = 4

COMPLETION_TUNABLES = ("rq_affinity",)
MERGE_TUNABLES = ("nomerges", "scheduler")
SIZE_TUNABLES = ("max_sectors_kb", "read_ahead_kb")


@dataclass(frozen=True, slots=True)
class TunableChange:
    """A tunable that was changed at ``t`` (seconds of the session's clock); values are as the
    kernel shows them."""

    t: float
    device: str
    name: str
    before: str
    after: str


def frames_around(
    frames: Sequence[Frame], change: TunableChange, since: float = -inf
) -> tuple[list[Frame], list[Frame]]:
    """(the last measured seconds before the change, the first ones after it), at most
    ``SECONDS_COMPARED`` each. Seconds that began before ``since`` (an earlier change) are not used,
    nor is the second in which the change was made."""
    usable = measured_frames(frames)
    before = [f for f in usable if f.t <= change.t and frame_start_s(f) >= since]
    after = [f for f in usable if frame_start_s(f) > change.t]
    return before[-SECONDS_COMPARED:], after[:SECONDS_COMPARED]


def tunable_effect(
    change: TunableChange,
    frames: Sequence[Frame],
    devices: Sequence[BlockDevice],
    since: float = -inf,
) -> Finding | None:
    """Return the finding; ``None`` without ``ENOUGH_SECONDS`` on both sides (``frames_around``)."""
    before, after = frames_around(frames, change, since)
    if len(before) < ENOUGH_SECONDS or len(after) < ENOUGH_SECONDS:
        return None
    moved = effect_text(change, before, after, devices)
    if change.name in COMPLETION_TUNABLES:
        moved += _function_calls_text(frames, change, since)
    text = f"{change.name} {change.before} → {change.after} on {change.device}: {moved}; "
    return Finding("moved", text + _iops_text(before, after), advise("undo"))


def effect_text(
    change: TunableChange,
    before: Sequence[Frame],
    after: Sequence[Frame],
    devices: Sequence[BlockDevice],
) -> str:
    """The effects of a tunable besides IOPS: CPUs of completions, merges, sizes."""
    if change.name in COMPLETION_TUNABLES:
        return _completions_text(before, after, devices)
    irq = irq_of(change.name)
    if irq is not None:
        return _cpu_shift_text(
            f"interrupt {irq}", _interrupts_by_cpu(before, irq), _interrupts_by_cpu(after, irq)
        )
    earlier, now = device_figures(before, devices), device_figures(after, devices)
    if earlier is None or now is None:
        return "the device was not measured"
    if change.name in MERGE_TUNABLES:
        return f"merges {units.number(earlier.merges_s)} → {units.number(now.merges_s)}/s"
    if change.name in SIZE_TUNABLES and earlier.ios_s and now.ios_s:
        return (
            f"requests {units.size(earlier.bytes_s / earlier.ios_s)} → "
            f"{units.size(now.bytes_s / now.ios_s)}"
        )
    return f"the device's I/Os {units.number(earlier.ios_s)} → {units.number(now.ios_s)}/s"


# -- where completions run


def _completions_text(
    before: Sequence[Frame], after: Sequence[Frame], devices: Sequence[BlockDevice]
) -> str:
    """How the CPUs of BLOCK softirqs changed. Softirqs are counted for all disks together: if they
    exceed the I/Os of these devices, it is unknown which belong to these devices."""
    counts = [_softirqs_by_cpu(frames, devices) for frames in (before, after)]
    if None in counts:
        return "most BLOCK softirqs are other disks', so this disk's cannot be counted"
    earlier, now = (count or {} for count in counts)
    return _cpu_shift_text("BLOCK softirqs", earlier, now)


def _softirqs_by_cpu(
    frames: Sequence[Frame], devices: Sequence[BlockDevice]
) -> dict[int, float] | None:  # fmt: skip
    counts = mean_by_cpu(frames, "block_s")
    figures = device_figures(frames, devices)
    ios_s = figures.ios_s + figures.f_s if figures is not None else None
    if ios_s is not None and sum(counts.values()) > max(QUIET_RATE, SOFTIRQS_PER_IO * ios_s):
        return None
    return counts


def _function_calls_text(frames: Sequence[Frame], change: TunableChange, since: float) -> str:
    """How the rate of function-call interrupts, which move completions between CPUs, changed; "" if
    unknown. On machines with many CPUs they are read only in some seconds, for the time since the
    last reading. A reading that spans the change is left out."""
    readings = [
        (f.t - (f.ipi_age_s or 0.0), sum(rate_of(f.cpus, "ipi_s").values()))
        for f in frames
        if rate_of(f.cpus, "ipi_s")
    ]
    spans = [(a[0], b[0], b[1]) for a, b in pairwise(readings)]
    earlier = _mean_over([s for s in spans if s[0] >= since and s[1] <= change.t])
    now = _mean_over([s for s in spans if s[0] > change.t])
    if earlier is None or now is None:
        return ""
    return f", function-call interrupts {units.number(earlier)} → {units.number(now)}/s"


def _mean_over(spans: Sequence[tuple[float, float, float]]) -> float | None:
    """The mean of rates, each given as (begin, end, rate), weighted by time."""
    seconds = sum(end - begin for begin, end, _ in spans)
    return sum((end - begin) * rate for begin, end, rate in spans) / seconds if seconds else None


def _interrupts_by_cpu(frames: Sequence[Frame], irq: int) -> dict[int, float]:
    rates_by_cpu: dict[int, list[float]] = {}
    for frame in frames:
        for cpu, rate in frame.irqs.get(irq, {}).items():
            rates_by_cpu.setdefault(cpu, []).append(rate)
    return {cpu: fmean(rates) for cpu, rates in rates_by_cpu.items()}


def _cpu_shift_text(label: str, earlier: Mapping[int, float], now: Mapping[int, float]) -> str:
    """How a count moved between CPUs: it moved if a tenth of it is on other CPUs."""
    total_then, total_now = sum(earlier.values()), sum(now.values())
    if not earlier or not now:
        return f"{label} not measured"
    if total_then < QUIET_RATE and total_now < QUIET_RATE:
        return f"no {label} before or after"
    if total_then < QUIET_RATE:
        return f"{label} began on {_cpu_shares_text(now)}, {units.number(total_now)}/s"
    if total_now < QUIET_RATE:
        return f"{label} ended (were {units.number(total_then)}/s on {_cpu_shares_text(earlier)})"
    rates = f"{units.number(total_then)} → {units.number(total_now)}/s"
    share = moved_share(earlier, now)
    if share < MOVED_SHARE:
        return f"{label} stayed on {_cpu_shares_text(now)}, {rates}"
    return (
        f"{100 * share:.0f} % of the {label} moved, from {_cpu_shares_text(earlier)} to "
        f"{_cpu_shares_text(now)}, {rates}"
    )


def moved_share(earlier: Mapping[int, float], now: Mapping[int, float]) -> float:
    """The part (0..1) of a count that is now on other CPUs. Changes of the sum don't matter."""
    total_then, total_now = sum(earlier.values()), sum(now.values())
    if total_then <= 0 or total_now <= 0:
        return 0.0
    cpus = {*earlier, *now}
    difference = sum(abs(earlier.get(c, 0) / total_then - now.get(c, 0) / total_now) for c in cpus)
    return min(1.0, difference / 2)


def _cpu_shares_text(counts: Mapping[int, float]) -> str:
    """The CPUs that make up nine tenths: "CPU 3 (100 %)", "CPU 0 71 %, CPU 1 29 %", and with
    many of them "CPU 0, 1, 2 ... (64 CPUs) (1-3 % each)"."""
    total = sum(counts.values())
    chosen: list[int] = []
    for cpu, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if count <= 0 or sum(counts[c] for c in chosen) >= 0.9 * total:
            break
        chosen.append(cpu)
    shares = [f"{100 * counts[cpu] / total:.0f}" for cpu in chosen]
    if len(chosen) == 1:
        return f"CPU {chosen[0]} ({shares[0]} %)"
    if len(set(shares)) > 1 and len(chosen) <= MAX_NAMED:
        pairs = zip(chosen, shares, strict=True)
        return ", ".join(f"CPU {cpu} {share} %" for cpu, share in pairs)
    percent = shares[0] if len(set(shares)) == 1 else f"{shares[-1]}-{shares[0]}"
    return f"{cpus_text(sorted(chosen))} ({percent} % each)"


# -- effect on IOPS


def _iops_text(before: Sequence[Frame], after: Sequence[Frame]) -> str:
    earlier, now = _iops_by_second(before), _iops_by_second(after)
    first, second = fio_iops(before), fio_iops(after)
    figures = f"IOPS {_range_text(first, earlier)} → {_range_text(second, now)}"
    if max(earlier) >= min(now) and max(now) >= min(earlier):
        return f"{figures}: no change beyond their spread from second to second"
    change = 100 * (second / first - 1) if first else None
    by = f" by {abs(change):.0f} %" if change is not None else ""
    return f"{figures}: {'rose' if second > first else 'fell'}{by}, more than they varied before"


def _iops_by_second(frames: Sequence[Frame]) -> list[float]:
    return [fio_iops([frame]) for frame in frames]


def _range_text(mean: float, seconds: Sequence[float]) -> str:
    return f"{units.number(mean)} ({units.number(min(seconds))}-{units.number(max(seconds))})"


# Two values of a tunable measured in turn while one job runs, and the difference between them.
#
# The load drifts, so the values alternate, and neighbouring spans are compared in pairs.


SPAN_S = 5.0
SPANS = 6
MIN_FRAMES = 2
"""A span needs this many whole seconds."""


@dataclass
class Alternation:
    """Sets the tunable ``name`` of ``device`` to ``values`` in turn, the first one first."""

    device: str
    name: str
    values: tuple[str, str]
    _spans: list[list[Frame]] = field(default_factory=list)
    _began: float = 0.0

    @property
    def next_value(self) -> str | None:
        """The value of the next span; ``None``: all have been measured."""
        count = len(self._spans)
        return self.values[count % 2] if count < SPANS else None

    def begin_span(self, t: float) -> None:
        """Begin the next span: its value was set at ``t`` seconds of the session."""
        self._spans.append([])
        self._began = t

    def is_due(self, t: float) -> bool:
        """Whether the span has lasted long enough."""
        return t - self._began >= SPAN_S

    def add(self, frame: Frame) -> None:
        """Add a frame to the span if it lies wholly in it. The second in which the value changed
        does not."""
        if self._spans and frame_start_s(frame) > self._began:
            self._spans[-1] += measured_frames([frame])

    def finding(self, devices: Sequence[BlockDevice]) -> Finding | None:
        """The result; ``None`` if a span has too few whole seconds."""
        if len(self._spans) < SPANS or any(len(span) < MIN_FRAMES for span in self._spans):
            return None
        first, second = self.values
        iops = [fio_iops(span) for span in self._spans]
        before = [frame for span in self._spans[::2] for frame in span]
        after = [frame for span in self._spans[1::2] for frame in span]
        change = TunableChange(self._began, self.device, self.name, first, second)
        text = (
            f"{self.name} {second} instead of {first} on {self.device}: IOPS "
            f"{_difference_text(compare_paired(iops[::2], iops[1::2]))}, "
            f"{units.number(fio_iops(before))} → {units.number(fio_iops(after))}; "
            f"{effect_text(change, before, after, devices)} (in turn, {SPANS // 2} times "
            f"{SPAN_S:.0f} s each)"
        )
        return Finding("moved", text, advise("pairs"))


def _difference_text(difference: Difference | None) -> str:
    if difference is None:
        return "they cannot be compared"
    low, mean, high = (100 * d for d in (difference.low, difference.mean, difference.high))
    interval = f"{mean:+.1f} % ({low:+.1f} to {high:+.1f} % with 95 % confidence)"
    return interval if difference.shown else f"{interval}: no difference is shown"
