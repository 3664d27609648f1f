"""TCP connections: the kernel's figures, and which connections are a target's."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from iopstui.linux.kernel_files import Roots
from iopstui.linux.network import (
    ConnectionReader,
    Endpoint,
    TcpSocket,
    endpoints,
    parse_socket,
    tcp_sockets,
)
from iopstui.model.block.target import DEVICE, DIRECTORY, Target
from iopstui.model.network import counter_name


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection within this machine."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(server.getsockname()) as client:
            accepted, _ = server.accept()
            with accepted:
                yield client, accepted


def test_the_kernel_tells_what_went_over_a_connection(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, server = pair
    port = server.getsockname()[1]
    client.sendall(b"x" * 5000)
    server.sendall(b"y" * 700)
    client.recv(100)
    while len(server.recv(5000, socket.MSG_PEEK)) < 5000:
        pass
    (one,) = tcp_sockets(port)
    assert (one.address, one.port) == ("127.0.0.1", port)
    assert one.local_port == client.getsockname()[1]
    assert one.info["sent"] == 5000 and one.info["received"] == 700
    assert one.receive_queue == 600 and one.info["retrans"] == 0
    assert 0 < one.info["rtt_us"] < 1_000_000 and one.info["cwnd"] > 0
    # the server's end has the port as its own, and the client's port as that of the other end
    (other,) = tcp_sockets(client.getsockname()[1])
    assert other.info["sent"] == 700 and other.receive_queue == 5000


def test_a_port_without_connections_has_none() -> None:
    assert tcp_sockets(1) == [] == tcp_sockets(1, True)


def test_an_older_kernel_tells_less() -> None:
    body = (
        bytes([socket.AF_INET6, 1, 0, 0]) + (50000).to_bytes(2, "big") + (2049).to_bytes(2, "big")
    )
    body += bytes(16) + bytes(15) + b"\1" + bytes(12) + bytes(4) + b"\7\0\0\0" + b"\5\0\0\0"
    body += bytes(8)
    info = bytes(100) + (3).to_bytes(4, "little")
    body += (4 + len(info)).to_bytes(2, "little") + (2).to_bytes(2, "little") + info
    one = parse_socket(body)
    assert (one.address, one.port, one.local_port) == ("::1", 2049, 50000)
    assert (one.receive_queue, one.send_queue) == (7, 5)
    assert one.info == {"unacked": 0, "rtt_us": 0, "rttvar_us": 0, "cwnd": 0, "retrans": 3}
    assert parse_socket(body[:72]).info == {}


def machine(base: Path, mounts: str = "") -> Roots:
    (base / "proc/self").mkdir(parents=True)
    (base / "proc/self/mountinfo").write_text(mounts)
    return Roots.under(base)


def mount(where: str, kind: str, options: str) -> str:
    return f"30 1 0:40 / {where} rw - {kind} server:/x rw,{options}\n"


@pytest.mark.parametrize(
    ("kind", "options", "found"),
    [
        ("nfs4", "vers=4.2,proto=tcp,addr=10.9.0.2", ("10.9.0.2", 2049, "NFS")),
        ("nfs", "proto=tcp6,addr=fe80::1%eth0,port=20490", ("fe80::1", 20490, "NFS")),
        ("nfs4", "proto=rdma,addr=10.9.0.2", None),
        ("nfs4", "proto=tcp,addr=server", None),
        ("nfs4", "proto=tcp,addr=10.9.0.2,port=0", None),
        ("cifs", "vers=3.1.1,addr=10.9.0.3", ("10.9.0.3", 445, "SMB")),
        ("cifs", "rdma,addr=10.9.0.3", None),
        ("ext4", "addr=10.9.0.2", None),
    ],
)
def test_servers_of_mounts(
    kind: str, options: str, found: tuple[str, int, str] | None, tmp_path: Path
) -> None:
    roots = machine(tmp_path, mount("/mnt", kind, options))
    target = Target(DIRECTORY, "/mnt/a", None, (), "far", kind, "/mnt")
    assert endpoints(target, roots) == ((Endpoint(*found),) if found else ())


def test_servers_of_disks(tmp_path: Path) -> None:
    roots = machine(tmp_path)
    block = roots.sys / "class/block"
    block.mkdir(parents=True)
    for name, kind, address in (
        ("nvme1", "tcp", "traddr=10.0.0.5,trsvcid=4420,host_traddr=10.0.0.1"),
        ("nvme2", "tcp", "traddr=fd00::5,trsvcid=4421"), ("nvme3", "pcie", "0000:00:04.0"),
    ):  # fmt: skip
        place = roots.sys / "devices/nvme-subsystem/subsys0" / name
        place.mkdir(parents=True)
        (place / "transport").write_text(f"{kind}\n")
        (place / "address").write_text(f"{address}\n")
    (roots.sys / "devices/nvme-subsystem/subsys0/nvme1n1").mkdir()
    (roots.sys / "devices/nvme-subsystem/subsys0/nvme1n1/device").symlink_to("..")
    (block / "nvme1n1").symlink_to(roots.sys / "devices/nvme-subsystem/subsys0/nvme1n1")
    session = roots.sys / "devices/platform/host2/session7/target2:0:0/2:0:0:1"
    (session / "block/sda").mkdir(parents=True)
    (session / "block/sda/device").symlink_to(session)
    (block / "sda").symlink_to(session / "block/sda")
    for name, port in (("connection7:0", "3260"), ("connection8:0", "3261")):
        place = roots.sys / "class/iscsi_connection" / name
        place.mkdir(parents=True)
        (place / "address").write_text("10.0.0.6\n")
        (place / "port").write_text(f"{port}\n")

    def found(*names: str) -> tuple[Endpoint, ...]:
        return endpoints(Target(DEVICE, "/dev/x", names[0], names), roots)

    assert found("nvme1n1") == (
        Endpoint("10.0.0.5", 4420, "NVMe/TCP"), Endpoint("fd00::5", 4421, "NVMe/TCP"),
    )  # fmt: skip
    assert found("dm-0", "sda") == (Endpoint("10.0.0.6", 3260, "iSCSI"),)
    assert found("vda") == ()


def test_only_connections_to_the_target_s_servers_count() -> None:
    asked: list[tuple[int, bool]] = []

    def sockets(port: int, version_6: bool) -> list[TcpSocket]:
        asked.append((port, version_6))
        address = "fd00::5" if version_6 else "10.0.0.5"
        return [TcpSocket(one, port, 871, 5, 6, {"rtt_us": 200})
                for one in (address, "10.0.0.99")]  # fmt: skip

    servers = [Endpoint("10.0.0.5", 2049, "NFS"), Endpoint("fd00::5", 4420, "NVMe/TCP")]
    found = ConnectionReader(servers, sockets).read() or {}
    assert asked == [(2049, False), (4420, True)]
    assert found.pop("at_ns") > 0
    assert found == {
        counter_name(what, 871, server, kind): value
        for server, kind in (("10.0.0.5:2049", "NFS"), ("[fd00::5]:4420", "NVMe/TCP"))
        for what, value in (("send_queue", 5), ("receive_queue", 6), ("rtt_us", 200))
    }
    assert ConnectionReader([], sockets).read() is None


def test_where_the_kernel_refuses_it_is_not_asked_again() -> None:
    asked = []

    def refused(port: int, version_6: bool) -> list[TcpSocket]:
        asked.append(port)
        raise PermissionError

    reader = ConnectionReader([Endpoint("10.0.0.5", 2049, "NFS")], refused)
    assert reader.read() is None is reader.read()
    assert len(asked) == 1
