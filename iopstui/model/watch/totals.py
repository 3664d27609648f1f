"""Totals of a watch: each disk's means and highest interval, gaps, findings.

Means are computed from counts and times, not from the frames' own means
(model/metrics/figures.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.model.answer.answer import AnswerTotal
from iopstui.model.cgroups import NO_USE, DiskUse, GroupRates, sum_uses
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import Totals
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.shares import ShareTotal

# as multiples of the interval: a shorter frame can't be the busiest second, a longer one is a gap
SHORT_SHARE, LATE_FACTOR = 0.5, 1.5
MAX_FINDINGS = 200


class DiskTotal(Totals):
    """The totals of a disk over the whole watch; ``seconds`` were measured, ``requests_s`` is the
    total time of all its requests."""

    FIGURES = (DiskRates.r_s, DiskRates.w_s, DiskRates.data_s, DiskRates.r_await,
               DiskRates.w_await, DiskRates.util)  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.seconds = self.requests_s = 0.0

    def add(self, row: DiskRates, is_complete: bool = True) -> None:  # type: ignore[override]
        super().add(row, is_complete=is_complete)
        self.seconds += row.seconds
        self.requests_s += (row.weighted_ms or 0.0) / 1000


@dataclass
class GroupTotal:
    """I/Os and bytes of a cgroup in the whole watch; ``waited_s`` is the time in which one of its
    tasks waited for I/O (``None``: not known)."""

    name: str
    use: DiskUse = NO_USE
    waited_s: float | None = None

    def add(self, group: GroupRates, seconds: float) -> None:
        now = group.total.times(seconds)
        self.use = sum_uses((self.use, now))
        waited = group.pressure.get("io.some")
        if waited is not None:
            self.waited_s = (self.waited_s or 0.0) + waited / 100 * seconds

    def mean(self, seconds: float) -> DiskUse:
        """The means per second of the watch."""
        return self.use.times(1 / seconds) if seconds else NO_USE


@dataclass
class FindingCount:
    """A finding that was reported ``times`` times, with its latest wording, about the seconds
    from ``since`` to ``until``. ``holds``: it is still true."""

    text: str
    since: float
    until: float
    times: int = 1
    held_s: float = 0.0
    ceased: int = 0
    holds: bool = True


class WatchTotals:
    """Totals of a watch, which takes a sample each ``interval_s``; feed every frame and finding.
    ``watched_s`` is the watch's length; ``gap_s`` is the part of it without samples, because a
    sample came too late; ``fired`` counts how often each trigger fired; ``share`` has the
    operations on the watched mounts."""

    def __init__(self, names: Sequence[str], interval_s: float) -> None:
        self.disks = {name: DiskTotal() for name in names}
        self.findings: dict[str, FindingCount] = {}
        self.answers = AnswerTotal()
        self.fired: dict[str, int] = {}
        self.share = ShareTotal()
        self.groups: dict[str, GroupTotal] = {}
        self._grouped_s = 0.0
        self.watched_s = 0.0
        self.gap_s = 0.0
        self._interval_s = interval_s

    def add(self, frame: Frame) -> None:
        elapsed, self.watched_s = max(0.0, frame.t - self.watched_s), max(self.watched_s, frame.t)
        late = elapsed > LATE_FACTOR * self._interval_s
        if late:
            self.gap_s += elapsed - self._interval_s
        is_complete = not late and elapsed >= SHORT_SHARE * self._interval_s
        for name, total in self.disks.items():
            disk = frame.disks.get(name)
            if disk is not None:
                total.add(disk, is_complete)
        self.share.add(frame.share)
        if frame.groups is not None and frame.seconds:
            self._grouped_s += frame.seconds
            for group in frame.groups:
                group_total = self.groups.setdefault(group.path, GroupTotal(group.name.text))
                group_total.add(group, frame.seconds)

    @property
    def busiest_groups(self) -> list[tuple[GroupTotal, DiskUse]]:
        """Each cgroup and its means over the watch, the busiest first."""
        totals = [(group, group.mean(self._grouped_s)) for group in self.groups.values()]
        return sorted(totals, key=lambda pair: (-pair[1].bytes_s, -pair[1].ios_s, pair[0].name))

    def found(self, t: float, finding: Finding) -> None:
        """Record a finding that was reported at second ``t``."""
        since_s = t if finding.since is None else finding.since
        until_s = t if finding.until is None else finding.until
        entry = self.findings.get(finding.rule)
        if entry is not None:
            entry.text, entry.times = finding.text, entry.times + 1
            entry.until, entry.holds = max(entry.until, until_s), True
        elif len(self.findings) < MAX_FINDINGS:
            self.findings[finding.rule] = FindingCount(finding.text, since_s, until_s)

    def note_end(self, rule: str, since: float, until: float) -> None:
        entry = self.findings.get(rule)
        if entry is not None:
            entry.until = max(entry.until, until)
            entry.held_s += until - since
            entry.ceased += 1
            entry.holds = False

    def trigger(self, text: str) -> None:
        """Record that a trigger has fired."""
        self.fired[text] = self.fired.get(text, 0) + 1

    def missing_s(self, name: str) -> float:
        """Seconds of the watch in which this disk was not measured."""
        return max(0.0, self.watched_s - self.disks[name].seconds)
