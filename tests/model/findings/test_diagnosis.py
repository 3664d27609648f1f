from __future__ import annotations

import re
from dataclasses import replace

import pytest
from evidence_frames import device, disk, fio, fired, frame, seconds
from fio_recordings import KINDS
from hypothesis import given
from hypothesis import strategies as st
from session_frames import whole_frames

from iopstui.model.block.device import Mount
from iopstui.model.findings import diagnosis
from iopstui.model.findings.conditions import Array, Conditions, DeviceState
from iopstui.model.findings.evidence import Evidence, JobShape, SteadyRun
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import APART, PARTIAL, RAMP, JobFrame

LIBAIO = JobShape(jobs=2, iodepth=32, engine="libaio", direct=True)


# -- iostats


def test_iostats_off_is_said_of_a_device_that_counts_nothing() -> None:
    off = device(iostats=False)
    direct = JobShape(direct=True)
    silent = tuple(seconds(3, interval=fio(900), disks={"vda": disk(0)}))
    counted = tuple(seconds(3, interval=fio(900), disks={"vda": disk(900)}))
    assert (
        "iostats=0"
        in fired(diagnosis.no_iostats(Evidence(silent, devices=[off], shape=direct))).text
    )
    assert diagnosis.no_iostats(Evidence(counted, devices=[off], shape=direct)) is None
    assert diagnosis.no_iostats(Evidence((), devices=[off], shape=direct)) is None, (
        "nothing is measured"
    )
    assert diagnosis.no_iostats(Evidence(silent, devices=[off])) is None, (
        "the page cache may answer"
    )
    on = device(iostats=True)
    assert diagnosis.no_iostats(Evidence(silent, devices=[on], shape=direct)) is None


def test_without_a_job_iostats_off_counts_for_drivers_with_queues_alone() -> None:
    """zram counts by itself, whatever queue/iostats says."""
    idle = tuple(seconds(3, step=0, disks={"vda": disk(0)}))
    assert diagnosis.no_iostats(Evidence(idle, devices=[device(iostats=False)])) is not None
    zram = device((), kind="zram", iostats=False)
    assert diagnosis.no_iostats(Evidence(idle, devices=[zram])) is None


# -- cgroup


def test_a_cgroup_limit_is_told_in_parts_of_a_cpu() -> None:
    held = Evidence(tuple(seconds(3, interval=fio(900), throttled=180.0)))
    found = fired(diagnosis.cpu_throttled(held))
    assert "180 % of the time, added up over CPUs" in found.text
    assert found.advice == "raise cpu.max of the cgroup, or run outside of it"
    file = "/sys/fs/cgroup/a/cpu.max"
    named = fired(diagnosis.cpu_throttled(replace(held, conditions=Conditions(cpu_limit=file))))
    assert named.advice == f"raise cpu.max of the cgroup ({file}), or run outside of it"


@pytest.mark.parametrize("throttled", [None, 0.0, 0.5])
def test_no_cgroup_limit_no_finding(throttled: float | None) -> None:
    frames = tuple(seconds(3, interval=fio(9), throttled=throttled))
    assert diagnosis.cpu_throttled(Evidence(frames)) is None


def test_one_throttled_second_of_three_is_not_enough() -> None:
    frames = seconds(3, interval=fio(900), throttled=50.0)
    frames[1] = replace(frames[1], throttled=0.0)
    assert diagnosis.cpu_throttled(Evidence(tuple(frames))) is None


# -- background


def background(before: float, own: float, count: int = 5) -> Finding | None:
    quiet = seconds(count, step=0, disks={"vda": disk(before, before)})
    return diagnosis.io_before_run(
        Evidence(tuple(seconds(3, 10.0, interval=fio(own))), tuple(quiet), [device()])
    )


def test_background_io_is_told_with_its_rates() -> None:
    found = fired(background(500, 1000))
    assert "500 r/s and 500 w/s" in found.text
    assert found.key == "u" and "iopstui why" in found.advice


def test_little_background_or_too_few_quiet_seconds_are_none() -> None:
    assert background(5, 100) is None
    assert background(500, 1_000_000) is None
    assert background(500, 1000, count=2) is None


