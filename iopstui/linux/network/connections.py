"""Counters of the TCP connections to a target's servers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from iopstui.linux.network.endpoints import Endpoint
from iopstui.linux.network.sock_diag import TcpSocket, tcp_sockets
from iopstui.model.network import AT_NS, counter_name

MAX_CONNECTIONS = 64


class ConnectionReader:
    """Reads them repeatedly; gives up where the kernel refuses. For one thread."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        sockets: Callable[[int, bool], list[TcpSocket]] = tcp_sockets,
    ) -> None:
        self._kinds = {(endpoint.address, endpoint.port): endpoint.kind for endpoint in endpoints}
        self._ports = tuple(
            dict.fromkeys((endpoint.port, ":" in endpoint.address) for endpoint in endpoints)
        )
        self._sockets = sockets

    def read(self) -> dict[str, int] | None:
        """All counters, by model/network.py's keys; ``None`` where there are none."""
        if not self._ports:
            return None
        try:
            sockets = [connection for port, version_6 in self._ports
                       for connection in self._sockets(port, version_6)]  # fmt: skip
        except OSError:
            self._ports = ()
            return None
        counters = {AT_NS: time.monotonic_ns()}
        matching = [
            connection
            for connection in sockets
            if (connection.address, connection.port) in self._kinds
        ]
        for connection in matching[:MAX_CONNECTIONS]:
            address, port = connection.address, connection.port
            kind = self._kinds[address, port]
            server = f"[{address}]" if ":" in address else address
            queues = {
                "send_queue": connection.send_queue,
                "receive_queue": connection.receive_queue,
            }
            for name, value in {**queues, **connection.info}.items():
                counters[counter_name(name, connection.local_port, f"{server}:{port}", kind)] = (
                    value
                )
        return counters
