"""What each key of a row in fio's document becomes, and what replaces a missing key."""

from __future__ import annotations

from typing import Any

import pytest

from iopstui.fio.stream.status import parse_status
from iopstui.model.samples import DirectionStatus, FioStatus, JobStatus, LatencySum

CLAT = {
    "mean": 7.5, "N": 9, "max": 70, "bins": {"3": 4, "5": 5, "6": 0},
    "percentile": {"50.000000": 5, "99.990000": 6, "0.00": 0},
}  # fmt: skip
READ = {
    "total_ios": 11, "io_bytes": 12, "runtime": 13, "iops": 14.5, "bw_bytes": 15,
    "slat_ns": {"mean": 1.5, "N": 8, "max": 60},
    "clat_ns": CLAT,
    "lat_ns": {"mean": 9.5, "N": 10, "max": 90, "percentile": {"50.000000": 8}},
}  # fmt: skip
ROW: dict[str, Any] = {
    "jobname": "a", "groupid": 2, "error": 3, "elapsed": 4, "eta": 5, "job_start": 6,
    "job_runtime": 7, "usr_cpu": 8.5, "sys_cpu": 9.5, "ctx": 10, "total_err": 11,
    "iodepth_level": {"1": 0.5, ">=64": 99.5},
    "job options": {"bs": "8k", "ramp_time": "1"},
    "read": READ,
}  # fmt: skip


def status(row: dict[str, Any], **document: Any) -> FioStatus:
    found = parse_status({"jobs": [row], **document})
    assert found is not None
    return found


def direction(**changes: Any) -> DirectionStatus:
    row = {name: value for name, value in {**READ, **changes}.items() if value is not None}
    (job,) = status({**ROW, "read": row}).jobs
    return job.directions["read"]


def job(**changes: Any) -> JobStatus:
    row = {name: value for name, value in {**ROW, **changes}.items() if value is not None}
    (found,) = status(row).jobs
    return found


def test_every_key_of_a_row_has_its_place() -> None:
    found = status(ROW, **{
        "fio version": "fio-3.36", "timestamp_ms": 17, "timestamp": 1,
        "global options": {"rw": "read", "bs": "4k"},
    })  # fmt: skip
    read = DirectionStatus(
        issued=11, completed=10, io_bytes=12, runtime_ms=13,
        slat=LatencySum(1.5, 8), clat=LatencySum(7.5, 9), lat=LatencySum(9.5, 10),
        bins={3: 4, 5: 5}, bins_of="clat", iops=14.5, bw_bytes=15.0,
        percentiles={"p50": 5, "p99.99": 6}, lat_max_ns=70,
    )  # fmt: skip
    own = JobStatus(
        name="a", group=2, error=3, elapsed_s=4, eta_s=5, job_start=6, job_runtime_ms=7,
        usr_cpu=8.5, sys_cpu=9.5, ctx=10, iodepth_level={"1": 0.5, ">=64": 99.5},
        directions={"read": read}, options={"rw": "read", "bs": "8k", "ramp_time": "1"},
        block_size=8192, has_ramp=True, measures_latency=True, times_all=True,
        in_flight=None, members=None, failed=11,
    )  # fmt: skip
    assert found == FioStatus("fio-3.36", 17, (own,))


def test_old_fio_has_other_units() -> None:
    """Before 3.0: io_kbytes and bw, both KiB, and a time stamp in seconds."""
    old = direction(io_bytes=None, bw_bytes=None, io_kbytes=3, bw=2)
    assert (old.io_bytes, old.bw_bytes) == (3072, 2048.0)
    assert status(ROW, timestamp=5).timestamp_ms == 5000


UNKNOWN = 0x7FFFFFFF


@pytest.mark.parametrize(
    ("eta", "options", "left"),
    [
        (0, {}, 0),
        (UNKNOWN - 1, {}, UNKNOWN - 1),
        (UNKNOWN, {}, None),
        (-1, {}, None),
        (None, {}, None),
        ("soon", {}, None),
        (100, {"runtime": "4"}, 100),
        (101, {"runtime": "4"}, None),
        (110, {"runtime": "4", "ramp_time": "1"}, 110),
        (111, {"runtime": "4", "ramp_time": "1"}, None),
        (101, {"runtime": "4", "stonewall": "1"}, 101),
        (101, {"ramp_time": "1"}, 101),
    ],
)
def test_what_fio_does_not_know_is_not_left(
    eta: object, options: dict[str, str], left: int | None
) -> None:
    """fio guesses for a waiting job: more than ten times the planned time, and more than a
    minute."""
    assert job(eta=eta, **{"job options": options}).eta_s == left


def test_old_fio_times_lat_alone_only_with_its_percentiles() -> None:
    """Before 3.19 only the histogram shows what was timed; without lat_percentiles it is clat's."""
    old = {**READ, "lat_ns": {"mean": 9.5, "max": 90}}
    for options, timed in (({}, False), ({"lat_percentiles": "1"}, True)):
        options = {"disable_clat": "1", **options}
        assert job(read=old, **{"job options": options}).measures_latency is timed


@pytest.mark.parametrize("junk", [None, (), "x", 5])
def test_what_is_not_a_document_of_rows(junk: object) -> None:
    assert parse_status({"jobs": junk}) is None
    assert parse_status({"jobs": [junk]}) == FioStatus("", 0, ())


def test_what_is_nested_too_deeply_is_no_status() -> None:
    """orjson accepts 1,024 levels, Python's json fewer."""
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    assert parse_status({"jobs": [{**ROW, "job options": {"q": deep}}]}) is None
