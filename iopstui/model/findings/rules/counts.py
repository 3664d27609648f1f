"""Rules on what is counted: whether the kernel counts, and why fio and the device differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    LONG_ENOUGH,
    Evidence,
    frame_start_s,
    recent_frames,
    recent_job_frames,
)
from iopstui.model.findings.figures import (
    DeviceFigures,
    device_figures,
    fio_bytes_s,
    fio_iops,
    iops_by_second,
)
from iopstui.model.findings.finding import Finding, device_names_text
from iopstui.model.fio.job_rules import PASSTHROUGH
from iopstui.model.means import fmean
from iopstui.model.metrics.frame import SUBMITTED, Frame
from iopstui.model.rates import DiskRates

# another program's queue: so long, so full, so much of the time
LONG_MS = 5.0
DEEP_QUEUE = 4.0
BUSY_UTIL = 90.0
# fio and the kernel have to be apart for so many seconds
SECONDS_APART = 4

# engines that do no I/O
NO_DEVICE = ("null", "cpuio")

FIND_PROGRAM_ADVICE = "find the program (iotop, pidstat -d 1)"


def no_iostats(evidence: Evidence) -> Finding | None:
    """The kernel does not count I/Os: its zeros are not measurements."""
    silent = [
        device
        for device in evidence.devices
        if device.queue is not None
        and device.queue.iostats is False
        and _counts_nothing(device, evidence)
    ]
    if not silent:
        return None
    has, its = ("have", "their") if len(silent) > 1 else ("has", "its")
    return Finding(
        "iostats",
        f"{device_names_text(silent)} {has} iostats=0: the kernel does not count {its} I/Os, so "
        f"{its} figures mean nothing",
        "turn it on: --knob iostats=1",
    )


def _counts_nothing(device: BlockDevice, evidence: Evidence) -> bool:
    """Whether no I/O of the device is counted. Drivers without hardware queues (zram, dm, md) count
    by themselves, whatever iostats says: of them fio's direct I/O has to show it."""
    window = recent_frames(evidence)
    figures = device_figures(window, [device], 1)
    if figures is None or figures.ios_s > 0:
        return False
    if any(frame.fio is not None for frame in window):
        return evidence.shape.direct is True and fio_iops(window) > 0
    return bool(device.hctxs)


def background(evidence: Evidence) -> Finding | None:
    """The disk was in use before the run began."""
    devices = evidence.devices
    quiet = device_figures(evidence.before[-LONG_ENOUGH:], devices)
    frames = recent_job_frames(evidence, 1)
    if quiet is None or not frames:
        return None
    if quiet.r_s + quiet.w_s < max(20.0, 0.02 * fio_iops(frames)):
        return None
    return Finding(
        "background",
        f"{device_names_text(devices)} {_was_or_were(devices)} not idle before this run: "
        f"{units.number(quiet.r_s)} r/s and "
        f"{units.number(quiet.w_s)} w/s that are not this job's",
        FIND_PROGRAM_ADVICE,
        "u",
    )


def _was_or_were(devices: Sequence[BlockDevice]) -> str:
    return "were" if len(devices) > 1 else "was"


def disagreement(evidence: Evidence) -> Finding | None:
    """fio and the device count differently; diskstats shows why."""
    devices, frames = evidence.devices, recent_job_frames(evidence, SECONDS_APART)
    theirs = device_figures(frames, devices)
    if evidence.shape.engine in NO_DEVICE:
        return None
    if theirs is None or any(SUBMITTED in f.flags or (f.throttled or 0) >= 1 for f in frames):
        return None
    if any(device.queue and device.queue.iostats is False for device in devices):
        return None
    own = fio_iops(frames)
    each = iops_by_second(frames, devices)
    # fio and the kernel are read at slightly different moments: one second proves nothing
    if own < 100 or len(each) < SECONDS_APART:
        return None
    sums = " together" if len(devices) > 1 else ""
    head = f"fio does {units.number(own)} IOPS, {device_names_text(devices)}{sums} "
    own_bytes = fio_bytes_s(frames)
    less = all(most < 0.9 * fio_s for fio_s, _, most in each)
    more = all(least > 1.1 * fio_s for fio_s, least, _ in each)
    # what takes longest to see is asked last: nearly always they agree in each second
    if not (less or more) or _agree_in_all(evidence):
        return None
    if less:
        head += units.number(theirs.ios_s)
        found = _device_does_less(evidence, theirs, head, own, own_bytes)
    else:
        head += units.number(theirs.own_s)
        found = _device_does_more(evidence, theirs, head, own, own_bytes)
    return replace(found, since=frame_start_s(frames[0]))


def _agree_in_all(evidence: Evidence) -> bool:
    """Whether the counts of more seconds agree: on a busy machine fio reports late, and what one
    second lacks another has."""
    each = iops_by_second(evidence.measured[-LONG_ENOUGH:], evidence.devices)
    own = sum(fio_s for fio_s, _, _ in each)
    least, most = (sum(one[side] for one in each) for side in (1, 2))
    return least <= 1.1 * own and most >= 0.9 * own


