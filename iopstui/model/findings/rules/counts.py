"""Rules on counters: whether the kernel counts at all, and why fio and the device differ."""

from __future__ import annotations

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.accounts import (
    FLUSHES,
    LETTERS,
    READS,
    WRITES,
    device_accounts,
    device_flows,
    kinds_text,
    mean_flows,
    shared_device,
)
from iopstui.model.findings.advice import NO_ADVICE, Advice, advise
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    LONG_ENOUGH,
    Evidence,
    device_state,
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
from iopstui.model.fio.jobfile import PASSTHROUGH
from iopstui.model.metrics.frame import APART, SUBMITTED
from iopstui.model.rates import fmean
from iopstui.model.samples import READ, WRITE
from iopstui.model.sizes import size_text

# await, depth and use of the disk from which on another program's queue counts
LONG_AWAIT_MS = 5.0
DEEP_QUEUE = 4.0
BUSY_UTIL = 90.0
# fio and the kernel must disagree for this many seconds
SECONDS_APART = 4

# engines that do no I/O
NO_IO_ENGINES = ("null", "cpuio")

FIND_PROGRAM = advise("program")


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
        f"{device_names_text(silent)} {has} iostats=0: the kernel does not count {its} I/Os, "
        f"so {its} figures mean nothing",
        advise("iostats", silent[0].disk or silent[0].name),
        disk=silent[0].name if len(silent) == 1 else "",
    )


def _counts_nothing(device: BlockDevice, evidence: Evidence) -> bool:
    """Whether no I/O of the device is counted. Drivers without hardware queues (zram, dm, md) count
    by themselves, whatever iostats says: for them only fio's direct I/O can prove it."""
    window = recent_frames(evidence)
    figures = device_figures(window, [device], 1)
    if figures is None or figures.ios_s > 0:
        return False
    if any(frame.fio is not None for frame in window):
        return evidence.shape.direct is True and fio_iops(window) > 0
    return bool(device.hctxs)


def io_before_run(evidence: Evidence) -> Finding | None:
    """The disk was in use right before the run began. I/O that had ended by then does not count."""
    devices = evidence.devices
    idle = evidence.idle_frames[-ENOUGH_SECONDS:]
    before = device_figures(idle, devices)
    last = device_figures(idle[-1:], devices, 1)
    frames = recent_job_frames(evidence, 1)
    if before is None or last is None or not frames:
        return None
    others = min(one.r_s + one.w_s for one in (before, last))
    # a second in which the job hardly ran says nothing about its rate
    if any(others < max(20.0, 0.02 * fio_iops(run)) for run in (frames, evidence.measured)):
        return None
    return Finding(
        "background",
        f"{device_names_text(devices)} did {units.number(before.r_s)} r/s and "
        f"{units.number(before.w_s)} w/s right before this run, none of them this job's",
        FIND_PROGRAM,
        "u",
        since=frame_start_s(idle[0]),
        until=idle[-1].t,
    )


def count_mismatch(evidence: Evidence) -> Finding | None:
    """fio and the device count differently; diskstats shows why."""
    devices, frames = evidence.devices, recent_job_frames(evidence, SECONDS_APART)
    device_io = device_figures(frames, devices)
    if evidence.shape.engine in NO_IO_ENGINES:
        return None
    if device_io is None or any(
        {SUBMITTED, APART} & f.flags or (f.throttled or 0) >= 1 for f in frames
    ):
        return None
    if any(device.queue and device.queue.iostats is False for device in devices):
        return None
    fio_s = fio_iops(frames)
    seconds = iops_by_second(frames, devices)
    # fio and the kernel are read at slightly different moments: one second proves nothing
    if fio_s < 100 or len(seconds) < SECONDS_APART:
        return None
    less = all(most < 0.9 * ios for ios, _, most in seconds)
    more = all(least > 1.1 * ios for ios, least, _ in seconds)
    # the slowest check comes last: nearly always the counts agree in each second
    if not (less or more) or _counts_agree(evidence):
        return None
    counted = device_io.ios_s if less else device_io.data_ios_s
    why = (_why_less if less else _why_more)(evidence, device_io, fio_s, fio_bytes_s(frames))
    if why[1] == FIND_PROGRAM and shared_device(evidence) is not None:
        return None  # the finding "neighbour" names the other program once it is known
    return Finding(
        "disagree",
        f"fio does {units.number(fio_s)} IOPS, {device_names_text(devices)}"
        f"{' together' if len(devices) > 1 else ''} {units.number(counted)}{why[0]}",
        why[1],
        "u" if why[1] == FIND_PROGRAM else "",
        since=frame_start_s(frames[0]),
    )


