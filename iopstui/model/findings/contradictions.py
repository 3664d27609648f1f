"""When later seconds show that a finding was not true: it is withdrawn, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iopstui import format as units
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    Evidence,
    frame_start_s,
    recent_frames,
    recent_job_frames,
)
from iopstui.model.findings.figures import device_figures, fio_iops
from iopstui.model.findings.finding import Finding

# IOPS that are this many times those at the finding contradict it
GAIN_FACTOR = 1.15
# share of the IOPS before a step down that counts as recovered
RECOVERED_SHARE = 0.9
FIRST_FRAMES = 4


def contradiction(finding: Finding, evidence: Evidence) -> str:
    """Evidence in the last seconds against the finding; "" if there is none."""
    check = _CHECKS.get(finding.rule)
    return check(finding, evidence) if check is not None else ""


def _counted_ios_text(finding: Finding, evidence: Evidence) -> str:
    for device in evidence.devices:
        figures = device_figures(recent_frames(evidence)[-1:], [device], 1)
        off = device.queue is not None and device.queue.iostats is False
        if off and figures is not None and figures.ios_s > 0:
            return f"{device.name} does count its I/Os"
    return ""


def _recovery_text(finding: Finding, evidence: Evidence) -> str:
    since_s = finding.since or 0.0
    first = [frame for frame in evidence.measured if frame_start_s(frame) >= since_s][:FIRST_FRAMES]
    now = fio_iops(recent_job_frames(evidence))
    if len(first) < FIRST_FRAMES or now < RECOVERED_SHARE * fio_iops(first):
        return ""
    return f"IOPS are back at {units.number(now)}"


def _rise_text(finding: Finding, evidence: Evidence) -> str:
    if finding.since is None or finding.until is None:
        return ""
    first = [f for f in evidence.measured if finding.since < f.t <= finding.until]
    now = recent_job_frames(evidence)
    if len(first) < ENOUGH_SECONDS or not now or now[0].t <= finding.until:
        return ""
    rose = fio_iops(now) > GAIN_FACTOR * fio_iops(first)
    return f"IOPS rose to {units.number(fio_iops(now))} since" if rose else ""


_CHECKS: Mapping[str, Callable[[Finding, Evidence], str]] = {
    "iostats": _counted_ios_text, "burst": _recovery_text, "cap": _rise_text,
    "saturated": _rise_text,
}  # fmt: skip
