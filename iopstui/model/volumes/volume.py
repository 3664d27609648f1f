"""A volume class, an instance size, and the provider that publishes both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iopstui.model.volumes.formula import Formula, Source

READ, WRITE = "read", "write"
IOPS, THROUGHPUT = "iops", "throughput"
OWN = "own"
"""The provider if the user gave the figures as numbers."""


@dataclass(frozen=True, slots=True)
class IoSize:
    """The largest I/O that counts as one. ``split``: a larger one counts as several; otherwise
    every I/O counts as one."""

    bytes: int
    split: bool
    source: str

    def counted(self, size: int) -> int:
        """As how many I/Os one of ``size`` bytes counts."""
        return max(1, -(-size // self.bytes)) if self.split else 1


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence of the provider's that no figure expresses."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Latency:
    """A promised mean latency in ns, or a ``percentile`` ("p99"), of single I/Os of ``block_size``.
    ``rw`` is their kind ("randread"); if it has several kinds, the promise holds for each."""

    mean_ns: float
    rw: str
    block_size: int
    source: str
    percentile: str = ""


@dataclass(frozen=True, slots=True)
class Burst:
    """Burst: rates above the baseline, and for how long. ``credits`` are I/Os in a full bucket,
    ``credit_bytes`` the same of a throughput bucket; unused baseline refills both. ``seconds`` is
    how long a full bucket lasts at the full burst, if the provider says that instead. If none of
    them is given, no bucket is published."""

    iops: Formula | None = None
    throughput: Formula | None = None
    credits: Formula | None = None
    credit_bytes: Formula | None = None
    seconds: float | None = None
    seconds_source: str = ""


@dataclass(frozen=True, slots=True)
class Provision:
    """Figures that can be bought: the largest values at a size. ``adds``: on top of the
    baseline."""

    iops: Formula | None = None
    throughput: Formula | None = None
    adds: bool = False
    required: bool = False
    """It must be bought: without it the class has no figure."""


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
    """The class means a fixed size (P30), which need not be given."""
    cited: Mapping[str, str] = field(default_factory=dict)
    """The sources of ``sizes`` ("size") and ``delivers``."""

    @property
    def id(self) -> str:
        """ "aliyun/essd-pl1"."""
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
    """An instance size, with its limits without the host's cache, with it, and in a burst."""

    provider: str
    name: str
    sources: Mapping[str, Source]
    uncached: InstanceLimit | None = None
    cached: InstanceLimit | None = None
    burst: InstanceLimit | None = None

    @property
    def id(self) -> str:
        """ "azure/Standard_D8ds_v4"."""
        return f"{self.provider}/{self.name}"


@dataclass(frozen=True, slots=True)
class Provider:
    """The contents of one provider's file."""

    name: str
    title: str
    sources: Mapping[str, Source] = field(default_factory=dict)
    classes: tuple[VolumeClass, ...] = ()
    instances: tuple[Instance, ...] = ()
