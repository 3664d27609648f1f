"""Counters of the TCP connections to a target's servers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from iopstui.linux.network.endpoints import Endpoint
from iopstui.linux.network.sock_diag import TcpSocket, tcp_sockets
from iopstui.model.network.connections import AT_NS, key

MAX_CONNECTIONS = 64


class ConnectionReader:
    """Reads them repeatedly; gives up where the kernel refuses. For one thread."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        sockets: Callable[[int, bool], list[TcpSocket]] = tcp_sockets,
    ) -> None:
        self._kinds = {(one.address, one.port): one.kind for one in endpoints}
        self._ports = tuple(dict.fromkeys((one.port, ":" in one.address) for one in endpoints))
        self._sockets = sockets

    def read(self) -> dict[str, int] | None:
        """All counters, by model/network/connections.py's keys; ``None`` where there are none."""
        if not self._ports:
            return None
        try:
            found = [one for port, version_6 in self._ports
                     for one in self._sockets(port, version_6)]  # fmt: skip
        except OSError:
            self._ports = ()
            return None
        counters = {AT_NS: time.monotonic_ns()}
        ours = [one for one in found if (one.address, one.port) in self._kinds]
        for one in ours[:MAX_CONNECTIONS]:
            kind = self._kinds[one.address, one.port]
            server = f"[{one.address}]" if ":" in one.address else one.address
            queues = {"send_queue": one.send_queue, "receive_queue": one.receive_queue}
            for name, value in {**queues, **one.info}.items():
                counters[key(name, one.local_port, f"{server}:{one.port}", kind)] = value
        return counters
