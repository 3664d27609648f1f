"""Promised figures of one volume: its class, size and purchased options on an instance."""

from __future__ import annotations

from dataclasses import dataclass

from iopstui.errors import UsageError
from iopstui.format import size as bytes_text
from iopstui.model.volumes.volume import (
    IOPS,
    READ,
    THROUGHPUT,
    WRITE,
    Formula,
    Instance,
    InstanceLimit,
    VolumeClass,
)

GIB = 1 << 30
VOLUME_IOPS, VOLUME_BW = "volume IOPS", "volume MB/s"
INSTANCE_IOPS, INSTANCE_BW = "instance IOPS", "instance MB/s"
COUNTED_LIMITS = {"volume_iops": VOLUME_IOPS, "volume_bytes": VOLUME_BW,
                  "instance_iops": INSTANCE_IOPS, "instance_bytes": INSTANCE_BW}  # fmt: skip
"""Names of the limits, by the counters that AWS volumes have for them (model/metrics/aws.py)."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A named limit: ``rate`` I/Os per second at the requested block size."""

    name: str
    rate: float


@dataclass(frozen=True, slots=True)
class PromisedFigures:
    """The promised IOPS and bytes/s by direction (``None``: not published), the same for a burst,
    and the token buckets. ``size_gib`` is 0 if no figure depends on it."""

    volume: VolumeClass
    size_gib: float
    iops: dict[str, float | None]
    throughput: dict[str, float | None]
    burst_iops: float | None = None
    burst_throughput: float | None = None
    io_bucket: Bucket | None = None
    byte_bucket: Bucket | None = None
    instance: Instance | None = None
    cached: bool = False

    def figure(self, kind: str, direction: str) -> float | None:
        return (self.iops if kind == IOPS else self.throughput)[direction]

    def burst(self, kind: str, direction: str) -> float | None:
        """The rate in a burst, if it is higher than the baseline."""
        base = self.figure(kind, direction)
        rate = self.burst_iops if kind == IOPS else self.burst_throughput
        return rate if rate is not None and base is not None and rate > base else None

    def bucket(self, kind: str) -> Bucket | None:
        return self.io_bucket if kind == IOPS else self.byte_bucket

    def limits(self, direction: str, block_size: int, burst: bool = False) -> list[Limit]:
        """Limits for I/Os of this size, the tightest first."""
        limits = []
        iops, bandwidth = self.iops[direction], self.throughput[direction]
        if burst:
            iops = self.burst(IOPS, direction) or iops
            bandwidth = self.burst(THROUGHPUT, direction) or bandwidth
        if iops is not None:
            size = self.volume.io_size
            limits.append(Limit(VOLUME_IOPS, iops / (size.counted(block_size) if size else 1)))
        if bandwidth is not None:
            limits.append(Limit(VOLUME_BW, bandwidth / block_size))
        allowed = self.instance_limit(burst)
        if allowed is not None and allowed.iops is not None:
            limits.append(Limit(INSTANCE_IOPS, allowed.iops))
        if allowed is not None and allowed.throughput is not None:
            limits.append(Limit(INSTANCE_BW, allowed.throughput / block_size))
        return sorted(limits, key=lambda limit: limit.rate)

    def instance_limit(self, burst: bool = False) -> InstanceLimit | None:
        if self.instance is None:
            return None
        if self.cached and self.instance.cached is not None:
            return self.instance.cached
        return (self.instance.burst if burst else None) or self.instance.uncached


def promised_figures(
    volume: VolumeClass,
    size_gib: float | None = None,
    iops: float | None = None,
    throughput: float | None = None,
    instance: Instance | None = None,
    cached: bool = False,
) -> PromisedFigures:
    """The figures of a volume of ``size_gib`` for which ``iops`` and ``throughput`` (bytes/s) were
    bought (``None``: the included amount). Raises UsageError for anything that the class does not
    offer."""
    size = _checked_size(volume, size_gib)
    _check_instance(volume, instance, cached)
    bought, adds = _bought_iops(volume, size, iops)
    total: dict[str, float | None] = {}
    bandwidth: dict[str, float | None] = {}
    for direction in (READ, WRITE):
        base = volume.formulas.get((IOPS, direction))
        direction_iops = base.value_at(size) if base is not None else None
        if bought is not None:
            direction_iops = (direction_iops or 0.0) + bought if adds else bought
        total[direction] = direction_iops
        flow = volume.formulas.get((THROUGHPUT, direction))
        bandwidth[direction] = (
            flow.value_at(size, direction_iops or 0.0, bought or 0.0 if adds else 0.0)
            if flow is not None
            else None
        )
    if throughput is not None:
        _check_throughput(volume, size, throughput, total[READ] or 0.0)
        bandwidth = dict.fromkeys((READ, WRITE), throughput)
    figures = PromisedFigures(volume, size, total, bandwidth, instance=instance, cached=cached)
    return _with_burst(figures)


