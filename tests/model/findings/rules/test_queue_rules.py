from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from evidence_frames import device, disk, fio, fired, load, seconds
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.block.device import BlockDevice, Mount
from iopstui.model.block.target import DeviceLinks
from iopstui.model.findings.conditions import Conditions, DeviceState, IoLimit, ProcessLoad
from iopstui.model.findings.diagnosis import diagnose
from iopstui.model.findings.evidence import Evidence, JobShape
from iopstui.model.findings.rules.queues import tag_shortage, waits_above_device
from iopstui.model.findings.rules.waits import waits_in_layer
from iopstui.model.metrics.frame import JobFrame
from iopstui.model.metrics.waits import Waits

DEEP = JobShape(jobs=1, iodepth=32, engine="libaio", direct=True)
LIMIT = IoLimit("/work", "io.max", "riops", 1_000)
IDLE = dict.fromkeys(range(4), 20.0)


def waiting(
    iops: float = 1_000,
    inside: float = 32.0,
    aqu: float = 1.0,
    *,
    states: Mapping[str, DeviceState] | None = None,
    on: BlockDevice | None = None,
    shape: JobShape = DEEP,
    busy: float = 10.0,
    cpu: int = 0,
    earlier: Conditions | None = None,
    **figures: float,
) -> Evidence:
    """``inside`` I/Os under way in fio, ``aqu`` of them in the device."""
    frames = seconds(
        3, interval=fio(iops, lat_ns=inside / iops * 1e9), busy=IDLE, jobs=((cpu, busy),),
        disks={"vda": disk(iops, aqu=aqu, **figures)},
    )  # fmt: skip
    return Evidence(
        tuple(frames), devices=[on or device()], shape=shape, online=(0, 1, 2, 3),
        conditions=Conditions(10.0, states or {}),
        start_conditions=earlier or Conditions(0.0, states or {}),
    )  # fmt: skip


# -- above the device


def test_a_limit_of_the_own_cgroup_is_named() -> None:
    found = fired(waits_above_device(waiting(states={"vda": DeviceState(limits=(LIMIT,))})))
    assert "31.0 of 32.0 I/Os in flight wait above vda" in found.text
    assert "io.max of the cgroup /work allows riops=1000 on vda (1.00k/s now)" in found.text
    assert found.advice == "lift it: echo '254:0 riops=max' > /sys/fs/cgroup/work/io.max"
    unit = replace(LIMIT, group="/dev-a\\x2db.service")
    found = fired(waits_above_device(waiting(states={"vda": DeviceState(limits=(unit,))})))
    assert found.advice.endswith(r"> /sys/fs/cgroup'/dev-a\x2db.service'/io.max")


def test_more_than_a_limit_allows_is_with_others_io() -> None:
    limit = replace(LIMIT, value=700)
    states = {"vda": DeviceState(limits=(limit,))}
    assert "riops=700 on vda (1.00k/s now, with other programs')" in (
        fired(waits_above_device(waiting(states=states))).text
    )


@pytest.mark.parametrize("place", ["unsent", "cache", "unknown"])
def test_ios_that_were_not_sent_to_a_disk_do_not_wait_for_its_limit(place: str) -> None:
    """A neighbour in the same cgroup reaches the limit."""
    evidence = waiting(states={"vda": DeviceState(limits=(LIMIT,))})
    waits = Waits(32.0, 0.0, 0.0, {"vda": 0.0}, None, None, 0.0)
    frames = [replace(f, waits=replace(waits, **{place: 32.0})) for f in evidence.frames]
    assert waits_above_device(replace(evidence, frames=tuple(frames))) is None


def test_of_two_limits_the_one_that_binds_is_named() -> None:
    """At 976 reads/s of 4 KiB, riops=1100 is near and rbps=4,000,000 is reached."""
    near, binds = replace(LIMIT, value=1_100), IoLimit("/work", "io.max", "rbps", 4_000_000)
    for limits in ((near, binds), (binds, near)):
        states = {"vda": DeviceState(limits=limits)}
        assert "rbps=4000000" in fired(waits_above_device(waiting(iops=976, states=states))).text
    binds = replace(LIMIT, value=980)
    far = IoLimit("/work", "io.max", "rbps", 4_300_000)
    states = {"vda": DeviceState(limits=(far, binds))}
    assert "riops=980" in fired(waits_above_device(waiting(iops=976, states=states))).text


def test_nothing_is_guessed_above_the_device_while_jobs_wait_for_a_cpu() -> None:
    evidence = waiting()
    for percent, silent in ((5.0, False), (12.0, True)):
        frames = [
            replace(one, jobs=tuple(replace(job, cpu_wait=percent) for job in one.jobs))
            for one in evidence.frames
        ]
        assert (waits_above_device(replace(evidence, frames=tuple(frames))) is None) is silent


