"""Whether a measurement was disturbed: others' I/O, full CPUs, moved interrupts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import evidence_frames as made
import pytest
from disks import changed
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.block.target import DIRECT_LOOP, DeviceLinks, Target
from iopstui.model.experiment.disturbance import (
    Disturbance,
    DisturbanceMeter,
    OtherIo,
    disturbance_text,
    moved_between,
    uncertainty_text,
)
from iopstui.model.findings.accounts import READS, Flow, beyond, sole_devices
from iopstui.model.findings.evidence import JobShape
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import CpuLoad
from iopstui.session.run_rows import brief_reason

RAW = Target("device", "/dev/vda", "vda", ("vda",))
DIRECTORY = Target("directory", "/mnt", "vda", ("vda",), fstype="ext4")
DIRECT = JobShape(engine="libaio", direct=True, block_size=4096, alignment=4096)
WRITER = replace(DIRECT, writes=True)
SYNCING = replace(WRITER, syncs=True, sync_interval=1)
BUFFERED = replace(DIRECT, direct=False)
SIZES = st.sampled_from([512, 4096, 16384, 65536, 1 << 20])


def frame(
    reads: float = 0.0, writes: float = 0.0, *, size: int = 4096, at: float = 1.0,
    iops: float | None = None, way: str = "read", flushes: float = 0.0, **more: Any,
) -> Frame:  # fmt: skip
    """A second in which a device reads and writes, and a job does ``iops`` in direction ``way``.
    Flushes are counted as writes and carry no data."""
    does = (reads if way == "read" else writes) if iops is None else iops
    interval = made.fio(does, size=4096)
    interval = replace(interval, directions={way: interval.total}, usr_cpu=10.0, sys_cpu=10.0)
    disk = made.disk(reads, writes, size=size, f_s=flushes)
    data = min(writes, max(0.0, writes - flushes)) * size
    disks = {"vda": changed(disk, w_bytes_s=data)}
    return replace(made.frame(at, interval, disks=disks, **more), opened=("vda",), skew_ms=5.0)


def found(*frames: Frame, target: Target = RAW, shape: JobShape = DIRECT) -> Disturbance:
    meter = DisturbanceMeter(target, shape)
    meter.add(replace(frames[0], t=0.0), measured=False)
    for one in frames:
        meter.add(one)
    return meter.result()


def test_a_late_reading_of_the_counters_is_no_neighbour() -> None:
    """On a busy machine the kernel's counters are read late, and have more I/Os than fio's."""
    seconds = [frame(1000, iops=1000, at=n) for n in range(1, 5)]
    late = replace(frame(1400, iops=1000, at=5), skew_ms=405.0)
    assert found(*seconds, late).reasons == ()
    assert found(*seconds, replace(late, skew_ms=5.0)).others == pytest.approx(0.074, abs=0.02)
    unknown = DisturbanceMeter(RAW, DIRECT)
    unknown.add(frame(1150, iops=1000))
    assert unknown.result().reasons == (), "no clock says how late it was"


def test_seconds_without_figures_of_fio_or_of_the_kernel_belong_to_the_next() -> None:
    silent = replace(frame(1000, iops=0, at=1), fio=None)
    both = replace(frame(1000, iops=2000, at=2))
    assert found(frame(1000, at=0), silent, both).reasons == ()
    unread = replace(frame(0, iops=1000, at=1), seconds=None, disks={})
    twice = frame(2000, iops=1000, at=2)
    assert found(frame(1000, at=0), unread, twice).reasons == ()
    assert found(frame(1000, at=0), twice).others == pytest.approx(1 / 3, abs=0.05)


def others_of(job: Flow, device: Flow) -> Flow:
    """What others read on the device."""
    return beyond(device, job, job, READS, slack=1.0)


@given(st.floats(1, 1e6), SIZES, st.integers(1, 256), st.floats(1, 64))
def test_split_and_merged_requests_are_the_job_s_own(
    iops: float, size: int, pieces: int, merged: float
) -> None:
    job = Flow(iops, iops * size)
    for device in (Flow(iops * pieces, job.bytes_s), Flow(iops / merged, job.bytes_s)):
        assert others_of(job, device) == Flow()


@given(st.floats(1, 1e6), st.sampled_from([512, 4096]), st.floats(0, 1e6), SIZES)
def test_a_neighbour_is_counted_exactly_beside_ios_that_nothing_splits(
    iops: float, size: int, other_iops: float, other_size: int
) -> None:
    job, other = Flow(iops, iops * size), Flow(other_iops, other_iops * other_size)
    told = others_of(job, job + other)
    assert told.ios_s == pytest.approx(other.ios_s, rel=1e-6, abs=1e-6 * iops)
    assert told.bytes_s == pytest.approx(other.bytes_s, rel=1e-6, abs=1e-6 * job.bytes_s)


@given(
    st.floats(1, 1e5), SIZES, st.integers(1, 16), st.floats(1, 16), st.floats(0, 1e5), SIZES
)  # fmt: skip
def test_never_more_is_others_than_there_is(
    iops: float, size: int, pieces: int, merged: float, other_iops: float, other_size: int
) -> None:
    job = Flow(iops, iops * size)
    own = Flow(iops * pieces / merged, job.bytes_s)
    device = own + Flow(other_iops, other_iops * other_size)
    told = others_of(job, device)
    assert 0 <= told.ios_s <= device.ios_s * (1 + 1e-9) and 0 <= told.bytes_s <= device.bytes_s
    more = device.bytes_s - job.bytes_s
    assert told.bytes_s == pytest.approx(more, rel=1e-6, abs=1e-6 * job.bytes_s)
    assert 0 <= OtherIo("vda", told, device, job=job).share <= 1 + 1e-9


@pytest.mark.parametrize("share", [0.03, 0.1, 0.3, 0.6])
def test_a_neighbour_of_a_tenth_disturbs(share: float) -> None:
    others = 1000 * share / (1 - share)
    seconds = [frame(1000 + others, iops=1000, at=n) for n in range(1, 6)]
    told = found(*seconds)
    assert told.others == pytest.approx(share, abs=0.02)
    assert bool(told.reasons) == (share > 0.05)


def test_the_reason_names_the_amounts_the_device_and_the_kind() -> None:
    reads = found(frame(82_200, iops=27_600))
    assert reads.reasons == (
        "others did at least 53.0k of 82.2k I/Os a second on vda (reads)",
    )  # fmt: skip
    large = found(frame(1000, 1000, size=1 << 20, iops=1000))
    assert large.reasons == ("others did at least 1.91 GiB of 1.95 GiB a second on vda",)
    flushes = found(frame(1000, 5000, flushes=5000, iops=1000))
    assert brief_reason(reads.reasons) == " (beside ≥ 53.0k I/Os/s of others on vda)"
    assert flushes.reasons == (
        "others did at least 4.90k of 6.00k I/Os a second on vda (flushes)",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("target", "shape", "seconds"),
    [
        # the page cache reads ahead, and writes when it likes
        (RAW, BUFFERED, frame(5000, iops=1000)),
        (RAW, BUFFERED, frame(0, 5000, iops=1000, way="write")),
        # a journal, a flush and metadata for each fsync
        (DIRECTORY, SYNCING, frame(0, 3000, flushes=1000, iops=1000, way="write")),
        (RAW, SYNCING, frame(0, 2000, flushes=1000, iops=1000, way="write")),
        # copy-on-write: as much again
        (DIRECTORY, WRITER, frame(0, 1900, iops=1000, way="write")),
        # the kernel does not count this engine's I/O, or the engine does none
        (RAW, replace(DIRECT, engine="io_uring_cmd"), frame(5000, iops=1000)),
        (RAW, replace(DIRECT, engine="null"), frame(5000, iops=1000)),
        # a few I/Os beside a job that does a few
        (RAW, DIRECT, frame(7, iops=5)),
        # a few I/Os of others beside many of the job's, which the cache or the file system answers
        (RAW, BUFFERED, frame(10, 50, iops=70_000)),
    ],
)
def test_what_the_job_may_have_caused_disturbs_nothing(
    target: Target, shape: JobShape, seconds: Frame
) -> None:
    assert found(seconds, target=target, shape=shape).reasons == ()


def test_a_share_that_the_page_cache_hides_is_unknown_and_not_0() -> None:
    assert found(frame(5000, iops=1000), shape=BUFFERED).others is None
    writes = frame(0, 5000, iops=1000, way="write")
    assert found(writes, shape=replace(BUFFERED, writes=True)).others is None
    assert found(frame(1000), shape=DIRECT).others == 0.0
    assert (found(frame(1000, 4000, iops=1000), shape=BUFFERED).others or 0.0) > 0.5


def test_another_direction_disturbs_whatever_the_job_causes_in_its_own() -> None:
    beside = frame(4000, 1000, iops=500, way="write")
    assert "(reads)" in found(beside, target=DIRECTORY, shape=SYNCING).reasons[0]
    assert "(writes)" in found(frame(1000, 4000, iops=1000), shape=BUFFERED).reasons[0]


def test_one_report_for_reads_and_writes() -> None:
    mixed = replace(frame(600, 400, iops=1000, way="mixed"))
    assert found(mixed).reasons == ()
    assert found(frame(1600, 400, iops=1000, way="mixed")).others == pytest.approx(0.5, abs=0.03)


def test_a_neighbour_on_the_disk_below_a_partition_or_a_dm_device() -> None:
    links = (DeviceLinks("dm-0", ("sda1",), "dm-crypt"), DeviceLinks("sda1"), DeviceLinks("sda"))
    target = Target("device", "/dev/dm-0", "dm-0", ("dm-0", "sda1", "sda"), links=links)
    pairs = sole_devices(target.opened, target.tree, links)
    assert list(pairs) == [("sda1", "dm-0", "dm-crypt"), ("sda", "sda1", None)]
    assert not list(sole_devices(("sda1",), ("sda1", "sda10"), ()))
    disks = {"dm-0": made.disk(1000), "sda1": made.disk(1000), "sda": made.disk(3000)}
    seconds = replace(frame(1000), disks=disks, opened=("dm-0",))
    told = found(seconds, target=target)
    assert told.reasons == (
        "others did at least 2.00k of 3.00k I/Os a second on sda, on which dm-0 lies (reads)",
    )


def test_a_disk_below_that_has_none_of_the_job_s_io_disturbs_nothing() -> None:
    """The page cache answers what is read from a loop device."""
    links = (DeviceLinks("loop0", ("vda",)), DeviceLinks("vda"))
    target = Target("device", "/dev/loop0", "loop0", ("loop0", "vda"), links=links)
    for reads, disturbed in ((0, False), (1000, True)):
        disks = {"loop0": made.disk(1000), "vda": made.disk(reads, 900)}
        beside = replace(frame(1000), disks=disks, opened=("loop0",))
        assert found(beside, target=target).reasons == (), "a loop writes when it likes"
        disks = {"loop0": made.disk(1000), "vda": made.disk(reads, d_s=900)}
        beside = replace(frame(1000), disks=disks, opened=("loop0",))
        assert bool(found(beside, target=target).reasons) is disturbed


@pytest.mark.parametrize(("read", "share"), [(1000, ""), (950, ""), (250, "75 %"), (20, "")])
def test_a_file_that_is_partly_in_the_page_cache_makes_runs_differ(read: int, share: str) -> None:
    """A sweep of a loop device: each point read the blocks of the one before from memory."""
    links = (DeviceLinks("loop0", ("vda",)), DeviceLinks("vda"))
    target = Target("device", "/dev/loop0", "loop0", ("loop0", "vda"), links=links)
    disks = {"loop0": made.disk(1000), "vda": made.disk(read)}
    seconds = replace(frame(1000), disks=disks, opened=("loop0",))
    reasons = found(seconds, target=target).reasons
    assert [text.partition(" of what was read from loop0")[0] for text in reasons] == (
        [share] * bool(share)
    )


def test_what_the_kernel_reads_ahead_of_a_loop_device_s_file_is_not_others() -> None:
    """A sweep read at random, with parts of the file in memory: of 5.5 GiB a second on its disk
    hardly any were called its own. A loop device with direct I/O reads nothing ahead."""
    links = DeviceLinks("loop0", ("vda",), DIRECT_LOOP), DeviceLinks("vda")
    target = Target("device", "/dev/loop0", "loop0", ("loop0", "vda"), links=links)
    disks = {"loop0": made.disk(1000), "vda": made.disk(90_000)}
    seconds = replace(frame(1000), disks=disks, opened=("loop0",))
    direct = found(seconds, target=target)
    assert direct.others == pytest.approx(0.98, abs=0.01)
    assert "346 MiB of 352 MiB a second on vda, on which loop0 lies" in direct.reasons[0]
    meter = DisturbanceMeter(target, DIRECT, most_of=lambda other: f"backupd on {other.name}")
    meter.add(seconds)
    (reason,) = meter.result().reasons
    assert reason.endswith(", on which loop0 lies (reads; most of it: backupd on vda)")
    assert brief_reason((reason,)) == " (beside ≥ 346 MiB/s of others on vda)"
    meter = DisturbanceMeter(target, DIRECT, most_of=lambda other: pytest.fail("nobody disturbs"))
    meter.add(replace(seconds, disks={"loop0": made.disk(1000), "vda": made.disk(1010)}))
    assert not meter.result().reasons
    cached = replace(target, links=(DeviceLinks("loop0", ("vda",)), DeviceLinks("vda")))
    told = found(seconds, target=cached)
    assert told.others == 0 and told.reasons == (
        "352 MiB a second were read from vda for 3.91 MiB of loop0: the kernel read its file "
        "ahead, or others read, too",
    )  # fmt: skip


def test_writes_disturb_a_job_that_only_reads_files() -> None:
    beside = frame(1000, 90, iops=1000)
    assert "88.2 of 1.09k" in found(beside, target=DIRECTORY).reasons[0]


def cpus(**usr: float) -> dict[int, CpuLoad]:
    """CPUs that are full (of user time ``usr``, the rest in the kernel) or idle."""
    full = {int(name[1:]): CpuLoad(part, 100 - part, 0, 0, 0, 0, 0) for name, part in usr.items()}
    return {**{cpu: CpuLoad(0, 0, 0, 0, 0, 100, 0) for cpu in range(4)}, **full}


def test_a_cpu_that_others_fill_disturbs_if_the_io_uses_it() -> None:
    hog = [frame(1000, loads=cpus(c1=70), jobs=((1, 20.0),), at=n) for n in range(1, 4)]
    assert found(*hog).reasons == (
        "CPU 1 was full: other programs used at least 60 % of a CPU there",
    )
    meter = DisturbanceMeter(RAW, DIRECT, lambda: "hog (965) with 98 %")
    for one in (replace(hog[0], t=0.0), *hog):
        meter.add(one)
    assert meter.result().reasons[0].endswith(" CPU there; the busiest was hog (965) with 98 %")
    elsewhere = frame(1000, loads=cpus(c3=100), jobs=((1, 20.0),))
    assert found(elsewhere).reasons == ()
    completing = frame(1000, loads=cpus(c3=100), jobs=((1, 20.0),), block={3: 1000.0, 1: 500.0})
    assert found(completing).reasons[0].startswith("CPU 3 was full")


def test_a_cpu_that_the_job_or_the_kernel_fills_for_it_is_no_disturbance() -> None:
    busy = frame(1000, loads=cpus(c1=45), jobs=((1, 99.0),))
    assert busy.fio is not None
    own = replace(busy, fio=replace(busy.fio, usr_cpu=45.0, sys_cpu=54.0))
    assert found(own).reasons == ()
    # the job was on CPU 0 when it was looked at, and most of the second on CPU 1
    moving = frame(1000, loads=cpus(c0=20, c1=45), jobs=((0, 99.0),))
    assert moving.fio is not None
    both = [
        replace(one, fio=replace(moving.fio, usr_cpu=60.0, sys_cpu=39.0))
        for one in (moving, replace(moving, jobs=own.jobs))
    ]
    assert found(*both).reasons == ()
    decrypting = frame(1000, loads=cpus(c0=0, c1=0, c2=0, c3=0), jobs=((1, 20.0),))
    assert found(decrypting).reasons == ()


def test_an_interrupt_that_moves_within_a_run_or_between_two() -> None:
    on = [frame(1000, at=n, irqs={40: {cpu: 900.0, 3: 50.0}}) for n, cpu in enumerate((0, 0, 2))]
    told = found(*on)
    assert told.reasons == ("interrupt 40 moved from CPU 0 to CPU 2",)
    first, second = found(*on[:2]), found(on[2])
    assert first.reasons == second.reasons == ()
    points = [Disturbed(irq_cpus=dict(run.irq_cpus)) for run in (first, second)]
    assert moved_between(points) == "interrupt 40 moved from CPU 0 to CPU 2 between the runs"
    assert moved_between(points[:1] * 2) == ""


class Disturbed:
    """A run with the fields that the texts use."""

    def __init__(
        self, others: float | None = None, disturbed: tuple[str, ...] = (),
        irq_cpus: dict[str, int] | None = None, others_on: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.others, self.disturbed, self.irq_cpus = others, disturbed, irq_cpus or {}
        self.others_on = others_on


def test_texts_say_how_many_runs_by_what_and_by_how_much() -> None:
    runs = [Disturbed(0.12, ("little",)), Disturbed(0.0), Disturbed(0.66, ("much",))]
    assert disturbance_text(runs) == (
        "2 of 3 runs, others did 12 to 66 % of the I/Os or bytes; worst run: much"
    )
    assert disturbance_text(runs[:2], "point") == (
        "1 of 2 points, others did 12 % of the I/Os or bytes; little"
    )
    assert disturbance_text(runs[1:2]) == ""
    # a point of three runs: what differs only in its figures is said once
    often = (
        "others did at least 130 MiB of 257 MiB a second on vda (reads; most of it: backupd 19141)",
        "CPU 0 was full", "others did at least 1.2 GiB of 2 GiB a second on vda (reads)",
    )  # fmt: skip
    assert disturbance_text([Disturbed(0.66, often)]) == (
        f"1 of 1 run, others did 66 % of the I/Os or bytes; in one of its runs {often[0]}; "
        "CPU 0 was full"
    )
    assert uncertainty_text(runs) == "others did up to 66 % of the I/Os or bytes"
    runs[0].others_on = runs[2].others_on = ("vda",)
    assert uncertainty_text(runs) == "others did up to 66 % of the I/Os or bytes of vda"
    assert uncertainty_text([Disturbed(0.0, ("CPU 1 was full",))]) == "the runs were disturbed"
    assert uncertainty_text(runs[1:2]) == ""
