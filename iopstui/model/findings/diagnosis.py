"""Diagnosis: applies all rules to the evidence and chooses the findings to report. Each rule is a
pure function from ``Evidence`` to a ``Finding`` or ``None``, in a module of ``rules``. A
rule fires only on what all of the last ``ENOUGH`` measured seconds show, and says the numbers it
fired on. What could have the same effect is excluded, or the sentence says "may" and names the test
that decides it. Most need no job: the kernel's figures are enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from iopstui.model.findings.evidence import Evidence, frame_start_s, recent_frames
from iopstui.model.findings.finding import Finding
from iopstui.model.findings.rules.cgroups import limit_reached, most_of_the_io
from iopstui.model.findings.rules.counts import background, busy, disagreement, no_iostats
from iopstui.model.findings.rules.cpus import (
    completions_cross,
    cpu_throttled,
    interrupt_moved,
    interrupt_outside,
    interrupts_fill_a_cpu,
    one_cpu_completes,
    other_node,
    steal,
)
from iopstui.model.findings.rules.curve import burst, cap, saturated
from iopstui.model.findings.rules.drive import (
    media_errors,
    throttling,
    worn,
    write_amplification,
)
from iopstui.model.findings.rules.health import (
    array,
    hot,
    io_errors,
    lost_paths,
    memory_pressure,
    scsi_errors,
    slow_link,
)
from iopstui.model.findings.rules.job import (
    below_physical_block,
    cpu_sleeps,
    depth_not_reached,
    job_saturated,
    more_jobs_than_cpus,
    scheduler_cost,
    sync_cost,
)
from iopstui.model.findings.rules.layers import first_writes, parity, starved, write_back
from iopstui.model.findings.rules.network.nfs import (
    attribute_storm,
    client_queue,
    retransmissions,
    slow_server,
    small_requests,
    unanswered,
)
from iopstui.model.findings.rules.network.smb import reconnects
from iopstui.model.findings.rules.network.smb import slow_server as slow_smb_server
from iopstui.model.findings.rules.network.smb import small_requests as small_smb_requests
from iopstui.model.findings.rules.network.smb import unanswered as unanswered_smb
from iopstui.model.findings.rules.network.tcp import full_connection, full_window, lost_packets
from iopstui.model.findings.rules.queues import above, tags
from iopstui.model.findings.rules.waits import held_by_layer, neighbour, stalled, waits_for_cpu

Rule = Callable[[Evidence], "Finding | None"]

RULES: tuple[Rule, ...] = (
    stalled,
    unanswered,
    unanswered_smb,
    io_errors,
    no_iostats,
    cpu_throttled,
    steal,
    scsi_errors,
    lost_paths,
    array,
    media_errors,
    worn,
    throttling,
    hot,
    memory_pressure,
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
    above,
    neighbour,
    parity,
    first_writes,
    held_by_layer,
    write_back,
    tags,
    starved,
    depth_not_reached,
    one_cpu_completes,
    interrupts_fill_a_cpu,
    interrupt_outside,
    interrupt_moved,
    other_node,
    completions_cross,
    disagreement,
    sync_cost,
    below_physical_block,
    job_saturated,
    scheduler_cost,
    more_jobs_than_cpus,
    waits_for_cpu,
    burst,
    cap,
    saturated,
    slow_link,
    write_amplification,
    cpu_sleeps,
    limit_reached,
    most_of_the_io,
    busy,
    background,
)
# a rule, and those that say more of the same
_WAIT_RULES = ("above", "tags", "stalled", "layer", "neighbour", "cpu-wait", "more-jobs-than-cpus")
SAID_BY: Mapping[str, tuple[str, ...]] = {
    "saturated": ("cap", *_WAIT_RULES),
    "cap": _WAIT_RULES,
    "disagree": ("neighbour", "parity", "first-write"),
    "layer": ("parity", "first-write", "above", "stalled"),
    "cpu-wait": ("throttled", "more-jobs-than-cpus"),
    "burst": ("stalled", "neighbour", "above", "cpu-wait", "throttled", "memory"),
    "depth": ("stalled",),
    "hot": ("thermal",),
}


def diagnose(evidence: Evidence) -> list[Finding]:
    """The findings of all rules, the most telling first, with the seconds they are about."""
    return reported_findings(fired_findings(evidence), evidence)


def fired_findings(evidence: Evidence) -> list[Finding]:
    """Findings of all rules, with those that only add to another one."""
    return [finding for rule in RULES if (finding := rule(evidence)) is not None]


def reported_findings(findings: Sequence[Finding], evidence: Evidence) -> list[Finding]:
    """The findings of ``fired_findings`` to report, with the seconds they are about."""
    names = {finding.rule for finding in findings}
    reported = [finding for finding in findings if not names & set(SAID_BY.get(finding.rule, ()))]
    return [_with_seconds(finding, evidence) for finding in reported]


def _with_seconds(finding: Finding, evidence: Evidence) -> Finding:
    frames = recent_frames(evidence)
    if not frames:
        return finding
    since = frame_start_s(frames[0]) if finding.since is None else finding.since
    until = frames[-1].t if finding.until is None else finding.until
    return replace(finding, since=since, until=until)