def test_a_job_whose_submission_blocks_is_told_also_beside_waiting_for_a_cpu() -> None:
    """io_submit takes all of the time, a fifth of it on a CPU: extending writes."""
    evidence = waiting(iops=5_000, inside=32.0, aqu=0.5, shape=replace(DEEP, writes=True))
    mount = Mount("/mnt", "ext4")

    def blocked(slat_ns: float, cpu_wait: float = 20.0, states: str = "DRD") -> Evidence:
        frames = [
            replace(
                one,
                fio=fio(5_000, lat_ns=6.4e6, slat_ns=slat_ns),
                jobs=tuple(
                    replace(job, cpu_wait=cpu_wait, state=state or None) for job in one.jobs
                ),
            )
            for one, state in zip(evidence.frames, states or ("", "", ""), strict=True)
        ]
        on = [replace(device(), mounts=(mount,))]
        return replace(evidence, frames=tuple(frames), devices=on)

    found = fired(waits_above_device(blocked(195e3)))
    assert "each job is in the call that submits 98 % of the time (slat 195 µs)" in found.text
    assert "overwrite=1" in found.advice
    raw = replace(blocked(195e3), devices=[device()])
    assert "numjobs" in fired(waits_above_device(raw)).advice
    # iocost makes the same call wait
    costed = Conditions(1.0, {"vda": DeviceState(has_iocost=True)})
    assert waits_above_device(replace(raw, conditions=costed)) is None
    # it submits quickly, or what it waits for is a CPU
    assert waits_above_device(blocked(5e3)) is None
    assert waits_above_device(blocked(80e3, cpu_wait=40.0)) is None
    # it is ready to run or sleeps elsewhere whenever it is looked at: others hold up the call
    for states in ("RRR", "RSR", "RSD"):
        assert waits_above_device(blocked(195e3, cpu_wait=38.0, states=states)) is None
    assert waits_above_device(blocked(195e3, states="")) is None
    assert "submission blocks" in fired(waits_above_device(blocked(195e3, 5.0, states=""))).text


LOOPS = (DeviceLinks("loop2", ("loop1",)), DeviceLinks("loop1"))


def stacked(upper: float = 7.9, lower: float = 0.2, busy: float = 10.0,
            loads: Mapping[int, float] = IDLE, count: int = 3,
            **more: object) -> Evidence:  # fmt: skip
    """8 I/Os in flight at 400/s on loop2, which lies on loop1."""
    frames = seconds(
        count, interval=fio(400, lat_ns=8 / 400 * 1e9), busy=loads, jobs=((0, busy),), links=LOOPS,
        disks={"loop2": disk(400, aqu=upper, wait=upper / 0.4),
               "loop1": disk(400, aqu=lower, wait=lower / 0.4)},
    )  # fmt: skip
    tops = [device(name="loop2", kind="loop")]
    return Evidence(
        tuple(frames), devices=tops, tree=(*tops, device(name="loop1", kind="loop")), links=LOOPS,
        shape=replace(DEEP, iodepth=8), online=(0, 1, 2, 3), **more,
    )  # type: ignore[arg-type]  # fmt: skip


def test_a_limit_on_a_lower_layer_is_found_between_two_layers() -> None:
    limit = replace(LIMIT, value=400)
    found = fired(
        waits_above_device(
            stacked(conditions=Conditions(1.0, {"loop1": DeviceState(limits=(limit,))}))
        )
    )
    assert (
        "I/Os in flight wait in loop2, above loop1: io.max of the cgroup /work allows" in found.text
    )
    assert (
        waits_in_layer(stacked(conditions=Conditions(1.0, {"loop1": DeviceState(limits=(limit,))})))
        is None
    )


def test_where_no_limit_is_known_the_layer_that_holds_them_is_named() -> None:
    found = fired(waits_in_layer(stacked()))
    assert "7.7 of 8.0 I/Os in flight are in loop2 and not in loop1 below it" in found.text
    assert waits_in_layer(stacked(lower=7.5)) is None, "they are in the lower device"
    assert waits_in_layer(stacked(upper=1.0)) is None, "they are above both"
    assert waits_in_layer(stacked(busy=90.0)) is None, "the job may be what they wait for"


