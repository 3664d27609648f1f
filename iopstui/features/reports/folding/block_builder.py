"""Fold a recording into blocks of frames and events, segment by segment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iopstui.events import FrameReady
from iopstui.features.reports.folding.block import Block
from iopstui.model.metrics.mark_intervals import middle_of_frame
from iopstui.recording.reader import EventRecord, Recording, RecordingIndex
from iopstui.recording.replay import ReplayFold

SEGMENT_KEYS, MAX_KEYS, SEGMENTS = 30, 120, 24
"""Half an hour at 1 Hz; an hour in a recording of a day, because each segment reads a lead-in."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a recording: from the byte ``start`` (``None``: from the beginning) to before the
    byte ``until`` (``None``: to the end). Reading starts at ``lead``, to get the samples that the
    differences of its first samples need."""

    start: int | None
    until: int | None
    lead: int | None = None


def segments(index: RecordingIndex) -> list[Segment]:
    """Segments of a recording, the same on every machine. A block ends with its segment."""
    keys = index.keys
    size = max(SEGMENT_KEYS, min(len(keys) // SEGMENTS, MAX_KEYS))
    places = list(range(size, len(keys), size))
    starts = [None, *(keys[n] for n in places)]
    leads = [None, *(keys[n - 1] for n in places)]
    return [
        Segment(start, end, lead)
        for start, end, lead in zip(starts, [*starts[1:], None], leads, strict=True)
    ]


class BlockBuilder:
    """Makes blocks of a recording's records. ``fold`` makes its frames."""

    def __init__(self, recording: Recording, fold: ReplayFold) -> None:
        self._recording = recording
        self._fold = fold
        self._duration = duration(recording.index())
        self._latest_t = 0.0

    def blocks_of(self, segment: Segment) -> Iterator[Block | EventRecord]:
        """Blocks in order, each as soon as it is over. Feed every ``EventRecord`` to the fold."""
        block: Block | None = None
        for record in self._recording.records(segment.start, segment.until):
            if isinstance(record, EventRecord):
                if block is not None:
                    yield block
                    block = None
                self.add_event(record)
                yield record
                continue
            for event in self._fold.feed(record):
                if not isinstance(event, FrameReady):
                    continue
                # a block of its own: the frame began before the latest event
                alone = middle_of_frame(event.frame) < self._latest_t
                if alone and block is not None:
                    yield block
                    block = None
                block = block or Block(self._recording.header, self._duration)
                block.add(event.frame)
                if alone:
                    yield block
                    block = None
        if block is not None:
            yield block

    def add_event(self, record: EventRecord) -> None:
        """Something happened before the frames that follow."""
        self._latest_t = max(self._latest_t, getattr(record.value, "t", record.t))


def duration(index: RecordingIndex) -> float:
    """The recording's length in seconds, above 0."""
    return max(index.end, 1e-3)