def _counts_agree(evidence: Evidence) -> bool:
    """Whether the counts agree over more seconds: on a busy machine fio reports late, so one second
    has the I/Os that another lacks."""
    seconds = iops_by_second(evidence.measured[-LONG_ENOUGH:], evidence.devices)
    fio_s = sum(ios for ios, _, _ in seconds)
    least, most = (sum(second[side] for second in seconds) for side in (1, 2))
    return least <= 1.1 * fio_s and most >= 0.9 * fio_s


Cause = tuple[str, Advice]
"""The end of the sentence, and the advice."""


def _why_less(
    evidence: Evidence, device_io: DeviceFigures, fio_s: float, fio_bytes: float
) -> Cause:
    shape = evidence.shape
    if shape.engine == PASSTHROUGH:
        return (
            ": NVMe commands pass by the block layer, and the kernel does not count them; fio's "
            "figures are right",
            advise("passthrough", evidence.devices[0].name),
        )
    if device_io.merges_s >= 0.5 * (fio_s - device_io.ios_s):
        merges = units.number(device_io.merges_s)
        return (
            f": {merges}/s were merged into larger requests (rrqm/s, wrqm/s)",
            advise("nomerges"),
        )
    if device_io.ios_s and fio_bytes and device_io.bytes_s >= 0.9 * fio_bytes:
        return (
            " with no fewer bytes: read-ahead, write-back or batches make larger requests "
            f"({units.size(fio_bytes / fio_s)} became "
            f"{units.size(device_io.bytes_s / device_io.ios_s)} each)",
            advise("direct") if shape.direct is False else NO_ADVICE,
        )
    if shape.direct is False:
        return (
            ": the page cache answers the rest, because the I/O is buffered (direct=0)",
            advise("direct"),
        )
    if evidence.uncounted_targets:
        return (
            f": no block device counts the rest ({'; '.join(evidence.uncounted_targets)})",
            NO_ADVICE,
        )
    pronoun = "them" if len(evidence.devices) > 1 else "it"
    if not _writes_are_missing(evidence):
        unwritten = "blocks of a file that were never written are answered by the file system"
        return f": the rest never reached {pronoun} ({unwritten})", NO_ADVICE
    why = (
        "data=journal keeps direct writes in the page cache, and writes them later"
        if _journals_data(evidence)
        else "it may be in the page cache, in spite of direct=1"
    )
    return f": the rest has not reached {pronoun} yet: {why}", NO_ADVICE


def _journals_data(evidence: Evidence) -> bool:
    return any(mount.journals_data for device in evidence.devices for mount in device.mounts)


def _writes_are_missing(evidence: Evidence) -> bool:
    """Whether more of the job's writes than of its reads are missing at the device."""
    frames = recent_job_frames(evidence)
    account = next(device_accounts(evidence, frames), None)
    if account is None:
        return False
    written, read = (
        sum(frame.fio.directions[name].iops or 0.0 for frame in frames
            if frame.fio is not None and name in frame.fio.directions) / len(frames)
        for name in (WRITE, READ)
    )  # fmt: skip
    total = account.mean.total
    return written - total[WRITES].ios_s > max(0.0, read - total[READS].ios_s)


