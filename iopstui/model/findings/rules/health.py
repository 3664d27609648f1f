"""Rules on the device's health: heat, a slow link, errors, missing members and paths."""

from __future__ import annotations

from collections.abc import Mapping

from iopstui import format as units
from iopstui.model.findings.advice import advise
from iopstui.model.findings.conditions import Array, DeviceState, Link
from iopstui.model.findings.cpu_accounts import memory_wait_percent
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    Evidence,
    device_state,
    frame_start_s,
    recent_frames,
)
from iopstui.model.findings.figures import device_figures
from iopstui.model.findings.finding import DEGRADED, Finding
from iopstui.model.findings.siblings import WINDOW_S, OddDisk
from iopstui.model.metrics.nvme import diag_texts
from iopstui.model.rates import fmean

# percent of the time in which some task waits for memory
MEMORY_WAIT_PERCENT = 10.0
IO_WAIT_PERCENT = 20.0
# a link may be the limit once half of its bandwidth is used
LINK_USE_SHARE = 0.5
RECENT_S = 30.0
FIRST_S = 2.0
"""If counting began before this second of the session, the text says "since the start"."""
LOG_WIDTH = 72
RECENT_ERROR_S = 600.0
"""Older errors are ignored: a superblock keeps its errors until it is checked, and they say nothing
about these seconds."""


def device_temperature(evidence: Evidence) -> Finding | None:
    """A disk that is at the temperature at which it slows itself down."""
    for name, state in evidence.conditions.devices.items():
        heat = state.temperature
        if heat is None or heat.limit is None or heat.limit <= 0 or heat.current < heat.limit:
            continue
        return Finding(
            "hot",
            f"{name} is at {heat.current:.0f} °C, its limit is {heat.limit:.0f} °C: it may "
            "throttle itself",
            advise("cool"),
            disk=name,
        )
    return None


def slow_link(evidence: Evidence) -> Finding | None:
    """A PCIe link that is slower than both ends allow, while much of it is used."""
    frames = recent_frames(evidence)
    for device in evidence.devices:
        link = device_state(device, evidence).link
        if link is None or not _is_below_maximum(link):
            continue
        figures = device_figures(frames, [device])
        if figures is None:
            continue
        carries = _link_bytes_s(link)
        if figures.bytes_s >= LINK_USE_SHARE * carries:
            return Finding(
                "link",
                f"{device.name}'s PCIe link runs at x{link.width} {link.speed:g} GT/s of "
                f"x{link.max_width} {link.max_speed:g} GT/s, about {units.size(carries)}/s, and "
                f"{units.size(figures.bytes_s)}/s go through it: the link may be the limit",
                advise("link"),
                disk=device.name,
            )
    return None


def _is_below_maximum(link: Link) -> bool:
    return link.width < link.max_width or link.speed < link.max_speed


def _link_bytes_s(link: Link) -> float:
    """Bytes/s of a link: 8b/10b coding up to 5 GT/s, 128b/130b above; without protocol overhead."""
    coding = 8 / 10 if link.speed <= 5.0 else 128 / 130
    return link.speed * 1e9 / 8 * coding * link.width


def _since_start(evidence: Evidence) -> str:
    """From when on errors are counted, in words: the start of the run; without a run, of the
    session."""
    began_s = evidence.start_conditions.t
    return f"since {units.clock(began_s)}" if began_s >= FIRST_S else "since the start"


def scsi_errors(evidence: Evidence) -> Finding | None:
    """Commands that a SCSI disk answered with an error, or not at all, since the run began."""
    for name, state in evidence.conditions.devices.items():
        before = evidence.start_conditions.devices.get(name, DeviceState())
        errors = _growth(before.errors, state.errors)
        timeouts = _growth(before.timeouts, state.timeouts)
        if errors or timeouts:
            counts = []
            if errors:
                counts.append(f"{units.counted(errors, 'command')} failed (ioerr_cnt)")
            if timeouts:
                what = "" if errors else " command" if timeouts == 1 else " commands"
                counts.append(f"{timeouts}{what} timed out (iotmo_cnt)")
            return Finding(
                "scsi-errors",
                f"{name}: {' and '.join(counts)} {_since_start(evidence)}; retries and error "
                "handling count as latency",
                advise("log"),
                disk=name,
            )
    return None


