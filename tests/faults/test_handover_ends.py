"""One run replaces another. Whatever ends iopstui in any state of this change, nothing is left and
no fio is unguarded. The program ends itself at that point, so each state is met exactly."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
from machine import loop, mounted, sh
from program import environment, iopstui, survivors

DRIVER = textwrap.dedent("""
    import os, queue, signal, sys, threading, time
    from pathlib import Path
    from iopstui import events
    from iopstui.linux.devices.sysfs import read_devices
    from iopstui.linux.devices.target import resolve_target
    from iopstui.linux.kernel_files import Roots
    from iopstui.session import handovers
    from iopstui.session.live import LiveSession
    from iopstui.model.experiment.run_request import RunRequest

    where, state, how, change = sys.argv[1:]
    ended = threading.Event()

    def end():
        print("state", flush=True)
        if how == "kill":
            sys.stdin.readline()
            os.kill(os.getpid(), signal.SIGKILL)
        ended.set()

    enter, start = handovers.Handover.enter, handovers.Handover.__init__

    def entered(self, new, now):
        enter(self, new, now)
        if new == state:
            end()

    def started(self, *of_request):
        start(self, *of_request)
        if state == handovers.PREPARING:
            end()

    handovers.Handover.enter, handovers.Handover.__init__ = entered, started
    devices = read_devices(Roots())
    target = resolve_target(where, Path("/"), Roots(), devices)
    told = queue.SimpleQueue()
    session = LiveSession(target, devices, target,
                          RunRequest(destroy_data=(where,), interval_s=0.25))
    session.start(told.put)
    session.run_job("mixed-4k", {"size": "8m", "runtime": "60"})
    while not (isinstance(event := told.get(timeout=60), events.FrameReady) and event.frame.fio):
        pass
    session.run_job("mixed-4k", {"size": "8m", "runtime": "60", **dict([change.split("=")])})
    ended.wait(20)
    if how == "stop":
        session.stop_job()
        while session.running:
            time.sleep(0.05)
    session.close()
    print("left", session.left_behind, flush=True)
""")
STATES = ["preparing", "laying out", "waiting", "started", "taking over"]


def drive(where: str, state: str, how: str, change: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, where, state, how, change], cwd=cwd, text=True,
        env=environment(cwd.parent), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["kill", "close", "stop"])
@pytest.mark.parametrize(
    ("kind", "state"),
    [(kind, state) for kind in ("directory", "device") for state in STATES
     if (kind, state) != ("device", "laying out")],
)  # fmt: skip
def test_it_ends_in_each_state(kind: str, state: str, how: str, here: Path) -> None:
    place = here / "place"
    place.mkdir()
    # another size needs other files
    change = "size=12m" if state == "laying out" else "iodepth=4"
    with loop(here / "disk.img") as node:
        process = drive(str(place) if kind == "directory" else node, state, how, change, here)
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "state\n"
        below = psutil.Process(process.pid).children(recursive=True)
        process.stdin.write("\n")
        process.stdin.flush()
        output, _ = process.communicate(timeout=60)
        assert survivors(below, 5.0) == []
        assert list(place.iterdir()) == []
        # after SIGKILL only the note of the scratch directory may be left
        iopstui("doctor", cwd=here)
        assert how == "kill" or output == "left \n"
        fd = os.open(node, os.O_RDONLY | os.O_EXCL)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)


def test_on_a_nearly_full_disk_nothing_is_left(here: Path) -> None:
    """The next run needs other files, and there is hardly room for both sets."""
    with loop(here / "disk.img") as node:
        sh("mkfs.ext4", "-q", node)
        with mounted(node, here / "mounted") as place:
            (place / "filler").write_bytes(bytes(18 << 20))
            process = drive(str(place), "taking over", "close", "size=16m", here)
            output, _ = process.communicate(timeout=120)
            assert output.splitlines()[-1] == "left "
            assert sorted(os.listdir(place)) == ["filler", "lost+found"]
