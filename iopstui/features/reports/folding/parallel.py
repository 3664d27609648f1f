"""Fold a long recording into blocks in several processes, each with some of the segments.

A process starts reading a little before its segment, so that it can calculate differences of its
first samples. Each process reports the state its next frames depend on, and the process of the
following segment reports the state it started with: the two must be equal. If they differ, if the
recording is damaged or if no process can be started, one process reads the recording in order.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from iopstui.features.reports.folding.block import Block
from iopstui.features.reports.folding.block_builder import BlockBuilder, Segment, segments
from iopstui.recording.reader import EventRecord, Recording, SampleRecord
from iopstui.recording.replay import ReplayFold
from iopstui.safety.signals import STOP_SIGNALS, handle_stop_signals

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MAX_PROCESSES = 8
"""Processes; each takes some 25 MiB, half of which is the one's that reads."""


class SegmentMismatch(Exception):
    """The recording has to be read in order, by one process."""


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """Result of one segment: its blocks, ``None`` if something else happened. ``begin`` and ``end``
    stand for all that its frames, and those that follow, depend on."""

    begin: bytes
    items: Sequence[Block | None]
    end: bytes
    starts_during_run: bool


def fold_in_parallel(
    recording: Recording, fold: ReplayFold
) -> Iterator[Block | EventRecord] | None:
    """Fold all segments like ``BlockBuilder.blocks_of``, in order; ``None`` if that is slower or
    impossible. Raises SegmentMismatch on the way where all of it is void. ``fold`` is
    the reader's."""
    parts = segments(recording.index())
    count = min(MAX_PROCESSES, len(os.sched_getaffinity(0)), len(parts))
    # a process that has threads can't be forked safely
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
    """Source of these segments' parts. ``stack`` ends it."""
    try:
        # loaded for long recordings alone; a small Python may lack it
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
    """They wait, in a process that is forked here until it has said what they do to it."""
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
    """Runs in the other process. Reports no errors: the sequential reader meets them, too."""
    handle_stop_signals(signal.SIG_DFL)
    # Ctrl-C is for the reader, which ends this process
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
