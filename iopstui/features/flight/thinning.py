"""Thin a file: keep fewer samples, but the same total growth, histograms, answers and highest
seconds. All counters of a sample are cumulative, so the difference of two samples includes the ones
left out between them, and histograms lose nothing. The highest seconds are in records of peaks,
which are joined and never averaged. Samples are copied as text, without decoding."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iopstui import events
from iopstui.errors import UsageError
from iopstui.features.flight.directory import PART, StoredFile
from iopstui.features.flight.model.bad_times import busiest_use, is_same, join
from iopstui.recording import layout as form
from iopstui.recording.coding import encoder
from iopstui.recording.reader import Recording
from iopstui.recording.records import Peaks, RecordedUse, RecordingEnd

USE_S = 60
"""Thinned files have one record a minute of who used the disks."""
LEVEL = 9
UNFINISHED_BYTES = 16 << 10
"""The last chunk of a killed writer has fewer unread bytes than this; more mean damage."""
Piece = tuple[bytes, float, bytes]


def thin(file: StoredFile, every_s: int) -> Path:
    """Replace this file with one that has a sample every ``every_s`` seconds. Raises UsageError if
    the file can't be read completely, because the new one would hide that."""
    target = file.path.with_name(str(file.name._replace(every_s=every_s)))
    part = target.with_name(target.name + PART)
    with Recording(file.path) as recording, open(part, "wb", opener=_private) as out:
        out.write(form.MAGIC)
        stream, samples = form.sample_stream(LEVEL), 0
        for kind, t, data in _thinned(recording, every_s):
            if kind == form.SAMPLE:
                if samples % form.KEY_EVERY == 0:
                    kind, stream = form.KEY, form.sample_stream(LEVEL)
                samples += 1
                payload = stream.compress(data) + stream.flush(zlib.Z_SYNC_FLUSH)
            else:
                payload = zlib.compress(data, LEVEL)
            out.write(form.head(kind, t, payload) + payload)
        out.flush()
        os.fsync(out.fileno())
        if recording.has_hole or recording.unread_bytes > UNFINISHED_BYTES:
            part.unlink()
            raise UsageError(f"{recording.damage}.")
    info = file.path.stat()
    os.utime(part, ns=(info.st_atime_ns, info.st_mtime_ns))
    os.replace(part, target)
    file.path.unlink()
    return target


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _thinned(recording: Recording, every_s: int) -> Iterator[Piece]:
    """The chunks of the thinned file, with their JSON."""
    held: Piece | None = None
    is_first = True
    beside = _Beside(recording, every_s)
    for kind, t, data in recording.payloads():
        if kind == form.HEADER:
            yield kind, t, _header(data, every_s)
        elif kind == form.EVENT:
            yield from beside.feed(t, data)
        else:
            # keep the last sample of each period, and the very first one, from which the next is
            # subtracted
            if held is not None and int(held[1] // every_s) != int(t // every_s):
                yield held
                yield from beside.end(held[1], t)
                held = None
            if is_first:
                yield form.SAMPLE, t, data
            else:
                held = form.SAMPLE, t, data
            is_first = False
    if held is not None:
        yield held
    yield from beside.end(0.0, None)


def _header(data: bytes, every_s: int) -> bytes:
    """The header, with the new interval between samples."""
    content = json.loads(data)
    names = content["layouts"]["Header"]
    content["header"][names.index("interval_s")] = float(every_s)
    return form.pack(content)


class _Beside:
    """Processes the records between the samples: they are joined, left out, or passed on."""

    def __init__(self, recording: Recording, every_s: int) -> None:
        self._recording = recording
        self._every_s = every_s
        self._peaks: list[Peaks] = []
        self._uses: list[RecordedUse] = []
        self._answer: events.AnswerGiven | None = None
        self._is_first = False
        self._end: Piece | None = None

    def feed(self, t: float, data: bytes) -> Iterator[Piece]:
        """Process a record. Yields what is to be written at once."""
        value = self._recording.event(data)
        match value:
            case Peaks():
                self._peaks.append(value)
            case RecordedUse():
                self._uses.append(value)
            case events.AnswerGiven():
                if self._is_news(value):
                    yield form.EVENT, t, data
            case RecordingEnd():
                self._end = form.EVENT, t, data
            case _:
                yield form.EVENT, t, data

    def _is_news(self, answer: events.AnswerGiven) -> bool:
        """Whether to keep an answer: it differs from the previous one, or is the first after such a
        change (with figures of its own seconds), or the last kept one is ``every_s`` old."""
        before = self._answer
        changed = before is None or not is_same(before.answer, answer.answer)
        if before is None or changed or answer.t - before.t >= self._every_s or self._is_first:
            self._answer, self._is_first = answer, changed
            return True
        return False

    def end(self, t: float, next_t: float | None) -> Iterator[Piece]:
        """End the period at ``t``; ``next_t`` is in the next one (``None``: there is none)."""
        if self._peaks:
            yield _piece(join(self._peaks))
            self._peaks = []
        if next_t is None or int(t // USE_S) != int(next_t // USE_S):
            yield from self._joined_use()
        if next_t is None and self._end is not None:
            yield self._end

    def _joined_use(self) -> Iterator[Piece]:
        uses, self._uses = self._uses, []
        use = busiest_use([one.use for one in uses])
        if use is None:
            return
        groups: dict[str, tuple[float, ...]] = {}
        for one in uses:
            for path, rates in one.groups.items():
                before = groups.get(path, (0.0,) * len(rates))
                groups[path] = tuple(map(max, before, rates))
        yield _piece(RecordedUse(uses[-1].t, use, groups))


def _piece(value: Any) -> Piece:
    kind: Any = type(value)
    return form.EVENT, value.t, form.pack([form.NAMES[kind], encoder(kind)(value)])
