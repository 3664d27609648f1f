"""fio's recorded output (raw bytes of standard output, several versions) for tests."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from iopstui.fio.stream.framing import Document, Framer, Item
from iopstui.fio.stream.status import parse_status
from iopstui.model.fio.jobfile import effective_sections
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.samples import FioStatus, RawSample

DIRECTORY = Path(__file__).parent.parent / "fixtures" / "fio"
LOGS = DIRECTORY.parent / "fiologs"
ALL = sorted(path.name.removesuffix(".json.gz") for path in DIRECTORY.glob("*.json.gz"))
CHOSEN = (
    "3.1-g5-enospc-run", "3.1-k-verify", "3.16-q-disable-clat", "3.28-x-interleaved",
    "3.33-q-filestat", "3.33-q-grp-two-bs", "3.33-q-null-logs", "3.33-q-verify-short",
    "3.36-e-ramp", "3.42-d-stonewall", "3.42-g2-perm", "3.42-q-ramp-gtod",
)  # fmt: skip
"""Recordings of every version; their reports run all but 12 of the 9,762 lines of code that the
reports of all 59 run. ``make recordings`` tests with all."""
NAMES = ALL if os.environ.get("IOPSTUI_ALL_RECORDINGS") else sorted(CHOSEN)


def _minor_version(name: str) -> int:
    """The minor version of a recording's fio 3."""
    return int(name.partition("-")[0].partition(".")[2])


_NEWEST = {name.partition("-")[2]: name for name in sorted(NAMES, key=_minor_version)}
KINDS = sorted(name for kind, name in _NEWEST.items() if kind[0] not in "ix")
"""Recordings that differ in their figures: the newest of each kind. Tests of layers above the
parser and the frames need only these, because fio's versions differ only in their output."""

# How many more I/Os the intervals of these recordings have than fio's totals: those in flight when
# the ramp ended (3), or one less, which had not completed when the job failed (-1)
OFF = {
    "3.1-e-ramp": 3, "3.33-e-ramp": 3, "3.36-e-ramp": 3, "3.42-e-ramp": 3,
    "3.1-g5-enospc-run": -1, "3.33-g5-enospc-run": -1, "3.42-g5-enospc-run": -1,
}  # fmt: skip
# recordings whose only count of the I/Os is that of submissions
ONLY_SUBMISSIONS = ("3.33-q-grp-two-bs", "3.33-q-grp-two-bs-swapped")


def unpacked(name: str, directory: Path) -> Path:
    """A file with the bytes that fio wrote."""
    path = directory / f"{name}.json"
    path.write_bytes(raw(name))
    return path


def raw(name: str) -> bytes:
    return gzip.decompress((DIRECTORY / f"{name}.json.gz").read_bytes())


def items(chunks: Iterable[bytes]) -> list[Item]:
    framer = Framer()
    found = [item for chunk in chunks for item in framer.feed(chunk)]
    return [*found, *framer.close()]


@lru_cache
def statuses(name: str, job: str = "") -> tuple[FioStatus, ...]:
    """The parsed documents of a recording. ``job``: the text of the job file, if known."""
    sections = effective_sections(job)
    found = (i.data for i in items([raw(name)]) if isinstance(i, Document))
    parsed = (parse_status(data, sections) for data in found)
    return tuple(status for status in parsed if status is not None)


def samples(
    documents: Sequence[FioStatus], arrivals_ms: Sequence[float] | None = None
) -> list[RawSample]:
    """One raw sample for each document, which arrives when fio made it or at ``arrivals_ms``."""
    times = arrivals_ms or [document.timestamp_ms for document in documents]
    return [
        RawSample(
            seq=number,
            arrived_ns=int(time * 1_000_000),
            wall_ms=time,
            kernel=None,
            fio=document,
            final=number == len(documents) - 1,
            step=1,
        )
        for number, (document, time) in enumerate(zip(documents, times, strict=True))
    ]


def frames(name: str, job: str = "") -> list[Frame]:
    builder = FrameBuilder()
    return [builder.feed(sample) for sample in samples(statuses(name, job))]