def _why_more(
    evidence: Evidence, device_io: DeviceFigures, fio_s: float, fio_bytes: float
) -> Cause:
    if fio_bytes and abs(device_io.bytes_s - fio_bytes) <= 0.1 * fio_bytes:
        size, request = fio_bytes / fio_s, device_io.bytes_s / device_io.data_ios_s
        cause, advice = _split_cause(evidence, size, request)
        sizes = f"{units.size(size)} became {units.size(request)} each"
        return f" with the same bytes: requests are split ({sizes}){cause}", advice
    surplus = device_io.data_ios_s - fio_s
    more = f": {units.number(surplus)} I/Os per second more"
    accounts = next(device_accounts(evidence, recent_job_frames(evidence)), None)
    others = accounts.mean.others if accounts is not None else {}
    if sum(flow.ios_s for kind, flow in others.items() if kind != FLUSHES) >= surplus / 2:
        return f"{more}, by another program ({kinds_text(others)})", FIND_PROGRAM
    if evidence.shape.writes and _journals_data(evidence):
        return f"{more}, because data=journal writes all data to the journal first", NO_ADVICE
    if evidence.shape.syncs:
        why = "because the job syncs, which makes the file system or the disk write on its own"
        return f"{more}, {why}", NO_ADVICE
    return f"{more}, by another program or by the file system", FIND_PROGRAM


def _split_cause(evidence: Evidence, size: float, request: float) -> Cause:
    """What may have split I/Os of ``size`` into such requests. An array's own max_sectors_kb may be
    its chunk."""
    for device in evidence.devices:
        array = device_state(device, evidence).array
        if array is not None and array.chunk and request <= 1.1 * array.chunk < size:
            chunk = size_text(array.chunk)
            return f", at the chunks of {device.name} ({chunk})", advise("chunks", chunk)
    for device in evidence.devices:
        most = device.queue.max_sectors_kb if device.queue is not None else None
        # a reading may have counted a request's bytes, and not yet the request
        if most is not None and request <= 1025 * most < size and device.kind != "md":
            return (
                f"; max_sectors_kb of {device.name} allows {most} KiB",
                advise("max-sectors", device.disk or device.name),
            )
    if any(device.mounts for device in evidence.devices):
        return (
            "; the file may be fragmented: no I/O crosses the end of an extent",
            advise("extents"),
        )
    return ", maybe at the boundaries of a layer or by its driver", NO_ADVICE


def busy_device(evidence: Evidence) -> Finding | None:
    """Without a job: I/O of others waits in the device."""
    frames = recent_frames(evidence)
    for device in evidence.devices if not any(frame.fio for frame in frames) else ():
        seconds = [frame.disks[device.name] for frame in frames if device.name in frame.disks]
        if len(seconds) < ENOUGH_SECONDS or not all(map(_is_overloaded, seconds)):
            continue
        flows = mean_flows([device_flows(rates) for rates in seconds])
        kind, flow = max(flows.items(), key=lambda pair: pair[1].queue)
        letter = LETTERS[kind]
        return Finding(
            "busy",
            f"{device.name}: {letter}_await {units.latency(flow.queue / flow.ios_s * 1e9)} at "
            f"aqu-sz {fmean(rates.aqu_sz or 0.0 for rates in seconds):.0f}, device util "
            f"{min(rates.util or 0.0 for rates in seconds):.0f} %, {units.number(flow.ios_s)} "
            f"{letter}/s ({kind}): {_who_fills(kind, device, evidence)}",
            FIND_PROGRAM,
            "u",
        )
    return None


def _who_fills(kind: str, device: BlockDevice, evidence: Evidence) -> str:
    for name, state in evidence.conditions.devices.items():
        concerned = name in (device.name, *device.holders)
        if state.array is not None and state.array.is_syncing and concerned:
            return f"{state.array.action} of {name} (md) and programs keep its queue full"
    write_back = "programs, or write-back of what they wrote before, keep"
    return f"{write_back if kind == 'writes' else 'programs keep'} its queue full"


def _is_overloaded(rates: DiskRates) -> bool:
    if (rates.aqu_sz or 0.0) < DEEP_QUEUE or (rates.util or 0.0) < BUSY_UTIL:
        return False
    slow = max(getattr(rates, f"{letter}_await") or 0.0 for letter in LETTERS.values())
    return slow >= LONG_AWAIT_MS
