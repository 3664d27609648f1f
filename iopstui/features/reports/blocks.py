"""Make blocks of a recording: sums of consecutive frames, and the events between them.

Several processes can make the blocks of one recording at the same time; the blocks are the same as
if one process made them all. A process starts reading a little before its segment, because the
first differences need earlier samples. Each process reports the state on which further frames
depend, and the process for the next segment reports the state with which it started: the two must
be equal. If they differ, if the recording is damaged or if no process can be started, one process
reads the recording in order."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import inf
from typing import TYPE_CHECKING

from iopstui.events import FrameReady
from iopstui.features.reports import series
from iopstui.features.reports.run import Run
from iopstui.features.reports.series import Heat
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.run_figures import RunFigures, middle_of_frame
from iopstui.model.metrics.slow.slow_requests import SlowestTotal
from iopstui.model.metrics.waits import MeanWaits
from iopstui.recording import layout as form
from iopstui.recording.reader import EventRecord, Recording, RecordingIndex, SampleRecord
from iopstui.recording.replay import ReplayFold
from iopstui.safety.signals import STOP_SIGNALS, handle_stop_signals

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class Block:
    """Adds up frames, in order. ``header`` and ``duration`` are those of the recording.

    ``runs`` are in the order in which they were first seen, ``without_job`` has the figures of
    frames outside runs; ``first`` is the time of the earliest frame's middle. ``idle_waits`` says
    where I/Os waited while no job ran, ``slowest`` has the slowest requests."""

    def __init__(self, header: form.Header, duration: float) -> None:
        self._interval_s = header.interval_s
        self._tree: Sequence[str] = header.target.tree
        self.series = series.empty(self._tree)
        self.idle_waits = MeanWaits()
        self.slowest = SlowestTotal()
        self.heat = Heat(duration)
        self.runs: dict[int, Run] = {}
        self.without_job = RunFigures()
        self.first = inf

    def add(self, frame: Frame) -> None:
        fio, step = frame.fio, frame.step
        if step:
            run = self.runs.get(step)
            if run is None:
                run = self.runs[step] = Run(step)
            run.add(frame, self._tree)
        else:
            self.idle_waits.add(frame.waits, frame.seconds)
        self.slowest.add(frame)
        self.first = min(self.first, middle_of_frame(frame))
        if not step or fio is None:
            self.without_job.add(frame)
        series.append(self.series, self._interval_s, series.values_of(frame))
        if fio is not None:
            self.heat.add(frame.t, fio.seconds or 0.0, fio.total.bins)

    @property
    def figures(self) -> Sequence[RunFigures]:
        return [*(run.measured for run in self.runs.values()), self.without_job]


SEGMENT_KEYS, MAX_KEYS, SEGMENTS = 30, 120, 24
"""The least and the most keys in a segment, and the number of segments in between. At 1 Hz a
segment is half an hour, in a recording of a day an hour, because each segment also reads some
samples before it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a recording: from byte ``start`` (``None``: from the beginning) up to, not
    including, byte ``until`` (``None``: to the end). Reading starts at ``lead``, because the first
    differences need earlier samples."""

    start: int | None
    until: int | None
    lead: int | None = None


def segments(index: RecordingIndex) -> list[Segment]:
    """The segments of a recording, which are the same on every machine. A block ends with its
    segment."""
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
    """Makes blocks from a recording's records; ``fold`` makes frames from them."""

    def __init__(self, recording: Recording, fold: ReplayFold) -> None:
        self._recording = recording
        self._fold = fold
        self._duration = duration(recording.index())
        self._latest_t = 0.0

    def blocks_of(self, segment: Segment) -> Iterator[Block | EventRecord]:
        """The blocks in order, each as soon as it is complete. Feed every ``EventRecord`` to the
        fold."""
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
                # a frame that began before the latest event gets its own block
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
        """Note an event that comes before the following frames."""
        self._latest_t = max(self._latest_t, getattr(record.value, "t", record.t))


def duration(index: RecordingIndex) -> float:
    """The recording's length in seconds; always above 0."""
    return max(index.end, 1e-3)


MAX_PROCESSES = 8
"""Limit for the processes. Each takes some 25 MiB, half of which it shares with the process that
started it."""


