"""A watch of an NFS mount as a live table of 80 columns: nfsiostat's columns, a row for READ, WRITE
and all other operations in each second."""

from __future__ import annotations

from typing import TextIO

from iopstui import format as units
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.share import OperationRates, sum_operations
from iopstui.output.watch_table import FrameTable
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


class ShareTable(FrameTable):
    """READ, WRITE and the other operations of each frame."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        super().__init__(out, err, header(), rows)


def header() -> str:
    """The line above the rows."""
    return f"{'UTC':>8} {'time':>8} {'op':>5} {head_line(COLUMNS)}"


def rows(frame: Frame) -> list[str]:
    """READ, WRITE and the other operations of a frame; one row of dashes where the mount was not
    measured."""
    share = frame.share
    each: dict[str, OperationRates | None] = {"read": None}
    if share is not None:
        others = sum_operations(share.others.values(), share.seconds)
        each = {"read": share.read, "write": share.write, "other": others}
    times = f"{(units.utc(frame.wall_ms) or '')[11:19]:>8} {units.clock(frame.t):>8}"
    found = []
    for name, one in each.items():
        found.append(f"{times} {name:>5} {line(COLUMNS, texts(COLUMNS, one))}")
        times = " " * len(times)
    return found
