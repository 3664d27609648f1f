"""When what was found is over: a cause has ceased once its rule has not fired for a while."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from iopstui.model.findings.finding import Finding

END_AFTER_S = 10.0
"""A rule that fires again within so many measured seconds goes on: of a load that comes and goes by
the second each pause would else be an end."""
FIRES_WITHIN_S = 2.0
"""A rule that has not fired for a second still does."""


@dataclass(frozen=True, slots=True)
class EndedFinding:
    """A finding that holds no more, as it was said last, and the seconds of the session from its
    first to the last in which its rule fired. ``why``: later seconds contradict it, in words."""

    finding: Finding
    since: float
    until: float
    why: str = ""


@dataclass(slots=True)
class _ActiveFinding:
    finding: Finding
    since: float
    until: float
    quiet_s: float = 0.0


class ActiveFindings:
    """Reported findings that still hold. Rules are known by their names."""

    def __init__(self) -> None:
        self._active: dict[str, _ActiveFinding] = {}

    def note_reported(self, finding: Finding, t: float) -> None:
        """Note that it was reported at second ``t``, for the first time or again."""
        active = self._active.get(finding.rule)
        if active is not None:
            active.finding = finding
            return
        since = t if finding.since is None else finding.since
        self._active[finding.rule] = _ActiveFinding(finding, since, max(since, t))

    def feed(self, t: float, seconds: float, firing: Collection[str]) -> Iterator[EndedFinding]:
        """``seconds`` were measured up to ``t``, and these rules fire on them: what is over now,
        once. Seconds in which nothing was measured say nothing, and don't count."""
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
        """Findings that hold now."""
        return [active.finding for active in self._active.values()]

    @property
    def firing(self) -> list[Finding]:
        """Findings of rules that fire now: others hold only because they may fire again."""
        return [one.finding for one in self._active.values() if one.quiet_s < FIRES_WITHIN_S]

    def withdraw(self, rule: str, why: str) -> EndedFinding:
        """A finding that holds was not true, as ``why`` says."""
        active = self._active.pop(rule)
        return EndedFinding(active.finding, active.since, active.until, why)

    def forget(self) -> None:
        """Other seconds follow (a run begins, or is over): what held before has no end in them."""
        self._active.clear()
