from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import device, disk, fio, fired, seconds

from iopstui.model.findings.active_findings import answer_question
from iopstui.model.findings.conditions import Array, Conditions, CpuState, DeviceState
from iopstui.model.findings.diagnosis import diagnose
from iopstui.model.findings.evidence import Evidence, JobShape, SteadyRun
from iopstui.model.findings.finding import Finding, period_text
from iopstui.model.findings.rules import job as job_rules
from iopstui.model.findings.rules.counts import busy_device
from iopstui.model.metrics.waits import Waits

QUIET = dict.fromkeys(range(4), 40.0)
SYNCS = JobShape(engine="libaio", direct=True, syncs=True, block_size=4096, writes=True,
                 sync_interval=1)  # fmt: skip


# -- flushes


def syncing(f_s: float, f_await: float, w_s: float = 800.0, shape: JobShape = SYNCS) -> Evidence:
    disks = {"vda": disk(0.0, w_s, f_s=f_s, f_await=f_await)}
    frames = seconds(3, interval=fio(w_s - f_s, direction="write"), disks=disks)
    return Evidence(tuple(frames), devices=[device(write_cache="write back")], shape=shape)


def test_what_a_sync_costs() -> None:
    found = fired(job_rules.sync_cost(syncing(400.0, 2.0)))
    assert "400 flushes a second of vda's write cache (write_cache write back)" in found.text
    assert "2.00 ms each (f_await)" in found.text and "fsync=32" in found.advice
    rare = fired(job_rules.sync_cost(syncing(20.0, 10.0, shape=replace(SYNCS, sync_interval=40))))
    assert "fsync=80" in rare.advice


def test_a_job_that_syncs_is_not_said_to_split() -> None:
    assert [one.rule for one in diagnose(syncing(400.0, 2.0))] == ["flush"]


def test_few_flushes_are_no_finding() -> None:
    assert job_rules.sync_cost(syncing(5.0, 2.0)) is None
    assert job_rules.sync_cost(syncing(0.0, 2.0)) is None
    assert job_rules.sync_cost(syncing(40.0, 2.0, shape=replace(SYNCS, syncs=False))) is None


@pytest.mark.parametrize(
    "shape", [replace(SYNCS, syncs=False, sync_interval=None), replace(SYNCS, sync_interval=1000)]
)
def test_flushes_that_the_job_can_not_have_caused_are_another_programs(shape: JobShape) -> None:
    found = fired(job_rules.sync_cost(syncing(400.0, 2.0, shape=shape)))
    assert "of them are not this job's: another program syncs" in found.text
    assert "fsync=32" not in found.advice


def idle_flushes(f_s: float, f_await: float) -> Finding | None:
    disks = {"vda": disk(0.0, 2 * f_s, f_s=f_s, f_await=f_await)}
    frames = seconds(3, step=0, disks=disks)
    return job_rules.sync_cost(Evidence(tuple(frames), devices=[device()]))


def test_without_a_job_only_many_slow_flushes_are_told() -> None:
    found = fired(idle_flushes(40.0, 8.0))
    assert "40 flushes a second" in found.text.replace("40.0", "40")
    assert "fsync" not in found.advice and found.key == "u"
    assert idle_flushes(1.0, 30.0) is None  # a journal at rest
    assert idle_flushes(40.0, 1.0) is None


# -- block sizes


def writing(
    size: int | None, shape: JobShape = SYNCS, misaligned: int | None = 0
) -> Finding | None:
    frames = seconds(3, interval=fio(900))
    now = Conditions(devices={"vda": DeviceState(alignment_offset=misaligned)})
    return job_rules.misaligned_writes(
        Evidence(
            tuple(frames), devices=[device()], shape=replace(shape, block_size=size), conditions=now
        )
    )


@pytest.mark.parametrize("size", [512, 2048, 6144])
def test_writes_of_no_whole_blocks(size: int) -> None:
    found = fired(writing(size))
    assert f"writes {size} B at a time, vda's physical block is 4096 B" in found.text
    assert "may have to" in found.text and found.test == (("bs", "4k"),)