def test_a_worker_of_the_layer_may_fill_one_cpu() -> None:
    one_full = {**IDLE, 2: 100.0}
    assert fired(waits_in_layer(stacked(loads=one_full)))
    full = dict.fromkeys(IDLE, 97.0)
    found = fired(waits_in_layer(stacked(loads=full)))
    assert "the CPUs are 97 % busy (the jobs use 10 % of one)" in found.text
    assert "losetup" not in found.advice
    encrypted = stacked(loads=full)
    crypt = replace(encrypted.tree[0], kind="dm", layer="dm-crypt")
    encrypted = replace(encrypted, devices=[crypt], tree=[crypt, encrypted.tree[1]])
    assert "loop2 (dm-crypt)" in fired(waits_in_layer(encrypted)).text
    assert "encryption" in fired(waits_in_layer(encrypted)).text


def test_a_limit_that_is_near_but_not_reached_is_not_the_cause() -> None:
    """A dm-delay of 40 ms at depth 9 makes 225 I/Os a second, and 240 are allowed."""
    states = {"loop1": DeviceState(limits=(replace(LIMIT, value=440),))}
    near = stacked(conditions=Conditions(1.0, states))
    assert waits_above_device(near) is not None, "a loop device holds nothing back"
    upper = replace(near.tree[0], kind="dm", layer="device-mapper")
    near = replace(near, devices=[upper], tree=(upper, near.tree[1]))
    assert waits_above_device(near) is None
    assert waits_in_layer(near) is None, "the limit may be reached in the next seconds"
    near = replace(near, frames=stacked(count=8).frames)
    assert "in loop2 (device-mapper) and not in loop1" in fired(waits_in_layer(near)).text


def test_direct_io_is_no_advice_where_the_page_cache_answers() -> None:
    assert "--direct-io=on" in fired(waits_in_layer(stacked())).advice
    cached = [
        replace(one, disks={**one.disks, "loop1": disk(20, aqu=0.0)}) for one in stacked().frames
    ]
    assert fired(waits_in_layer(replace(stacked(), frames=tuple(cached)))).advice == ""


def test_at_depth_1_a_known_limit_is_enough() -> None:
    states = {"vda": DeviceState(limits=(LIMIT,))}
    assert waits_above_device(waiting(inside=1.0, aqu=0.1, states=states)) is not None
    assert waits_above_device(waiting(inside=1.0, aqu=0.1)) is None
    assert waits_above_device(waiting(inside=1.0, aqu=0.8, states=states)) is None


def test_the_program_for_whose_sake_a_job_may_be_held_back_is_named() -> None:
    """The job's group has 16 I/Os in flight beside a group with an io.latency of 10 ms."""
    vip = ProcessLoad(42, "fio", 1.9e6, 0.0, "/vip", frozenset({"vda"}))
    held = waiting(30.0, inside=16.0)
    for ios, aqu, named in ((500, 8.5, True), (31, 0.5, False)):
        disks = {"vda": disk(ios, aqu=aqu, wait=17.0, size=4096)}
        frames = seconds(3, interval=fio(30, lat_ns=16 / 30 * 1e9), busy=IDLE, jobs=((0, 10.0),),
                         disks=disks)  # fmt: skip
        found = fired(waits_above_device(replace(
            held, frames=tuple(frames), conditions=Conditions(10.0, {}, processes=(vip,))
        )))  # fmt: skip
        assert "limit that can't be seen from here may hold them" in found.text
        assert ("; 468 of 500 I/Os/s are not this job's, on vda" in found.text) is named
        assert ("it may be fio (PID 42 in /vip" in found.text) is named


@pytest.mark.parametrize("value", [2_000, 1_300])
def test_a_limit_that_is_not_reached_is_not_blamed(value: int) -> None:
    far = {"vda": DeviceState(limits=(replace(LIMIT, value=value),))}
    found = fired(waits_above_device(waiting(states=far)))
    assert "limit that can't be seen from here may hold them" in found.text
    assert "file system" not in found.text and "io.latency" in found.advice
    mounted = replace(device(), mounts=("/data",))
    found = fired(waits_above_device(waiting(states=far, on=mounted)))
    assert "may be a file system's" in found.text and "on the device itself" in found.advice


def test_a_cause_is_not_named_until_the_limits_were_read_again() -> None:
    """io.max was set while a job ran: for some seconds its limit was not known."""
    evidence = waiting()
    later = replace(evidence, frames=tuple(replace(one, t=one.t + 5) for one in evidence.frames))
    assert waits_above_device(replace(later, conditions=Conditions(4.9))) is None
    assert waits_above_device(replace(later, conditions=Conditions(5.1))) is not None


def test_a_limit_in_bytes() -> None:
    limit = IoLimit("/", "blkio.throttle.read_bps_device", "rbps", 4_096_000)
    found = fired(waits_above_device(waiting(states={"vda": DeviceState(limits=(limit,))})))
    assert "blkio.throttle.read_bps_device of the cgroup /" in found.text
    assert "3.91 MiB/s now" in found.text