def test_its_seconds_are_those_before_the_run_and_a_pause_does_not_make_it_much() -> None:
    found = fired(background(500, 1000))
    assert (found.since, found.until) == (2.0, 5.0)
    quiet = tuple(seconds(5, step=0, disks={"vda": disk(23, 23)}))
    run = (*seconds(9, 10.0, interval=fio(65_000)), *seconds(1, 19.0, interval=fio(4)))
    assert diagnosis.io_before_run(Evidence(run, quiet, [device()])) is None


def test_io_that_had_ended_before_the_run_is_none_of_its_background() -> None:
    before = seconds(9, step=0, disks={"vda": disk(500, 500)})
    before += seconds(1, 9.0, step=0, disks={"vda": disk(0, 0)})
    run = tuple(seconds(3, 10.0, interval=fio(1000)))
    assert diagnosis.io_before_run(Evidence(run, tuple(before), [device()])) is None


# -- one CPU completes


def completing(
    block: dict[int, float],
    irq: dict[int, float] | None = None,
    *,
    jobs: tuple[tuple[int, float], ...] = ((0, 50.0), (1, 50.0), (2, 50.0)),
    queues: tuple[tuple[int, ...], ...] = ((0, 1, 2, 3),),
    rq_affinity: int | None = 1,
    ios: float = 10_000,
    kind: str = "virtio-blk",
) -> Evidence:
    frames = seconds(
        3, interval=fio(ios), disks={"vda": disk(ios)}, block=block, irq=irq, jobs=jobs
    )
    disk_ = device(queues, rq_affinity=rq_affinity, kind=kind)
    return Evidence(tuple(frames), devices=[disk_], shape=LIBAIO, online=(0, 1, 2, 3))


def test_one_cpu_completes_while_several_submit() -> None:
    found = fired(diagnosis.one_cpu_completes(completing({3: 9_000.0, 1: 1_000.0}, {3: 9_000.0})))
    assert "CPU 3 runs 90 % of the BLOCK softirqs (9.00k of 10.0k/s)" in found.text
    assert "from 3 CPUs" in found.text
    assert "rq_affinity 2 (now 1)" in found.advice and found.key == "a"


def test_inline_completions_are_found_by_the_interrupts() -> None:
    found = fired(diagnosis.one_cpu_completes(completing({}, {2: 5_000.0})))
    assert "CPU 2 runs 100 % of the interrupts" in found.text


@pytest.mark.parametrize(
    "evidence",
    [
        completing({3: 5_000.0, 1: 5_000.0}),
        completing({3: 9_000.0}, jobs=((0, 50.0),)),
        completing({3: 9_000.0}, jobs=((0, 50.0), (1, 1.0))),
        completing({3: 9_000.0}, rq_affinity=2),
        completing({3: 300.0}, ios=300),
        # three times as many softirqs as this disk has I/Os: they are another disk's
        completing({3: 30_000.0}),
        # its interrupts come to CPU 2: the softirqs on CPU 3 are another disk's
        completing({3: 9_000.0}, {2: 9_000.0}),
        # several queues, each interrupt on its own CPU: softirqs say nothing of this disk
        completing({3: 9_000.0}, dict.fromkeys(range(4), 2_500.0), queues=((0,), (1,), (2,), (3,))),
        replace(completing({3: 9_000.0}), shape=replace(LIBAIO, polls=True)),
    ],
    ids=[
        "spread",
        "one job",
        "an idle job",
        "already 2",
        "few",
        "another disk",
        "another's",
        "several queues",
        "polled",
    ],
)
def test_one_cpu_is_not_blamed(evidence: Evidence) -> None:
    assert diagnosis.one_cpu_completes(evidence) is None


def test_rq_affinity_is_not_offered_where_it_cannot_matter() -> None:
    found = fired(diagnosis.one_cpu_completes(completing({3: 9_000.0}, kind="null_blk")))
    assert "can't move it" in found.advice and not found.key


# -- job saturated


def test_a_busy_job_is_the_limit() -> None:
    frames = tuple(seconds(3, interval=fio(50_000), jobs=((0, 99.0), (1, 20.0))))
    found = fired(diagnosis.cpu_bound_jobs(Evidence(frames, shape=LIBAIO)))
    assert "job 0 is busy 99 %" in found.text and "25.0k IOPS per job" in found.text
    assert "numjobs" not in found.advice, "the CPUs are not known to have time"
    idle = tuple(seconds(3, interval=fio(50_000), jobs=((0, 99.0),), busy={0: 99, 1: 5}))
    found = fired(diagnosis.cpu_bound_jobs(Evidence(idle, shape=LIBAIO, online=(0, 1))))
    assert "numjobs" in found.advice and found.key == "}"


