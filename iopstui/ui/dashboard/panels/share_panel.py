"""Figures of the target's NFS or SMB mount in the same second, for READ, WRITE and all other
operations, and how the mount is mounted. Those of NFS are nfsiostat's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.style import Style

from iopstui import format as f
from iopstui.model.block.target import Target
from iopstui.model.figures.figure import Figure
from iopstui.model.metrics.shares import OperationRates, Share, SmbClient
from iopstui.text import printable
from iopstui.ui.draw.rows import Piece, Row, Table, message, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, WARNING, Charset
from iopstui.ui.state.live import LiveState

ROWS = 4
"""READ, WRITE, the others, and the mount's options."""
LABEL = 7


def _if_any(figure: Figure) -> Callable[[OperationRates], Style | None]:
    return lambda row: WARNING if figure.value(row) else None


COLUMNS = (
    OperationRates.ops_s.screen_column(DEVICE),
    OperationRates.kb_s.screen_column(),
    OperationRates.kb_op.screen_column(),
    OperationRates.resent.screen_column(style_of=_if_any(OperationRates.resent)),
    OperationRates.rtt.screen_column(title="avg RTT"),
    OperationRates.exe.screen_column(title="avg exe"),
    OperationRates.queue.screen_column(title="avg queue"),
    OperationRates.n_errors.screen_column(style_of=_if_any(OperationRates.n_errors)),
)
SMB_COLUMNS = (*COLUMNS[:3], COLUMNS[-1], OperationRates.latency.screen_column())


def title(target: Target) -> str:
    return "Share (SMB)" if target.smb_shares else "Share (nfsiostat)"


def source(target: Target) -> str:
    return "/proc/fs/cifs/Stats" if target.smb_shares else "/proc/self/mountstats"


def row_count(target: Target) -> int:
    """How many rows it has for figures; SMB has one for the client's state."""
    return ROWS + bool(target.smb_shares)


def value(state: LiveState) -> list[Piece]:
    """For the border of its box: requests sent per second, of all operations."""
    share = state.frame.share if state.frame is not None else None
    if share is None:
        return []
    return [("RPC/s " if share.smb is None else "SMB/s ", DIM), (f.number(share.ops_s), BOLD)]


def rows(state: LiveState, target: Target, width: int, charset: Charset) -> list[Row]:
    frame = state.frame
    if frame is None or frame.seconds is None:
        return [message(width, charset, state.why_no_rates)]
    mount = message(width, charset, _mount_text(target))
    share = frame.share
    if share is None:
        return [*wrap(width, charset, _why_missing(target), None), mount]
    table: Table[OperationRates] = Table(
        COLUMNS if share.smb is None else SMB_COLUMNS, LABEL, width, charset
    )
    body = [table.header("op")]
    body += [table.row(name, rates) for name, rates in _operations(share)]
    if share.smb is not None:
        body.append(message(width, charset, _client_state_text(share.smb)))
    return [*body, mount]


def _why_missing(target: Target) -> str:
    if not target.smb_shares:
        return "The mount was not measured in this second."
    return (
        "Not measured in this second: /proc/fs/cifs/Stats does not have the share, or its counters "
        "began again."
    )


def _client_state_text(smb: SmbClient) -> str:
    """The client's state, and the scope of the latencies."""
    lost = f"{smb.disconnected} disconnected · " if smb.disconnected else ""
    slow = f" · {smb.slow} slow" if smb.slow else ""
    state = f"{lost}in flight {_count(smb.in_flight)} · reconnects {_count(smb.reconnects)}{slow}"
    if smb.clock_ms is None:
        return f"{state} · no latency: kernel without CIFS_STATS2, or SMB 1"
    sources = "the connection" if smb.shares == 1 else f"all {smb.shares} shares of the connection"
    return f"{state} · latency of {sources}, clock {smb.clock_ms:g} ms"


def _count(number: int | None) -> str:
    return f.MISSING if number is None else str(number)


def _operations(share: Share) -> Iterator[tuple[str, OperationRates]]:
    yield "read", share.read
    yield "write", share.write
    yield "other", share.other


def _mount_text(target: Target) -> str:
    """The export and the options of the first mount, and how many more there are."""
    first = next(place for place in target.places if place.mountpoint in target.shares)
    more = f" and {len(target.shares) - 1} more" if len(target.shares) > 1 else ""
    return printable(f"{first.share}{more} · {first.mount_options}")