class SegmentMismatch(Exception):
    """The recording must be read in order, by a single process."""


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """The result of one segment: its blocks, or ``None`` if something went wrong. ``begin`` is the
    state on which its frames depend, ``end`` the state on which following frames depend."""

    begin: bytes
    items: Sequence[Block | None]
    end: bytes
    starts_during_run: bool


def fold_in_parallel(
    recording: Recording, fold: ReplayFold
) -> Iterator[Block | EventRecord] | None:
    """Fold all segments like ``BlockBuilder.blocks_of``, in order; ``None`` if that is slower or
    impossible. Raises SegmentMismatch in the middle if everything so far is invalid. ``fold`` is
    that of the caller."""
    parts = segments(recording.index())
    count = min(MAX_PROCESSES, len(os.sched_getaffinity(0)), len(parts))
    # a process with several threads can't be forked safely
    if count < 2 or threading.active_count() > 1:
        return None
    return _joined(recording, fold, parts, count)


def _joined(
    recording: Recording, fold: ReplayFold, parts: Sequence[Segment], count: int
) -> Iterator[Block | EventRecord]:
    events = (event for _, event in recording.index().events)
    with contextlib.ExitStack() as stack:
        pipes = [_helper(stack, recording, parts[first::count]) for first in range(count)]
        before: bytes | None = None
        for number in range(len(parts)):
            part = _receive_result(pipes[number % count])
            if before is not None and part.begin != before:
                raise SegmentMismatch
            before = part.end
            for item in part.items:
                following = item if item is not None else next(events, None)
                if following is None:
                    raise SegmentMismatch
                yield following
            fold.starts_during_run |= part.starts_during_run
    if next(events, None) is not None:
        raise SegmentMismatch


def _helper(
    stack: contextlib.ExitStack, recording: Recording, part: Sequence[Segment]
) -> Connection:
    """Start a process for these segments. Returns the connection to it. ``stack`` ends the
    process."""
    try:
        # imported only for long recordings; a minimal Python may lack it
        from multiprocessing import get_context

        context = get_context("fork")
        receiver, theirs = map(stack.enter_context, context.Pipe(duplex=False))
        process = context.Process(
            target=_fold_segment, args=(recording, part, receiver, theirs), daemon=True
        )
        with _no_signals():
            process.start()
    except (ImportError, OSError) as error:
        raise SegmentMismatch from error
    theirs.close()
    stack.callback(process.join)
    stack.callback(process.terminate)
    return receiver


@contextlib.contextmanager
def _no_signals() -> Iterator[None]:
    """Block stop signals, also in a process that is forked meanwhile, until it has set its
    handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _receive_result(pipe: Connection) -> SegmentResult:
    try:
        part: SegmentResult = pipe.recv()
    except (EOFError, OSError) as error:
        raise SegmentMismatch from error
    return part


def _fold_segment(
    recording: Recording, part: Sequence[Segment], sender: Connection, theirs: Connection
) -> None:
    """Fold a segment, in the other process. Errors are not reported, because the sequential reader
    meets them, too."""
    handle_stop_signals(signal.SIG_DFL)
    # ignore Ctrl-C: the process that reads the results ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    with contextlib.suppress(Exception):
        sender.close()
        recording.reopen()
        first_sample = next(
            record for record in recording.records() if isinstance(record, SampleRecord)
        )
        for segment in part:
            theirs.send(_segment_result(recording, segment, first_sample.raw.arrived_ns))


def _segment_result(recording: Recording, segment: Segment, origin_ns: int) -> SegmentResult:
    fold = ReplayFold(recording.header, origin_ns)
    blocks = BlockBuilder(recording, fold)
    damage = recording.damage
    if segment.start is not None:
        for place, event in recording.index().events:
            if place < segment.start:
                blocks.add_event(event)
        _lead_in(recording, segment, fold)
    begin = _digest(fold)
    items = [item if isinstance(item, Block) else None for item in blocks.blocks_of(segment)]
    if recording.damage != damage:
        raise SegmentMismatch
    return SegmentResult(begin, items, _digest(fold), fold.starts_during_run)


def _lead_in(recording: Recording, segment: Segment, fold: ReplayFold) -> None:
    for record in recording.records(segment.lead, segment.start):
        if isinstance(record, SampleRecord):
            for _ in fold.feed(record):
                pass
    fold.starts_during_run = False


def _digest(fold: ReplayFold) -> bytes:
    return blake2b(repr(fold.state).encode(), digest_size=16).digest()
