"""Rules on what layers and caches add to a job's I/O: parity, first writes, write-back, and a
scheduler that delays one direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.accounts import READS, WRITES, device_accounts
from iopstui.model.findings.advice import advise
from iopstui.model.findings.cpu_accounts import (
    cpu_wait_share,
    jobs_have_cpu_time,
    memory_wait_percent,
)
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    Evidence,
    device_state,
    recent_frames,
    recent_job_frames,
)
from iopstui.model.findings.figures import always_writes, device_figures, devices_below, frame_waits
from iopstui.model.findings.finding import Finding, device_names_text
from iopstui.model.findings.limits import room_below
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.waits import PARITY_RAID
from iopstui.model.rates import fmean
from iopstui.model.sizes import size_text

FEW_IOPS = 10.0
# extra reads on the members of a parity array per write to the array
EXTRA_READS_PER_WRITE = 0.5
# bytes moved below per byte written above, and the share of I/Os that the upper layer holds
BYTES_BELOW_PER_BYTE = 1.5
HELD_SHARE = 0.3
# how much longer one direction waits in a scheduler than the other, in ms and as a multiple
STARVED_MS = 30.0
STARVED_FACTOR = 5.0
CROWDED_QUEUE = 3.0
"""aqu-sz of each disk: with less, the scheduler has nothing to choose from."""
STARVED_FRAMES = 8
FULL_SHARE = 0.9
SLOW_DIRECTION_MS = 100.0
MEMORY_WAIT_PERCENT = 10.0
DIRECTION_NOUNS = {"w": WRITES, "r": READS}
SCHEDULERS = ("kyber", "bfq", "mq-deadline")


def parity_reads(evidence: Evidence) -> Finding | None:
    """Small writes to RAID 4, 5 or 6 read before they write."""
    frames = recent_job_frames(evidence)
    for device in evidence.tree:
        if not frames or device.layer not in PARITY_RAID:
            continue
        state = device_state(device, evidence).array
        costs = [
            _parity_cost(frame, device.name, devices_below(device.name, evidence))
            for frame in frames
        ]
        measured = [cost for cost in costs if cost is not None]
        if len(measured) < ENOUGH_SECONDS or (
            state is not None and state.action not in ("idle", "")
        ):
            continue
        writes, reads, written = (fmean(values) for values in zip(*measured, strict=True))
        stripe = None
        if state is not None and state.chunk and state.members:
            stripe = state.chunk * (state.members - (2 if device.layer == "raid6" else 1))
        return Finding(
            "parity",
            f"{device.name} ({device.layer}): {units.number(writes)} writes/s cost "
            f"{units.number(reads)} reads/s and {units.number(written)} writes/s on its members, "
            f"{(reads + written) / writes:.1f} for each: parity takes reads first",
            advise("stripes", f"bs={size_text(stripe)}" if stripe else "chunk size × data members"),
            test=(("bs", size_text(stripe)),) if stripe else (),
        )  # fmt: skip
    return None


def _parity_cost(
    frame: Frame, name: str, members: Sequence[str]
) -> tuple[float, float, float] | None:  # fmt: skip
    """Writes to the array, and extra reads and writes on its members: rates of one second."""
    array, under = frame.disks.get(name), [frame.disks[m] for m in members if m in frame.disks]
    if array is None or not under or not array.w_s or array.w_s < FEW_IOPS:
        return None
    reads = sum(member.r_s or 0.0 for member in under) - (array.r_s or 0.0)
    if reads < EXTRA_READS_PER_WRITE * array.w_s:
        return None
    return array.w_s, reads, sum(member.w_s or 0.0 for member in under)


def first_writes(evidence: Evidence) -> Finding | None:
    """A device-mapper device whose writes cause more writes or reads below: a snapshot or a thin
    volume copies or clears before the first write of a chunk."""
    frames = recent_job_frames(evidence)
    waits_by_frame = frame_waits(frames)
    if not waits_by_frame or not evidence.shape.writes:
        return None
    for device in evidence.devices:
        lower = devices_below(device.name, evidence)
        held_ios = [waits.layers.get(device.name, 0.0) for waits in waits_by_frame]
        if device.kind != "dm" or not lower or device.layer in ("dm-crypt", "dm-multipath"):
            continue
        pairs = [_bytes_above_and_below(frame, device.name, lower) for frame in frames]
        copies = [
            pair for pair in pairs if pair is not None and pair[1] >= BYTES_BELOW_PER_BYTE * pair[0]
        ]
        if len(copies) < ENOUGH_SECONDS or any(
            h < HELD_SHARE * w.ios for h, w in zip(held_ios, waits_by_frame, strict=True)
        ):
            continue
        above, under = (fmean(values) for values in zip(*copies, strict=True))
        return Finding(
            "first-write",
            f"{units.size(above)}/s written to {device.name} move {units.size(under)}/s below it, "
            f"{under / above:.1f} times as much: it may be a snapshot or a thin volume, which "
            "copies or clears each chunk before its first write",
            advise("again"),
        )
    return None


def _bytes_above_and_below(
    frame: Frame, name: str, lower: Sequence[str]
) -> tuple[float, float] | None:
    """Bytes written above the layer, and the bytes moved below for them, in one second."""
    top, under = (
        frame.disks.get(name),
        [frame.disks[below] for below in lower if below in frame.disks],
    )
    if top is None or len(under) < len(lower) or not top.w_bytes_s or (top.w_s or 0.0) < FEW_IOPS:
        return None
    moved = sum(disk.bytes_s or 0.0 for disk in under)
    return top.w_bytes_s, moved - (top.r_bytes_s or 0.0)


def starved_direction(evidence: Evidence) -> Finding | None:
    """A scheduler that lets one direction wait far longer than the other."""
    for device, slow, fast, aqu in _uneven_directions(evidence, STARVED_MS):
        scheduler = device.queue.scheduler if device.queue is not None else None
        if scheduler not in SCHEDULERS or aqu < CROWDED_QUEUE:
            continue
        room = room_below(device, evidence)
        # with free tags the driver takes every request: mq-deadline has nothing to choose from
        if scheduler == "mq-deadline" and (room is None or aqu < FULL_SHARE * room):
            continue
        return Finding(
            "starved",
            f"{device.name}: {_directions_text(slow, fast)}: the scheduler {scheduler} may let "
            f"{slow[0]} wait",
            advise("scheduler"), "k",
        )  # fmt: skip
    return None


def slow_direction(evidence: Evidence) -> Finding | None:
    """One direction that the device itself answers far more slowly than the other."""
    if evidence.shape.syncs:
        return None
    for device, slow, fast, aqu in _uneven_directions(evidence, SLOW_DIRECTION_MS):
        scheduler = device.queue.scheduler if device.queue is not None else None
        room = room_below(device, evidence)
        if room is None or aqu >= FULL_SHARE * room or scheduler in ("kyber", "bfq"):
            continue
        return Finding(
            "slow-direction",
            f"{device.name}: {_directions_text(slow, fast)}. They wait in {device.name} itself: "
            f"{aqu:.1f} requests are in it, it takes {room} at once, so none waits in a scheduler",
            advise("one-direction", slow[0]),
        )
    return None


Direction = tuple[str, float]
"""What the direction is called, and the mean time of a request in ms."""


def _directions_text(slow: Direction, fast: Direction) -> str:
    times = units.latency(slow[1] * 1e6), units.latency(fast[1] * 1e6)
    return f"{slow[0]} take {times[0]}, {fast[0]} {times[1]}"


def _uneven_directions(
    evidence: Evidence, least_ms: float
) -> Iterator[tuple[BlockDevice, Direction, Direction, float]]:
    """Devices on which one direction takes at least ``least_ms`` and much longer than the other,
    with the slow and the fast direction and the requests in the device at a time. Swapping is left
    out: the pages of a burst wait for each other. On a job's devices, only directions that the job
    waits for are returned."""
    frames = recent_frames(evidence, STARVED_FRAMES) or recent_frames(evidence)
    if any(memory_wait_percent(frame) >= MEMORY_WAIT_PERCENT for frame in frames):
        return
    for device in dict.fromkeys((*evidence.devices, *evidence.tree)):
        disks = [frame.disks[device.name] for frame in frames if device.name in frame.disks]
        if len(disks) < ENOUGH_SECONDS or (device.swap and not evidence.measured):
            continue
        means = {side: _mean_await(disks, side) for side in ("r", "w")}
        for slow, fast in (("w", "r"), ("r", "w")):
            waits = means[slow], means[fast]
            if waits[0] < least_ms or not waits[1] or waits[0] < STARVED_FACTOR * waits[1]:
                continue
            each = [wait for disk in disks if (wait := getattr(disk, f"{slow}_await")) is not None]
            if min(each) >= least_ms / 2 and _waits_for(slow, evidence, frames):
                names = DIRECTION_NOUNS[slow], DIRECTION_NOUNS[fast]
                aqu = min(disk.aqu_sz or 0.0 for disk in disks)
                yield device, (names[0], waits[0]), (names[1], waits[1]), aqu


def _waits_for(letter: str, evidence: Evidence, frames: Sequence[Frame]) -> bool:
    """Whether the job, if there is one, waits for I/O of this direction. It does not wait for
    bursts of write-back."""
    if frames[0].fio is None:
        return True
    accounts = next(device_accounts(evidence, frames), None)
    if accounts is None or (letter == "w" and evidence.shape.direct is not True):
        return False
    kind, mean = DIRECTION_NOUNS[letter], accounts.mean
    return mean.others[kind].queue < mean.total[kind].queue / 2


def _mean_await(disks: Sequence[DiskRates], side: str) -> float:
    """Mean time in ms of a request of one direction over all these intervals; 0.0 if there are too
    few requests."""
    rate = waited = 0.0
    for disk in disks:
        reads, writes = (disk.reads, disk.read_ms), (disk.writes, disk.write_ms)
        count, ms = reads if side == "r" else writes
        if count:
            rate += count / disk.seconds
            waited += (ms or 0.0) / disk.seconds
    return 0.0 if rate < FEW_IOPS else waited / rate


def write_back(evidence: Evidence) -> Finding | None:
    """Buffered writes that wait until the device has written dirty pages."""
    frames, shape = recent_job_frames(evidence), evidence.shape
    waits_by_frame = frame_waits(frames)
    device_io = device_figures(frames, evidence.devices)
    if not waits_by_frame or device_io is None or not always_writes(frames, evidence.devices):
        return None
    if shape.direct is not False or not shape.writes or shape.syncs or shape.paced:
        return None
    if not jobs_have_cpu_time(frames) or (
        max(map(cpu_wait_share, waits_by_frame)) > 1 - HELD_SHARE
    ):
        return None
    ios = [waits.ios - (waits.cpu or 0.0) for waits in waits_by_frame]
    # on average each job has a write under way for at least half of the time
    if min(ios) < 0.5 * shape.jobs:
        return None
    return Finding(
        "write-back",
        f"{fmean(ios):.1f} buffered writes wait, without using the CPU, while "
        f"{device_names_text(evidence.devices)} writes back {units.size(device_io.bytes_s)}/s at "
        "full utilisation: the limit of dirty pages is reached",
        advise("direct"),
    )
