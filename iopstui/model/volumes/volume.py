"""A volume class, an instance size, the provider that publishes both, and its formulas."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

UNITS = {"IOPS": 1.0, "MB/s": 1e6, "MiB/s": float(1 << 20), "I/Os": 1.0, "MiB": float(1 << 20)}
"""Factors that convert a unit to I/Os, bytes, I/Os per second or bytes per second."""
MAX_AGE = datetime.timedelta(days=730)


@dataclass(frozen=True, slots=True)
class Source:
    """A provider's page: its title, its address, and the day of its text (YYYY-MM-DD), or the day
    on which we ``read`` it if it has no date of its own."""

    page: str
    url: str
    date: str
    read: bool = False

    @property
    def text(self) -> str:
        """The page and its date as text."""
        return f"{self.page} ({'read' if self.read else 'of'} {self.date})"

    def outdated(self, today: datetime.date) -> bool:
        """Whether the text is so old that its figures may have changed."""
        return today - datetime.date.fromisoformat(self.date) > MAX_AGE


@dataclass(frozen=True, slots=True)
class Formula:
    """``base + per_gib x size + per_iops x IOPS + per_provisioned x bought IOPS``, at most
    ``high``, at least ``low``; or ``steps`` of (up to GiB, value). The formula is in ``unit``;
    ``value_at`` returns I/Os or bytes."""

    unit: str
    source: str
    base: float = 0.0
    per_gib: float = 0.0
    per_iops: float = 0.0
    per_provisioned: float = 0.0
    low: float | None = None
    high: float | None = None
    steps: tuple[tuple[float, float], ...] = ()

    def value_at(self, size_gib: float, iops: float = 0.0, provisioned: float = 0.0) -> float:
        """The figure for a volume of ``size_gib`` with ``iops`` altogether, of which
        ``provisioned`` were bought in addition; in I/Os or bytes (per second)."""
        if self.steps:
            return self._step(size_gib) * UNITS[self.unit]
        value = self.base + self.per_gib * size_gib + self.per_iops * iops
        if self.high is not None:
            value = min(value, self.high)
        if self.low is not None:
            value = max(value, self.low)
        # bought IOPS are added to the capped baseline
        return (value + self.per_provisioned * provisioned) * UNITS[self.unit]

    def _step(self, size_gib: float) -> float:
        for up_to, value in self.steps:
            if size_gib <= up_to:
                return value
        return self.steps[-1][1]

    @property
    def needs_size(self) -> bool:
        """Whether the figure differs from size to size."""
        return bool(self.per_gib or len(self.steps) > 1)

    def text(self) -> str:
        """The figure as a formula: "min(1,800 + 50 × GiB, 50,000) IOPS"."""
        if self.steps:
            parts = [
                f"{_number_text(value)} up to {_number_text(gib)} GiB" for gib, value in self.steps
            ]
            return f"{', '.join(parts)} ({self.unit})" if len(parts) > 1 else self._plain(
                self.steps[0][1])  # fmt: skip
        terms = [_number_text(self.base)] if self.base else []
        terms += [f"{_number_text(self.per_gib)} × GiB"] if self.per_gib else []
        terms += [f"{_number_text(self.per_iops)} × IOPS"] if self.per_iops else []
        formula = " + ".join(terms) or "0"
        if self.high is not None:
            formula = f"min({formula}, {_number_text(self.high)})"
        if self.low is not None:
            formula = f"max({formula}, {_number_text(self.low)})"
        if self.per_provisioned:
            formula += f" + {_number_text(self.per_provisioned)} × provisioned IOPS"
        return f"{formula} {self.unit}"

    def _plain(self, value: float) -> str:
        return f"{_number_text(value)} {self.unit}"


def _number_text(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.6f}".rstrip("0")


def is_monotonic(steps: Sequence[tuple[float, float]]) -> bool:
    """Whether sizes rise from step to step and values do not fall."""
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(steps))


READ, WRITE = "read", "write"
IOPS, THROUGHPUT = "iops", "throughput"
OWN = "own"
"""The name of the provider if the user gave the figures as numbers."""


@dataclass(frozen=True, slots=True)
class IoSize:
    """The largest I/O that counts as one. ``split``: a larger one counts as several; otherwise
    every I/O counts as one."""

    bytes: int
    split: bool
    source: str

    def counted(self, size: int) -> int:
        """How many I/Os one I/O of ``size`` bytes counts as."""
        return max(1, -(-size // self.bytes)) if self.split else 1


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence of the provider that no figure expresses."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Latency:
    """A promised mean latency in ns, or a ``percentile`` ("p99"), of single I/Os of ``block_size``.
    ``rw`` is the kind of I/O ("randread"); if it names several kinds, the promise holds for
    each."""

    mean_ns: float
    rw: str
    block_size: int
    source: str
    percentile: str = ""


@dataclass(frozen=True, slots=True)
class Burst:
    """Burst: rates above the baseline, and for how long. ``credits`` are the I/Os in a full bucket,
    ``credit_bytes`` the bytes in a full throughput bucket; unused baseline refills both.
    ``seconds`` is how long a full bucket lasts at the full burst, if the provider says that
    instead. If none of them is given, no bucket is published."""

    iops: Formula | None = None
    throughput: Formula | None = None
    credits: Formula | None = None
    credit_bytes: Formula | None = None
    seconds: float | None = None
    seconds_source: str = ""


@dataclass(frozen=True, slots=True)
class Provision:
    """Figures that can be bought: the largest values at a size. ``adds``: they come on top of the
    baseline."""

    iops: Formula | None = None
    throughput: Formula | None = None
    adds: bool = False
    required: bool = False
    """Whether it must be bought: without it the class has no figure."""


@dataclass(frozen=True, slots=True)
class VolumeClass:
    """A volume class: "aliyun/essd-pl1". ``formulas`` are by IOPS or THROUGHPUT and by READ, WRITE;
    ``delivers`` says which share (0..1) of its figures the provider promises to deliver, and how
    often."""

    provider: str
    name: str
    title: str
    sizes: tuple[float, float] | None
    formulas: Mapping[tuple[str, str], Formula]
    sources: Mapping[str, Source]
    io_size: IoSize | None = None
    random_size: int = 4096
    sequential_size: int = 1 << 20
    latency: Latency | None = None
    burst: Burst | None = None
    provision: Provision | None = None
    delivers: tuple[float, str] | None = None
    warmup: Note | None = None
    notes: tuple[Note, ...] = ()
    drive: str = ""
    models: tuple[str, ...] = ()
    fixed_size: bool = False
    """Whether the class means a fixed size (P30), which then need not be given."""
    cited: Mapping[str, str] = field(default_factory=dict)
    """The sources of ``sizes`` ("size") and ``delivers``."""

    @property
    def id(self) -> str:
        """The id, such as "aliyun/essd-pl1"."""
        return f"{self.provider}/{self.name}"

    @property
    def needs_size(self) -> bool:
        """Whether a figure depends on the size."""
        formulas: list[Formula | None] = [*self.formulas.values()]
        if self.burst is not None:
            burst = self.burst
            formulas += [burst.iops, burst.throughput, burst.credits, burst.credit_bytes]
        if self.provision is not None:
            formulas += [self.provision.iops, self.provision.throughput]
        return not self.fixed_size and any(f.needs_size for f in formulas if f is not None)


@dataclass(frozen=True, slots=True)
class InstanceLimit:
    """The limits per second for all volumes of an instance together; ``None``: not published."""

    iops: float | None
    throughput: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance size and its limits: without the host's cache, with it, and in a burst."""

    provider: str
    name: str
    sources: Mapping[str, Source]
    uncached: InstanceLimit | None = None
    cached: InstanceLimit | None = None
    burst: InstanceLimit | None = None

    @property
    def id(self) -> str:
        """The id, such as "azure/Standard_D8ds_v4"."""
        return f"{self.provider}/{self.name}"


@dataclass(frozen=True, slots=True)
class Provider:
    """The contents of one provider's file."""

    name: str
    title: str
    sources: Mapping[str, Source] = field(default_factory=dict)
    classes: tuple[VolumeClass, ...] = ()
    instances: tuple[Instance, ...] = ()
