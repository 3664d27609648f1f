"""When a finding ends: its cause is gone once its rule has not fired for a while."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from iopstui import format as units
from iopstui.model.findings.advice import advise
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    Evidence,
    SteadyRun,
    frame_start_s,
    recent_frames,
    recent_job_frames,
)
from iopstui.model.findings.figures import SAME_SHARE, device_figures, fio_iops, is_about_equal
from iopstui.model.findings.finding import Finding

END_AFTER_S = 10.0
"""A finding continues if its rule fires again within this many measured seconds, so that the pauses
of an intermittent load don't end it."""
FIRES_WITHIN_S = 2.0
"""A rule that has not fired for a second counts as still firing."""


@dataclass(frozen=True, slots=True)
class EndedFinding:
    """A finding that has ended, in its last wording, with the first and the last second of the
    session in which its rule fired. ``why`` says how later seconds contradict it, if they do."""

    finding: Finding
    since: float
    until: float
    why: str = ""


@dataclass(slots=True)
class _ActiveFinding:
    finding: Finding
    since: float
    until: float
    newest: Finding
    quiet_s: float = 0.0


class ActiveFindings:
    """Reported findings that still hold, by the names of their rules."""

    def __init__(self) -> None:
        self._active: dict[str, _ActiveFinding] = {}

    def note_reported(self, finding: Finding, t: float) -> None:
        """Note that the finding was reported at second ``t``, for the first time or again."""
        active = self._active.get(finding.rule)
        if active is not None:
            active.finding = finding
            return
        since = t if finding.since is None else finding.since
        self._active[finding.rule] = _ActiveFinding(finding, since, max(since, t), finding)

    def note_fired(self, finding: Finding) -> None:
        """Note that the finding's rule fires on newer seconds, whether or not it is reported
        again."""
        if finding.rule in self._active:
            self._active[finding.rule].newest = finding

    def feed(self, t: float, seconds: float, firing: Collection[str]) -> Iterator[EndedFinding]:
        """Yield each finding that has ended by ``t``, once. These rules fire on the ``seconds``
        measured since the last call; seconds without a measurement don't count."""
        for rule, active in list(self._active.items()):
            if rule in firing:
                active.until, active.quiet_s = max(active.until, t), 0.0
                continue
            active.quiet_s += seconds
            if active.quiet_s >= END_AFTER_S:
                del self._active[rule]
                yield EndedFinding(active.finding, active.since, active.until)

    @property
    def findings(self) -> list[Finding]:
        return [active.finding for active in self._active.values()]

    @property
    def firing(self) -> list[Finding]:
        """Findings whose rules fire now, with the newest figures. (Other findings still hold,
        because their rules may fire again.)"""
        return [one.newest for one in self._active.values() if one.quiet_s < FIRES_WITHIN_S]

    def withdraw(self, rule: str, why: str) -> EndedFinding:
        """End a finding that was not true, for the reason ``why``."""
        active = self._active.pop(rule)
        return EndedFinding(active.finding, active.since, active.until, why)

    def forget(self) -> None:
        """Forget all findings: a run begins or ends, so later seconds cannot end them."""
        self._active.clear()


# Evidence in later seconds that a finding was not true; it is then withdrawn.


# later IOPS that are this many times those at the finding contradict it
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


# The answer of a run that was made to decide a finding. There is one such run, so it decides only
# clear cases.


CLEAR_GAIN = 0.2

Verdict = Callable[[SteadyRun, SteadyRun], str]


def answer_question(question: Finding, earlier: SteadyRun, now: SteadyRun) -> Finding:
    """Return the finding "answer". ``earlier`` is the run that raised the question, ``now`` the run
    with the question's ``options``."""
    verdict = _VERDICTS.get(question.rule, _iops_change_text)
    return Finding(
        "answer",
        f"{question.rule}, tested with {question.options}: IOPS {units.number(earlier.iops)} → "
        f"{units.number(now.iops)}, {units.size(earlier.bytes_s)}/s → {units.size(now.bytes_s)}/s, "
        f"latency {units.latency(earlier.lat_ns)} → {units.latency(now.lat_ns)}: "
        f"{verdict(earlier, now)}",
        advise("repeat"),
        "c",
    )


def _limit_kind_text(earlier: SteadyRun, now: SteadyRun) -> str:
    if is_about_equal(earlier.iops, now.iops):
        return "the limit is in IOPS"
    if is_about_equal(earlier.bytes_s, now.bytes_s):
        return "the limit is in bandwidth"
    return "neither stayed the same, so no fixed limit is shown"


def _block_cost_text(earlier: SteadyRun, now: SteadyRun) -> str:
    if now.lat_ns <= earlier.lat_ns * (1 - CLEAR_GAIN):
        return "yes, whole blocks are clearly faster"
    return "no, whole blocks are not clearly faster here"


def _iops_change_text(earlier: SteadyRun, now: SteadyRun) -> str:
    noise = 2 * max(earlier.spread or 0.0, now.spread or 0.0, SAME_SHARE / 2)
    change = now.iops / earlier.iops - 1 if earlier.iops else 0.0
    if abs(change) <= noise:
        return "no difference larger than the variation from second to second"
    return f"{'more' if change > 0 else 'fewer'} IOPS by {100 * abs(change):.0f} %"


_VERDICTS: dict[str, Verdict] = {"cap": _limit_kind_text, "misaligned": _block_cost_text}
