"""A removed device is not shown as a fast one."""

from __future__ import annotations

from dataclasses import replace

from iopstui.model.block.device import DeviceWatch
from iopstui.model.samples import (
    DirectionStatus,
    FioStatus,
    JobStatus,
    KernelSample,
    RawSample,
)


def kernel(*disks: str) -> KernelSample:
    return KernelSample(0, 0.0, 0, dict.fromkeys(disks), {}, {}, {}, None)  # type: ignore[arg-type]


def status(issued: int, completed: int | None, moved: int) -> FioStatus:
    read = DirectionStatus(issued, completed, moved, 0, None, None, None, None, "clat", 0.0, 0.0)
    job = JobStatus("a", 0, 0, None, None, None, 0, 0.0, 0.0, 0, {}, {"read": read}, {}, None,
                    False, True)  # fmt: skip
    return FioStatus("fio-3.33", 0, (job,))


def raw(fio: FioStatus | None = None, disks: KernelSample | None = None) -> RawSample:
    return RawSample(0, 0, 0.0, disks, fio, False, 1)


def words(*samples: RawSample) -> list[str]:
    watch = DeviceWatch(["vdb"])
    return [watch.feed(sample) for sample in samples]


def test_a_row_that_vanishes() -> None:
    said = words(raw(disks=kernel("vdb")), raw(), raw(disks=kernel()))
    assert said[:2] == ["", ""] and "vdb has disappeared" in said[2]


def test_completions_without_bytes() -> None:
    said = words(raw(status(10, 10, 4096)), raw(status(9000, 9000, 4096)))
    assert "without data" in said[1]


def test_errors_that_fio_counts_and_goes_on_with_are_not_a_device_that_is_gone() -> None:
    def erred(count: int, failed: int) -> RawSample:
        now = status(count, count, 4096)
        return raw(replace(now, jobs=(replace(now.jobs[0], failed=failed),)))

    assert words(erred(10, 0), erred(9000, 8990)) == ["", ""]
    assert "without data" in words(erred(10, 0), erred(9000, 10))[1]


def test_submissions_without_bytes_may_be_a_full_queue_once() -> None:
    deep = [raw(status(0, None, 0)), raw(status(8192, None, 0)), raw(status(8192, None, 0))]
    assert words(*deep) == ["", "", ""]
    gone = [raw(status(n * 9000, None, 4096)) for n in range(1, 4)]
    assert words(*gone)[:2] == ["", ""] and "without data" in words(*gone)[2]


def test_counters_that_begin_anew_after_a_ramp() -> None:
    assert words(raw(status(9000, 9000, 9000)), raw(status(100, 100, 100))) == ["", ""]


def test_a_device_that_vanishes_between_two_runs_that_replace_one_another() -> None:
    before, now = DeviceWatch(["vdb"]), DeviceWatch(["vdb"])
    before.feed(raw(disks=kernel("vdb")))
    now.follow(before)
    assert "vdb has disappeared" in now.feed(raw(disks=kernel()))
