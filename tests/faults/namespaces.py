"""Hosts to reach with the real ssh: network namespaces, each with an sshd of its own.

Their addresses are in 10.213.77.0/24, on a bridge of their own without any other connection. sshd
listens only on these addresses, with keys made for the case. ``ssh`` is a wrapper on PATH that uses
these keys."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")
BRIDGE = "iopsbr0"
NET = "10.213.77"
CONFIG = """\
ListenAddress {address}
HostKey {place}/host
AuthorizedKeysFile {place}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
SetEnv XDG_RUNTIME_DIR={place}/far XDG_STATE_HOME={place}/state FAR_HOST={address}
"""


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@dataclass
class Hosts:
    """``path`` is a PATH whose ssh reaches the ``addresses``. On every host the directory ``data``
    is that host's own; from here it is ``disk``."""

    place: Path
    addresses: list[str]
    path: str
    sshd: list[subprocess.Popen[bytes]]

    @property
    def data(self) -> Path:
        return self.place / "data"

    def disk(self, index: int) -> Path:
        """The directory ``data`` of this host, as seen from here."""
        return self.place / f"data{index}"

    def left(self) -> list[str]:
        """Files and sockets on all hosts that were not there before."""
        places = [self.place / "far", *(self.disk(index) for index in range(len(self.addresses)))]
        return [str(path) for place in places for path in place.iterdir()
                if path.name != "lost+found"]  # fmt: skip

    def cut(self, index: int) -> None:
        """Cut the host's link. No connection is closed."""
        run("ip", "link", "set", f"iopsv{index}", "down")

    def drop_ssh(self, index: int) -> None:
        """Kill the host's sshd and all its connections."""
        for line in Path(f"/proc/{self.sshd[index].pid}/task/{self.sshd[index].pid}/children"
                         ).read_text().split():  # fmt: skip
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line), signal.SIGKILL)
        self.sshd[index].kill()

    def restart_sshd(self, index: int) -> None:
        """Restart the host's sshd like an upgrade of its package: open sessions stay."""
        self.sshd[index].terminate()
        self.sshd[index].wait()
        self.sshd[index] = _sshd(self.place, index)

    def power_off(self, index: int) -> None:
        """Power the host off: its link is cut and its programs are killed."""
        self.cut(index)
        for pid in _pids(index):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.sshd[index].wait()

    def power_on(self, index: int) -> None:
        run("ip", "link", "set", f"iopsv{index}", "up")
        self.sshd[index] = _sshd(self.place, index)


@contextlib.contextmanager
def hosts(place: Path, count: int) -> Iterator[Hosts]:
    """``count`` hosts, removed afterwards."""
    for name in ("host", "user"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name))
    (place / "far").mkdir(mode=0o700)
    for name in ("data", *(f"data{index}" for index in range(count))):
        (place / name).mkdir(exist_ok=True)
    bins = place / "bin"
    bins.mkdir()
    (bins / "ssh").write_text(
        f"#!/bin/sh\nexec {shutil.which('ssh')} -F none -i {place}/user -o IdentitiesOnly=yes "
        f'-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "$@"\n'
    )
    (bins / "ssh").chmod(0o755)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    found = Hosts(place, [], f"{bins}:{os.environ['PATH']}", [])
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    try:
        run("ip", "addr", "add", f"{NET}.254/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        for index in range(count):
            _host(place, index, found)
        yield found
    finally:
        for one in found.sshd:
            one.kill()
            one.wait()
        for index in range(count):
            # the kernel removes a namespace later, and with it that end of the link
            subprocess.run(["ip", "link", "del", f"iopsv{index}"], capture_output=True)
            _remove(index)
        run("ip", "link", "del", BRIDGE)


def _pids(index: int) -> list[int]:
    done = subprocess.run(["ip", "netns", "pids", f"iopsn{index}"], capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


def _remove(index: int) -> None:
    """Remove the host with all its processes: an sshd session whose link was cut would stay."""
    for pid in _pids(index):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    subprocess.run(["ip", "netns", "del", f"iopsn{index}"], capture_output=True)


def _host(place: Path, index: int, found: Hosts) -> None:
    name, near, far = f"iopsn{index}", f"iopsv{index}", f"iopsw{index}"
    address = f"{NET}.{index + 1}"
    run("ip", "netns", "add", name)
    run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
    run("ip", "link", "set", near, "master", BRIDGE, "up")
    inside = ("ip", "netns", "exec", name)
    run(*inside, "ip", "addr", "add", f"{address}/24", "dev", far)
    run(*inside, "ip", "link", "set", far, "up")
    run(*inside, "ip", "link", "set", "lo", "up")
    (place / f"sshd{index}").write_text(CONFIG.format(address=address, place=place))
    found.sshd.append(_sshd(place, index))
    found.addresses.append(address)


def _sshd(place: Path, index: int) -> subprocess.Popen[bytes]:
    """Start an sshd with its own mounts (by ip netns exec) and host name. All hosts have the same
    state directory, like hosts that share a home."""
    script = (
        f"hostname iopsn{index} && mount --bind {place}/data{index} {place}/data && "
        f"exec {SSHD} -D -f {place}/sshd{index} -E {place}/log{index}"
    )
    words = ["ip", "netns", "exec", f"iopsn{index}", "unshare", "--uts", "sh", "-c", script]
    null = subprocess.DEVNULL
    return subprocess.Popen(words, start_new_session=True, stdin=null, stdout=null, stderr=null)
