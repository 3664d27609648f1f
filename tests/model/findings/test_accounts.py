"""Accounts of I/O: none is counted twice, and others get only what the job can't have caused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from disks import changed
from evidence_frames import device, disk, fio, frame, seconds
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.block.target import DeviceLinks
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.accounts import (
    DISCARDS,
    FLUSHES,
    KINDS,
    READS,
    WRITES,
    Account,
    Flow,
    JobLimits,
    device_accounts,
    job_account,
    kinds_text,
    others_share,
)
from iopstui.model.findings.evidence import Evidence, JobShape
from iopstui.model.fio.interval import FioInterval

DIRECT = JobShape(engine="libaio", direct=True, block_size=4096)
WRITER = replace(DIRECT, writes=True)
BUFFERED = replace(WRITER, direct=False)
MIB = 1 << 20


def account(
    rates: DiskRates, job: FioInterval | None, shape: JobShape = DIRECT, **limits: object
) -> Account:
    found = job_account(frame(1.0, job, disks={"vda": rates}), ["vda"],
                        JobLimits(shape, **limits))  # type: ignore[arg-type]  # fmt: skip
    assert found is not None
    return found


def shares_of(evidence: Evidence) -> Flow:
    found = others_share(evidence)
    assert found is not None
    return found


def test_of_devices_that_are_not_measured_nothing_is_known() -> None:
    assert others_share(Evidence(tuple(seconds(3, interval=fio(9))), devices=[device()])) is None


def test_without_a_job_all_of_it_is_others() -> None:
    found = account(disk(500, 300, d_s=20, f_s=100), None)
    assert found.others == found.total and found.others_share.most == 1.0
    assert found.total[WRITES].ios_s == 200  # an empty flush is counted as a write


def test_a_job_alone_has_all_of_it() -> None:
    found = account(disk(1_000), fio(1_000))
    assert found.all_others.ios_s == 0 and found.job[READS].ios_s == 1_000


def test_what_the_job_does_not_do_is_others() -> None:
    rates = changed(disk(1_000, 600, d_s=12_000), d_await=1.0)
    found = account(rates, fio(1_000))
    assert found.others[READS].ios_s == 0
    assert found.others[WRITES].ios_s == 600
    assert found.others[DISCARDS].ios_s == 12_000
    assert kinds_text(found.others) == "600 writes/s of 4 KiB, 12.0k discards/s of 4 KiB"


def test_large_writes_count_in_bytes_and_in_queue() -> None:
    """Write-back: few requests, most of the bytes, nearly all of the queue."""
    rates = changed(disk(11_000, size=65_536, wait=0.1), w_s=1_300.0, w_bytes_s=1_300.0 * 655_360,
                    w_await=6.0)  # fmt: skip
    share = account(rates, fio(11_000, size=65_536)).others_share
    assert share.ios_s == pytest.approx(0.106, abs=0.01)
    assert share.bytes_s == pytest.approx(0.54, abs=0.01)
    assert share.queue == pytest.approx(0.876, abs=0.01)


def test_a_slow_neighbour_in_the_same_direction_has_what_the_job_can_not_wait_for() -> None:
    """16 requests in flight; the job's 100 I/Os a second of 1 ms can only be 0.1 of them."""
    rates = disk(600, size=4096, wait=1000 * 16 / 600)
    found = account(rates, fio(100, lat_ns=1e6))
    assert found.others[READS].queue == pytest.approx(16 - 0.1, abs=0.05)


@pytest.mark.parametrize(
    ("shape", "job", "rates"),
    [
        (DIRECT, fio(1_000, size=65_536), disk(16_000)),
        (WRITER, fio(1_000, direction="write"), disk(0, 1_000)),
        (replace(WRITER, syncs=True, sync_interval=1), fio(500, direction="write"),
         disk(0, 3_000, f_s=1_000)),
        (replace(BUFFERED, writes=False), fio(500), disk(500, size=131_072)),
        (replace(BUFFERED, block_size=512), fio(500, direction="write"), disk(500, 0)),
        (JobShape(engine="libaio", direct=None), fio(500), disk(5_000)),
        (DIRECT, fio(500, direction="mixed"), disk(250, 3_000)),
        (WRITER, fio(500, direction="trim"), disk(0, d_s=2_000, size=1_024)),
    ],
    ids=["split", "writes", "syncs", "read-ahead", "parts of a page", "mixed sections",
         "unified directions", "split trims"],
)  # fmt: skip
def test_what_the_job_may_have_caused_is_nobody_elses(
    shape: JobShape, job: FioInterval, rates: DiskRates
) -> None:
    assert account(rates, job, shape).others_share.most == 0


def test_more_flushes_than_the_job_syncs_are_others() -> None:
    syncs = replace(WRITER, syncs=True, sync_interval=1_000)
    found = account(disk(0, 39_000, f_s=38_000), fio(200, direction="write"), syncs)
    assert found.others[FLUSHES].ios_s > 37_000
    once = replace(syncs, sync_interval=None)  # end_fsync
    found = account(disk(0, 39_000, f_s=38_000), fio(200, direction="write"), once)
    assert found.others[FLUSHES].ios_s > 37_000


def test_a_file_system_may_write_for_the_job() -> None:
    rates = disk(0, 1_250)
    assert account(rates, fio(1_000, direction="write"), WRITER).others[WRITES].ios_s > 190
    files = account(rates, fio(1_000, direction="write"), WRITER, files=True)
    assert files.others[WRITES].ios_s == 0 and files.unknown(WRITES).ios_s == 250
    assert account(disk(0, 9_000), fio(1_000, direction="write"), WRITER,
                   files=True).others[WRITES].ios_s > 7_000  # fmt: skip


