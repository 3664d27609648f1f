"""A recording's waits compared with the trace's, place by place."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from io_places import ABOVE, CPU, DEVICE, IOS, QUEUE

from iopstui.model.metrics.frame import FINAL, PARTIAL, RAMP, Frame, FrameBuilder
from iopstui.model.metrics.waits import MeanWaits, Waits
from iopstui.recording.reader import Recording, SampleRecord

PART, FLAT = 0.1, 0.5
COLUMNS = ("stack", "job", "part", "iopstui", "trace", "error", "worst second")

Measurement = dict[str, Any]
"""What the trace shows of one job: "stack", "job", "tree" (its devices from the top down), "spans"
(seconds of CLOCK_MONOTONIC), "places" (the mean number of I/Os in each place, by span)."""


@dataclass(frozen=True)
class Row:
    """One place in one job: means over all its seconds, and the largest error of a second."""

    stack: str
    job: str
    part: str
    ours: float
    theirs: float
    worst: float

    @property
    def off(self) -> bool:
        """Whether the error is beyond both bounds."""
        return abs(self.ours - self.theirs) > max(FLAT, PART * self.theirs)

    def line(self) -> str:
        """The row's line in the table."""
        mark = " OFF" if self.off else ""
        cells = (self.stack, self.job, self.part, f"{self.ours:.2f}", f"{self.theirs:.2f}",
                 f"{self.ours - self.theirs:+.2f}{mark}", f"{self.worst:.2f}")  # fmt: skip
        return f"| {' | '.join(cells)} |"


def head() -> str:
    """The two heading lines of the table."""
    return f"| {' | '.join(COLUMNS)} |\n|---|---|---|---:|---:|---:|---:|"


def short_table(rows: Iterable[Row]) -> Iterator[str]:
    """A table with a line for each job: "ours / the trace's" for each place."""
    jobs: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        jobs.setdefault((row.stack, row.job), []).append(row)
    yield "| stack | job | in flight | CPU | above | devices |\n|---|---|---:|---:|---:|---|"
    for (stack, job), parts in jobs.items():
        cells = {row.part: f"{row.ours:.1f} / {row.theirs:.1f}{' !' * row.off}" for row in parts}
        first_cells = [cells.pop(name, "–") for name in (IOS, CPU, ABOVE)]
        devices = ", ".join(f"{name} {cell}" for name, cell in cells.items())
        yield f"| {stack} | {job} | {' | '.join(first_cells)} | {devices} |"


def seconds(file: Path) -> Iterator[tuple[tuple[float, float], Waits]]:
    """The complete intervals of a recorded run, as (seconds of CLOCK_MONOTONIC, waits), without the
    first one, in which fio started."""
    with Recording(file) as recording:
        target = recording.header.target
        builder = FrameBuilder(opened=target.opened, links=target.links)
        before, began = 0.0, False
        for record in recording.records():
            if not isinstance(record, SampleRecord) or record.raw.kernel is None:
                continue
            frame, now = builder.feed(record.raw), record.raw.kernel.monotonic_ns / 1e9
            is_whole = _whole(frame)
            if began and is_whole and frame.waits is not None and not frame.waits.stalled:
                yield (before, now), frame.waits
            before, began = now, began or is_whole


def _whole(frame: Frame) -> bool:
    return bool(frame.fio and frame.jobs and not {FINAL, PARTIAL, RAMP} & frame.flags)


def rows(measurement: Measurement, recording: Path) -> Iterator[Row]:
    """A row for each place for which iopstui has a figure."""
    by_span = dict(zip(map(tuple, measurement["spans"]), measurement["places"], strict=True))
    mean, all_waits, places, lengths = MeanWaits(), [], [], []
    for span, waits in seconds(recording):
        all_waits.append(waits)
        places.append(by_span[span])
        lengths.append(span[1] - span[0])
        mean.add(waits, lengths[-1])
    mean_waits = mean.value
    if mean_waits is None:
        print(
            f"waits: {measurement['stack']}, {measurement['job']}: no second was measured",
            file=sys.stderr,
        )
        return
    for part in (IOS, CPU, ABOVE, *measurement["tree"], QUEUE, DEVICE):
        measured = _part(mean_waits, part)
        if measured is None:
            continue
        theirs = [place[part] for place in places]
        errors = [abs((_part(waits, part) or 0.0) - value)
                  for waits, value in zip(all_waits, theirs, strict=True)]  # fmt: skip
        total = sum(length * value for length, value in zip(lengths, theirs, strict=True))
        yield Row(
            measurement["stack"],
            measurement["job"],
            part,
            measured,
            total / sum(lengths),
            max(errors),
        )


def _part(waits: Waits, part: str) -> float | None:
    if part == ABOVE and waits.above is not None:
        return waits.above + waits.cache  # the trace does not see the page cache
    if part in (IOS, CPU, ABOVE, QUEUE, DEVICE):
        value: float | None = getattr(waits, part)
        return value
    return waits.layers.get(part, 0.0)
