"""`make truth` itself: it takes the jobs it says, and it sees what is wrong."""

from __future__ import annotations

from dataclasses import replace

import compare
import fio_runs
import pytest
from fio_runs import Measured

import jobs
from iopstui.model.metrics.frame import Frame


def failed_checks(measurement: Measured) -> set[str]:
    return {
        name for name, error in compare.errors(measurement) if error > compare.CHECKS[name].bound
    }


@pytest.fixture(scope="module")
def measurement(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    place = tmp_path_factory.mktemp("truth")
    fio_runs.lay_out("fio", jobs.FILE, jobs.SIZE, place)
    text = (
        f"[global]\nioengine=psync\nfilename={jobs.FILE}\nsize={jobs.SIZE}\nbs=4k\n"
        "[a]\nrw=randrw\ntime_based\nruntime=1100ms\nrate_iops=2000\n"
    )
    return fio_runs.run("fio", jobs.Job(0, text, ()), place)


def test_a_correct_run_has_no_errors(measurement: Measured) -> None:
    counts = {"I/Os", "certificate", "bytes", "bins", "mean", "max", "percentile"}
    assert not failed_checks(measurement) & counts
    assert {name for name, _ in compare.errors(measurement)} >= counts | {"seconds", "IOPS"}


def with_total(measurement: Measured, number: int, **changes: object) -> Measured:
    """Replace the total of one frame."""
    frames: list[Frame] = list(measurement.frames)
    fio = frames[number].fio
    assert fio is not None
    frames[number] = replace(frames[number], fio=replace(fio, **changes))  # type: ignore[arg-type]
    return replace(measurement, frames=frames)


def test_errors_are_detected(measurement: Measured) -> None:
    lost = replace(measurement, frames=measurement.frames[2:])
    assert failed_checks(lost) >= {"I/Os", "certificate", "bytes", "bins", "seconds"}
    fio = measurement.frames[0].fio
    assert fio is not None and fio.seconds is not None
    assert "seconds" in failed_checks(with_total(measurement, 0, seconds=fio.seconds + 0.4))
    (row,) = fio.jobs
    assert "I/Os" in failed_checks(
        with_total(measurement, 0, jobs=(replace(row, ios=row.ios + 1),))
    )
    slow = replace(fio.total, max_ns=10**12)
    assert "max" in failed_checks(with_total(measurement, 0, total=slow))
    reads = fio.directions["read"]
    twice = {**fio.directions, "read": replace(reads, clat_ns=2 * (reads.clat_ns or 1.0))}
    assert "mean" in failed_checks(with_total(measurement, 0, directions=twice))
    shifted = replace(fio.total, bins={2 * key: n for key, n in fio.total.bins.items()})
    assert "percentile" in failed_checks(with_total(measurement, 0, total=shifted))


def test_jobs_are_deterministic_and_cover_everything() -> None:
    first = list(jobs.jobs(100, 1, jobs.ENGINES, True))
    assert first == list(jobs.jobs(100, 1, jobs.ENGINES, True))
    traits = {trait for job in first for trait in job.traits}
    assert traits >= {*jobs.ENGINES, *jobs.EXTRAS, "verify", "stonewall", "numjobs", "two sizes"}
