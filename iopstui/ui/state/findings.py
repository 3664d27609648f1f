"""The findings and the log of a session, and its last minutes, second by second.

Nothing is copied: an entry refers to the frame and the few values beside it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from iopstui.events import (
    ExpectationChecked,
    FindingEnded,
    FindingReported,
    LayoutProgress,
    SteadyState,
    StepFinished,
    StepStarted,
)
from iopstui.model.answer.answer import Answer
from iopstui.model.findings.finding import Finding, end_text
from iopstui.model.metrics.frame import Frame
from iopstui.model.samples import DriveReading
from iopstui.session.tick.outcomes import PASS
from iopstui.text import printable

NOT_REPEATED = ("moved",)
MAX_KEPT = 60
SHOWN_FOR_S = 40.0
"""How long a finding is shown without a new report. While it holds, it is reported every 30 s
(session/tick/findings.py)."""


@dataclass(frozen=True, slots=True)
class FindingEntry:
    """A finding: it holds since ``first``, and was last reported at ``t``, in run ``step``. If its
    cause is gone, ``ceased`` says so, else it is ""."""

    t: float
    first: float
    step: int
    finding: Finding
    ceased: str = ""


class FindingList:
    """Findings, sorted by the time of their last report."""

    def __init__(self, entries: Iterable[FindingEntry] = ()) -> None:
        self.entries = list(entries)

    def copy(self) -> FindingList:
        """A copy with the present entries."""
        return FindingList(self.entries)

    def add(self, event: FindingReported, step: int) -> None:
        """Add a finding. If its rule has an entry in this run, that entry is replaced."""
        rule, since = event.finding.rule, event.finding.since
        first = event.t if since is None else since
        for index, entry in enumerate(self.entries):
            # of a rule in NOT_REPEATED, each report is a new finding: a tunable was changed again
            is_same = (entry.step, entry.finding.rule) == (step, rule) and rule not in NOT_REPEATED
            if is_same and not entry.ceased:
                first = entry.first
                del self.entries[index]
                break
        self.entries.append(FindingEntry(event.t, first, step, event.finding))
        del self.entries[:-MAX_KEPT]

    def end(self, event: FindingEnded) -> bool:
        """Mark the newest finding of this rule as ceased; it is then shown so for a while. Returns
        False if there is none."""
        for index in reversed(range(len(self.entries))):
            entry = self.entries[index]
            if entry.finding.rule == event.rule and not entry.ceased:
                ceased = end_text(event.since, event.until, event.why)
                self.entries[index] = replace(entry, t=event.t, ceased=ceased)
                return True
        return False

    def current(self, step: int, t: float, finished: float | None) -> list[FindingEntry]:
        """Findings that hold at ``t`` in run ``step``, or held when it ended at ``finished``: the
        newest first, and within a second the most informative first. Findings that ended recently
        come last."""
        entries = [
            entry
            for entry in self.entries
            if entry.step == step and _now_for(entry, t, finished) - entry.t <= SHOWN_FOR_S
        ]
        return sorted(entries, key=lambda entry: (bool(entry.ceased), -entry.t))


def _now_for(entry: FindingEntry, t: float, finished: float | None) -> float:
    """The time to which an entry's age refers: findings of a finished run do not get older, later
    ones do."""
    return t if finished is None or entry.t > finished else min(t, finished)


MAX_ENTRIES = 200
ERROR_STAYS_S = 60.0
INFO_STAYS_S = 20.0


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the session's log. ``level`` is "info", "warning", "error", "mark", "PASS" or
    "FAIL". ``ending``: the line is the result of a run."""

    t: float
    level: str
    text: str
    ending: bool = False