def test_iocost_makes_the_group_wait() -> None:
    then = Conditions(0.0, {"vda": DeviceState(iocost_wait_us=1_000)})
    now = {"vda": DeviceState(iocost_wait_us=5_001_000)}
    assert "iocost" in fired(waits_above_device(waiting(states=now, earlier=then))).text
    little = {"vda": DeviceState(iocost_wait_us=901_000)}
    assert "iocost" not in fired(waits_above_device(waiting(states=little, earlier=then))).text


def test_iocost_may_make_it_wait_where_its_count_is_not_told() -> None:
    passed = {"vda": DeviceState(has_iocost=True, passes_iocost=True)}
    assert "iocost" not in fired(waits_above_device(waiting(states=passed))).text
    states = {"vda": DeviceState(has_iocost=True)}
    assert (
        "iocost is active on vda (io.cost.qos) and may"
        in fired(waits_above_device(waiting(states=states))).text
    )


@pytest.mark.parametrize(
    "evidence",
    [
        waiting(aqu=31.0),
        waiting(aqu=20.0),
        waiting(inside=1.5, aqu=0.8),
        waiting(shape=replace(DEEP, direct=False)),
        waiting(shape=replace(DEEP, direct=None)),
        waiting(shape=replace(DEEP, syncs=True)),
        waiting(busy=90.0),
        replace(waiting(), frames=tuple(
            replace(f, cpus={**f.cpus, 3: replace(f.cpus[3], load=load(95.0))})
            for f in waiting().frames
        )),
        replace(waiting(), uncounted_targets=("tmpfs",)),
        replace(waiting(), frames=waiting().frames[:2]),
        replace(waiting(), frames=tuple(seconds(3, interval=fio(1_000)))),
    ],
    ids=["in the device", "most are", "less than one", "buffered", "unknown", "waits for its fsync",
         "waits for a CPU", "a CPU that completes is full",
         "partly unseen", "two seconds", "no latency"],
)  # fmt: skip
def test_nothing_waits_above(evidence: Evidence) -> None:
    assert waits_above_device(evidence) is None


def test_other_ios_than_the_device_s_say_nothing() -> None:
    cached = waiting()
    frames = seconds(3, interval=fio(9_000, lat_ns=3e6), disks={"vda": disk(1_000)})
    assert waits_above_device(replace(cached, frames=tuple(frames))) is None


def test_a_quarter_that_waits_is_told_where_the_limit_is_known() -> None:
    states = {"vda": DeviceState(limits=(LIMIT,))}
    assert waits_above_device(waiting(inside=8.0, aqu=5.0, states=states)) is not None
    assert waits_above_device(waiting(inside=8.0, aqu=5.0)) is None


@given(st.floats(1, 1e6), st.floats(0.1, 4096), st.floats(0, 4096))
def test_it_fires_only_where_its_two_numbers_are_apart(
    iops: float, inside: float, aqu: float
) -> None:
    found = waits_above_device(waiting(iops, inside, aqu))
    if found is not None:
        assert inside - aqu >= max(4.0, 0.5 * inside) * 0.99


def test_a_queue_that_is_half_full_leaves_doubt() -> None:
    """9 of 32 I/Os are in a queue that holds 16. At other moments it may be full and the rest wait
    for tags."""
    assert waits_above_device(waiting(inside=32.0, aqu=9.0, on=device(nr_requests=16))) is None
    assert waits_above_device(waiting(inside=32.0, aqu=9.0, on=device(nr_requests=128))) is not None


def test_near_a_limit_nothing_else_is_named() -> None:
    """One second of three was slower than the limit allows."""
    states = {"vda": DeviceState(limits=(replace(LIMIT, value=1_150),))}
    fast, slow = waiting(states=states), waiting(iops=300, states=states)
    frames = (*fast.frames[:2], replace(slow.frames[2]))
    assert waits_above_device(replace(fast, frames=frames)) is None


# -- tags


def test_queues_hold_no_more_than_they_have_room_for() -> None:
    """24 threads that sleep most of the time were seen on three CPUs, and had 13.6 in flight."""
    four = device(((0,), (1,), (2,), (3,)), nr_requests=4)
    evidence = waiting(inside=24.0, aqu=13.6, on=four, shape=replace(DEEP, in_flight=24))
    jobs = tuple(JobFrame(n, n % 3, False, 1.0) for n in range(24))
    seen = [replace(one, jobs=jobs) for one in evidence.frames]
    found = fired(tag_shortage(replace(evidence, frames=tuple(seen))))
    assert "reach 4 of vda's 4 queues, which hold 16 requests" in found.text
    assert found.advice.startswith("raise nr_requests")


