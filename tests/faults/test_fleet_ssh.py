"""A fleet through the real ssh, to sshds in network namespaces."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from machine import loop, mounted, needs, sh
from namespaces import SSHD, Hosts, hosts
from program import start

pytestmark = pytest.mark.skipif(SSHD is None, reason="there is no sshd here")
WITHIN_S = 7.0
COUNT = 4
MIB = 1 << 20


@pytest.fixture
def far(here: Path) -> Iterator[Hosts]:
    with hosts(here.parent, COUNT) as found:
        yield found


def begun(here: Path, far: Hosts, runtime: int) -> subprocess.Popen[str]:
    return start(
        "fleet", ",".join(far.addresses), str(far.data), "--bring", "--job", "randread-4k",
        "--size", "4m", "--set", f"runtime={runtime}", "--set", "rate_iops=500",
        "--format", "jsonl", cwd=here, PATH=far.path,
    )  # fmt: skip


def fio_on(address: str) -> bool:
    """Whether a fio runs that was started through this sshd."""
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            if words and words[0].endswith("fio") and process.environ().get("FAR_HOST") == address:
                return True
        except psutil.Error:
            continue
    return False


def rows_of(process: subprocess.Popen[str], then: Any = None) -> list[dict[str, Any]]:
    """All rows of the process; ``then`` is called after the first total."""
    found: list[dict[str, Any]] = []
    assert process.stdout is not None
    for line in process.stdout:
        found.append(json.loads(line))
        if then is not None and found[-1]["event"] == "total":
            then()
            then = None
    return found


def test_four_hosts_start_together(here: Path, far: Hosts) -> None:
    process = begun(here, far, 4)
    rows = rows_of(process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    *_, whole = rows
    assert whole["hosts"]["finished"] == COUNT and whole["count"]["exact"] == COUNT
    begun_ns = [row["monotonic_ns"] for row in rows if row["event"] == "executed"]
    assert len(begun_ns) == COUNT
    # the hosts share one clock, so this is the truth; iopstui's own figure comes from its pings
    print(f"executed within {(max(begun_ns) - min(begun_ns)) / 1e6:.2f} ms; {err.splitlines()[-1]}")
    assert far.left() == []


def kill_ssh(process: subprocess.Popen[str], address: str) -> None:
    """Kill the ssh at our end, so that it can't close the connection."""
    (found,) = [child for child in psutil.Process(process.pid).children()
                if child.name() == "ssh" and address in child.cmdline()]  # fmt: skip
    os.kill(found.pid, signal.SIGKILL)


FAULTS: dict[str, Callable[[Hosts, subprocess.Popen[str]], None]] = {
    "link cut without FIN": lambda far, process: far.cut(1),
    "sshd killed": lambda far, process: far.drop_ssh(1),
    "our ssh killed": lambda far, process: kill_ssh(process, far.addresses[1]),
    "powered off": lambda far, process: far.power_off(1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_is_lost_and_stops_by_itself(fault: str, here: Path, far: Hosts) -> None:
    process = begun(here, far, 14)
    gone_after: list[float] = []

    def fail() -> None:
        began = time.monotonic()
        FAULTS[fault](far, process)

        def look() -> None:
            while fio_on(far.addresses[1]) and time.monotonic() - began < 60:
                time.sleep(0.1)
            gone_after.append(time.monotonic() - began)

        threading.Thread(target=look).start()

    rows = rows_of(process, fail)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    *_, whole = rows
    assert whole["lost"] == [far.addresses[1]]
    assert whole["hosts"]["finished"] == COUNT - 1 and whole["count"]["exact"] == COUNT - 1
    assert gone_after and gone_after[0] <= WITHIN_S, f"fio ran on for {gone_after} s"
    print(f"fio was gone after {gone_after[0]:.1f} s")
    if fault == "powered off":
        # files stay on a host that was off: the next run removes them when it is on again
        assert far.left() != []
        far.power_on(1)
        again = begun(here, far, 1)
        _, err = again.communicate(timeout=60)
        assert again.returncode == 0, err
    assert far.left() == []


def test_an_sshd_that_is_restarted_is_nobody_s_loss(here: Path, far: Hosts) -> None:
    process = begun(here, far, 5)
    rows = rows_of(process, lambda: far.restart_sshd(1))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert rows[-1]["hosts"]["finished"] == COUNT and far.left() == []


def test_a_disk_that_is_full_ends_its_host_alone(here: Path) -> None:
    needs("mkfs.ext4", "losetup")
    place = here.parent / "data1"
    with loop(here.parent / "disk", 64 * MIB) as node:
        sh("mkfs.ext4", "-q", "-m", "0", node)
        with mounted(node, place), hosts(here.parent, COUNT) as far:

            def fill() -> None:
                with (place / "other").open("wb") as file:
                    while file.write(b"x" * MIB):
                        file.flush()

            def filled() -> None:
                with pytest.raises(OSError):
                    fill()

            process = begun(here, far, 8)
            rows = rows_of(process, filled)
            _, err = process.communicate(timeout=60)
            (place / "other").unlink()
            assert far.left() == []
    assert process.returncode == 1, err
    assert f"{far.addresses[1]}: failed: the file system of" in err
    assert rows[-1]["hosts"]["failed"] == [far.addresses[1]]
    assert rows[-1]["hosts"]["finished"] == COUNT - 1 and rows[-1]["count"]["exact"] >= COUNT - 1