@pytest.mark.parametrize("size", [4096, 8192, None])
def test_whole_blocks_or_unknown_sizes(size: int | None) -> None:
    assert writing(size) is None


def test_reads_and_buffered_writes_don_t_count() -> None:
    assert writing(512, replace(SYNCS, writes=False)) is None
    assert writing(512, replace(SYNCS, direct=False)) is None


def test_whole_blocks_that_lie_across_two() -> None:
    across = replace(SYNCS, alignment=512)
    assert "begin at multiples of 512 B" in fired(writing(4096, across)).text
    assert writing(8192, replace(SYNCS, alignment=4096)) is None


def test_a_partition_that_begins_within_a_block() -> None:
    assert "begins 512 B away" in fired(writing(4096, misaligned=512)).text


# -- CPUs that sleep


def alone(
    state: CpuState, lat_ns: float = 300e3, depth: int = 1, waits: Waits | None = None
) -> Finding | None:
    made = seconds(3, interval=fio(3_000, lat_ns=lat_ns), jobs=((2, 20.0),), busy={2: 20.0})
    frames = [replace(frame, waits=waits) for frame in made]
    shape = JobShape(iodepth=depth, engine="libaio", direct=True)
    return job_rules.cpu_sleeps(
        Evidence(tuple(frames), shape=shape, conditions=Conditions(cpus={2: state}))
    )


def test_a_deep_sleep_is_part_of_the_latency_at_depth_1() -> None:
    found = fired(alone(CpuState("powersave", 3_000_000, 3_000_000, 170)))
    assert "CPU 2 sleeps between I/Os (80 % idle)" in found.text and "up to 170 µs" in found.text
    assert "may be" in found.text
    assert alone(CpuState(wake_us=170), lat_ns=9e6) is None
    assert alone(CpuState(wake_us=170), depth=2) is None
    assert alone(CpuState()) is None


def test_a_cpu_that_is_not_woken_up_is_no_part_of_the_latency() -> None:
    state = CpuState(wake_us=170)
    assert alone(state, waits=Waits(1.0, 0.0, 0.3, {"vda": 0.7}, None, None, 0.0)) is not None
    assert alone(state, waits=Waits(1.0, 0.0, 0.9, {"vda": 0.1}, None, None, 0.0)) is None


def test_a_slow_clock() -> None:
    found = fired(alone(CpuState("powersave", 1_200_000, 3_600_000, 2)))
    assert "CPU 2 runs at 1.2 of 3.6 GHz (governor powersave)" in found.text
    assert alone(CpuState("performance", 3_500_000, 3_600_000, 2)) is None


# -- schedulers


def test_a_scheduler_on_a_fast_disk_may_cost() -> None:
    frames = tuple(seconds(3, interval=fio(90_000), jobs=((0, 99.0),), busy=QUIET))
    many = device(((0, 1), (2, 3)), scheduler="bfq")
    found = fired(job_rules.scheduler_cost(Evidence(frames, devices=[many])))
    assert "scheduler bfq" in found.text and found.key == "k" and "may" in found.text
    none = device(((0, 1), (2, 3)), scheduler="none")
    assert job_rules.scheduler_cost(Evidence(frames, devices=[none])) is None
    slow = device(((0, 1), (2, 3)), scheduler="bfq", rotational=True)
    assert job_rules.scheduler_cost(Evidence(frames, devices=[slow])) is None
    idle = tuple(seconds(3, interval=fio(90_000), jobs=((0, 50.0),), busy=QUIET))
    assert job_rules.scheduler_cost(Evidence(idle, devices=[many], online=(0, 1, 2, 3))) is None
    # the scheduler's own threads take the CPU from the jobs
    shared = tuple(
        seconds(3, interval=fio(9_000), jobs=((0, 50.0),), busy=dict.fromkeys(QUIET, 97))
    )
    assert (
        job_rules.scheduler_cost(Evidence(shared, devices=[many], online=(0, 1, 2, 3))) is not None
    )


