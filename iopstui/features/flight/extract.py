"""Copy a span of a flight recording into one ordinary recording, for a report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from iopstui import events
from iopstui.cli.terminal import print_message
from iopstui.errors import IopstuiError, UsageError
from iopstui.features.flight.directory import (
    StoredFile,
    no_recording,
    nothing_found,
    stored_files,
    unread_part,
)
from iopstui.features.flight.span import overlapping
from iopstui.model.samples import KernelSample, ProbeSample, RawSample
from iopstui.output.replay import checking_figures
from iopstui.recording import layout as form
from iopstui.recording.coding import encoder
from iopstui.recording.reader import Record, Recording, RecordingTooShort, SampleRecord
from iopstui.recording.records import Peaks, RecordedUse
from iopstui.recording.writer import Recorder, shifted

SAME_CLOCK_S = 2.0
"""The wall clock and CLOCK_MONOTONIC of one boot differ by less from file to file."""
MAX_WAITING = 200


def extract(place: Path, began_s: float, ended_s: float, out: Path) -> None:
    """Write the file ``out``. Raises UsageError if nothing was recorded in that span."""
    files = stored_files(place)
    if not files:
        raise no_recording(place)
    copy, unread = _Copy(out, began_s, ended_s), list[str]()
    for file in overlapping(files, began_s, ended_s):
        try:
            damage = copy.add(file)
        except (FileNotFoundError, RecordingTooShort):
            continue  # the file was removed meanwhile, or never had a sample
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
        """Copy the file's part of the span. Returns why the file could not be read completely, ""
        if it could. Its first sample is only subtracted from."""
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
        """The samples of the span and the one before it; after the first come the devices, and what
        holds when the span begins."""
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
        """What to add to the monotonic times of a file: nothing as long as the machine was not
        rebooted."""
        if self._recorder is None:
            self._origin_wall_s = wall_s
            return 0
        by_wall = self._origin_ns + int((wall_s - self._origin_wall_s) * 1e9) - raw.arrived_ns
        if raw.arrived_ns >= self._last_ns and abs(by_wall) < SAME_CLOCK_S * 1e9:
            return 0
        if raw.arrived_ns + by_wall >= self._last_ns:
            return by_wall
        # the clock was set back: the order of recording counts
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
                return  # repeated at the beginning of a file
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
        """Whether there is anything in it."""
        if self._recorder is None:
            return False
        end = form.RecordingEnd(self._t)
        self._put(form.EVENT, self._t, lambda: ["Stopped", encoder(form.RecordingEnd)(end)])
        self._recorder.give_up()
        while not self._recorder.finished(1.0):
            continue  # nothing is live here: on a slow machine the last 200 chunks take a while
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
    # requests from before a reboot are left out: their times count from the boot
    return replace(probe, time_ns=probe.time_ns + later_ns, exemplars=(),
                   arrived_ns=probe.arrived_ns + later_ns)  # fmt: skip