def _with_burst(figures: PromisedFigures) -> PromisedFigures:
    burst, size = figures.volume.burst, figures.size_gib
    if burst is None:
        return figures
    base_iops, base_flow = figures.iops[READ], figures.throughput[READ]
    iops = burst.iops.value_at(size) if burst.iops else None
    flow = burst.throughput.value_at(size) if burst.throughput else None
    return PromisedFigures(
        figures.volume, size, figures.iops, figures.throughput, iops, flow,
        _bucket(burst.credits, burst.seconds, base_iops, iops, size),
        _bucket(burst.credit_bytes, burst.seconds, base_flow, flow, size),
        figures.instance, figures.cached,
    )  # fmt: skip


def _bucket(
    full: Formula | None,
    seconds: float | None,
    base: float | None,
    peak: float | None,
    size_gib: float,
) -> Bucket | None:
    if base is None or peak is None or peak <= base:
        return None
    if full is not None:
        return Bucket(full.value_at(size_gib), base, peak)
    return Bucket((peak - base) * seconds, base, peak) if seconds else None


def _checked_size(volume: VolumeClass, size_gib: float | None) -> float:
    low, high = volume.sizes or (0.0, float("inf"))
    if size_gib is None:
        if volume.needs_size:
            raise UsageError(
                f"The figures of {volume.id} depend on the size of the volume.",
                "Name it: --size 500g",
            )
        return high if volume.fixed_size and volume.sizes else 0.0
    if not low <= size_gib <= high:
        relation = "smaller" if size_gib < low else "larger"
        raise UsageError(
            f"A volume of {volume.id} cannot be {relation} than "
            f"{low if size_gib < low else high:,g} GiB, and this one has {_size_text(size_gib)}.",
            f"Sizes of this class: {low:,g} to {high:,g} GiB. Name the bought size with --size "
            "(such as 500g), or another class with --volume.",
        )
    return size_gib


def _size_text(size_gib: float) -> str:
    """A size as text. A number without a unit means bytes, and the message must show that."""
    return f"{size_gib:,.4g} GiB" if size_gib >= 1 else bytes_text(round(size_gib * GIB))


def _check_instance(volume: VolumeClass, instance: Instance | None, cached: bool) -> None:
    if instance is not None and instance.provider != volume.provider:
        raise UsageError(
            f"{volume.id} is a volume of another provider than the instance {instance.id}.",
            f"Instances of {volume.provider}: iopstui volumes --instances",
        )
    if cached and (instance is None or instance.cached is None):
        raise UsageError(
            "Cached limits are those of an instance, and none is named."
            if instance is None
            else f"{instance.id} has no cached limits.",
            "Name an instance that has them (iopstui volumes --instances), or leave out --cached.",
        )


def _bought_iops(volume: VolumeClass, size: float, iops: float | None) -> tuple[float | None, bool]:
    offer = volume.provision
    if iops is None:
        if offer is not None and offer.required:
            raise UsageError(
                f"{volume.id} has only the IOPS that you buy.", "Name them: --iops 5000"
            )
        return None, False
    if offer is None or (offer.iops is None and not offer.required):
        raise UsageError(f"IOPS of {volume.id} cannot be bought.", "Leave out --iops.")
    most = offer.iops.value_at(size) if offer.iops is not None else None
    if most is not None and iops > most:
        raise UsageError(
            f"At most {most:,.0f} IOPS can be bought for {volume.id} with {size:,g} GiB.",
            "Correct --iops or --size.",
        )
    return iops, offer.adds


def _check_throughput(volume: VolumeClass, size: float, requested: float, iops: float) -> None:
    offer = volume.provision.throughput if volume.provision is not None else None
    if offer is None:
        raise UsageError(
            f"Throughput of {volume.id} cannot be bought separately.", "Leave out --throughput."
        )
    most = offer.value_at(size, iops)
    if requested > most * 1.0001:
        raise UsageError(
            f"At most {most / 1e6:,.0f} MB/s can be bought for {volume.id} with {size:,g} GiB "
            f"and {iops:,.0f} IOPS.",
            "Correct --throughput, --iops or --size.",
        )


# A token bucket: how long a burst lasts, and the time until the next one.


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket: ``size`` tokens when full; ``refill`` tokens are added in each second (the
    baseline) and every I/O (or byte) takes one; at most ``peak`` are taken in a second."""

    size: float
    refill: float
    peak: float

    def lasts_s(self, rate: float | None = None, level: float | None = None) -> float | None:
        """Seconds until the bucket is empty at ``rate`` (default: the peak) from ``level``
        tokens (default: full); ``None``: never."""
        spent = min(self.peak if rate is None else rate, self.peak) - self.refill
        if spent <= 0:
            return None
        return (self.size if level is None else level) / spent

    def refills_s(self, rate: float = 0.0, level: float = 0.0) -> float | None:
        """Seconds until the bucket is full again while ``rate`` is used; ``None``: never."""
        gained = self.refill - rate
        if gained <= 0:
            return None
        return max(0.0, self.size - level) / gained

    def after(self, level: float, rate: float, seconds: float) -> float:
        return min(self.size, max(0.0, level + (self.refill - rate) * seconds))
