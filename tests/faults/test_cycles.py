"""Started and stopped many times: nothing accumulates."""

from __future__ import annotations

import os
import queue
from pathlib import Path

import psutil
import pytest
from machine import loop

from iopstui.events import Event, StepFinished, StepStarted
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.kernel_files import Roots
from iopstui.model.experiment.run_request import RunRequest
from iopstui.session.live import LiveSession

CYCLES = 200
pytestmark = pytest.mark.long


def _until(events: queue.SimpleQueue[Event], kind: type) -> Event:
    while True:
        event = events.get(timeout=30)
        if isinstance(event, kind):
            return event


def test_two_hundred_runs_leave_nothing(here: Path) -> None:
    (here / "job.fio").write_text("[a]\nrw=randread\nioengine=null\nsize=1m\ntime_based\n"
                                  "runtime=60\n")  # fmt: skip
    roots, me = Roots(), psutil.Process()
    # processes that other tests have started
    before = set(me.children(recursive=True))
    with loop(here / "disk.img") as node:
        devices = read_devices(roots)
        target = resolve_target(node, here, roots, devices)
        session = LiveSession(target, devices, target, RunRequest(interval_s=0.25))
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        session.start(events.put)
        settled: tuple[int, int] | None = None
        for cycle in range(CYCLES):
            session.run_job(str(here / "job.fio"), {"name": "a"} if cycle % 2 else {})
            if cycle % 10 == 0:
                session.set_tunable("rq_affinity", "2" if cycle % 20 else "0")
            _until(events, StepStarted)
            session.kill_job() if cycle % 4 else session.stop_job()
            finished = _until(events, StepFinished)
            assert isinstance(finished, StepFinished) and not finished.error, finished
            if cycle == 20:
                settled = me.num_fds(), len(me.children(recursive=True))
        assert settled is not None
        assert me.num_fds() <= settled[0] + 1
        session.close()
        assert set(me.children(recursive=True)) <= before
        assert list(Path(os.environ["XDG_RUNTIME_DIR"]).iterdir()) == []