def logged_errors(evidence: Evidence) -> Finding | None:
    """Recent errors of a disk or of the file system on it: in the kernel's log since the run began,
    or noted by ext4."""
    known = {device.name: device.disk or device.name for device in evidence.tree}
    known |= {part: device.name for device in evidence.tree for part in device.partitions}
    now, before = evidence.conditions.logged or {}, evidence.start_conditions.logged or {}
    for name, errors in now.items():
        count = errors.count - (before[name].count if name in before else 0)
        if count <= 0 or name not in known or evidence.conditions.t - errors.t > RECENT_S:
            continue
        return Finding(
            "kernel-errors",
            f"the kernel logged {units.counted(count, 'error')} of {name} "
            f"{_since_start(evidence)}, the last one: {units.cut(errors.last, LOG_WIDTH)}",
            advise("log"),
            disk=known[name],
        )
    return _file_system_errors(evidence)


def _file_system_errors(evidence: Evidence) -> Finding | None:
    for name, state in evidence.conditions.devices.items():
        noted = state.file_system
        if noted is not None and noted.age_s <= RECENT_ERROR_S:
            return Finding(
                "kernel-errors",
                f"ext4 on {noted.name} noted {units.counted(noted.count, 'error')}, the last one "
                f"{units.duration(noted.age_s)} ago: it may have been read-only since",
                advise("log"),
                disk=name,
            )
    return None


def nvme_errors(evidence: Evidence) -> Finding | None:
    """Resets, retries, failovers and errors of an NVMe disk, its paths and its controllers that the
    kernel has counted since the run began."""
    for name, state in evidence.conditions.devices.items():
        before = evidence.start_conditions.devices.get(name, DeviceState()).nvme
        parts = [
            f"{nvme}: {', '.join(texts)}"
            for nvme, counts in state.nvme.items()
            if (texts := [*diag_texts(nvme, _growths(before.get(nvme, {}), counts))])
        ]
        if parts:
            return Finding(
                "nvme-errors",
                f"{'; '.join(parts)} {_since_start(evidence)} (the kernel's diag counters): "
                "retries and recovery count as latency",
                advise("log"),
                disk=name,
            )
    return None


def slow_member(evidence: Evidence) -> Finding | None:
    """A member of a striped array that takes longer than the others do under such a load."""
    odd = evidence.odd_disk
    if odd is None or not odd.array:
        return None
    return Finding(
        "slow-member",
        f"{odd.disk} is slow for its load: its requests take {_times_as_long(odd)}",
        advise("slow-member", odd.disk),
        disk=odd.disk,
    )


def slow_sibling(evidence: Evidence) -> Finding | None:
    """One of several like disks outside of arrays takes longer than the others at a similar load.
    Its requests may be harder to serve, which the kernel's counters do not show."""
    odd = evidence.odd_disk
    if odd is None or odd.array:
        return None
    return Finding(
        "siblings",
        f"requests of {odd.disk} take {_times_as_long(odd)}: it is slow, or its requests are "
        "harder",
        advise("siblings", odd.disk),
        disk=odd.disk,
    )


def _times_as_long(odd: OddDisk) -> str:
    seen = f"{odd.slow} of {odd.windows} comparable windows of {WINDOW_S:.0f} s"
    return (
        f"{odd.times:.1f} times as long as those of {odd.peers} with a similar queue depth, size "
        f"and mix (in {seen})"
    )


