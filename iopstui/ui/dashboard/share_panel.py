"""Figures of the target's NFS mount in the same second: nfsiostat's, for READ, WRITE and all other
operations, and how the mount is mounted."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui import format as f
from iopstui.model.block.target import Target
from iopstui.model.metrics.share import OperationRates, Share, sum_operations
from iopstui.text import printable
from iopstui.ui.draw.rows import Column, Piece, Row, Table, message
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, WARNING, Charset
from iopstui.ui.state.live import LiveState

TITLE = "Share (nfsiostat)"
ROWS = 4
"""READ, WRITE, the others, and the mount's options."""
LABEL = 7
COLUMNS: tuple[Column[OperationRates], ...] = (
    Column("ops/s", 7, lambda o: f.number(o.ops_s), style=DEVICE),
    Column("kB/s", 7, lambda o: f.number(o.kb_s)),
    Column("kB/op", 7, lambda o: f.number(o.kb_op), drop=2),
    Column("retrans", 8, lambda o: str(o.retransmissions),
           style_of=lambda o: WARNING if o.retransmissions else None),
    Column("avg RTT", 9, lambda o: f.milliseconds(o.rtt, "")),
    Column("avg exe", 9, lambda o: f.milliseconds(o.exe, "")),
    Column("avg queue", 10, lambda o: f.milliseconds(o.queue, "")),
    Column("errors", 7, lambda o: f.MISSING if o.errors is None else str(o.errors), drop=1,
           style_of=lambda o: WARNING if o.errors else None),
)  # fmt: skip


def value(state: LiveState) -> list[Piece]:
    """For the border of its box: RPCs per second, of all operations."""
    share = state.frame.share if state.frame is not None else None
    if share is None:
        return []
    return [("RPC/s ", DIM), (f.number(share.ops_s), BOLD)]


def rows(state: LiveState, target: Target, width: int, charset: Charset) -> list[Row]:
    """The rows below the title."""
    frame = state.frame
    if frame is None or frame.seconds is None:
        return [message(width, charset, "first sample; rates need two")]
    mount = message(width, charset, _mount_words(target))
    if frame.share is None:
        return [message(width, charset, "The mount was not measured in this second."), mount]
    table = Table(COLUMNS, LABEL, width, charset)
    found = [table.header("op")]
    found += [table.row(name, one) for name, one in _operations(frame.share)]
    return [*found, mount]


def _operations(share: Share) -> Iterator[tuple[str, OperationRates]]:
    yield "read", share.read
    yield "write", share.write
    yield "other", sum_operations(share.others.values(), share.seconds)


def _mount_words(target: Target) -> str:
    """The export and the options of the first mount, and how many more there are."""
    first = next(place for place in target.places if place.mountpoint in target.shares)
    more = f" and {len(target.shares) - 1} more" if len(target.shares) > 1 else ""
    return printable(f"{first.share}{more} · {first.mount_options}")
