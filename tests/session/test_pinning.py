"""A job that the kernel has released from its CPU is reported."""

from __future__ import annotations

from iopstui.model.samples import JobThread
from iopstui.session.tick.sampling import Pinning


def job(index: int, *allowed: int) -> JobThread:
    return JobThread(index, 100 + index, allowed[0], allowed, 0.0)


def say(pinning: Pinning, *jobs: JobThread, online: tuple[int, ...] = (0, 1, 2, 3)) -> list[str]:
    return list(pinning.feed(jobs, lambda: online))


def test_a_cpu_goes_offline_and_its_job_goes_anywhere() -> None:
    pinning = Pinning()
    assert say(pinning, job(0, 0, 1, 2, 3)) == []
    assert say(pinning, job(0, 0), job(1, 3)) == []
    assert say(pinning, job(0, 0), job(1, 3)) == []
    assert say(pinning, job(0, 0), job(1, 0, 1, 2), online=(0, 1, 2)) == [
        "job 1 (process 101) is no longer bound to CPU 3, which is offline: it may now run on "
        "CPU 0-2"
    ]
    assert say(pinning, job(0, 0), job(1, 0, 1, 2), online=(0, 1, 2)) == []
    assert say(pinning, job(0, 0), job(1, 0, 1, 2, 3)) == []


def test_somebody_else_binds_it_anew() -> None:
    pinning = Pinning()
    for _ in range(3):
        assert say(pinning, job(0, 1)) == []
    assert say(pinning, job(0, 2)) == [
        "job 0 (process 100) is no longer bound to CPU 1: it may now run on CPU 2"
    ]


def test_one_of_several_cpus_goes_and_comes_back() -> None:
    pinning = Pinning()
    say(pinning, job(0, 0, 1, 2))
    say(pinning, job(0, 0, 1, 2))
    assert say(pinning, job(0, 0, 1), online=(0, 1)) == []
    assert say(pinning, job(0, 0, 1, 2)) == []
