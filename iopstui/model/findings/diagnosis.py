"""Diagnosis: applies all rules to the evidence and chooses the findings to report.

Each rule is a pure function from ``Evidence`` to a ``Finding`` or ``None``, in ``rules``. It fires
only if all of the last ``ENOUGH_SECONDS`` measured seconds agree, and gives its numbers.
Other causes of the same effect are excluded, or the sentence says "may" and names the test that
decides. Most rules need no job: the kernel's figures are enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from iopstui.model.findings.accounts import others_share
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    Evidence,
    frame_start_s,
    recent_frames,
    recent_job_frames,
)
from iopstui.model.findings.figures import devices_below, mean_waits
from iopstui.model.findings.finding import Finding
from iopstui.model.findings.rules.cgroups import cgroup_limit_reached, dominant_cgroup
from iopstui.model.findings.rules.counts import (
    busy_device,
    count_mismatch,
    io_before_run,
    no_iostats,
)
from iopstui.model.findings.rules.cpus import (
    cpu_steal,
    cpu_throttled,
    cross_node_completions,
    interrupt_moved,
    interrupt_outside,
    interrupts_fill_a_cpu,
    one_cpu_completes,
    remote_numa_node,
)
from iopstui.model.findings.rules.curve import end_of_burst, saturated_queue, throughput_limit
from iopstui.model.findings.rules.drive import (
    drive_throttling,
    drive_wear,
    media_errors,
    volume_limit,
    write_amplification,
)
from iopstui.model.findings.rules.health import (
    degraded_array,
    device_temperature,
    idle_io_uring,
    io_errors,
    logged_errors,
    lost_paths,
    memory_pressure,
    nvme_errors,
    scsi_errors,
    slow_link,
    slow_member,
    slow_sibling,
)
from iopstui.model.findings.rules.job import (
    cpu_bound_jobs,
    cpu_sleeps,
    depth_not_reached,
    misaligned_writes,
    more_jobs_than_cpus,
    scheduler_cost,
    sync_cost,
)
from iopstui.model.findings.rules.layers import (
    first_writes,
    parity_reads,
    slow_direction,
    starved_direction,
    write_back,
)
from iopstui.model.findings.rules.network.nfs import (
    attribute_storm,
    client_queue,
    retransmissions,
    slow_server,
    small_requests,
    unanswered_requests,
)
from iopstui.model.findings.rules.network.smb import reconnects
from iopstui.model.findings.rules.network.smb import slow_server as slow_smb_server
from iopstui.model.findings.rules.network.smb import small_requests as small_smb_requests
from iopstui.model.findings.rules.network.smb import unanswered_requests as unanswered_smb
from iopstui.model.findings.rules.network.tcp import full_connection, full_window, lost_packets
from iopstui.model.findings.rules.queues import tag_shortage, waits_above_device
from iopstui.model.findings.rules.waits import (
    no_completions,
    other_program,
    waits_for_cpu,
    waits_in_layer,
)
from iopstui.model.metrics.waits import Waits

Rule = Callable[[Evidence], "Finding | None"]

RULES: tuple[Rule, ...] = (
    no_completions,
    unanswered_requests,
    unanswered_smb,
    io_errors,
    no_iostats,
    cpu_throttled,
    cpu_steal,
    logged_errors,
    scsi_errors,
    nvme_errors,
    lost_paths,
    degraded_array,
    media_errors,
    drive_wear,
    drive_throttling,
    device_temperature,
    volume_limit,
    slow_member,
    slow_sibling,
    memory_pressure,
    idle_io_uring,
    retransmissions,
    reconnects,
    slow_server,
    slow_smb_server,
    client_queue,
    lost_packets,
    full_window,
    full_connection,
    small_requests,
    small_smb_requests,
    attribute_storm,
    waits_above_device,
    other_program,
    parity_reads,
    first_writes,
    waits_in_layer,
    write_back,
    tag_shortage,
    starved_direction,
    slow_direction,
    depth_not_reached,
    one_cpu_completes,
    interrupts_fill_a_cpu,
    interrupt_outside,
    interrupt_moved,
    remote_numa_node,
    cross_node_completions,
    count_mismatch,
    sync_cost,
    misaligned_writes,
    cpu_bound_jobs,
    scheduler_cost,
    more_jobs_than_cpus,
    waits_for_cpu,
    end_of_burst,
    throughput_limit,
    saturated_queue,
    slow_link,
    write_amplification,
    cpu_sleeps,
    cgroup_limit_reached,
    dominant_cgroup,
    busy_device,
    io_before_run,
)
# a rule, and rules that say more about the same thing; CLAIMED_PARTS below has those that explain
# the same I/Os
_WAIT_RULES = ("above", "tags", "stalled", "layer", "neighbour", "cpu-wait", "more-jobs-than-cpus")
MORE_SPECIFIC_RULES: Mapping[str, tuple[str, ...]] = {
    "saturated": ("cap", *_WAIT_RULES),
    "cap": _WAIT_RULES,
    "disagree": ("neighbour", "parity", "first-write"),
    "background": ("neighbour",),
    "layer": ("stalled",),
    "burst": ("stalled", "neighbour", "above", "cpu-wait", "throttled", "memory"),
    "depth": ("stalled",),
    "hot": ("thermal",),
}


def diagnose(evidence: Evidence) -> list[Finding]:
    """The findings of all rules, the most telling first, each with the seconds it is about."""
    return reported_findings(fired_findings(evidence), evidence)


def fired_findings(evidence: Evidence) -> list[Finding]:
    """Findings of all rules, including those that only add to another finding."""
    return [finding for rule in RULES if (finding := rule(evidence)) is not None]


def reported_findings(findings: Sequence[Finding], evidence: Evidence) -> list[Finding]:
    """The findings of ``fired_findings`` to report, each with the seconds it is about."""
    names = {finding.rule for finding in findings}
    reported = [
        finding
        for finding in findings
        if not names & set(MORE_SPECIFIC_RULES.get(finding.rule, ()))
    ]
    return [
        _with_period(finding, evidence) for finding in without_double_claims(reported, evidence)
    ]


def _with_period(finding: Finding, evidence: Evidence) -> Finding:
    # these frames may not be adjacent; a rule that then uses other seconds sets ``since`` itself
    frames = recent_frames(evidence) or evidence.measured[-ENOUGH_SECONDS:]
    if not frames:
        return finding
    since = frame_start_s(frames[0]) if finding.since is None else finding.since
    until = frames[-1].t if finding.until is None else finding.until
    return replace(finding, since=since, until=until)


# Which part of the I/Os in flight each finding explains. Each part has one finding.


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
"""Where the I/Os are that each rule explains; if several rules claim the same part, the first one
gets it."""
MIN_LEFT_SHARE = 0.15
"""A finding is not reported if less than this share of the I/Os is left for it, because others
claim the rest."""


def claimed_ios(findings: Sequence[Finding], evidence: Evidence) -> dict[str, float]:
    """How many I/Os in flight each finding explains, by rule (only findings that claim any). The
    sum is at most all I/Os in flight; the rest is unexplained."""
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
    """The findings without those whose I/Os other findings explain already. Among findings on where
    I/Os wait, the one that explains most comes first."""
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
    """All I/Os in flight, by the place where they are, without those in an unknown place."""
    upper = sum(ios for name, ios in waits.layers.items() if devices_below(name, evidence))
    return {
        CPU: waits.cpu or 0.0,
        ABOVE: waits.above or 0.0,
        LAYERS: upper,
        DEVICE: sum(waits.layers.values()) - upper,
    }


def _others_queue_share(evidence: Evidence) -> float:
    """The largest share (0..1) of others in a queue where the job's I/Os wait."""
    share = others_share(evidence, recent_job_frames(evidence))
    return 0.0 if share is None else min(1.0, share.queue)