def io_errors(evidence: Evidence) -> Finding | None:
    """I/Os that failed while the job goes on (continue_on_error)."""
    frames = [frame for frame in evidence.frames if frame.fio is not None]
    failed = [frame.fio.failed for frame in frames if frame.fio is not None]
    lately = sum(failed[-ENOUGH_SECONDS:])
    if not lately:
        return None
    completed = sum(
        frame.fio.total.ios for frame in frames[-ENOUGH_SECONDS:] if frame.fio is not None
    )
    return Finding(
        "io-errors",
        f"{lately} I/Os failed in the last {len(failed[-ENOUGH_SECONDS:])} s "
        f"({units.number(completed)} completed), {sum(failed)} since "
        f"{units.clock(frame_start_s(frames[0]))}: the job continues, "
        "and IOPS and latency may count I/Os that moved no data",
        advise("log"),
    )


def memory_pressure(evidence: Evidence) -> Finding | None:
    """Tasks wait for memory of the machine or of their cgroup. PSI counts both, and re-reading of
    pages that were dropped too early (Documentation/accounting/psi.rst)."""
    frames = recent_frames(evidence)
    waited = [memory_wait_percent(frame) for frame in frames]
    if len(waited) < ENOUGH_SECONDS or min(waited) < MEMORY_WAIT_PERCENT:
        return None
    victim = "the job" if frames[0].fio is not None else "other programs"
    return Finding(
        "memory",
        f"tasks waited for memory, the machine's or their cgroup's, {fmean(waited):.0f} % of the "
        "time (PSI): the kernel reclaims pages, swaps, or reads dropped ones again, which takes "
        f"CPU time and disk I/O from {victim}",
        advise("memory"),
    )


def idle_io_uring(evidence: Evidence) -> Finding | None:
    """Programs that sleep in io_uring count as waiting for I/O."""
    frames = recent_frames(evidence)
    waited = [frame.more.get("pressure", {}).get("some") or 0.0 for frame in frames]
    rings = evidence.idle_rings
    if not rings or len(waited) < ENOUGH_SECONDS or min(waited) < IO_WAIT_PERCENT:
        return None
    verb = "sleeps" if len(rings) == 1 else "sleep"
    return Finding(
        "ring",
        f"tasks count as waiting for I/O {fmean(waited):.0f} % of the time (PSI), but the disks "
        f"have hardly any request: {', '.join(rings[:3])} {verb} in io_uring",
        advise("ring"),
    )


def _growth(before: int | None, now: int | None) -> int:
    return 0 if before is None or now is None else max(0, now - before)


def _growths(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    return {counter: _growth(before.get(counter), value) for counter, value in now.items()}


def degraded_array(evidence: Evidence) -> Finding | None:
    """An md array that is being rebuilt or checked, or lacks members."""
    for name, state in evidence.conditions.devices.items():
        md = state.array
        if md is None or not (md.is_syncing or md.degraded):
            continue
        of_members = f" of {md.members}" if md.members else ""
        missing = f"{md.degraded}{of_members} members missing {DEGRADED}" if md.degraded else ""
        doing = f"{md.action} under way" if md.is_syncing else ""
        # an array above the measured devices is named together with its member
        member = next((device.name for device in evidence.tree if name in device.holders), "")
        if member and all(device.name != name for device in evidence.tree):
            name = f"{name}, of which {member} is a member"
        return Finding(
            "array",
            f"{name}: {' and '.join(filter(None, (missing, doing)))}: {_meaning(md)}",
            advise("array"),
        )
    return None


def _meaning(md: Array) -> str:
    work = "its disks also do that work" if md.is_syncing else ""
    lacks = "its figures are those of a degraded array" if md.degraded else ""
    return ", and ".join(filter(None, (lacks, work)))


def lost_paths(evidence: Evidence) -> Finding | None:
    """A multipath device with paths that can't be used."""
    for name, state in evidence.conditions.devices.items():
        if not state.lost_paths:
            continue
        paths = ", ".join(f"{path} ({state})" for path, state in state.lost_paths)
        return Finding(
            "paths",
            f"{name} has lost {len(state.lost_paths)} of its {state.paths} paths: {paths}",
            advise("paths"),
            disk=name,
        )
    return None
