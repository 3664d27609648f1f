"""Play a flight recording on the screen: all its files like a single one, from any moment on."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from iopstui import events
from iopstui.errors import IopstuiError
from iopstui.features.flight.directory import (
    JUMP_S,
    StoredFile,
    last_sample_s,
    no_recording,
    stored_files,
    unread_part,
)
from iopstui.features.flight.history import read_history
from iopstui.features.flight.model.times import parse_time
from iopstui.recording.reader import EventRecord, Record, Recording, SampleRecord
from iopstui.recording.replay import CONTEXT, ReplayFold, ReplaySession
from iopstui.recording.writer import shifted

PAUSE_S = 5.0
LOOKBACK_S = 300.0
"""How much the charts show after a jump, in seconds. With 15 minutes, as in other recordings,
reading would take a second of CPU time even for one disk."""


class FlightReplay(ReplaySession):
    """Plays the files. Seconds count from the beginning of the first file. Pauses in the recording
    are skipped. The worst times become marks once they are found. ``at_s`` is where to begin (since
    the epoch; ``None``: at the newest file)."""

    longest_pause_s = PAUSE_S
    records_users = True

    def __init__(self, place: Path, at_s: float | None = None, speed: float = 1.0) -> None:
        self._place = place
        self._files = stored_files(place)
        if not self._files:
            raise no_recording(place)
        self._began = [float(file.name.began_s) for file in self._files]
        self._ended_s = last_sample_s(self._files)
        self._flight_marks: Sequence[tuple[float, str]] = ()
        self._reached = 0.0
        """The last second that was shown."""
        start_s = self._began[-1] if at_s is None else at_s
        super().__init__(self._files[self._last_before(start_s)].path, speed)
        self.path, self.lookback_s = place, LOOKBACK_S
        self._goal = min(max(0.0, start_s - self._began[0]), self.end)
        threading.Thread(target=self._find_marks, name="worst times", daemon=True).start()

    @property
    def end(self) -> float:
        """The time that all files cover, including the pauses between them."""
        return self._ended_s - self._began[0]

    @property
    def marks(self) -> Sequence[tuple[float, str]]:
        """The marks, which are the worst times."""
        return self._flight_marks

    def time_text(self, t: float) -> str:
        """The day and the local time, such as "27 Sep 02:14:05"."""
        return datetime.fromtimestamp(self._began[0] + t).strftime("%d %b %H:%M:%S")

    time_example = "02:14, 2026-11-27 02:14"

    def _second_of(self, text: str) -> float:
        """The second that a text means. Without a day, it is the last such time in the
        recording."""
        return parse_time(text, self._ended_s, "go to") - self._began[0]

    def _last_before(self, moment_s: float) -> int:
        """The index of the last file that began by then."""
        return max(0, bisect_right(self._began, moment_s) - 1)

    def _first_of(self, moment_s: float) -> int:
        """The index of the first file that may contain this moment. If the clock was set back,
        several files do."""
        last = self._last_before(moment_s)
        may_be = (n for n, file in enumerate(self._files[:last]) if file.latest_s >= moment_s)
        return next(may_be, last)

    def _find_marks(self) -> None:
        first_s = self._began[0]
        worst = sorted(read_history(self._place).worst(), key=lambda one: one.began_s)
        self._flight_marks = [(max(0.0, one.began_s - first_s), one.text) for one in worst]

    def _end_text(self) -> str:
        return "end of the flight recording; space: play again"

    def _items(self, goal: float | None) -> Iterator[Record | None]:
        if goal is not None:
            self.on_jump()
        self._reached, first_s = 0.0, goal or 0.0
        start_s = self._began[0] + first_s - self.lookback_s
        for number in range(self._first_of(start_s), len(self._files)):
            file = self._files[number]
            try:
                yield from self._of_file(file, start_s - file.name.began_s, first_s)
            except (FileNotFoundError, IopstuiError) as error:
                # the recorder has meanwhile removed or thinned the file
                self._sink(events.Notice(self.at, "info", f"{file.path.name}: {error}"))
        self._sink(events.Notice(self.end, "info", self._end_text()))

    def _follow_set_clock(self, t: float, goal: float) -> None:
        """Continue at ``t``, where the next file begins. If the clock was set back, ``t`` is
        earlier than the last shown second: charts then start empty, and the position goes back,
        too, unless ``goal`` is later."""
        if t >= self._reached - JUMP_S:
            return
        self.on_jump()
        if goal > self._reached:
            return
        with self._condition:
            self._move_to(t)
        text = f"the clock was set back: from {self.time_text(self._reached)}"
        self._sink(events.Notice(t, "info", text))

    def _of_file(self, file: StoredFile, start: float, goal: float) -> Iterator[Record]:
        """The records of a file from its second ``start`` on. Their times count from the first
        file's beginning."""
        with Recording(file.path) as recording:
            # an hour of these records would take much memory in the index
            recording.pass_over("Use")
            index, header = recording.index(), recording.header
            recording.pass_over()
            if text := unread_part(file, recording.damage, file is self._files[-1]):
                self._sink(events.Notice(self.at, "warning", text))
            if index.end < start or not index.samples:
                return
            base_s = header.started_ms / 1e3 - self._began[0]
            first = next(one for one in recording.records() if isinstance(one, SampleRecord))
            origin_ns = first.raw.arrived_ns - int(base_s * 1e9)
            # a new fold, because samples of different files must not be subtracted
            self._fold = ReplayFold(header, origin_ns, self._fold.devices)
            shown_t = index.time_before(start)
            self._follow_set_clock(base_s + max(shown_t, 0.0), goal)
            self._reached = base_s + index.end
            lead = index.key_before(shown_t - 1e-6)
            for place, event in index.events:
                if place < lead and isinstance(event.value, CONTEXT):
                    self._show(_later(event, base_s))
            for record in recording.records(lead):
                if isinstance(record, SampleRecord) and record.t < shown_t:
                    yield SampleRecord(record.t + base_s, record.raw, False)
                else:
                    yield _later(record, base_s)


def _later(record: Record, by_s: float) -> Record:
    if isinstance(record, SampleRecord):
        return SampleRecord(record.t + by_s, record.raw, record.is_shown)
    value = shifted(record.value, by_s) if hasattr(record.value, "t") else record.value
    return EventRecord(record.t + by_s, value)
