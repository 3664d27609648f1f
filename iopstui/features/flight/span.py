"""A span of a flight recording: read it, or copy it to an ordinary recording."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from iopstui import events
from iopstui.cli.terminal import print_message
from iopstui.errors import IopstuiError, UsageError
from iopstui.features.flight.directory import (
    JUMP_S,
    StoredFile,
    no_recording,
    nothing_found,
    stored_files,
    unread_part,
)
from iopstui.model.answer.answer import Answer
from iopstui.model.answer.judge import SecondFilter
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import Frame
from iopstui.model.samples import KernelSample, ProbeSample, RawSample
from iopstui.output.replay import checking_figures
from iopstui.recording import layout as form
from iopstui.recording.coding import encoder
from iopstui.recording.reader import Record, Recording, RecordingTooShort, SampleRecord
from iopstui.recording.records import Peaks, RecordedUse
from iopstui.recording.replay import ReplayFold
from iopstui.recording.writer import Recorder, shifted

LEAD_S = 130.0
"""How many seconds before a span are read, because a thinned file has only one sample a minute."""
MAX_CLOCK_STEP_S = 60.0
"""While a machine runs, its boot time by the wall clock changes by less than this (s)."""


@dataclass
class Span:
    """What was recorded from ``began_s`` to ``ended_s`` (since the epoch). ``answers`` has pairs
    (when, answer); the first may have been given before the span, and the answer is ``None`` at the
    end of a file. ``uses`` has pairs (until when, who used the disks). ``findings`` are those that
    held in the span. ``same_since`` says since when a name has meant the same disk, because names
    may change with each boot."""

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
        """Count a sample; samples must come in the order of recording."""
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
        """A copy with only a part of the time."""
        return replace(
            self, began_s=began_s, ended_s=ended_s,
            frames=[one for one in self.frames if began_s < one[0] <= ended_s],
            uses=[(at, use) for at, use in self.uses if began_s < at - use.seconds / 2 <= ended_s],
            peaks=[one for one in self.peaks if began_s < one[0] <= ended_s + one[1].seconds],
        )  # fmt: skip


def _booted_s(raw: RawSample) -> float:
    return raw.wall_ms / 1e3 - raw.arrived_ns / 1e9


def read_span(place: Path, began_s: float, ended_s: float) -> Span:
    """Read a span. Raises UsageError if nothing was recorded in it."""
    files = stored_files(place)
    if not files:
        raise no_recording(place)
    span = Span(began_s, ended_s)
    unreadable: IopstuiError | None = None
    for file in overlapping(files, began_s, ended_s):
        # ignore a file that was removed meanwhile, or whose writer was killed before the first
        # sample
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
    with checking_figures([file.path]), Recording(file.path) as recording:
        base_s = recording.header.started_ms / 1e3
        index = recording.index()
        text = unread_part(file, recording.damage, is_last)
        if text and base_s <= span.ended_s:
            span.notes.append(text)
        if base_s > span.ended_s or base_s + index.end < span.began_s or not index.samples:
            return
        # samples from before the file's time are only there for subtraction
        began_t = max(0.0, file.name.began_s - base_s)
        if span.frames and base_s + began_t < span.frames[-1][0] - JUMP_S:
            span.notes.append(f"the clock was set back, so a part of this time was recorded twice, "
                              f"again in {file.path.name}; figures include both")  # fmt: skip
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
    # an interval counts if most of it is in the span
    if frame.seconds and span.began_s <= at - frame.seconds / 2 < span.ended_s:
        span.frames.append((at, frame))


def _note(span: Span, base_s: float, t: float, value: object) -> None:
    at = base_s + t
    inside = span.began_s < at <= span.ended_s
    match value:
        # use and peaks are written some seconds after the time that they cover
        case RecordedUse():
            _note_use(span, base_s, value)
        case Peaks() if span.began_s < at and at - value.seconds < span.ended_s:
            span.peaks.append((at, value))
        case events.AnswerGiven() if at <= span.ended_s:
            while not inside and span.answers and span.answers[-1][1] is not None:
                span.answers.pop()  # keep only the last answer before the span
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
    # a reading counts if most of it is in the span; in older recordings, times in later files count
    # from the session's beginning
    use, until_s = value.use, base_s + min(value.use.t, value.t)
    if not span.began_s < until_s - use.seconds / 2 <= span.ended_s:
        return
    span.uses.append((until_s, use))
    for path, rates in value.groups.items():
        before = span.groups.get(path, (0.0,) * len(rates))
        span.groups[path] = tuple(map(max, before, rates))


SAME_CLOCK_S = 2.0
"""Between two files of one boot, the difference of wall clock and CLOCK_MONOTONIC changes by less
than this (s)."""
MAX_WAITING = 200


def extract(place: Path, began_s: float, ended_s: float, out: Path) -> None:
    """Write the span to the file ``out``. Raises UsageError if nothing was recorded in it."""
    files = stored_files(place)
    if not files:
        raise no_recording(place)
    copy, unread = _Copy(out, began_s, ended_s), list[str]()
    for file in overlapping(files, began_s, ended_s):
        try:
            damage = copy.add(file)
        except (FileNotFoundError, RecordingTooShort):
            continue  # ignore a file that was removed meanwhile, or never had a sample
        except UsageError as error:
            unread.append(f"{file.path.name}: {error.message}")
            continue
        if text := unread_part(file, damage, file is files[-1]):
            unread.append(text)
    if not copy.close():
        raise nothing_found(began_s, ended_s, files, unread)
    for text in unread:
        print_message(text)


class _Copy:
    def __init__(self, out: Path, began_s: float, ended_s: float) -> None:
        self._out, self._began_s, self._ended_s = out, began_s, ended_s
        self._recorder: Recorder | None = None
        self._origin_ns = self._last_ns = 0
        self._origin_wall_s = 0.0
        self._open_findings: set[str] = set()

    def add(self, file: StoredFile) -> str:
        """Copy the file's part of the span. Returns why the file could not be read completely, or
        "". The first sample is only there for subtraction."""
        with checking_figures([file.path]), Recording(file.path) as recording:
            base_s = recording.header.started_ms / 1e3
            index = recording.index()
            if base_s > self._ended_s:
                return ""
            if base_s + index.end < self._began_s:
                return recording.damage
            self._copy(recording, base_s)
            return recording.damage

    def _copy(self, recording: Recording, base_s: float) -> None:
        later_ns: int | None = None
        begins_at = 0.0
        for record in self._records(recording, self._began_s - base_s, self._ended_s - base_s):
            if isinstance(record, SampleRecord):
                is_first = later_ns is None
                if later_ns is None:
                    later_ns = self._shift_ns(record.raw, base_s + record.t)
                    self._begin(recording, record.raw.arrived_ns + later_ns)
                    begins_at = (record.raw.arrived_ns + later_ns - self._origin_ns) / 1e9
                    begins_at -= record.t
                raw = _shifted_sample(record.raw, later_ns)
                self._last_ns = raw.arrived_ns
                shown = record.is_shown and not is_first and base_s + record.t >= self._began_s
                self._put(form.SAMPLE, self._t, (int(shown), raw))
            elif later_ns is not None:
                self._put_event(shifted(record.value, begins_at)
                                if hasattr(record.value, "t") else record.value)  # fmt: skip

    def _records(self, recording: Recording, began_t: float, end_t: float) -> Iterator[Record]:
        """The samples of the span and the one before it. After the first one come the devices, and
        what holds when the span begins."""
        index = recording.index()
        place = index.key_before(index.time_before(began_t))
        waiting: list[Record] = [one for at, one in index.events if at < place]
        first: Record | None = None
        for record in recording.records(place):
            if record.t > end_t:
                return
            if record.t >= began_t:
                if first is not None:
                    yield first
                    yield from waiting
                    first, waiting = None, []
                yield record
                yield from waiting
                waiting = []
            elif isinstance(record, SampleRecord):
                first = record
            else:
                waiting.append(record)

    @property
    def _t(self) -> float:
        return (self._last_ns - self._origin_ns) / 1e9

    def _shift_ns(self, raw: RawSample, wall_s: float) -> int:
        """What to add to the monotonic times of a file: 0 unless the machine was rebooted before
        it."""
        if self._recorder is None:
            self._origin_wall_s = wall_s
            return 0
        by_wall = self._origin_ns + int((wall_s - self._origin_wall_s) * 1e9) - raw.arrived_ns
        if raw.arrived_ns >= self._last_ns and abs(by_wall) < SAME_CLOCK_S * 1e9:
            return 0
        if raw.arrived_ns + by_wall >= self._last_ns:
            return by_wall
        # the clock was set back: keep the order of recording
        return max(0, self._last_ns + 1_000_000_000 - raw.arrived_ns)

    def _begin(self, recording: Recording, arrived_ns: int) -> None:
        if self._recorder is not None:
            return
        self._recorder = Recorder(self._out)
        self._recorder.is_listed = False
        self._origin_ns = self._last_ns = arrived_ns
        header = replace(recording.header, started_ms=1e3 * self._origin_wall_s)
        self._put(form.HEADER, 0.0, lambda: {"layouts": form.all_layouts(),
                                             "header": encoder(form.Header)(header)})  # fmt: skip

    def _put_event(self, value: Any) -> None:
        if isinstance(value, (Peaks, RecordedUse, events.SessionEnded, form.RecordingEnd)):
            return
        if isinstance(value, events.FindingReported):
            if value.finding.rule in self._open_findings:
                return  # a repetition at the beginning of a file
            self._open_findings.add(value.finding.rule)
        if isinstance(value, events.FindingEnded):
            self._open_findings.discard(value.rule)
        kind: Any = type(value)
        self._put(form.EVENT, max(0.0, getattr(value, "t", self._t)),
                  lambda: [form.NAMES[kind], encoder(kind)(value)])  # fmt: skip

    def _put(self, kind: bytes, t: float, value: Any) -> None:
        recorder = self._recorder
        assert recorder is not None
        while recorder.waiting >= MAX_WAITING:
            time.sleep(0.005)
        recorder.put(kind, t, value)

    def close(self) -> bool:
        """Finish the file. Returns whether it has any figures."""
        if self._recorder is None:
            return False
        end = form.RecordingEnd(self._t)
        self._put(form.EVENT, self._t, lambda: ["Stopped", encoder(form.RecordingEnd)(end)])
        self._recorder.give_up()
        while not self._recorder.finished(1.0):
            # waiting is fine without a live session: on a slow machine the last 200 chunks take a
            # while
            continue
        if self._recorder.problem:
            raise IopstuiError(f"The span cannot be copied: {self._recorder.problem}.")
        return self._recorder.samples > 1


def _shifted_sample(raw: RawSample, later_ns: int) -> RawSample:
    if not later_ns:
        return raw
    kernel, probe = raw.kernel, raw.probe
    return replace(
        raw, arrived_ns=raw.arrived_ns + later_ns,
        kernel=None if kernel is None else _shifted_kernel(kernel, later_ns),
        probe=None if probe is None else _shifted_probe(probe, later_ns),
    )  # fmt: skip


def _shifted_kernel(kernel: KernelSample, later_ns: int) -> KernelSample:
    ipi_ns = None if kernel.ipi_ns is None else kernel.ipi_ns + later_ns
    return replace(kernel, monotonic_ns=kernel.monotonic_ns + later_ns, ipi_ns=ipi_ns)


def _shifted_probe(probe: ProbeSample, later_ns: int) -> ProbeSample:
    # without single requests, whose times would count from another boot
    return replace(probe, time_ns=probe.time_ns + later_ns, exemplars=(),
                   arrived_ns=probe.arrived_ns + later_ns)  # fmt: skip
