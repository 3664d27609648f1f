"""The most that a job may write. tests/system/test_writing_no_more.py compares with real fio."""

from __future__ import annotations

import pytest

from iopstui.fio.inspect import SectionFiles
from iopstui.fio.write_bound import max_written_bytes, run_seconds

KIB, MIB = 1 << 10, 1 << 20
THERE = {"/dev/a": 100 * MIB, "b": 10 * MIB}


def bound(options: str, paths: tuple[str, ...] = ("/dev/a",), sets: int = 1) -> int | None:
    text = "[job]\nbs=4k\n" + options.replace(" ", "\n") + "\n"
    return max_written_bytes(text, [SectionFiles("job", paths, sets)], THERE.get)


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ("rw=write", 100 * MIB),
        ("rw=write size=50%", 50 * MIB),
        ("rw=write size=8m loops=3", 24 * MIB),
        ("rw=randrw size=8m io_size=20m", 20 * MIB),
        ("rw=write size=8m runtime=60", 8 * MIB),
        ("rw=write rate=1m runtime=10 time_based=1", 12 * MIB),
        ("rw=randrw rate=9m,1m,1m runtime=8 ramp_time=2 time_based=1", 12 * MIB),
        ("rw=write rate_iops=256 runtime=10 time_based=1", 12 * MIB),
        ("rw=write size=8m rate=1m runtime=1", 3 * MIB),
        ("rw=write size=8m io_size=0", 8 * MIB),
        ("rw=write size=0 io_size=0%", 100 * MIB),
    ],
)
def test_it_follows_from_the_options(options: str, data: int) -> None:
    assert bound(options) == data + 4 * KIB, "a block is allowed for on top"
    clones = bound(f"{options} numjobs=4")
    assert clones == 4 * (data + 4 * KIB)


@pytest.mark.parametrize(
    "options",
    [
        "rw=write runtime=10 time_based",
        "rw=write size=8m fill_device=1",
        "rw=write rate=1m time_based=1",
        "rw=write rate=1m rate_process=poisson runtime=10 time_based=1",
        "rw=write size=wide",
        "rw=write rate=1m runtime=0.5s time_based=1",
        "rw=write size=8m read_iolog=trace",
    ],
)
def test_nothing_bounds_it(options: str) -> None:
    assert bound(options) is None


def test_reading_jobs_write_nothing_and_files_to_be_made_count() -> None:
    assert bound("rw=randread") == 0 == bound("rw=trim")
    assert bound("rw=write", ("new",)) is None, "fio would not run it without a size"
    assert bound("rw=write size=8m", ("new",)) == 8 * MIB + 4 * KIB
    assert bound("rw=randrw size=8m", ("new",)) == 16 * MIB + 4 * KIB, "it is filled first"
    assert bound("readwrite=readwrite size=8m", ("new",)) == 16 * MIB + 4 * KIB
    assert bound("rw=randread size=8m numjobs=2", ("new", "new2"), sets=2) == 16 * MIB
    files = tuple(f"new{index}" for index in range(4))
    paced = "rw=randrw rate=1m runtime=2 time_based"
    assert bound(f"{paced} filesize=1m-8m nrfiles=4", files) == 36 * MIB + 4 * KIB
    assert bound(f"{paced} size=8m offset=1g", ("new",)) is None
    assert bound("rw=write size=8m overwrite=1", ("new", "b")) == 16 * MIB + 4 * KIB


def test_how_long_the_writers_may_take() -> None:
    two = "[global]\nrw=write\nruntime=10\n[a]\nramp_time=5\n[b]\n"
    assert run_seconds(two) == 15.0
    assert run_seconds(two + "stonewall\n") == 25.0
    assert run_seconds(two + "wait_for=a\n") == 25.0
    assert run_seconds(two + "[c]\nruntime=0\n") is None
    assert run_seconds("[a]\nrw=read\nruntime=9\n") is None
