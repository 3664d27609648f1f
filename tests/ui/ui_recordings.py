"""Frames of real fio documents, for the screen's tests."""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path

from iopstui.fio.stream.framing import Document, Framer
from iopstui.fio.stream.status import parse_status
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.samples import RawSample

DATA = Path(__file__).parent / "data"


@lru_cache
def recorded_frames(name: str = "randread") -> tuple[Frame, ...]:
    """Frames of the recording ``name``, without kernel figures."""
    framer, builder = Framer(), FrameBuilder()
    items = framer.feed(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))
    frames = []
    for seq, item in enumerate(items):
        status = parse_status(item.data) if isinstance(item, Document) else None
        if status is not None:
            ns = status.timestamp_ms * 1_000_000
            raw = RawSample(seq, ns, status.timestamp_ms, None, status, False, 1)
            frames.append(builder.feed(raw))
    return tuple(frames)
