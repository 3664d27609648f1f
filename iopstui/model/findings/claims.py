"""Which part of the I/Os in flight each finding explains. A part is given away once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iopstui.model.findings.accounts import others_share
from iopstui.model.findings.evidence import Evidence, recent_job_frames
from iopstui.model.findings.finding import Finding
from iopstui.model.findings.wait_figures import devices_below, mean_waits
from iopstui.model.metrics.waits import Waits

CPU, ABOVE, LAYERS, DEVICE = "cpu", "above", "layers", "device"
CLAIMED_PARTS: Mapping[str, tuple[str, ...]] = {
    "throttled": (CPU,),
    "more-jobs-than-cpus": (CPU,),
    "cpu-wait": (CPU,),
    "above": (ABOVE, LAYERS),
    "tags": (ABOVE,),
    "write-back": (ABOVE,),
    "parity": (LAYERS,),
    "first-write": (LAYERS,),
    "layer": (LAYERS,),
    "neighbour": (DEVICE,),
    "starved": (DEVICE,),
    "slow-direction": (DEVICE,),
}
"""Where each rule's I/Os wait; of several rules that claim the same part the first has it."""
MIN_LEFT_SHARE = 0.15
"""A finding that could only claim less of the I/Os, because others claim them, is not reported."""


def claimed_ios(findings: Sequence[Finding], evidence: Evidence) -> dict[str, float]:
    """How many I/Os in flight each of these findings explains, by rule, without those that make no
    claim. The sum is at most all I/Os in flight; what is left of them is unknown."""
    waits = mean_waits(recent_job_frames(evidence))
    if waits is None:
        return {}
    left = _parts(waits, evidence)
    rules = {finding.rule for finding in findings}
    claims: dict[str, float] = {}
    for rule in (rule for rule in CLAIMED_PARTS if rule in rules):
        claimed = 0.0
        for part in CLAIMED_PARTS[rule]:
            taken = left[part] * (_others_queue_share(evidence) if rule == "neighbour" else 1.0)
            left[part] -= taken
            claimed += taken
        claims[rule] = claimed
    return claims


def without_double_claims(findings: Sequence[Finding], evidence: Evidence) -> list[Finding]:
    """These findings without those whose I/Os others explain already; of those that explain where
    I/Os wait, the one that explains the most comes first."""
    claims = claimed_ios(findings, evidence)
    least = MIN_LEFT_SHARE * sum(claims.values())
    taken = {part for rule in claims if claims[rule] > least for part in CLAIMED_PARTS[rule]}
    kept = [
        finding
        for finding in findings
        if claims.get(finding.rule, least) >= least or not taken & set(CLAIMED_PARTS[finding.rule])
    ]
    places = [index for index, finding in enumerate(kept) if finding.rule in claims]
    by_claim = sorted((kept[index] for index in places), key=lambda one: -claims[one.rule])
    for index, finding in zip(places, by_claim, strict=True):
        kept[index] = finding
    return kept


def _parts(waits: Waits, evidence: Evidence) -> dict[str, float]:
    """All I/Os in flight whose place is known, by place."""
    upper = sum(ios for name, ios in waits.layers.items() if devices_below(name, evidence))
    return {
        CPU: waits.cpu or 0.0,
        ABOVE: waits.above or 0.0,
        LAYERS: upper,
        DEVICE: sum(waits.layers.values()) - upper,
    }


def _others_queue_share(evidence: Evidence) -> float:
    """The largest part (0..1) that others have of a queue in which the job's I/Os wait."""
    share = others_share(evidence, recent_job_frames(evidence))
    return 0.0 if share is None else min(1.0, share.queue)