@pytest.mark.parametrize(("shape", "why", "step"), [
    (JobShape(direct=True), "need no read", "compare with blocks that have data"),
    (JobShape(direct=False), "the page cache has them", "try direct=1"),
    (JobShape(direct=False, writes=True), "the page cache takes them", "try direct=1"),
])  # fmt: skip
def test_a_fast_job_learns_that_no_io_of_it_reaches_the_disk(
    shape: JobShape, why: str, step: str
) -> None:
    """Reads of a sparse file; reads and writes in the page cache."""

    def found(disk_s: float, shape: JobShape = shape, written_s: float = 0.0) -> Finding:
        one = disk(disk_s, written_s)
        frames = seconds(3, interval=fio(80_000), jobs=((0, 99.0),), disks={"vda": one})
        return fired(diagnosis.cpu_bound_jobs(Evidence(frames, devices=[device()], shape=shape)))

    few = found(12)
    assert few.text.startswith("hardly any of its I/Os reach vda (12.0 of 80.0k/s): ")
    assert "; job 0 is busy 99 % of a CPU" in few.text
    assert why in few.text and few.advice.startswith(step)
    assert "reach" not in found(9_000).text
    assert ("reach" in found(12, written_s=9_000).text) is not shape.writes, "others' write-back"
    assert "reach" not in found(12, JobShape(direct=True, writes=True)).text, "no hole"


def test_a_depth_without_effect_in_the_page_cache_says_that_nothing_is_read() -> None:
    frames = seconds(3, interval=fio(80_000, slat_ns=5_000, clat_ns=80_000, levels={"32": 100.0}),
                     disks={"vda": disk(0)})  # fmt: skip
    for engine in ("psync", "libaio"):
        shape = JobShape(iodepth=32, engine=engine, direct=False)
        found = fired(diagnosis.depth_not_reached(Evidence(frames, (), [device()], shape)))
        assert "; hardly any of its I/Os reach vda (0 of 80.0k/s): the page cache has" in found.text


def test_a_job_that_polls_is_always_busy_and_that_says_nothing() -> None:
    frames = tuple(seconds(3, interval=fio(50_000), jobs=((0, 99.0),)))
    assert diagnosis.cpu_bound_jobs(Evidence(frames, shape=replace(LIBAIO, polls=True))) is None
    # one that holds itself back does as much as it was asked to
    assert diagnosis.cpu_bound_jobs(Evidence(frames, shape=replace(LIBAIO, paced=True))) is None


def test_a_job_whose_ios_fail_at_once_is_busy_with_that() -> None:
    frames = tuple(seconds(3, interval=replace(fio(1), failed=9_000), jobs=((0, 100.0),)))
    assert diagnosis.cpu_bound_jobs(Evidence(frames, shape=LIBAIO)) is None


def test_a_job_with_one_idle_second_or_without_figures_is_not_the_limit() -> None:
    frames = seconds(3, interval=fio(50_000), jobs=((0, 99.0),))
    frames[1] = frame(2.0, fio(50_000), jobs=((0, 60.0),))
    assert diagnosis.cpu_bound_jobs(Evidence(tuple(frames))) is None
    assert (
        diagnosis.cpu_bound_jobs(Evidence(tuple(seconds(3, interval=fio(9), jobs=((0, None),)))))
        is None
    )


# -- more jobs than CPUs


@pytest.mark.parametrize(
    ("jobs", "busy", "fires"),
    [(8, 99.0, True), (8, 60.0, False), (2, 99.0, False), (3, 99.0, True)],
)
def test_jobs_wait_only_where_there_are_more_of_them_than_busy_cpus(
    jobs: int, busy: float, fires: bool
) -> None:
    # CPUs 2 and 3 are idle, but these processes may not use them
    frames = tuple(seconds(3, interval=fio(9_000), busy={0: busy, 1: busy, 2: 0.0, 3: 0.0}))
    found = diagnosis.more_jobs_than_cpus(
        Evidence(frames, shape=replace(LIBAIO, jobs=jobs), online=(0, 1))
    )
    assert (found is not None) is fires
    if found:
        assert f"{jobs} jobs share 2 CPUs, 99 % busy" in found.text
        assert found.advice == "compare with 2 jobs, at the same iodepth=32"
        shallow = replace(LIBAIO, jobs=jobs, iodepth=8)
        found = diagnosis.more_jobs_than_cpus(Evidence(frames, shape=shallow, online=(0, 1)))
        assert fired(found).advice == "try 2 jobs with a deeper queue (iodepth)"
        one_at_a_time = replace(LIBAIO, jobs=jobs, engine="psync")
        found = diagnosis.more_jobs_than_cpus(Evidence(frames, shape=one_at_a_time, online=(0, 1)))
        assert "2 jobs of ioengine=io_uring with" in fired(found).advice


