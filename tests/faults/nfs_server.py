"""The kernel's NFS server in a network namespace of its own, which can be stopped and cut off."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from machine import needs, sh

SPACE, HERE, THERE = "iopstui-nfs", "iopstui0", "iopstui1"
ADDRESS = "10.213.0.2"
_START = """
set -e
for place in /var/lib/nfs /run; do mount -t tmpfs none $place; done
mkdir -p /var/lib/nfs/v4recovery; touch /var/lib/nfs/etab /var/lib/nfs/rmtab
mount -t nfsd nfsd /proc/fs/nfsd
rpcbind -w
echo 10 > /proc/fs/nfsd/nfsv4leasetime; echo 10 > /proc/fs/nfsd/nfsv4gracetime
exportfs -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 "*:$0"
exec rpc.mountd -F -p 20048
"""


class NfsServer:
    """Exports ``exported``, as NFS 3 and as the root of NFS 4. Stopped until ``start``."""

    def __init__(self, exported: Path) -> None:
        self.exported = exported

    def start(self) -> None:
        """Let it answer, also after ``stop``."""
        self._inside("rpc.nfsd 4; echo Y > /proc/fs/nfsd/v4_end_grace")

    def stop(self) -> None:
        """Kill it: connections are closed, new ones refused."""
        self._inside("echo 0 > /proc/fs/nfsd/threads")

    def cut(self) -> None:
        """Cut the link: every packet is lost."""
        sh("ip", "link", "set", HERE, "down")

    def connect(self) -> None:
        """Restore the link."""
        sh("ip", "link", "set", HERE, "up")

    def _inside(self, line: str) -> None:
        mounted = f"mount -t nfsd nfsd /proc/fs/nfsd; {line}"
        sh("ip", "netns", "exec", SPACE, "sh", "-c", mounted, check=False)


@contextlib.contextmanager
def nfs_server(place: Path) -> Iterator[NfsServer]:
    """A running server. ``place`` is the directory for its file system, in memory."""
    needs("ip", "exportfs", "rpc.nfsd", "rpc.mountd", "rpcbind", "mount.nfs",
          modules=("nfs", "nfsd", "veth"))  # fmt: skip
    place.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=64m", "none", str(place))
    sh("ip", "netns", "add", SPACE)
    daemon = None
    server = NfsServer(place)
    try:
        sh("ip", "link", "add", HERE, "type", "veth", "peer", "name", THERE, "netns", SPACE)
        inside = ("ip", "-n", SPACE)
        sh("ip", "address", "add", "10.213.0.1/24", "dev", HERE)
        sh(*inside, "address", "add", f"{ADDRESS}/24", "dev", THERE)
        sh(*inside, "link", "set", "lo", "up")
        sh(*inside, "link", "set", THERE, "up")
        server.connect()
        daemon = subprocess.Popen(
            ["ip", "netns", "exec", SPACE, "sh", "-c", _START, str(place)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        _wait_for(":20048 ")
        server.start()
        _wait_for(":2049 ")
        yield server
    finally:
        server.stop()
        if daemon is not None:
            daemon.kill()
            daemon.wait()
        for process in sh("ip", "netns", "pids", SPACE, check=False).split():
            sh("kill", "-9", process, check=False)
        sh("ip", "netns", "del", SPACE, check=False)
        sh("umount", "-l", str(place), check=False)


def _wait_for(port: str) -> None:
    deadline = time.monotonic() + 30
    while port not in sh("ip", "netns", "exec", SPACE, "ss", "-tlnH"):
        assert time.monotonic() < deadline, f"no server on {port}"
        time.sleep(0.2)


@contextlib.contextmanager
def mounted_share(place: Path, options: str, path: str = "/") -> Iterator[Path]:
    """The server's export, mounted at ``place``."""
    place.mkdir(exist_ok=True)
    sh("mount", "-t", "nfs", "-o", options, f"{ADDRESS}:{path}", str(place))
    try:
        yield place
    finally:
        sh("umount", "-f", "-l", str(place), check=False)
