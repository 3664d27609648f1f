"""TCP connections to the target's file servers, for the page on waiting I/Os."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as f
from iopstui.model.network.connections import Connection
from iopstui.tables import Column
from iopstui.ui.draw.rows import Row, listing, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, WARNING, Charset

MAX_ROWS = 16
ABOUT = (
    "RTT is that of packets (smoothed by the kernel), not that of requests: what a request takes "
    "longer is the server's. queue: bytes not acknowledged yet. window: share of the time that the "
    "server's receive window held the connection up."
)
COLUMNS = (
    Column("", "server, local port", 30,
           read=lambda each: f"{each.server} {each.kind} :{each.local_port}"),
    Column("rtt", "RTT", 7, f.dense_ms, style=DEVICE),
    Column("min_rtt", "min", 7, f.dense_ms, rank=3),
    Column("retrans", "retrans", 7, style_of=lambda each: WARNING if each.retrans else None),
    Column("sent_s", "sent MB/s", 9, f.mib),
    Column("received_s", "recv MB/s", 9, f.mib),
    Column("send_queue", "queue", 10, f.size),
    Column("cwnd", "cwnd", 5, f.number, rank=2),
    Column("rwnd_limited", "window", 7, lambda share: f"{f.percent(share)} %", rank=1),
)  # fmt: skip


def rows(connections: Sequence[Connection] | None, width: int, charset: Charset) -> list[Row]:
    """A rule, a row for each connection, and an explanation; empty without connections."""
    if not connections:
        return []
    title = rule(width, charset, ("connections", BOLD), (" (sock_diag, as ss -ti)", DIM))
    return [
        message(width, charset, ""), title,
        *listing(COLUMNS, connections, width, charset, MAX_ROWS), *wrap(width, charset, ABOUT),
    ]  # fmt: skip
