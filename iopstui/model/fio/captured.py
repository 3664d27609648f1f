"""The figures in the comments of a captured job, compared with fio's of its run.

Each section of such a job has a line like "# captured: read 332.10/s, 6502 bytes each" for each
direction."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LINE = re.compile(
    r"# captured: (?P<direction>read|write) (?P<rate>[\d.]+)/s, (?P<size>\d+) bytes each"
)
_SECTION = re.compile(r"\s*\[(?P<name>[^\]]+)\]")


@dataclass(frozen=True, slots=True)
class Figures:
    """Requests per second, and their mean size in bytes (``None``: not known)."""

    rate: float
    size: float | None


@dataclass(frozen=True, slots=True)
class CapturedRow:
    """A section and direction of a captured job, and of its run; ``replayed`` is ``None`` if fio
    reported nothing for it."""

    section: str
    direction: str
    captured: Figures
    replayed: Figures | None

    @property
    def ratio(self) -> float | None:
        """Replayed requests per second, relative to the captured ones."""
        if self.replayed is None or not self.captured.rate:
            return None
        return self.replayed.rate / self.captured.rate


def captured_line(direction: str, rate: float, size: float) -> str:
    """The comment (without its #) that ``captured_rows`` reads."""
    return f"captured: {direction} {rate:.2f}/s, {size:.0f} bytes each"


def captured_rows(job: str, summary: Mapping[str, Any]) -> list[CapturedRow]:
    """The captured figures with fio's final ones (``model.summary.fio_summary``); empty if the job
    was not captured."""
    rows: Sequence[Mapping[str, Any]] = summary.get("rows", ())
    return [
        CapturedRow(name, direction, figures, _replayed(rows, name, direction))
        for name, direction, figures in _captured(job)
    ]


def _captured(job: str) -> Iterator[tuple[str, str, Figures]]:
    waiting: list[tuple[str, Figures]] = []
    for line in job.splitlines():
        if match := _LINE.fullmatch(line.strip()):
            figures = Figures(float(match["rate"]), float(match["size"]))
            waiting.append((match["direction"], figures))
        elif section := _SECTION.match(line):
            for direction, figures in waiting:
                yield section["name"], direction, figures
            waiting = []


def _replayed(rows: Sequence[Mapping[str, Any]], name: str, direction: str) -> Figures | None:
    """Figures of fio for all jobs of a section together."""
    directions = [row["directions"][direction] for row in rows
             if row["name"] == name and direction in row["directions"]]  # fmt: skip
    if not directions:
        return None
    rate = sum(part["iops"] for part in directions)
    total_bytes = sum(part["io_bytes"] for part in directions)
    ios = sum(part["total_ios"] for part in directions)
    return Figures(rate, total_bytes / ios if ios else None)