# -- saturation


def saturation(
    iops: float, lat_us: float, *, then: tuple[float, float] = (10_000, 100.0), depth: int = 8
) -> Finding | None:
    frames = tuple(seconds(3, interval=fio(iops, lat_ns=1000 * lat_us)))
    shape = JobShape(jobs=1, iodepth=depth, engine="libaio")
    earlier = SteadyRun(replace(shape, iodepth=1), then[0], 1000 * then[1])
    return diagnosis.saturated_queue(Evidence(frames, shape=shape, earlier_runs=(earlier,)))


def test_a_deeper_queue_that_gives_latency_only() -> None:
    found = fired(saturation(10_000, 800.0))
    assert "depth 1 → 8: IOPS 10.0k → 10.0k, latency 100 µs → 800 µs" in found.text
    assert "N = X·R = 10.0k/s × 800 µs = 8.0" in found.text


def test_a_deeper_queue_that_pays_or_is_not_filled_is_no_saturation() -> None:
    assert saturation(40_000, 200.0) is None
    assert saturation(10_000, 120.0) is None  # 1.2 of 8 I/Os in flight: the depth is not reached
    assert saturation(10_000, 800.0, depth=1) is None


def test_three_slow_seconds_do_not_undo_what_a_deeper_queue_gained() -> None:
    gained, slow = fio(13_000, lat_ns=615_000), fio(10_000, lat_ns=800_000)
    frames = (*seconds(9, interval=gained), *seconds(3, interval=slow, start=10.0))
    shape = JobShape(jobs=1, iodepth=8, engine="libaio")
    earlier = SteadyRun(replace(shape, iodepth=1), 10_000, 100_000)
    evidence = Evidence(frames, shape=shape, earlier_runs=(earlier,))
    assert diagnosis.saturated_queue(evidence) is None
    assert diagnosis.saturated_queue(replace(evidence, frames=frames[9:])) is not None


@given(
    st.floats(100, 1e6), st.floats(10, 1e6), st.floats(100, 1e6), st.floats(10, 1e6),
    st.integers(1, 256),
)  # fmt: skip
def test_saturation_never_claims_what_its_numbers_deny(
    iops: float, lat: float, then_iops: float, then_lat: float, depth: int
) -> None:
    found = saturation(iops, lat, then=(then_iops, then_lat), depth=depth)
    if found is not None:
        assert iops <= 1.11 * then_iops and lat > then_lat and depth > 1
        assert float(found.text.rsplit("= ", 1)[1].rstrip(")")) >= 0.69 * depth


# -- depth


@pytest.mark.parametrize("engine", ["psync", "sync", "mmap"])
def test_a_synchronous_engine_has_no_depth(engine: str) -> None:
    frames = tuple(seconds(3, interval=fio(900, levels={"1": 100.0})))
    shape = JobShape(iodepth=16, engine=engine)
    assert engine in fired(diagnosis.depth_not_reached(Evidence(frames, shape=shape))).text


def test_depth_not_reached_and_reached() -> None:
    shape = JobShape(iodepth=32, engine="io_uring", direct=True)
    shallow = tuple(seconds(3, interval=fio(900, levels={"1": 60.0, "16": 35.0, "32": 5.0})))
    full = tuple(seconds(3, interval=fio(900, levels={"8": 1.0, "16": 2.0, "32": 97.0})))
    found = fired(diagnosis.depth_not_reached(Evidence(shallow, shape=shape)))
    assert "95 % of the I/Os were issued at a depth of 16 or less" in found.text
    assert "direct" not in found.advice, "it is direct"
    assert diagnosis.depth_not_reached(Evidence(full, shape=shape)) is None
    # a job without a CPU submits late
    waiting = tuple(
        replace(one, jobs=(JobFrame(0, 1, False, 40.0, None, 30.0),)) for one in shallow
    )
    assert diagnosis.depth_not_reached(Evidence(waiting, shape=shape)) is None
    assert diagnosis.depth_not_reached(Evidence(shallow, shape=replace(shape, iodepth=1))) is None
    # a job that holds itself back is shallow because it was asked to be
    assert diagnosis.depth_not_reached(Evidence(shallow, shape=replace(shape, paced=True))) is None
    # sections of different depth: none of them is "the" depth
    assert (
        diagnosis.depth_not_reached(Evidence(shallow, shape=replace(shape, iodepth=None))) is None
    )


