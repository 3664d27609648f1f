"""What is measured for each class, how deep, and what it writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.catalog import read_catalog
from iopstui.features.promise.model import (
    LATENCY,
    Check,
    QueueDepth,
    credits_used,
    deeper_queue,
    depth_for,
    list_checks,
    max_written_bytes,
    open_loop,
)
from iopstui.model.volumes.promised import promised_figures
from iopstui.model.volumes.volume import IOPS, READ, THROUGHPUT

CATALOG = read_catalog(Path("/nonexistent"))
MIB = 1 << 20


def of(name: str, size: float | None = None, iops: float | None = None):  # type: ignore[no-untyped-def]
    return list_checks(promised_figures(CATALOG.volume(name), size, iops))


def test_single_ios_first_then_random_then_sequential_ones() -> None:
    found = of("aliyun/essd-pl1", 500)
    assert [(one.kind, one.rw) for one in found] == [
        (LATENCY, "randwrite"), (IOPS, "randread"), (IOPS, "randwrite"), (THROUGHPUT, "read"),
        (THROUGHPUT, "write")]  # fmt: skip
    assert [one.promised for one in found[1:3]] == [26800, 26800]
    assert found[3].promised * MIB == pytest.approx(350e6)


def test_hdd_classes_have_no_iops_to_test() -> None:
    assert {one.kind for one in of("aws/st1", 1024)} == {THROUGHPUT}


def test_aws_counts_ios_of_16_kib() -> None:
    assert {one.block_size for one in of("aws/gp3", 100) if one.kind == IOPS} == {16 << 10}


def test_the_queue_of_a_load_is_deep_enough_for_a_missed_bound() -> None:
    check = Check(LATENCY, "read", "randread", 4096, 10e6, percentile="p99", load=3000.0)
    depth, options = open_loop(check, 8)
    assert depth.total >= 16 * 30 and options == {"rate_iops": "3000", "rate_process": "poisson"}
    many, shared = open_loop(replace(check, load=250_000.0), 2)
    assert many.jobs == 2 and shared["rate_iops"] == "125000" and many.total <= 4096


def test_depth_follows_little_s_law_with_room() -> None:
    read = of("vng/nvme-10000")[0]
    assert depth_for(read, 1e6, 8) == QueueDepth(20, 1)  # 10,000/s x 1 ms, twice
    assert depth_for(read, 1e3, 8).total == 4
    assert depth_for(read, None, 8) == QueueDepth(32, 1)


def test_one_sequence_has_one_job() -> None:
    for one in of("aliyun/essd-pl3", 20000)[2:]:
        assert depth_for(one, 1e8, 64).jobs == 1


@given(st.floats(1e3, 1e10), st.integers(1, 256))
def test_depth_is_bounded(latency: float, cpus: int) -> None:
    for one in of("aws/io2", 1000, 256000):
        found = depth_for(one, latency, cpus)
        assert 1 <= found.jobs <= cpus and 1 <= found.iodepth <= 1024
        more = deeper_queue(found)
        assert more is None or more.total == 4 * found.total


def test_what_is_written() -> None:
    found = of("vng/nvme-5000")
    assert max_written_bytes(found, 10) == 5000 * 4096 * 10
    assert max_written_bytes([one for one in found if not one.writes], 10) == 0


def test_credits_that_the_test_uses() -> None:
    found = promised_figures(CATALOG.volume("aws/gp2"), 100)
    # (3,000 - 300) for reads and writes of 16 KiB; sequential ones at 128 MiB/s are 512 I/Os/s
    assert credits_used(found, list_checks(found), IOPS, 10) == 2 * 2700 * 10 + 2 * 212 * 10
    assert credits_used(found, list_checks(found), THROUGHPUT, 10) == 0
    assert found.figure(IOPS, READ) == 300
