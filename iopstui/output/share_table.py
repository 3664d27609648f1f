"""A watch of an NFS mount as a live table of 80 columns: nfsiostat's columns, a row for READ, WRITE
and all other operations in each second."""

from __future__ import annotations

from typing import TextIO

from iopstui import format as units
from iopstui.events import Event, FrameReady
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.share import OperationRates, summed
from iopstui.output.narration import Narrator
from iopstui.output.table import HEADER_EVERY
from iopstui.tables import Column, head_line, line, texts

COLUMNS = (
    Column("ops_s", "ops/s", 5, units.number),
    Column("kb_s", "kB/s", 5, units.number),
    Column("kb_op", "kB/op", 5, units.number),
    Column("retrans_percent", "retrans%", 8, units.percent),
    Column("rtt", "RTT", 7, units.milliseconds),
    Column("exe", "exe", 7, units.milliseconds),
    Column("queue", "queue", 7, units.milliseconds),
    Column("errors_percent", "err%", 4, units.percent),
)


class ShareTable:
    """Prints the rows of each frame. Passes ``BrokenPipeError`` on."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._narrator = Narrator(err)
        self._lines = 0

    def handle(self, event: Event) -> None:
        """Print the event."""
        if not isinstance(event, FrameReady):
            self._narrator.handle(event)
        elif event.frame.seconds is not None:  # the first sample has nothing before it
            self._frame(event.frame)

    def close(self) -> None:
        """End the output: nothing more will come."""
        self._out.flush()
        self._narrator.close()

    def _frame(self, frame: Frame) -> None:
        if self._lines == 0 or self._lines >= HEADER_EVERY:
            self._lines = 0
            units.put(header(), self._out)
        found = rows(frame)
        self._lines += len(found)
        units.put("\n".join(found), self._out)


def header() -> str:
    """The line above the rows."""
    return f"{'UTC':>8} {'time':>8} {'op':>5} {head_line(COLUMNS)}"


def rows(frame: Frame) -> list[str]:
    """READ, WRITE and the other operations of a frame; one row of dashes where the mount was not
    measured."""
    share = frame.share
    each: dict[str, OperationRates | None] = {"read": None}
    if share is not None:
        others = summed(share.others.values(), share.seconds)
        each = {"read": share.read, "write": share.write, "other": others}
    times = f"{(units.utc(frame.wall_ms) or '')[11:19]:>8} {units.clock(frame.t):>8}"
    found = []
    for name, one in each.items():
        found.append(f"{times} {name:>5} {line(COLUMNS, texts(COLUMNS, one))}")
        times = " " * len(times)
    return found
