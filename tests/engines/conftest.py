"""`make engines`: real Slurm, Kubernetes, Open MPI, ClusterShell and pdsh launch iopstui here.

A Slurm of four nodes and a Kubernetes of three are started for the tests, with their own keys,
ports and directories; they need root. The Makefile sets IOPSTUI_ENGINES; without it no test is
collected here."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

WANTED = bool(os.environ.get("IOPSTUI_ENGINES"))
if not WANTED:
    collect_ignore_glob = ["test_*.py"]
NODES = 4
WITHIN_S = 30.0
CONF = """\
ClusterName=iopstui
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={first}
AuthType=auth/munge
AuthInfo=socket={place}/munge.sock
SlurmUser=root
SlurmdUser=root
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool-%n
SlurmctldPidFile={place}/ctld.pid
SlurmdPidFile={place}/%n.pid
SlurmctldLogFile={place}/ctld.log
SlurmdLogFile={place}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{second}-{last}] CPUs=2
PartitionName=all Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without IOPSTUI_ENGINES, also leave out files named on the command line: building Kubernetes
    takes long."""
    here = Path(__file__).parent
    items[:] = [one for one in items if WANTED or here not in one.path.parents]


def free_ports(count: int) -> int:
    """The first of ``count`` consecutive free ports."""
    for first in range(17_000, 30_000, count):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no free ports")


def wait_for(what: str, true: object) -> None:
    assert callable(true)
    until = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < until, f"not within {WITHIN_S} s: {what}"
        time.sleep(0.2)


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A running cluster; returns its directory. SLURM_CONF is set for all programs started
    meanwhile."""
    need({"srun": "slurm-wlm", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "munged": "munge",
          "mpirun": "openmpi-bin", "clush": "clustershell", "pdsh": "pdsh"})  # fmt: skip
    place = tmp_path_factory.mktemp("slurm")
    place.chmod(0o711)
    (place / "state").mkdir()
    first, host = free_ports(NODES + 1), socket.gethostname().partition(".")[0]
    conf = place / "slurm.conf"
    conf.write_text(CONF.format(place=place, host=host, first=first, second=first + 1,
                                last=first + NODES, nodes=NODES))  # fmt: skip
    key = place / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    os.environ["SLURM_CONF"] = str(conf)
    own = [f"--{name}={place}/munge.{name.split('-')[0]}"
           for name in ("pid-file", "log-file", "seed-file")]  # fmt: skip
    subprocess.run(["munged", "--force", f"--key-file={key}", f"--socket={place}/munge.sock", *own],
                   check=True)  # fmt: skip
    subprocess.run(["slurmctld"], check=True)
    for n in range(1, NODES + 1):
        subprocess.run(["slurmd", "-N", f"n{n}"], check=True)
    try:
        wait_for("four idle nodes", all_idle)
        yield place
    finally:
        subprocess.run(["scancel", "--user=root"], check=False)
        for pid in (*place.glob("n*.pid"), place / "ctld.pid", place / "munge.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(pid.read_text()), signal.SIGKILL)
        del os.environ["SLURM_CONF"]


def all_idle() -> bool:
    return states().split() == [str(NODES), "idle"]


def states() -> str:
    return subprocess.run(["sinfo", "--noheader", "--format=%D %T"], capture_output=True,
                          text=True, check=False).stdout  # fmt: skip


def need(packages: dict[str, str]) -> None:
    """Fail if a program is missing, and name only the packages with missing programs: another
    package's kubectl can't be installed beside Debian's."""
    missing = {name: package for name, package in packages.items() if shutil.which(name) is None}
    wanted = " ".join(dict.fromkeys(missing.values()))
    assert not missing, f"not installed: {', '.join(missing)}; apt install {wanted}"
