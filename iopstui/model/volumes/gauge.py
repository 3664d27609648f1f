"""A volume's limits and burst credits beside what its device does, second by second."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from iopstui.format import clock
from iopstui.model.figures.disk import DiskRates
from iopstui.model.volumes.promised import (
    INSTANCE_BW,
    INSTANCE_IOPS,
    VOLUME_BW,
    VOLUME_IOPS,
    Bucket,
    Limit,
    PromisedFigures,
)
from iopstui.model.volumes.volume import IOPS, READ, THROUGHPUT, WRITE

BURST_FACTOR = 1.1
"""A second counts as using credits if its rate is above this multiple of the baseline; less could
be noise."""
NEAR_BASELINE = 0.05
BASELINE_SECONDS = 3
"""After this many seconds at the baseline, with I/Os waiting, the credits count as used up."""
MIN_QUEUE = 1.0
"""Mean requests in flight. With less, the job sets the rate, not a limit."""
NEAR_LIMIT = 0.05


@dataclass
class VolumeGauge:
    """Follows the credits of one kind (``kind``: IOPS or THROUGHPUT) of a promised volume.

    How many there were at first cannot be seen, so ``level`` is the most that can be left, until
    the rate falls to the baseline: then ``level`` is ``known``, because it must be 0. If a burst
    goes on although no credits are left, the promise is ``refuted``: the volume is not the one that
    was promised."""

    promised: PromisedFigures
    kind: str
    level: float = 0.0
    known: bool = False
    rate: float | None = None
    refuted: bool = False
    _recent: deque[bool] = field(default_factory=lambda: deque(maxlen=BASELINE_SECONDS))
    _was_above: bool = False
    _burst_seconds: int = 0
    _empty_seconds: int = 0

    def __post_init__(self) -> None:
        bucket = self.bucket
        self.level = bucket.size if bucket is not None else 0.0

    @property
    def bucket(self) -> Bucket | None:
        """The token bucket; ``None`` if the volume has none of this kind."""
        return self.promised.bucket(self.kind)

    @property
    def noun(self) -> str:
        """Name of the credits."""
        return "I/O credits" if self.kind == IOPS else "throughput credits"

    def feed(self, disk: DiskRates) -> None:
        """Count one interval of the volume's device."""
        bucket, rate = self.bucket, self.used(disk)
        self.rate = rate
        if bucket is None or rate is None:
            return
        self.level = bucket.after(self.level, rate, disk.seconds)
        in_burst = rate > BURST_FACTOR * bucket.refill
        self._was_above |= in_burst
        self._burst_seconds = self._burst_seconds + 1 if in_burst else 0
        self._empty_seconds = self._empty_seconds + 1 if in_burst and not self.level else 0
        self.refuted |= self._empty_seconds >= BASELINE_SECONDS
        at_base = abs(rate - bucket.refill) <= NEAR_BASELINE * bucket.refill
        self._recent.append(at_base and (disk.aqu_sz or 0.0) >= MIN_QUEUE)
        if self._was_above and len(self._recent) == BASELINE_SECONDS and all(self._recent):
            self.level, self.known, self._was_above = 0.0, True, False

    def used(self, disk: DiskRates) -> float | None:
        """Credits that a second of this device uses: I/Os as the provider counts them, or bytes;
        ``None`` if the device's I/O is not counted."""
        total = 0.0
        size = self.promised.volume.io_size
        for ios, bytes_s in ((disk.r_s, disk.r_bytes_s), (disk.w_s, disk.w_bytes_s)):
            if ios is None or bytes_s is None:
                return None
            ios_per_request = size.counted(round(bytes_s / ios)) if size is not None and ios else 1
            total += bytes_s if self.kind == THROUGHPUT else ios * ios_per_request
        return total

    def text(self) -> str:
        """Remaining credits in a few words; "" if they are unknown."""
        bucket, rate = self.bucket, self.rate
        if bucket is None or rate is None or self.refuted:
            return ""
        lasts = bucket.lasts_s(rate, self.level)
        if self._burst_seconds == 1:
            # the burst began somewhere in this second, so its rate is not that of the burst
            return "burst"
        if rate > BURST_FACTOR * bucket.refill and lasts is not None:
            return f"burst for {'' if self.known else '≤ '}{clock(lasts)} more"
        # at most nothing is left
        if self.level < bucket.refill:
            return "burst credits used up"
        back = bucket.refills_s(rate, self.level)
        if not self.known or self.level >= bucket.size or not back:
            return ""
        return f"burst credits full in {clock(back)}"


def gauges(figures: PromisedFigures) -> tuple[VolumeGauge, ...]:
    """Return a gauge for each kind of credits that the volume has."""
    return tuple(VolumeGauge(figures, kind) for kind in (IOPS, THROUGHPUT) if figures.bucket(kind))


def rate_limits(
    figures: PromisedFigures, kind: str, disk: DiskRates, volumes: int = 1
) -> list[float]:
    """The limits to draw beside the IOPS or bytes/s of ``volumes`` volumes together: the baseline,
    and the burst rate if it is higher. IOPS are those of I/Os as large as the device's."""
    ios = (disk.r_s or 0.0) + (disk.w_s or 0.0)
    moved = (disk.r_bytes_s or 0.0) + (disk.w_bytes_s or 0.0)
    size = max(1, round(moved / ios)) if ios else figures.volume.random_size
    direction = WRITE if (disk.w_bytes_s or 0.0) > (disk.r_bytes_s or 0.0) else READ
    names = (VOLUME_IOPS, INSTANCE_IOPS) if kind == IOPS else (VOLUME_BW, INSTANCE_BW)
    drawn = []
    for burst in (False, True):
        limits = figures.limits(direction, size, burst)
        rates = [_combined_rate(limit, volumes) for limit in limits if limit.name in names]
        if rates:
            drawn.append(min(rates) * (size if kind == THROUGHPUT else 1))
    return sorted(set(drawn))


def _combined_rate(limit: Limit, volumes: int) -> float:
    """The rate that several volumes on one instance may reach together."""
    return limit.rate * (volumes if limit.name in (VOLUME_IOPS, VOLUME_BW) else 1)


def fitting_limit(
    figures: PromisedFigures,
    direction: str,
    block_size: int,
    rate: float,
    burst: bool = False,
    volumes: int = 1,
    other_rates: Sequence[tuple[int, float]] = (),
) -> Limit | None:
    """The limit that a steady rate of such I/Os has reached, on ``volumes`` volumes together;
    ``None``: no limit is close enough. Other runs of this direction had ``other_rates`` of (block
    size, I/Os per second): a limit that one of these rates exceeds can't have been reached."""
    exceeded = {
        limit.name
        for size, other_rate in other_rates
        for limit in figures.limits(direction, size, burst)
        if other_rate > (1 + NEAR_LIMIT) * _combined_rate(limit, volumes)
    }
    rated_limits = [
        (_combined_rate(limit, volumes), limit)
        for limit in figures.limits(direction, block_size, burst)
    ]
    candidates = [
        (abs(rate - most), limit)
        for most, limit in rated_limits
        if abs(rate - most) <= NEAR_LIMIT * most and limit.name not in exceeded
    ]
    return min(candidates, key=lambda pair: pair[0], default=(0.0, None))[1]