def test_one_job_reaches_one_queue() -> None:
    four = device(((0,), (1,), (2,), (3,)), nr_requests=8)
    found = fired(tag_shortage(waiting(inside=32.0, aqu=8.0, on=four)))
    assert "wants 32 I/Os in flight and has 8.0 (aqu-sz)" in found.text
    assert "its CPUs reach 1 of vda's 4 queues, which holds 8 requests" in found.text
    assert "jobs on other CPUs" in found.advice
    assert waits_above_device(waiting(inside=32.0, aqu=8.0, on=four)) is None


def test_all_queues_together_hold_enough() -> None:
    four = device(((0,), (1,), (2,), (3,)), nr_requests=128)
    assert tag_shortage(waiting(inside=32.0, aqu=32.0, on=four)) is None


def test_one_queue_that_is_full() -> None:
    found = fired(tag_shortage(waiting(inside=32.0, aqu=16.0, on=device(nr_requests=16))))
    assert "vda has one queue, which holds 16 requests" in found.text
    assert tag_shortage(waiting(inside=32.0, aqu=4.0, on=device(nr_requests=16))) is None
    assert tag_shortage(waiting(inside=32.0, aqu=16.0, on=device(nr_requests=None))) is None


def test_a_queue_that_a_job_without_a_cpu_can_not_keep_full() -> None:
    """16 I/Os on 4 tags, which are all used only while the job has a CPU: 2.6 on average."""
    evidence = waiting(
        inside=16.0, aqu=2.6, on=device(nr_requests=4), shape=replace(DEEP, iodepth=16)
    )
    assert tag_shortage(evidence) is None
    frames = [
        replace(one, jobs=tuple(replace(job, cpu_wait=30.0) for job in one.jobs),
                waits=Waits(16.0, 4.7, 8.7, {"vda": 2.6}, None, None, 0.0))
        for one in evidence.frames
    ]  # fmt: skip
    hungry = replace(evidence, frames=tuple(frames))
    assert "the rest (8.7) waits for a tag" in fired(tag_shortage(hungry)).text
    assert [one.rule for one in diagnose(hungry)][:2] == ["tags", "cpu-wait"]


@pytest.mark.parametrize(("changes", "mounts", "rule"), [
    ({}, (), "tags"), ({"engine": "psync"}, (), "depth"),
    ({"writes": True}, (Mount("/mnt", "ext4"),), "above"),
])  # fmt: skip
def test_a_job_that_sleeps_in_its_submission_waits_for_tags_where_nothing_else_can_hold_it(
    changes: dict[str, object], mounts: tuple[Mount, ...], rule: str
) -> None:
    """iodepth is 64, the queue holds 4 requests and has 2.9 on average, and each look finds the job
    in state D."""
    disk_of_4 = replace(device(nr_requests=4), mounts=mounts)
    shape = replace(DEEP, iodepth=64, in_flight=64, **changes)  # type: ignore[arg-type]
    evidence = waiting(495, inside=64.0, aqu=2.9, on=disk_of_4, shape=shape)
    frames = [
        replace(one, jobs=tuple(replace(job, state="D", cpu_wait=3.0) for job in one.jobs),
                fio=fio(495, lat_ns=1.29e8, slat_ns=1.9e6),
                waits=Waits(64.0, 2.0, 59.0, {"vda": 2.9}, None, None, 0.0))
        for one in evidence.frames
    ]  # fmt: skip
    found = diagnose(replace(evidence, frames=tuple(frames)))
    assert next((one.rule for one in found), None) == rule


def test_a_scsi_disk_takes_no_more_than_its_queue_depth() -> None:
    states = {"vda": DeviceState(queue_depth=4)}
    found = fired(tag_shortage(waiting(inside=32.0, aqu=30.0, states=states)))
    assert (
        "vda accepts 4 requests at once (device/queue_depth), and 30.0 are in its queue"
        in found.text
    )
    assert "26.0 wait" in found.text
    assert tag_shortage(waiting(inside=4.0, aqu=4.0, states=states)) is None


def test_without_latencies_the_depth_stands_for_what_is_wanted() -> None:
    blind = seconds(3, interval=fio(9_000), disks={"vda": disk(9_000, aqu=16.0)})
    evidence = replace(waiting(on=device(nr_requests=16)), frames=tuple(blind))
    assert tag_shortage(evidence) is not None
    assert tag_shortage(replace(evidence, shape=replace(DEEP, paced=True))) is None