def test_buffered_libaio_waits_in_the_submission() -> None:
    frames = tuple(
        seconds(3, interval=fio(900, slat_ns=50_000, clat_ns=800_000, levels={"32": 100.0}))
    )
    shape = JobShape(iodepth=32, engine="libaio", direct=False)
    assert (
        "one I/O at a time"
        in fired(diagnosis.depth_not_reached(Evidence(frames, shape=shape))).text
    )
    assert diagnosis.depth_not_reached(Evidence(frames, shape=replace(shape, direct=True))) is None


@given(st.integers(2, 4096), st.sampled_from(["1", "2", "4", "8", "16", "32", ">=64"]))
def test_a_depth_that_is_filled_is_never_called_shallow(depth: int, _: str) -> None:
    bucket = 1
    while bucket * 2 <= depth:
        bucket *= 2
    level = ">=64" if bucket >= 64 else str(bucket)
    frames = tuple(seconds(3, interval=fio(900, levels={level: 100.0})))
    shape = JobShape(iodepth=depth, engine="libaio", direct=True)
    assert diagnosis.depth_not_reached(Evidence(frames, shape=shape)) is None


# -- disagreement


def disagreement(
    own: float, theirs: float, shape: JobShape = LIBAIO, **figures: float
) -> Finding | None:
    frames = tuple(seconds(4, interval=fio(own), disks={"vda": disk(theirs, **figures)}))
    return diagnosis.count_mismatch(Evidence(frames, devices=[device()], shape=shape))


@pytest.mark.parametrize("engine", ["null", "cpuio"])
def test_a_job_without_a_device_disagrees_with_none(engine: str) -> None:
    buffered = replace(LIBAIO, engine=engine, direct=False)
    assert disagreement(1_000_000, 50, buffered) is None


def test_counts_of_different_seconds_are_not_compared() -> None:
    """On a busy machine fio's and the kernel's counts may be of different seconds. Other rules
    still use such frames, or they would never find anything there."""
    frames = seconds(4, interval=fio(1_000), disks={"vda": disk(100)}, throttled=20.0)
    calm, direct = [replace(one, throttled=0.0) for one in frames], JobShape(direct=True)
    assert diagnosis.count_mismatch(Evidence(calm, devices=[device()], shape=direct)) is not None
    late = [replace(one, flags=frozenset({APART})) for one in calm]
    apart = [*calm[:1], late[1], *calm[2:]]
    assert diagnosis.count_mismatch(Evidence(apart, devices=[device()], shape=direct)) is None
    throttled = [replace(one, flags=frozenset({APART})) for one in frames]
    assert diagnosis.cpu_throttled(Evidence(throttled)) is not None


def test_what_explains_a_disagreement() -> None:
    buffered = replace(LIBAIO, direct=False)
    assert "merged" in fired(disagreement(10_000, 1_000, merges=9_000)).text
    larger = fired(disagreement(10_000, 1_000, size=40_960))
    assert "4 KiB became 40 KiB" in larger.text and larger.advice == ""
    larger = fired(disagreement(10_000, 1_000, buffered, size=40_960))
    assert "4 KiB became 40 KiB" in larger.text and "direct=1" in larger.advice
    assert "page cache" in fired(disagreement(10_000, 1_000, buffered)).text
    assert "never reached" in fired(disagreement(10_000, 1_000)).text
    passed = fired(disagreement(10_000, 0, replace(LIBAIO, engine="io_uring_cmd")))
    assert "NVMe commands pass by the block layer" in passed.text
    assert "/sys/block/vda/queue/iostats_passthrough" in passed.advice
    assert "4 KiB became 1 KiB" in fired(disagreement(1_000, 4_000, size=1024)).text
    # an empty flush is among the writes, and splits nothing
    assert disagreement(1_000, 2_000, f_s=1_000) is None
    # O_SYNC: two flushes for each write
    assert disagreement(500, 1_000, f_s=1_000) is None
    split = fired(disagreement(1_000, 4_400, size=4096 * 1000 / 4_400, f_s=400))
    assert "vda 4.00k with the same bytes" in split.text
    assert "500 I/Os per second more, by another" in fired(disagreement(1_000, 1_500)).text


