"""TCP connections to the target's file servers, for the page on waiting I/Os."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as f
from iopstui.model.network.connections import Connection
from iopstui.ui.draw.rows import Column, Row, Table, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, WARNING, Charset

MAX_ROWS = 16
LABEL = 30
ABOUT = (
    "RTT is that of packets (smoothed by the kernel), not that of requests: what a request takes "
    "longer is the server's. queue: bytes not acknowledged yet. window: share of the time that the "
    "server's receive window held the connection up."
)
COLUMNS: tuple[Column[Connection], ...] = (
    Column("RTT", 8, lambda c: f.milliseconds(c.rtt, ""), style=DEVICE),
    Column("min", 8, lambda c: f.milliseconds(c.min_rtt, ""), drop=3),
    Column("retrans", 8, lambda c: f.MISSING if c.retrans is None else str(c.retrans),
           style_of=lambda c: WARNING if c.retrans else None),
    Column("sent MB/s", 10, lambda c: f.mib(c.sent_s)),
    Column("recv MB/s", 10, lambda c: f.mib(c.received_s)),
    Column("queue", 11, lambda c: f.size(c.send_queue)),
    Column("cwnd", 6, lambda c: f.number(c.cwnd), drop=2),
    Column("window", 8, lambda c: f"{f.percent(c.rwnd_limited)} %", drop=1),
)  # fmt: skip


def rows(connections: Sequence[Connection] | None, width: int, charset: Charset) -> list[Row]:
    """A rule, a row for each connection, and an explanation; empty without connections."""
    if not connections:
        return []
    table = Table(COLUMNS, LABEL, width, charset)
    title = rule(width, charset, ("connections", BOLD), (" (sock_diag, as ss -ti)", DIM))
    table_rows = [
        table.row(f"{connection.server} {connection.kind} :{connection.local_port}", connection)
        for connection in connections[:MAX_ROWS]
    ]
    if len(connections) > MAX_ROWS:
        table_rows.append(message(width, charset, f"and {len(connections) - MAX_ROWS} more"))
    return [message(width, charset, ""), title, table.header("server, local port"), *table_rows,
            *wrap(width, charset, ABOUT)]  # fmt: skip
