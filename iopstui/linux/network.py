"""Servers that a target's I/O goes to over TCP, and the counters of the connections to them.

Sources: mount options in mountinfo (nfs(5), mount.cifs(8)), drivers/nvme/host/sysfs.c (transport,
address), drivers/scsi/scsi_transport_iscsi.c (iscsi_connection)."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from iopstui.linux.devices.usage.mounts import MountEntry, read_own_mounts
from iopstui.linux.kernel_files import Roots, list_names, read_text
from iopstui.model.block.target import NFS, SMB, Target
from iopstui.model.network import AT_NS, counter_name

NFS_KIND, SMB_KIND, NVME_KIND, ISCSI_KIND = "NFS", "SMB", "NVMe/TCP", "iSCSI"
NFS_PORT, SMB_PORT = 2049, 445
_CONTROLLER = re.compile(r"nvme[0-9]+")
_SESSION = re.compile(r"/session([0-9]+)/")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address and port, and what it serves."""

    address: str
    port: int
    kind: str


def endpoints(target: Target, roots: Roots) -> tuple[Endpoint, ...]:
    """All servers of the target, each once. Sends nothing over the network."""
    candidates = (
        *_mount_endpoints(target, roots),
        *_nvme_endpoints(target, roots),
        *_iscsi_endpoints(target, roots),
    )
    return tuple(dict.fromkeys(endpoint for endpoint in candidates if endpoint is not None))


def _mount_endpoints(target: Target, roots: Roots) -> Iterator[Endpoint | None]:
    mountpoints = {place.mountpoint for place in target.places if place.fstype in (*NFS, *SMB)}
    if not mountpoints:
        return
    # the last mount at a path hides the others
    mounts = {entry.mountpoint: entry for entry in read_own_mounts(roots)}
    for place in mountpoints & mounts.keys():
        entry = mounts[place or ""]
        if entry.fstype in (*NFS, *SMB):
            yield _mount_endpoint(entry)


def _mount_endpoint(entry: MountEntry) -> Endpoint | None:
    options = dict(option.partition("=")[::2] for option in entry.super_options.split(","))
    nfs = entry.fstype in NFS
    if options.get("proto", "tcp") not in ("tcp", "tcp6") or "rdma" in options:
        return None
    kind, port = (NFS_KIND, NFS_PORT) if nfs else (SMB_KIND, SMB_PORT)
    return _endpoint(options.get("addr", ""), options.get("port", str(port)), kind)


def _nvme_endpoints(target: Target, roots: Roots) -> Iterator[Endpoint | None]:
    for disk in target.tree:
        if not disk.startswith("nvme"):
            continue
        place = os.path.realpath(roots.sys / "class/block" / disk / "device")
        below = [name for name in list_names(place) if _CONTROLLER.fullmatch(name)]
        for directory in (place, *(f"{place}/{name}" for name in below)):
            if (read_text(f"{directory}/transport") or "").strip() == "tcp":
                text = (read_text(f"{directory}/address") or "").strip()
                address = dict(field.partition("=")[::2] for field in text.split(","))
                yield _endpoint(address.get("traddr", ""), address.get("trsvcid", ""), NVME_KIND)


def _iscsi_endpoints(target: Target, roots: Roots) -> Iterator[Endpoint | None]:
    connections = roots.sys / "class/iscsi_connection"
    for disk in target.tree:
        session = _SESSION.search(os.path.realpath(roots.sys / "class/block" / disk / "device"))
        for name in list_names(connections) if session else ():
            if session and name.startswith(f"connection{session[1]}:"):
                address, port = (
                    (read_text(connections / name / attribute) or "").strip()
                    for attribute in ("address", "port")
                )
                yield _endpoint(address, port, ISCSI_KIND)