def test_another_program_that_will_be_named_is_not_told_twice() -> None:
    alone, shared = (
        diagnosis.count_mismatch(Evidence(tuple(frames), devices=[device()], shape=LIBAIO))
        for frames in (
            seconds(4, interval=fio(1_000), disks={"vda": disk(1_000, 4_000, wait=0.1)}),
            seconds(4, interval=fio(1_000), disks={"vda": disk(1_000, 4_000, wait=2.0, aqu=10.0)}),
        )
    )
    assert "by another program" in fired(alone).text and shared is None


def test_more_io_is_the_syncs_only_where_they_can_have_caused_it() -> None:
    syncs = replace(LIBAIO, syncs=True, sync_interval=1, writes=True)

    def more(reads: float, writes: float) -> str:
        frames = seconds(
            4, interval=fio(1_000, direction="write"),
            disks={"vda": disk(reads, writes, wait=0.01)},
        )  # fmt: skip
        evidence = Evidence(tuple(frames), devices=[device()], shape=syncs)
        return fired(diagnosis.count_mismatch(evidence)).text

    assert "because the job syncs" in more(0, 2_500)
    assert "by another program (1.50k reads/s of 4 KiB)" in more(1_500, 1_000)
    assert "by another program" in more(0, 60_000)
    frames = seconds(4, interval=fio(1_000, direction="write"), disks={"vda": disk(0, 2_200)})
    journaled = replace(device(), mounts=(Mount("/mnt", "ext4", journals_data=True),))
    doubled = Evidence(tuple(frames), devices=[journaled], shape=syncs)
    assert "because data=journal writes" in fired(diagnosis.count_mismatch(doubled)).text


def test_what_splits_requests_is_checked_before_it_is_named() -> None:
    def split(bs: int, request: int, **changes: object) -> Finding:
        ratio = bs / request
        frames = seconds(
            4, interval=fio(1_000, size=bs), disks={"md0": disk(1_000 * ratio, size=request)}
        )
        array = Array("idle", 0, 2, changes.pop("chunk", None))  # type: ignore[arg-type]
        mounts = changes.pop("mounts", ())
        target = replace(device(name="md0", **changes), mounts=mounts)  # type: ignore[arg-type]
        evidence = Evidence(
            tuple(frames), devices=[target], shape=replace(LIBAIO, block_size=bs),
            conditions=Conditions(1.0, {"md0": DeviceState(array=array)}),
        )  # fmt: skip
        return fired(diagnosis.count_mismatch(evidence))

    assert "max_sectors_kb of md0 allows 64 KiB" in split(262_144, 65_536, max_sectors_kb=64).text
    assert "allows 64 KiB" in split(262_144, 65_538, max_sectors_kb=64).text, "one in 30,000"
    assert "at the chunks of md0 (4k)" in split(16_384, 4_096, chunk=4_096).text
    # Linux 6.12: the queue of the array itself allows a chunk
    assert "at the chunks" in split(16_384, 4_096, chunk=4_096, max_sectors_kb=4).text
    fragmented = split(65_536, 16_384, mounts=(Mount("/mnt", "ext4"),))
    assert "fragmented" in fragmented.text and "filefrag" in fragmented.advice
    assert "max_sectors_kb" not in fragmented.text
    assert split(65_536, 16_384).advice == ""


def test_direct_writes_that_are_missing_are_not_called_unwritten_blocks() -> None:
    frames = tuple(seconds(4, interval=fio(9_000, direction="write"), disks={"vda": disk(0, 10)}))
    mount = Mount("/mnt", "ext4", journals_data=True)
    journaled = replace(device(), mounts=(mount,))
    evidence = Evidence(frames, devices=[journaled], shape=replace(LIBAIO, writes=True))
    assert "data=journal" in fired(diagnosis.count_mismatch(evidence)).text
    plain = replace(evidence, devices=[device()])
    assert "never written" not in fired(diagnosis.count_mismatch(plain)).text