class Log:
    """The newest ``MAX_ENTRIES`` lines. ``notice`` is the one that the screen shows, or
    ``None``."""

    def __init__(self) -> None:
        self.entries: deque[LogEntry] = deque(maxlen=MAX_ENTRIES)
        self.notice: LogEntry | None = None

    def copy(self) -> Log:
        """A copy with the same lines, which may get another notice."""
        return copy(self)

    def add(self, t: float, level: str, text: str) -> None:
        """Add a line that is shown only in the log."""
        self.entries.append(LogEntry(t, level, printable(text)))

    def add_line(self, t: float, level: str, text: str, ending: bool = False) -> None:
        """Add a line, and show it unless an error must stay."""
        entry = LogEntry(t, level, printable(text), ending)
        self.entries.append(entry)
        self.show(entry)

    def add_over_error(self, t: float, level: str, text: str) -> None:
        """Add a line and show it even in place of an error, which stays in the log."""
        self.add(t, level, text)
        self.notice = self.entries[-1]

    def show(self, entry: LogEntry) -> None:
        """Show a line, except soon after an error: fio explains an error in several lines, and the
        error itself must stay visible."""
        current = self.notice
        if (
            current is not None
            and current.level == "error"
            and entry.level in ("info", PASS)
            and entry.t - current.t < ERROR_STAYS_S / 4
        ):
            return
        self.notice = entry

    def forget_notice(self) -> None:
        """Stop showing the notice, because it no longer applies."""
        self.notice = None

    def visible(self, t: float) -> LogEntry | None:
        """The message to show at ``t``: the newest one, unless it is too old."""
        notice = self.notice
        if notice is None:
            return None
        stays = INFO_STAYS_S if notice.level in ("info", "mark") else ERROR_STAYS_S
        return notice if t - notice.t <= stays else None


MAX_SECONDS, MIN_SECONDS = 300, 60
CPU_SECONDS = 10_000
"""Limit for the rows of CPUs in all kept frames together, so that fewer seconds are kept on a
machine with many CPUs."""


@dataclass(frozen=True, slots=True)
class DisplayedRun:
    """The run that the screen shows as the current or last one."""

    step: StepStarted | None
    finished: StepFinished | None
    fio: Frame | None
    outcomes: tuple[ExpectationChecked, ...]
    steady: SteadyState | None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """The state of the screen when ``frame`` had arrived."""

    frame: Frame
    run: DisplayedRun
    probe_frame: Frame | None
    progress: LayoutProgress | None
    ipi: Mapping[int, float]
    findings: tuple[FindingEntry, ...]
    drives: Mapping[str, tuple[float, DriveReading]]
    answer: Answer | None = None

    @property
    def t(self) -> float:
        """The time of the frame, in seconds of the session."""
        return self.frame.t


class SecondHistory:
    """The last seconds in order of time; the oldest are dropped first."""

    def __init__(self, entries: Sequence[HistoryEntry] = ()) -> None:
        self._entries = deque(entries)
        # the newest frames that were reduced, each by its id, so that each is reduced only once
        self._small: dict[int, tuple[Frame, Frame]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[HistoryEntry]:
        return iter(self._entries)

    def copy(self) -> SecondHistory:
        """A copy with the present entries."""
        return SecondHistory(tuple(self._entries))

    def add(self, moment: HistoryEntry) -> None:
        frames = (moment.frame, moment.run.fio)
        self._small = {
            id(source): self._small_frames(source) for source in frames if source is not None
        }
        frame, fio = (
            self._small[id(source)][1] if source is not None else None for source in frames
        )
        assert frame is not None
        self._entries.append(replace(moment, frame=frame, run=replace(moment.run, fio=fio)))
        most = max(MIN_SECONDS, min(MAX_SECONDS, CPU_SECONDS // max(1, len(moment.frame.cpus))))
        while len(self._entries) > most:
            self._entries.popleft()

    def _small_frames(self, frame: Frame) -> tuple[Frame, Frame]:
        cached = self._small.get(id(frame))
        return (
            cached
            if cached is not None and cached[0] is frame
            else (frame, without_histograms(frame))
        )

    def set_findings(self, findings: Sequence[FindingEntry]) -> None:
        """Set the findings of the newest second, which are reported a little after its frame."""
        if self._entries:
            self._entries[-1] = replace(self._entries[-1], findings=tuple(findings))

    def near(self, t: float, step: int) -> HistoryEntry | None:
        """The entry ``step`` positions after (negative: before) the newest one up to ``t``, or the
        last (first) entry if there are not that many; ``None`` without entries."""
        if not self._entries:
            return None
        current = max(0, sum(entry.t <= t for entry in self._entries) - 1)
        return self._entries[min(len(self._entries) - 1, max(0, current + step))]

    def at(self, t: float) -> HistoryEntry | None:
        """The entry whose interval contains ``t``: the first one that does not end before it, else
        the last."""
        after = (entry for entry in self._entries if entry.t >= t)
        return next(after, self._entries[-1] if self._entries else None)


def without_histograms(frame: Frame) -> Frame:
    """The frame without fio's histograms, which are most of its size. Panels show percentiles, and
    the heat map keeps its own history."""
    fio = frame.fio
    if fio is None:
        return frame
    directions = {name: replace(direction, bins={}) for name, direction in fio.directions.items()}
    total = replace(fio.total, bins={})
    return replace(frame, fio=replace(fio, directions=directions, total=total))