def _endpoint(address: str, port: str, kind: str) -> Endpoint | None:
    """The server's endpoint; ``None`` if these are not an address and a port."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if not port.isdecimal() or not 0 < int(port) < 1 << 16:
        return None
    return Endpoint(str(parsed), int(port), kind)


# TCP connections from the kernel's socket diagnostics, which `ss -tin` shows (sock_diag(7)).
#
# Any user may ask, and no packet is sent. Sources: include/uapi/linux/inet_diag.h (messages, filter
# bytecode) and tcp.h (struct tcp_info, which newer kernels only make longer).


NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 2, 3
INET_DIAG_REQ_BYTECODE, INET_DIAG_INFO = 1, 2
BC_D_GE, BC_D_LE = 4, 5
ESTABLISHED = 1
TIMEOUT_S = 1.0
BUFFER = 1 << 16
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI48s")
_MESSAGE = struct.Struct("=BBBB2s2s16s16sIIIIIIII")
_INFO = {
    "unacked": (24, "I"), "rtt_us": (68, "I"), "rttvar_us": (72, "I"), "cwnd": (80, "I"),
    "retrans": (100, "I"), "received": (128, "Q"), "segments": (136, "I"),
    "unsent": (144, "I"), "min_rtt_us": (148, "I"), "busy_us": (168, "Q"),
    "rwnd_limited_us": (176, "Q"), "sndbuf_limited_us": (184, "Q"), "sent": (200, "Q"),
}  # fmt: skip
"""Offsets of the used fields in struct tcp_info."""


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """An established connection to ``address`` and ``port`` from ``local_port``: bytes in the
    queues, and values of tcp_info (times in µs, sums since the connection began)."""

    address: str
    port: int
    local_port: int
    send_queue: int
    receive_queue: int
    info: dict[str, int]


def tcp_sockets(port: int, version_6: bool = False) -> list[TcpSocket]:
    """All established connections to this port of any address, of IPv4 or IPv6. OSError if the
    kernel does not say (no inet_diag, or a container forbids netlink)."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as link:
        link.settimeout(TIMEOUT_S)
        link.send(request(socket.AF_INET6 if version_6 else socket.AF_INET, port))
        return list(_answers(link))


def request(family: int, port: int) -> bytes:
    """A request for the connections of an address family to a port, with struct tcp_info."""
    body = _REQUEST.pack(
        family, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0, 1 << ESTABLISHED, bytes(48)
    )
    # each test is a jump and its value; a jump beyond the end means no match
    tests = struct.pack("=BBHBBH", BC_D_GE, 8, 20, 0, 0, port)
    tests += struct.pack("=BBHBBH", BC_D_LE, 8, 12, 0, 0, port)
    body += struct.pack("=HH", 4 + len(tests), INET_DIAG_REQ_BYTECODE) + tests
    size = _HEADER.size + len(body)
    return _HEADER.pack(size, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body


def _answers(link: socket.socket) -> Iterator[TcpSocket]:
    while True:
        data = link.recv(BUFFER)
        for kind, body in _messages(data):
            if kind == NLMSG_DONE:
                return
            if kind == NLMSG_ERROR:
                number = -struct.unpack_from("=i", body)[0]
                raise OSError(number, "socket diagnostics refused")
            if kind == SOCK_DIAG_BY_FAMILY and len(body) >= _MESSAGE.size:
                yield parse_socket(body)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEADER.size <= len(data):
        size, kind, *_ = _HEADER.unpack_from(data, at)
        if size < _HEADER.size:
            raise OSError(0, "a malformed answer of the kernel")
        yield kind, data[at + _HEADER.size : at + size]
        at += -(-size // 4) * 4


def parse_socket(body: bytes) -> TcpSocket:
    """Parse one connection of an answer."""
    family, _, _, _, local_port, remote_port, _, to, _, _, _, _, received, sent, _, _ = (
        _MESSAGE.unpack_from(body)
    )
    info = next((value for kind, value in _attributes(body) if kind == INET_DIAG_INFO), b"")
    size = 4 if family == socket.AF_INET else 16
    return TcpSocket(
        str(ipaddress.ip_address(to[:size])),
        int.from_bytes(remote_port, "big"),
        int.from_bytes(local_port, "big"),
        sent,
        received,
        {
            name: struct.unpack_from(f"={form}", info, place)[0]
            for name, (place, form) in _INFO.items()
            if place + struct.calcsize(f"={form}") <= len(info)
        },
    )


def _attributes(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = _MESSAGE.size
    while at + 4 <= len(body):
        size, kind = struct.unpack_from("=HH", body, at)
        if size < 4:
            return
        yield kind, body[at + 4 : at + size]
        at += -(-size // 4) * 4


MAX_CONNECTIONS = 64


class ConnectionReader:
    """Reads the connections repeatedly. It gives up if the kernel refuses. To be used by one
    thread."""

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
        """All counters, by the keys of model/network.py; ``None`` if there are none."""
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
