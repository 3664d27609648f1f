"""Whether the same load goes on, and where its rate steps down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import lt

from iopstui.model.findings.figures import fio_iops
from iopstui.model.means import fmean, pstdev
from iopstui.model.metrics.frame import Frame

MAX_STEP_SHARE = 0.75
# standard deviations of the seconds on either side
MIN_STEP_DEVIATIONS = 4.0
SECONDS_PER_SIDE = 4


def step_down_index(frames: Sequence[Frame]) -> int | None:
    """Index at which the seconds fall into two parts, the second lower by far more than each part
    varies; ``None`` if they don't."""
    iops = [fio_iops([frame]) for frame in frames]
    if not all(iops) or not _has_step_down(iops):
        return None
    fits = []
    for place in range(SECONDS_PER_SIDE, len(iops) - SECONDS_PER_SIDE + 1):
        before, right = iops[:place], iops[place:]
        variance = pstdev(before) ** 2 * len(before) + pstdev(right) ** 2 * len(right)
        fits.append((variance, place))
    place = min(fits)[1]
    before, right = iops[:place], iops[place:]
    low, high = fmean(right), fmean(before)
    clear = high - low >= MIN_STEP_DEVIATIONS * max(pstdev(before), pstdev(right))
    return place if clear and low <= MAX_STEP_SHARE * high and max(right) < min(before) else None


def _has_step_down(iops: Sequence[float]) -> bool:
    """Whether all seconds from some place on are lower than all before it: a load without a step
    is looked at each second, and nearly always ends here."""
    least = [*accumulate(iops, min)][SECONDS_PER_SIDE - 1 :]
    most = [*accumulate(reversed(iops), max)][SECONDS_PER_SIDE - 1 :]
    # what is before the first place beside what is behind it, and so on
    return any(map(lt, most[-1 - SECONDS_PER_SIDE :: -1], least))


def is_same_workload(before: Sequence[Frame], after: Sequence[Frame]) -> bool:
    """Whether the same jobs do the same I/O: same processes, active sections, size, share of reads,
    and devices, also those below. A job that reaches another disk of a linear volume, or changes
    its own phase, does not."""
    pids = [{job.pid for job in f.jobs if job.pid is not None} for f in (*before, *after) if f.jobs]
    if any(process_ids != pids[0] for process_ids in pids[1:]):
        return False
    earlier, now = _Workload.from_frames(before), _Workload.from_frames(after)
    return earlier.is_similar(now)


@dataclass(frozen=True, slots=True)
class _Workload:
    """I/O of some seconds: the rows of fio with I/O, the mean size, and the shares (0..1) of reads
    and of each device."""

    rows: frozenset[int]
    mean_size: float
    read_share: float
    device_shares: Mapping[str, float]

    @classmethod
    def from_frames(cls, frames: Sequence[Frame]) -> _Workload:
        """Work of these frames."""
        fios = [f.fio for f in frames if f.fio is not None]
        ios = sum(fio.total.ios for fio in fios)
        reads = sum(fio.directions["read"].ios for fio in fios if "read" in fio.directions)
        rows = frozenset(job.index for fio in fios for job in fio.jobs if job.ios)
        names = {name for f in frames for name in (*f.opened, *(f.waits.layers if f.waits else ()))}
        ios_s = {name: sum((f.disks[name].ios_s or 0.0) for f in frames if name in f.disks)
                for name in names}  # fmt: skip
        total_ios_s = sum(ios_s.values())
        moved = sum(fio.total.bytes for fio in fios)
        return cls(
            rows, moved / ios if ios else 0.0, reads / ios if ios else 0.0,
            {name: rate / total_ios_s for name, rate in ios_s.items()} if total_ios_s else {},
        )  # fmt: skip

    def is_similar(self, other: _Workload) -> bool:
        """Whether none of them differs by more than chance."""
        sizes = sorted((self.mean_size, other.mean_size))
        names = {*self.device_shares, *other.device_shares}
        return (
            self.rows == other.rows
            and sizes[1] <= 1.15 * sizes[0]
            and abs(self.read_share - other.read_share) <= 0.1
            and all(
                abs(self.device_shares.get(n, 0.0) - other.device_shares.get(n, 0.0)) <= 0.2
                for n in names
            )
        )