def test_a_full_device_is_the_limit_though_the_cpu_is_full_as_well() -> None:
    shape = JobShape(iodepth=32, engine="libaio", direct=True)
    full = seconds(3, interval=fio(9_000), jobs=((0, 99.0),), disks={"vda": disk(9_000, aqu=31.0)})
    evidence = Evidence(tuple(full), devices=[device()], shape=shape)
    assert job_rules.cpu_bound_jobs(evidence) is None
    empty = seconds(3, interval=fio(9_000), jobs=((0, 99.0),), disks={"vda": disk(9_000, aqu=2.0)})
    assert job_rules.cpu_bound_jobs(replace(evidence, frames=tuple(empty))) is not None


# -- without a job


def test_another_program_s_queue_is_told_without_a_job() -> None:
    frames = seconds(3, step=0, disks={"vda": disk(0.0, 2_800, wait=45.0, aqu=128.0, util=100.0)})
    found = fired(busy_device(Evidence(tuple(frames), devices=[device()])))
    assert "vda: w_await 45.0 ms at aqu-sz 128, device util 100 %, 2.80k w/s" in found.text
    assert found.text.endswith(
        "programs, or write-back of what they wrote before, keep its queue full"
    )


def test_reads_that_fill_a_queue_are_no_write_back_and_a_resync_is_no_program() -> None:
    frames = seconds(3, step=0, disks={"vda": disk(2_800, 0.0, wait=45.0, aqu=128.0, util=100.0)})
    evidence = Evidence(tuple(frames), devices=[device()])
    assert fired(busy_device(evidence)).text.endswith("(reads): programs keep its queue full")
    for action, who in (
        ("check", "check of md0 (md) and programs keep"),
        ("idle", "programs keep"),
    ):
        array = Conditions(devices={"md0": DeviceState(array=Array(action, 0, 2))})
        member = replace(device(), holders=("md0",))
        found = fired(busy_device(replace(evidence, conditions=array, devices=[member])))
        assert found.text.endswith(f"(reads): {who} its queue full")


@pytest.mark.parametrize("changes", [{"wait": 2.0}, {"aqu": 1.0}, {"util": 60.0}])
def test_a_disk_with_time_is_not_busy(changes: dict[str, float]) -> None:
    figures = {"wait": 45.0, "aqu": 128.0, "util": 100.0, **changes}
    frames = seconds(3, step=0, disks={"vda": disk(0.0, 2_800, **figures)})
    assert busy_device(Evidence(tuple(frames), devices=[device()])) is None


# -- what a deciding run says


SMALL = SteadyRun(SYNCS, 1_000, 1e6, 4_096_000, 0.01)


@pytest.mark.parametrize(
    ("rule", "now", "words"),
    [
        ("cap", replace(SMALL, iops=1_010, bytes_s=8_200_000), "the limit is in IOPS"),
        ("cap", replace(SMALL, iops=500), "the limit is in bandwidth"),
        ("cap", replace(SMALL, iops=800, bytes_s=6_000_000), "no fixed limit"),
        ("misaligned", replace(SMALL, lat_ns=0.5e6), "yes, whole blocks"),
        ("misaligned", replace(SMALL, lat_ns=0.9e6), "no, whole blocks"),
        ("numa-remote", replace(SMALL, iops=1_300), "more IOPS by 30 %"),
        ("numa-remote", replace(SMALL, iops=700), "fewer IOPS by 30 %"),
        ("numa-remote", replace(SMALL, iops=1_020), "no difference"),
    ],
)
def test_the_deciding_run_answers(rule: str, now: SteadyRun, words: str) -> None:
    found = answer_question(Finding(rule, "...", test=(("bs", "8k"),)), SMALL, now)
    assert found.rule == "answer" and words in found.text and "with bs=8k" in found.text


def test_a_finding_says_its_seconds() -> None:
    found = diagnose(syncing(400.0, 2.0))[0]
    assert (found.since, found.until) == (0.0, 3.0) and period_text(found) == "0:00-0:03"
    assert period_text(Finding("moved", "...")) == ""
