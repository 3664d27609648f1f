"""The kernel's first interval of a run begins with the job's own first I/O, not with another
program's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from iopstui.session.tick.sampling import Sampling


class Stage(SimpleNamespace):
    """A job on a disk that others use as well: their requests, and the job's bytes (``None``:
    unknown)."""

    def __init__(self, *names: str) -> None:
        disks = {"vda": SimpleNamespace(reads=0, writes=0)}
        super().__init__(
            requests=disks["vda"], sent=None, _io_counts=None,
            _context=SimpleNamespace(target=SimpleNamespace(devices_below=names)),
            _sampler=SimpleNamespace(disks=lambda: disks),
            _current=SimpleNamespace(fio=SimpleNamespace(block_io=lambda: self.sent)),
        )  # fmt: skip

    def did_io(self) -> bool:
        sampling: Any = self
        return Sampling.job_did_io(sampling)


def test_the_jobs_first_io_counts_and_not_a_neighbours() -> None:
    stage = Stage("vda")
    stage.sent = (4096, 0)
    assert not stage.did_io(), "what was before the first look is no I/O of the job"
    stage.requests.reads = 900
    assert not stage.did_io()
    stage.sent = (4096, 8192)
    assert stage.did_io()
    assert not stage.did_io()


def test_without_the_jobs_counts_the_disks_requests_tell() -> None:
    stage = Stage("vda")
    assert not stage.did_io()
    stage.requests.writes = 1
    assert stage.did_io()
    assert Stage().did_io(), "a target without a disk has nothing to wait for"
