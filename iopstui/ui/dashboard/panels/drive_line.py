"""One row with the health data (SMART) of the NVMe drives below the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from iopstui import format as f
from iopstui.model.metrics.nvme import combined_figure, warnings_of
from iopstui.model.samples import DriveReading
from iopstui.text import printable
from iopstui.ui.draw.rows import Line, Piece, Row
from iopstui.ui.draw.style import BOLD, DIM, WARNING, Charset

OLD_S = 25.0
"""Age (two missed readings) from which a reading's age is shown."""
SEPARATOR: Piece = (" · ", DIM)

DriveReadings = Mapping[str, "tuple[float, DriveReading]"]
"""By controller: time of the last reading (seconds of the session), and the reading."""


def line(drives: DriveReadings, now: float, width: int, charset: Charset) -> Row | None:
    """ "nvme0 47 °C · 3 % of endurance used · 864 MiB written · no warnings"; ``None`` without a
    reading. Several drives are added up, or the worst is shown. Parts that do not fit are left out.
    """
    if not drives:
        return None
    readings = {name: reading for name, (_, reading) in drives.items()}
    name = printable(next(iter(readings)))
    row = Line(width, charset).add(name if len(readings) == 1 else f"{len(drives)} drives", BOLD)
    row.add("  ")
    age = now - min(t for t, _ in drives.values())
    first = True
    for piece in (*_pieces(readings), *_age(age)):
        first = not row.try_add(*((piece,) if first else (SEPARATOR, piece))) and first
    return row.build()


def _pieces(readings: Mapping[str, DriveReading]) -> Iterator[Piece]:
    problem = next((reading.problem for reading in readings.values() if reading.problem), "")
    for drive, reading in readings.items():
        for warning in warnings_of(reading):
            yield (warning if len(readings) == 1 else f"{printable(drive)}: {warning}"), WARNING
    temperature = combined_figure(readings, "temperature")
    most = "at most " if len(readings) > 1 else ""
    if not problem or temperature is not None:
        yield f"{most}{f.or_dash(temperature, '{:.0f}')} °C", None
    if problem:
        yield printable(problem), DIM
        return
    yield f"{f.or_dash(combined_figure(readings, 'used'), '{:.0f}')} % of endurance used", None
    yield f"{f.size(combined_figure(readings, 'bytes_written'))} written", None
    yield f"{f.size(combined_figure(readings, 'bytes_read'))} read", None
    amplification = combined_figure(readings, "write_amplification")
    if amplification is not None:
        yield f"write amplification {amplification:.2f}", None
    if not any(any(warnings_of(reading)) for reading in readings.values()):
        yield "no warnings", DIM


def _age(seconds: float) -> Iterator[Piece]:
    if seconds > OLD_S:
        yield f"read {f.clock(seconds)} ago", WARNING
