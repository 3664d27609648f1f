"""A watch of an NFS or SMB mount as a live table of 80 columns: in each second a row for READ, one
for WRITE and one for all other operations; for NFS with nfsiostat's columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TextIO

from iopstui import format as units
from iopstui.model.block.target import Target
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.shares import NFS_PROTOCOL, SMB_PROTOCOL, OperationRates
from iopstui.output.watch.table import FrameTable
from iopstui.tables import Column, head_line, line, texts

COLUMNS = (
    *(row.column(width=5) for row in (
        OperationRates.ops_s, OperationRates.kb_s, OperationRates.kb_op)),
    OperationRates.retrans_percent.column(width=8),
    OperationRates.rtt.column(title="RTT", width=7),
    OperationRates.exe.column(width=7),
    OperationRates.queue.column(width=7),
    OperationRates.errors_percent.column(title="err%", width=4),
)  # fmt: skip
SMB_COLUMNS = (*COLUMNS[:3], COLUMNS[-1], OperationRates.latency.column())
"""What the SMB client counts; ``latency`` is of all shares on the connection."""


def columns_of(protocol: str) -> tuple[Column, ...]:
    """The columns of "NFS" or "SMB"."""
    return SMB_COLUMNS if protocol == SMB_PROTOCOL else COLUMNS


class ShareTable(FrameTable):
    """READ, WRITE and the other operations of each frame."""

    def __init__(self, out: TextIO, err: TextIO, target: Target) -> None:
        columns = columns_of(SMB_PROTOCOL if target.smb_shares else NFS_PROTOCOL)
        super().__init__(out, err, header(columns), partial(rows, columns=columns))


def header(columns: Sequence[Column] = COLUMNS) -> str:
    """The line above the rows."""
    return f"{'UTC':>8} {'time':>8} {'op':>5} {head_line(columns)}"


def rows(frame: Frame, columns: Sequence[Column] = COLUMNS) -> list[str]:
    """READ, WRITE and the other operations of a frame; one row of dashes where the mount was not
    measured."""
    share = frame.share
    operations: dict[str, OperationRates | None] = {"read": None}
    if share is not None:
        operations = {"read": share.read, "write": share.write, "other": share.other}
    times = f"{(units.utc(frame.wall_ms) or '')[11:19]:>8} {units.clock(frame.t):>8}"
    cells = []
    for name, operation in operations.items():
        cells.append(f"{times} {name:>5} {line(columns, texts(columns, operation))}")
        times = " " * len(times)
    return cells