def test_agreement_and_what_can_t_be_compared_are_no_finding() -> None:
    assert disagreement(10_000, 9_500) is None
    assert disagreement(10_000, 10_900) is None
    assert disagreement(50, 500) is None  # too few I/Os
    assert disagreement(10_000, 0, d_s=10_000) is None  # trims are I/Os, too
    frames = tuple(seconds(4, interval=fio(10_000), disks={"vda": disk(100)}))
    assert (
        diagnosis.count_mismatch(Evidence(frames, devices=[device(iostats=False)], shape=LIBAIO))
        is None
    )
    assert diagnosis.count_mismatch(Evidence(frames, devices=[], shape=LIBAIO)) is None
    assert (
        diagnosis.count_mismatch(Evidence(frames, devices=[device(name="vdb")], shape=LIBAIO))
        is None
    )


def test_one_second_that_agrees_is_enough_to_doubt_a_disagreement() -> None:
    frames = seconds(4, interval=fio(10_000), disks={"vda": disk(13_000)})
    frames[1] = frame(2.0, fio(10_000), disks={"vda": disk(9_000)})
    assert (
        diagnosis.count_mismatch(Evidence(tuple(frames), devices=[device()], shape=LIBAIO)) is None
    )


def test_what_some_seconds_lack_and_others_have_is_no_disagreement() -> None:
    late = seconds(4, 7.0, interval=fio(1_000), disks={"vda": disk(1_600)})
    early = seconds(6, interval=fio(1_900), disks={"vda": disk(1_600)})
    assert (
        diagnosis.count_mismatch(Evidence(tuple(late), devices=[device()], shape=LIBAIO))
        is not None
    )
    both = Evidence(tuple(early + late), devices=[device()], shape=LIBAIO)
    assert diagnosis.count_mismatch(both) is None


def test_a_throttled_iopstui_compares_nothing() -> None:
    frames = seconds(4, interval=fio(1_000), disks={"vda": disk(1_600)}, throttled=50.0)
    assert (
        diagnosis.count_mismatch(Evidence(tuple(frames), devices=[device()], shape=LIBAIO)) is None
    )


@given(st.floats(100, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(512, 1 << 20))
def test_a_disagreement_is_in_its_numbers(
    own: float, theirs: float, merges: float, size: float
) -> None:
    found = disagreement(own, theirs, merges=merges, size=size)
    if found is not None:
        first, second = re.match(r"fio does (\S+) IOPS, vda ([^:\s]+)", found.text).groups()  # type: ignore[union-attr]
        assert first != second
        assert not 0.91 <= theirs / own <= 1.09


# -- all together


def test_frames_that_stand_for_no_whole_second_prove_nothing() -> None:
    for flag in (RAMP, PARTIAL):
        frames = tuple(
            seconds(10, interval=fio(900, levels={"1": 100.0}), flags=frozenset({flag}),
                    throttled=50.0, jobs=((0, 99.0),), disks={"vda": disk(99_999)})
        )  # fmt: skip
        assert not diagnosis.diagnose(
            Evidence(frames, devices=[device()], shape=LIBAIO, online=(0, 1))
        )


def test_a_finding_has_an_end_also_where_its_last_seconds_lie_apart() -> None:
    frames = [frame(t, fio(10_000), disks={"vda": disk(1_000)}) for t in (1.0, 2.0, 4.0, 8.0)]
    evidence = Evidence(tuple(frames), devices=[device()], shape=LIBAIO)
    assert diagnosis.recent_frames(evidence) == []
    (found,) = diagnosis.reported_findings([Finding("disagree", "x")], evidence)
    assert (found.since, found.until) == (1.0, 8.0)


def test_nothing_is_found_in_nothing() -> None:
    assert diagnosis.diagnose(Evidence(())) == []


@pytest.mark.parametrize("name", KINDS)
def test_recordings_give_sentences(name: str) -> None:
    frames = whole_frames(name)
    for end in range(len(frames) + 1):
        for shape in (LIBAIO, JobShape(), replace(LIBAIO, direct=False, engine="psync")):
            for found in diagnosis.diagnose(
                Evidence(tuple(frames[:end]), devices=[device()], shape=shape, online=(0, 1))
            ):
                assert found.text and "nan" not in found.text and "None" not in found.text
                assert "inf" not in found.text.replace("information", "")