def test_with_data_journal_nothing_is_direct() -> None:
    """With data=journal, reads are read ahead, and each write is written twice, later."""
    journal = {"files": True, "journals_data": True}
    assert account(disk(500, size=65_536), fio(500), DIRECT, **journal).others_share.most == 0
    written = account(disk(0, 2_000), fio(1_000, direction="write"), WRITER,
                      dirty_bytes_s=1_050 * 4_096, **journal)  # fmt: skip
    assert written.others[WRITES].ios_s == 0
    written = account(disk(0, 9_000), fio(1_000, direction="write"), WRITER,
                      dirty_bytes_s=1_050 * 4_096, **journal)  # fmt: skip
    assert written.others[WRITES].bytes_s > 6_000 * 4_096


def test_written_back_is_no_more_than_was_written() -> None:
    def share(before_s: int, own: float, written: float) -> float:
        before = seconds(before_s, interval=fio(own, direction="write"), disks={"vda": disk()})
        now = seconds(3, before_s + 1.0, interval=fio(own, direction="write"),
                      disks={"vda": disk(0, written)})  # fmt: skip
        evidence = Evidence((*before, *now), devices=[device()], shape=BUFFERED)
        return shares_of(evidence).bytes_s

    # the pages of five seconds are written in three
    assert share(5, 1_000, 2_500) == 0
    assert share(5, 1_000, 9_000) == pytest.approx(1 - 8 / 3 * 1.05**2 / 9, abs=0.01)


def test_pages_that_are_written_in_parts_are_written_whole() -> None:
    frames = seconds(3, interval=fio(1_000, size=512, direction="write"),
                     disks={"vda": disk(0, 1_000)})  # fmt: skip
    evidence = Evidence(tuple(frames), devices=[device()], shape=BUFFERED)
    assert shares_of(evidence).most == 0


def test_what_was_written_before_the_frames_is_not_known() -> None:
    """After a setting is changed, the rules see only the frames since then."""
    late = replace(fio(10, direction="write"), elapsed_s=60)
    frames = seconds(4, interval=late, disks={"vda": disk(0, 9_000)})
    evidence = Evidence(tuple(frames), devices=[device()], shape=BUFFERED)
    assert shares_of(evidence).most == 0
    from_the_start = [replace(one, fio=fio(10, direction="write")) for one in frames]
    assert shares_of(replace(evidence, frames=tuple(from_the_start))).bytes_s > 0.9


def test_file_systems_that_never_write_in_place_may_write_much() -> None:
    rates = disk(0, 5_000)
    moving = account(rates, fio(1_000, direction="write"), WRITER, files=True, moves_data=True)
    assert moving.all_others.ios_s == 0
    reading = account(rates, fio(1_000), DIRECT, files=True, moves_data=True)
    assert reading.others[WRITES].ios_s > 4_900


def test_the_disk_below_is_compared_with_the_layer_above_it() -> None:
    links = (DeviceLinks("dm-0", ("vda",)), DeviceLinks("vda"))
    frames = seconds(3, interval=fio(500), links=links,
                     disks={"dm-0": disk(500), "vda": disk(2_000)})  # fmt: skip
    dm = device(name="dm-0", kind="dm")
    evidence = Evidence(tuple(frames), devices=[dm], tree=[dm, device()], links=links, shape=DIRECT)
    shares = {one.name: one.mean.others_share.ios_s for one in device_accounts(evidence)}
    assert shares["dm-0"] == 0 and shares["vda"] == pytest.approx(0.74, abs=0.01)
    assert shares_of(evidence).ios_s == shares["vda"]
    # a loop device writes through a page cache: later, and as it likes
    loops = (DeviceLinks("loop0", ("vda",)), DeviceLinks("vda"))
    top = device(name="loop0", kind="loop")
    loop = replace(evidence, devices=[top], tree=[top, device()], links=loops)
    written = replace(loop, frames=tuple(
        seconds(3, interval=fio(500), links=loops,
                disks={"loop0": disk(500), "vda": disk(0, 900)})))  # fmt: skip
    assert shares_of(written).most == 0


RATE = st.floats(0, 1e6)


@given(
    RATE, RATE, RATE, RATE, RATE, st.sampled_from(["read", "write", "trim", "mixed"]),
    st.integers(9, 20), st.integers(9, 20),
    st.sampled_from([DIRECT, WRITER, BUFFERED, replace(WRITER, syncs=True, sync_interval=4)]),
    st.booleans(),
)  # fmt: skip
def test_parts_add_up_and_none_is_negative(
    reads: float, writes: float, discards: float, flushes: float, own: float, direction: str,
    size: int, own_size: int, shape: JobShape, files: bool,
) -> None:  # fmt: skip
    rates = disk(reads, writes, d_s=discards, f_s=flushes, f_await=1.0, size=1 << size)
    job = fio(own, size=1 << own_size, direction=direction, lat_ns=1e6)
    found = account(rates, job, shape, files=files)
    for kind in KINDS:
        for measure in ("ios_s", "bytes_s", "queue"):
            parts = [getattr(flow, measure) for flow in
                     (found.job[kind], found.others[kind], found.unknown(kind))]  # fmt: skip
            total = getattr(found.total[kind], measure)
            assert min(parts) >= 0
            assert sum(parts) == pytest.approx(total, rel=1e-9, abs=1e-6)
    assert 0 <= found.others_share.most <= 1 + 1e-9
    if own == 0 and direction != "mixed" and shape is DIRECT and not files:
        assert found.all_others.ios_s == pytest.approx(found.whole.ios_s)
