"""The findings of a session: those that hold, and since when, and those that have ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from iopstui.events import FindingEnded, FindingReported
from iopstui.model.findings.finding import Finding, end_text

NOT_REPEATED = ("moved",)
MAX_KEPT = 60
SHOWN_FOR_S = 40.0
"""A rule that continues to hold is reported every 30 s (session/tick/findings.py)."""


@dataclass(frozen=True, slots=True)
class FindingEntry:
    """The finding of a rule: it holds since ``first``, was last reported at ``t``, in run ``step``.
    ``ceased`` is a text if its cause is gone, else ""."""

    t: float
    first: float
    step: int
    finding: Finding
    ceased: str = ""


class FindingList:
    """Findings in the order of their last report."""

    def __init__(self, entries: Iterable[FindingEntry] = ()) -> None:
        self.entries = list(entries)

    def copy(self) -> FindingList:
        """Copy of the entries kept now."""
        return FindingList(self.entries)

    def add(self, event: FindingReported, step: int) -> None:
        """Add a finding. If its rule fired already in this run, the entry moves up and is not
        listed twice."""
        rule, since = event.finding.rule, event.finding.since
        first = event.t if since is None else since
        for index, entry in enumerate(self.entries):
            # if the same tunable is changed again, that is another finding
            is_same = (entry.step, entry.finding.rule) == (step, rule) and rule not in NOT_REPEATED
            if is_same and not entry.ceased:
                first = entry.first
                del self.entries[index]
                break
        self.entries.append(FindingEntry(event.t, first, step, event.finding))
        del self.entries[:-MAX_KEPT]

    def end(self, event: FindingEnded) -> bool:
        """Mark the newest finding of this rule as ceased, to be shown as such for a while. False if
        there is none."""
        for index in reversed(range(len(self.entries))):
            entry = self.entries[index]
            if entry.finding.rule == event.rule and not entry.ceased:
                ceased = end_text(event.since, event.until, event.why)
                self.entries[index] = replace(entry, t=event.t, ceased=ceased)
                return True
        return False

    def current(self, step: int, t: float, finished: float | None) -> list[FindingEntry]:
        """Findings that hold at ``t`` in run ``step``, or held at its end at ``finished``: the
        newest first, within a second the most informative first; then those that ended recently."""
        entries = [
            entry
            for entry in self.entries
            if entry.step == step and _now_for(entry, t, finished) - entry.t <= SHOWN_FOR_S
        ]
        return sorted(entries, key=lambda entry: (bool(entry.ceased), -entry.t))


def _now_for(entry: FindingEntry, t: float, finished: float | None) -> float:
    """The time to compare with: findings of a run keep the age that they had at its end, later ones
    get older."""
    return t if finished is None or entry.t > finished else min(t, finished)
