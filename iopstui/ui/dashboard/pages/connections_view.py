"""TCP connections to the target's file servers, for the page on waiting I/Os."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as f
from iopstui.model.figures.figure import by_name
from iopstui.model.network import CONNECTION, Connection
from iopstui.tables import Column
from iopstui.ui.draw.rows import Row, listing, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, WARNING, Charset

MAX_ROWS = 16
ABOUT = (
    "RTT is that of packets (smoothed by the kernel), not that of requests: what a request takes "
    "longer is the server's. queue: bytes not acknowledged yet. window: share of the time that the "
    "server's receive window held the connection up."
)
_ROWS = by_name(CONNECTION)
COLUMNS = (
    Column("", "server, local port", 30,
           read=lambda each: f"{each.server} {each.kind} :{each.local_port}"),
    _ROWS["rtt"].screen_column(DEVICE, title="RTT"),
    _ROWS["min_rtt"].screen_column(title="min"),
    _ROWS["retrans"].screen_column(style_of=lambda each: WARNING if each.retrans else None),
    _ROWS["sent"].screen_column(title="sent MB/s"),
    _ROWS["received"].screen_column(title="recv MB/s"),
    _ROWS["send_queue"].screen_column(title="queue"),
    _ROWS["cwnd"].screen_column(),
    _ROWS["rwnd_limited"].screen_column(title="window", form=lambda it: f"{f.percent(it)} %"),
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
