"""Rules on cgroups: a group that does most of a disk's I/O, a group that is slowed down by its
limit."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as units
from iopstui.model.cgroups import ROOT, GroupRates, limits_reached
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.advice import advise
from iopstui.model.findings.evidence import Evidence, recent_frames
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import Frame

MAIN_SHARE = 0.6
"""A group that has this share of a disk's bytes in one direction does most of them."""
USED_UTIL, USED_QUEUE = 50.0, 1.0
"""Percent busy and mean queue length: who uses a disk is reported only if the disk is above one of
these."""
NEAR_LIMIT = 95.0
"""A limit counts as reached from this percentage on: the kernel lets through a little less."""
MAX_READING_AGE_S = 15.0
"""Readings made beside the samples are used for this many seconds."""


def dominant_cgroup(evidence: Evidence) -> Finding | None:
    """Without a job: a unit, container or pod that does most of a busy disk's I/O."""
    frames = recent_frames(evidence)
    if not frames or any(frame.step for frame in frames):
        return None
    for device in evidence.devices:
        name = device.disk or device.name
        seconds = [frame.disks[device.name] for frame in frames if device.name in frame.disks]
        if len(seconds) == len(frames) and all(map(_is_in_use, seconds)):
            readings = _readings(evidence, frames)
            finding = _dominant_owner(readings, name) if readings else None
            if finding is not None:
                return finding
    return None


def needs_cgroup_readings(evidence: Evidence) -> bool:
    """Whether the evidence makes it worth reading which cgroups do I/O."""
    frames = recent_frames(evidence)
    return bool(frames) and any(
        all(name in frame.disks and _is_in_use(frame.disks[name]) for frame in frames)
        for name in (device.name for device in evidence.devices)
    )


def cgroup_limit_reached(evidence: Evidence) -> Finding | None:
    """A group is at its io.max limit, and its tasks wait."""
    frames = recent_frames(evidence)
    readings = _readings(evidence, frames) if frames else None
    if not readings:
        return None
    for group in readings[-1]:
        states = [_cgroup_at(group.path, groups) for groups in readings]
        reached = [limits_reached(state)[:1] for state in states if state is not None]
        if len(reached) < len(readings) or not all(r and r[0][0] >= NEAR_LIMIT for r in reached):
            continue
        _, kind, value = reached[-1][0]
        amount = f"{units.mib(value)} MiB/s" if kind.endswith("bps") else f"{value} I/Os/s"
        waits = group.pressure.get("io.some")
        waited = "" if waits is None else f"; its tasks wait for I/O {waits:.0f} % of the time"
        return Finding(
            "cgroup-limit",
            f"{group.name.text} does all that io.max lets it: {kind}={value} ({amount}){waited}",
            advise("limit", f"io.max {kind}", f"the cgroup {group.path}"),
        )
    return None


def _is_in_use(rates: DiskRates) -> bool:
    return (rates.util or 0.0) >= USED_UTIL or (rates.aqu_sz or 0.0) >= USED_QUEUE


def _readings(evidence: Evidence, frames: Sequence[Frame]) -> list[Sequence[GroupRates]]:
    """The groups of each second, or the latest reading made beside the samples."""
    readings = [frame.groups for frame in frames if frame.groups is not None]
    if len(readings) == len(frames):
        return list(readings)
    now = evidence.conditions
    if now.groups is None or frames[-1].t - now.t > MAX_READING_AGE_S:
        return []
    return [now.groups]


def _dominant_owner(readings: Sequence[Sequence[GroupRates]], disk: str) -> Finding | None:
    for reads in (False, True):
        owners = [_bytes_by_owner(groups, disk, reads) for groups in readings]
        totals = [sum(moved for moved in shares.values()) for shares in owners]
        last = owners[-1]
        top = max(last, key=lambda name: last[name], default="")
        shares = [
            bytes_s.get(top, 0.0) / total if total else 0.0
            for bytes_s, total in zip(owners, totals, strict=True)
        ]
        if not top or min(shares) < MAIN_SHARE or not _is_main_direction(readings[-1], disk, reads):
            continue
        verb = "reads" if reads else "writes"
        share = 100 * sum(shares) / len(shares)
        return Finding(
            "cgroup",
            f"{top} does {share:.0f} % of the {verb} on {disk} "
            f"({units.mib(last[top])} of {units.mib(totals[-1])} MiB/s)",
            advise("cgroups"),
            "u",
        )
    return None


def _bytes_by_owner(groups: Sequence[GroupRates], disk: str, reads: bool) -> dict[str, float]:
    """Bytes per second by unit, container or pod; containers of one pod are added up."""
    bytes_by_owner: dict[str, float] = {}
    for group in groups:
        use, name = group.disks.get(disk), group.name
        if use is None:
            continue
        text = f"pod {name.pod}" if name.pod else name.text
        moved = use.read_bytes_s if reads else use.write_bytes_s
        key = "" if name.kind == ROOT else text
        bytes_by_owner[key] = bytes_by_owner.get(key, 0.0) + moved
    return bytes_by_owner


def _is_main_direction(groups: Sequence[GroupRates], disk: str, reads: bool) -> bool:
    """Whether the disk moves more bytes in this direction than in the other."""
    uses = [group.disks[disk] for group in groups if disk in group.disks]
    read_bytes_s = sum(use.read_bytes_s for use in uses)
    written_bytes_s = sum(use.write_bytes_s for use in uses)
    return read_bytes_s > written_bytes_s if reads else written_bytes_s >= read_bytes_s


def _cgroup_at(path: str, groups: Sequence[GroupRates]) -> GroupRates | None:
    return next((group for group in groups if group.path == path), None)
