from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from iopstui.errors import UsageError
from iopstui.linux import own_threads
from iopstui.model.block.device import BlockDevice, Hctx, IrqVector
from iopstui.session.own_cpus import OwnCpus, job_cpus, measured_cpus


def disk(*vectors: IrqVector) -> BlockDevice:
    """Two queues: hctx 0 serves CPUs 0 and 1, hctx 1 CPUs 2 and 3."""
    hctxs = (Hctx(0, (0, 1), None, None), Hctx(1, (2, 3), None, None))
    return BlockDevice("vdb", "/dev/vdb", 252, 16, "virtio-blk", None, hctxs=hctxs, irqs=vectors)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("[a]\ncpus_allowed=1,3-4\n", {1, 3, 4}),
        ("[global]\ncpus_allowed=2\n[a]\n[b]\ncpus_allowed=5\n", {2, 5}),
        ("[a]\ncpus_allowed=2\n[b]\nrw=read\n", None),
        ("[a]\ncpus_allowed=0-max\n", None),
        ("[a]\nrw=read\n", None),
        ("", None),
    ],
)
def test_job_cpus(text: str, cpus: set[int] | None) -> None:
    assert job_cpus(text) == cpus


def test_only_interrupts_of_the_jobs_queues_count() -> None:
    both = disk(
        IrqVector(30, "config", None, effective_cpus=(7,)),
        IrqVector(31, "req.0", 0, effective_cpus=(1,)),
        IrqVector(32, "req.1", 1, effective_cpus=(3,)),
    )
    assert measured_cpus({0}, [both]) == {0, 1}
    assert measured_cpus({0, 2}, [both]) == {0, 1, 2, 3}
    assert measured_cpus({5}, []) == {5}


def test_an_interrupt_of_all_queues_or_of_one_that_is_not_known_counts() -> None:
    shared = disk(
        IrqVector(30, "config", None, effective_cpus=(7,)),
        IrqVector(31, "requests", 0, shared=True, effective_cpus=(6,)),
    )
    assert measured_cpus({2}, [shared]) == {2, 6}
    assert measured_cpus({2}, [disk(IrqVector(32, "blkif", None, effective_cpus=(5,)))]) == {2, 5}


def test_a_cpu_that_is_not_ours_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="cannot run on CPU 4095, only on "):
        OwnCpus([4095])


class Machine:
    """A fake of this machine's CPUs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cpus: set[int]) -> None:
        self.own = frozenset(cpus)
        monkeypatch.setattr(own_threads, "initial_cpus", lambda: frozenset(cpus))
        monkeypatch.setattr(own_threads, "current_cpus", lambda: self.own)
        monkeypatch.setattr(own_threads, "pin", self.pin)

    def pin(self, cpus: frozenset[int]) -> None:
        self.own = cpus


def test_it_goes_where_neither_job_nor_device_work(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {0, 1, 2, 3})
    place = OwnCpus(None)
    disks = [disk(IrqVector(31, "req.0", 0, effective_cpus=(1,)))]
    words = place.for_job("[a]\ncpus_allowed=0\n", disks)
    assert "CPU 2-3" in words
    assert machine.own == {2, 3}
    assert place.for_job("[a]\ncpus_allowed=0\n", disks) == ""  # iopstui is already there
    assert "every CPU again" in place.for_job("[a]\nrw=read\n", disks)
    assert machine.own == {0, 1, 2, 3}


@pytest.mark.parametrize("text", ["[a]\ncpus_allowed=0-3\n", "[a]\nrw=read\n"])
def test_it_stays_where_it_is_without_a_cpu_to_spare(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    machine = Machine(monkeypatch, {0, 1, 2, 3})
    assert OwnCpus(None).for_job(text, []) == ""
    assert machine.own == {0, 1, 2, 3}


def test_what_was_asked_for_is_not_changed_by_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {0, 1, 2, 3})
    place = OwnCpus([1])
    assert place.begin() == ""
    assert place.for_job("[a]\ncpus_allowed=1\n", []) == ""
    assert machine.own == {1}


SCRIPT = """
import json, os, subprocess, sys, threading
from iopstui.session.own_cpus import OwnCpus
cpu = min(os.sched_getaffinity(0))
go, other = threading.Event(), []
def look():
    go.wait()
    other.extend([sorted(os.sched_getaffinity(0)), os.nice(0)])
thread = threading.Thread(target=look); thread.start()
place = OwnCpus([cpu], 5)
said = place.begin()
go.set(); thread.join()
child = [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)), os.nice(0))"]
with place.unpinned():
    fio = subprocess.check_output(child, text=True).split()
print(json.dumps([said, cpu, other, sorted(os.sched_getaffinity(0)), os.nice(0), fio]))
"""


def test_all_threads_move_and_what_is_started_unpinned_inherits_nothing() -> None:
    before = os.nice(0)
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, cpu, other, own, nice, fio = json.loads(done.stdout)
    assert said == ""
    assert other == [[cpu], max(before, 5)]
    assert own == [cpu]
    assert nice == before  # the calling thread, which samples and starts fio
    assert fio == [str(len(os.sched_getaffinity(0))), str(before)]
