"""The last minutes, second by second: the contents of the panes, to go back to while frozen.

Nothing is copied: an entry keeps the frame and the few values beside it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from iopstui.events import (
    ExpectationChecked,
    LayoutProgress,
    SteadyState,
    StepFinished,
    StepStarted,
)
from iopstui.model.answer.answer import Answer
from iopstui.model.metrics.frame import Frame
from iopstui.model.samples import DriveReading

if TYPE_CHECKING:
    from iopstui.ui.state.findings import FindingEntry

MAX_SECONDS, MIN_SECONDS = 300, 60
CPU_SECONDS = 10_000
"""A frame has a row for each CPU, so fewer are kept on a large machine."""


@dataclass(frozen=True, slots=True)
class DisplayedRun:
    """The run that the screen shows as the current or the last one."""

    step: StepStarted | None
    finished: StepFinished | None
    fio: Frame | None
    outcomes: tuple[ExpectationChecked, ...]
    steady: SteadyState | None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """State when ``frame`` had arrived."""

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
        """Seconds of the session."""
        return self.frame.t


class SecondHistory:
    """The history of seconds in order of time; the oldest are forgotten first."""

    def __init__(self, entries: Sequence[HistoryEntry] = ()) -> None:
        self._entries = deque(entries)
        # the newest frames that were reduced, so that each is reduced only once
        self._small: dict[int, tuple[Frame, Frame]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[HistoryEntry]:
        return iter(self._entries)

    def copy(self) -> SecondHistory:
        """Copy of the entries kept now."""
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
        """Set the findings of the newest second, which arrive a little after its frame."""
        if self._entries:
            self._entries[-1] = replace(self._entries[-1], findings=tuple(findings))

    def near(self, t: float, step: int) -> HistoryEntry | None:
        """The entry ``step`` positions after (negative: before) the newest one up to ``t``, or the
        last (first) one if there are fewer; ``None`` without entries."""
        if not self._entries:
            return None
        current = max(0, sum(entry.t <= t for entry in self._entries) - 1)
        return self._entries[min(len(self._entries) - 1, max(0, current + step))]

    def at(self, t: float) -> HistoryEntry | None:
        """The entry whose interval contains ``t``: the first not before it, else the last."""
        after = (entry for entry in self._entries if entry.t >= t)
        return next(after, self._entries[-1] if self._entries else None)


def without_histograms(frame: Frame) -> Frame:
    """Return the frame without fio's histograms, which are most of its size: panels show
    percentiles, and the heat map has a history of its own."""
    fio = frame.fio
    if fio is None:
        return frame
    directions = {name: replace(direction, bins={}) for name, direction in fio.directions.items()}
    total = replace(fio.total, bins={})
    return replace(frame, fio=replace(fio, directions=directions, total=total))
