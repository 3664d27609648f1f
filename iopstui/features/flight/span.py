"""Read a span of a flight recording: the frames and what was recorded beside them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from iopstui import events
from iopstui.errors import IopstuiError
from iopstui.features.flight.directory import (
    JUMP_S,
    StoredFile,
    no_recording,
    nothing_found,
    stored_files,
    unread_part,
)
from iopstui.model.answer.answer import Answer
from iopstui.model.answer.tracker import SecondFilter
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import Frame
from iopstui.model.samples import RawSample
from iopstui.output.replay import checking_figures
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording, RecordingTooShort, SampleRecord
from iopstui.recording.records import Peaks, RecordedUse
from iopstui.recording.replay import ReplayFold

LEAD_S = 130.0
"""How much before a span is read, because a thinned file has one sample a minute."""
MAX_CLOCK_STEP_S = 60.0
"""While a machine runs, the time of its boot by the wall clock moves by less than this."""


@dataclass
class Span:
    """What was recorded from ``began_s`` to ``ended_s`` (since the epoch). ``answers`` has pairs
    (when, answer); the first may have been given before the span, and the answer is None where a
    file ends. ``uses`` has pairs (until when, who used the disks). ``findings`` held in the span.
    ``same_since`` says since when a name has meant the same disk: each boot may give names anew."""

    began_s: float
    ended_s: float
    header: form.Header | None = None
    frames: list[tuple[float, Frame]] = field(default_factory=list)
    uses: list[tuple[float, DiskUse]] = field(default_factory=list)
    answers: list[tuple[float, Answer | None]] = field(default_factory=list)
    peaks: list[tuple[float, Peaks]] = field(default_factory=list)
    groups: dict[str, tuple[float, ...]] = field(default_factory=dict)
    findings: dict[str, tuple[float, Finding]] = field(default_factory=dict)
    devices: dict[str, BlockDevice] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    same_since: dict[str, float] = field(default_factory=dict)
    _last: RawSample | None = None

    def note_sample(self, raw: RawSample) -> None:
        """Count a sample, in the order in which they were recorded."""
        last, self._last = self._last, raw
        now, before = raw.kernel, None if last is None else last.kernel
        if last is None or now is None or before is None:
            return
        is_reboot = abs(_booted_s(raw) - _booted_s(last)) > MAX_CLOCK_STEP_S
        for name, disk in now.disks.items():
            known = before.disks.get(name)
            if is_reboot or known is None or disk.reads < known.reads or disk.writes < known.writes:
                self.same_since[name] = raw.wall_ms / 1e3

    def cut(self, began_s: float, ended_s: float) -> Span:
        """A copy for a part of the time."""
        return replace(
            self, began_s=began_s, ended_s=ended_s,
            frames=[one for one in self.frames if began_s < one[0] <= ended_s],
            uses=[(at, use) for at, use in self.uses if began_s < at - use.seconds / 2 <= ended_s],
            peaks=[one for one in self.peaks if began_s < one[0] <= ended_s + one[1].seconds],
        )  # fmt: skip


def _booted_s(raw: RawSample) -> float:
    return raw.wall_ms / 1e3 - raw.arrived_ns / 1e9


def read_span(place: Path, began_s: float, ended_s: float) -> Span:
    """UsageError where nothing was recorded then."""
    files = stored_files(place)
    if not files:
        raise no_recording(place)
    span = Span(began_s, ended_s)
    unreadable: IopstuiError | None = None
    for file in overlapping(files, began_s, ended_s):
        # a writer may have removed the file since, or may have been killed before the first sample
        try:
            with contextlib.suppress(FileNotFoundError, RecordingTooShort):
                _read(file, span, is_last=file is files[-1])
        except IopstuiError as error:
            unreadable = error
            span.notes.append(f"{file.path.name}: {error.message}")
    if not span.frames and unreadable is not None:
        raise unreadable
    if not span.frames:
        raise nothing_found(began_s, ended_s, files, span.notes)
    return span


def overlapping(files: list[StoredFile], began_s: float, ended_s: float) -> list[StoredFile]:
    """The files that may have samples of this time."""
    return [
        file for file in files
        if file.name.began_s <= ended_s
        and file.latest_s >= began_s - LEAD_S
    ]  # fmt: skip


def _read(file: StoredFile, span: Span, is_last: bool) -> None:
    """Add what the file has of the span."""
    with checking_figures([file.path]), Recording(file.path) as recording:
        base_s = recording.header.started_ms / 1e3
        index = recording.index()
        text = unread_part(file, recording.damage, is_last)
        if text and base_s <= span.ended_s:
            span.notes.append(text)
        if base_s > span.ended_s or base_s + index.end < span.began_s or not index.samples:
            return
        # samples from before the beginning are only there to be subtracted
        began_t = max(0.0, file.name.began_s - base_s)
        if span.frames and base_s + began_t < span.frames[-1][0] - JUMP_S:
            span.notes.append(f"the clock was set back, and some of this time was recorded twice: "
                              f"again in {file.path.name}; figures are of both times")  # fmt: skip
        span.header = recording.header
        fold, seconds = ReplayFold(recording.header), SecondFilter()
        start = index.key_before(span.began_s - base_s - LEAD_S)
        for place, earlier in index.events:
            if place < start:
                _note(span, base_s, max(earlier.t, began_t), earlier.value)
        for record in recording.records(start):
            if record.t > span.ended_s - base_s + LEAD_S:
                break
            if isinstance(record, SampleRecord) and not seconds.passes(record.raw):
                continue
            for event in fold.feed(record):
                if isinstance(event, events.FrameReady):
                    _note_frame(span, base_s + record.t, event.frame)
            if isinstance(record, SampleRecord):
                span.note_sample(record.raw)
            else:
                _note(span, base_s, max(record.t, began_t), record.value)
        span.devices |= fold.devices
        span.answers.append((min(base_s + index.end, span.ended_s), None))


def _note_frame(span: Span, at: float, frame: Frame) -> None:
    # an interval belongs to the span if most of it does
    if frame.seconds and span.began_s <= at - frame.seconds / 2 < span.ended_s:
        span.frames.append((at, frame))


def _note(span: Span, base_s: float, t: float, value: object) -> None:
    at = base_s + t
    inside = span.began_s < at <= span.ended_s
    match value:
        # these two are written some seconds after the time they are about
        case RecordedUse():
            _note_use(span, base_s, value)
        case Peaks() if span.began_s < at and at - value.seconds < span.ended_s:
            span.peaks.append((at, value))
        case events.AnswerGiven() if at <= span.ended_s:
            while not inside and span.answers and span.answers[-1][1] is not None:
                span.answers.pop()  # the last one in this file before the span
            is_hole = value.answer.rule == events.UNREADABLE
            span.answers.append((at, None if is_hole else value.answer))
            if is_hole:
                span.findings.clear()
        case events.FindingReported() if at <= span.ended_s:
            span.findings[value.finding.rule] = at, value.finding
        case events.FindingEnded() if at <= span.began_s:
            span.findings.pop(value.rule, None)
        case form.RecordedDevices() if at <= span.ended_s:
            span.devices |= {device.name: device for device in value.devices}


def _note_use(span: Span, base_s: float, value: RecordedUse) -> None:
    # a reading belongs to the span if most of it does; in older recordings, the times in files
    # after the first count from the session's beginning
    use, until_s = value.use, base_s + min(value.use.t, value.t)
    if not span.began_s < until_s - use.seconds / 2 <= span.ended_s:
        return
    span.uses.append((until_s, use))
    for path, rates in value.groups.items():
        before = span.groups.get(path, (0.0,) * len(rates))
        span.groups[path] = tuple(map(max, before, rates))