def _device_does_less(
    evidence: Evidence, theirs: DeviceFigures, head: str, own: float, own_bytes: float
) -> Finding:
    if evidence.shape.engine == PASSTHROUGH:
        return Finding(
            "disagree",
            f"{head}: NVMe commands pass by the block layer, and the kernel does not count them; "
            "fio's figures are right",
            "Linux 6.13 counts them after: echo 1 > /sys/block/"
            f"{evidence.devices[0].name}/queue/iostats_passthrough",
        )
    if theirs.merges_s >= 0.5 * (own - theirs.ios_s):
        return Finding(
            "disagree",
            f"{head}: {units.number(theirs.merges_s)}/s were merged into larger requests "
            "(rrqm/s, wrqm/s)",
            "nomerges=2 shows the device without merging",
        )
    if theirs.ios_s and own_bytes and theirs.bytes_s >= 0.9 * own_bytes:
        return Finding(
            "disagree",
            f"{head} with no fewer bytes: read-ahead, write-back or batches make larger requests "
            f"({units.size(own_bytes / own)} became "
            f"{units.size(theirs.bytes_s / theirs.ios_s)} each)",
            "try direct=1" if evidence.shape.direct is False else "",
        )
    if evidence.shape.direct is False:
        return Finding(
            "disagree",
            f"{head}: the page cache answers the rest, because the I/O is buffered (direct=0)",
            "try direct=1 to measure the disk",
        )
    if evidence.unseen:
        return Finding(
            "disagree",
            f"{head}: no block device counts the rest ({'; '.join(evidence.unseen)})",
        )
    them = "them" if len(evidence.devices) > 1 else "it"
    return Finding(
        "disagree",
        f"{head}: the rest never reached {them} (blocks of a file that were never written are "
        "answered by the file system)",
    )


def _device_does_more(
    evidence: Evidence, theirs: DeviceFigures, head: str, own: float, own_bytes: float
) -> Finding:
    if own_bytes and abs(theirs.bytes_s - own_bytes) <= 0.1 * own_bytes:
        return Finding(
            "disagree",
            f"{head} with the same bytes: requests are split ({units.size(own_bytes / own)} became "
            f"{units.size(theirs.bytes_s / theirs.own_s)} each)",
            "max_sectors_kb is the largest request",
        )
    more = f"{units.number(theirs.own_s - own)} I/Os per second more"
    if evidence.shape.syncs:
        return Finding("disagree", f"{head}: {more}, because the job syncs, which makes the "
                       "file system or the disk write on its own")  # fmt: skip
    return Finding(
        "disagree",
        f"{head}: {more}, by another program or by the file system",
        FIND_PROGRAM_ADVICE,
        "u",
    )


def busy(evidence: Evidence) -> Finding | None:
    """Without a job: I/O of others waits on the device."""
    frames = recent_frames(evidence)
    if not frames or any(frame.fio for frame in frames):
        return None
    return next(filter(None, (_busy(device, frames) for device in evidence.devices)), None)


def _busy(device: BlockDevice, frames: Sequence[Frame]) -> Finding | None:
    seconds = [frame.disks[device.name] for frame in frames if device.name in frame.disks]
    if len(seconds) < ENOUGH_SECONDS or not all(_waits(one) for one in seconds):
        return None
    name, await_ms, each_s = _slower_direction(seconds)
    aqu = fmean(one.aqu_sz or 0.0 for one in seconds)
    util = min(one.util or 0.0 for one in seconds)
    return Finding(
        "busy",
        f"{device.name}: {name}_await {units.latency(await_ms * 1e6)} at aqu-sz {aqu:.0f}, device "
        f"util {util:.0f} %, {units.number(each_s)} {name}/s: I/O that is not the job's keeps its "
        "queue full (another program, or write-back of an earlier one)",
        FIND_PROGRAM_ADVICE,
        "u",
    )


def _waits(one: DiskRates) -> bool:
    slow = max(one.r_await or 0.0, one.w_await or 0.0) >= LONG_MS
    return slow and (one.aqu_sz or 0.0) >= DEEP_QUEUE and (one.util or 0.0) >= BUSY_UTIL


def _slower_direction(seconds: Sequence[DiskRates]) -> tuple[str, float, float]:
    """("r" or "w", its await in ms, its requests per second) of the direction that waits more."""
    found = []
    for name in ("r", "w"):
        counts = [getattr(one, f"{name}_s") or 0.0 for one in seconds]
        waits = [getattr(one, f"{name}_await") or 0.0 for one in seconds]
        total = sum(counts)
        each = sum(c * w for c, w in zip(counts, waits, strict=True)) / total if total else 0.0
        found.append((total * each, name, each, fmean(counts)))
    _, name, each, rate = max(found)
    return name, each, rate
