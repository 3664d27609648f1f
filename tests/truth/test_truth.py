"""`make truth` itself: it takes the jobs it says, and it sees what is wrong."""

from __future__ import annotations

from dataclasses import replace

import compare
import fio_runs
import pytest
from fio_runs import Measured

import jobs
from iopstui.model.metrics.frame import Frame


def above(measured: Measured) -> set[str]:
    return {name for name, error in compare.errors(measured) if error > compare.CHECKS[name].bound}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    place = tmp_path_factory.mktemp("truth")
    fio_runs.lay_out("fio", jobs.FILE, jobs.SIZE, place)
    text = (
        f"[global]\nioengine=psync\nfilename={jobs.FILE}\nsize={jobs.SIZE}\nbs=4k\n"
        "[a]\nrw=randrw\ntime_based\nruntime=1100ms\nrate_iops=2000\n"
    )
    return fio_runs.run("fio", jobs.Job(0, text, ()), place)


def test_of_a_true_run_nothing_is_wrong(measured: Measured) -> None:
    counts = {"I/Os", "certificate", "bytes", "bins", "mean", "max", "percentile"}
    assert not above(measured) & counts
    assert {name for name, _ in compare.errors(measured)} >= counts | {"seconds", "IOPS"}


def changed(measured: Measured, number: int, **changes: object) -> Measured:
    """Another total in one frame."""
    frames: list[Frame] = list(measured.frames)
    fio = frames[number].fio
    assert fio is not None
    frames[number] = replace(frames[number], fio=replace(fio, **changes))  # type: ignore[arg-type]
    return replace(measured, frames=frames)


def test_what_is_wrong_is_seen(measured: Measured) -> None:
    lost = replace(measured, frames=measured.frames[2:])
    assert above(lost) >= {"I/Os", "certificate", "bytes", "bins", "seconds"}
    fio = measured.frames[0].fio
    assert fio is not None and fio.seconds is not None
    assert "seconds" in above(changed(measured, 0, seconds=fio.seconds + 0.4))
    (row,) = fio.jobs
    assert "I/Os" in above(changed(measured, 0, jobs=(replace(row, ios=row.ios + 1),)))
    slow = replace(fio.total, max_ns=10**12)
    assert "max" in above(changed(measured, 0, total=slow))
    read = fio.directions["read"]
    twice = {**fio.directions, "read": replace(read, clat_ns=2 * (read.clat_ns or 1.0))}
    assert "mean" in above(changed(measured, 0, directions=twice))
    shifted = replace(fio.total, bins={2 * key: n for key, n in fio.total.bins.items()})
    assert "percentile" in above(changed(measured, 0, total=shifted))


def test_the_jobs_are_the_same_each_time_and_have_everything() -> None:
    first = list(jobs.jobs(100, 1, jobs.ENGINES, True))
    assert first == list(jobs.jobs(100, 1, jobs.ENGINES, True))
    traits = {trait for job in first for trait in job.traits}
    assert traits >= {*jobs.ENGINES, *jobs.EXTRAS, "verify", "stonewall", "numjobs", "two sizes"}
