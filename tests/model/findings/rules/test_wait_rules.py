from __future__ import annotations

from dataclasses import replace

import pytest
from disks import changed
from evidence_frames import device, disk, fio, fired, frame, seconds

from iopstui.model.block.target import DeviceLinks
from iopstui.model.findings.conditions import Conditions, DeviceState, ProcessLoad
from iopstui.model.findings.diagnosis import diagnose
from iopstui.model.findings.evidence import Evidence, JobShape
from iopstui.model.findings.rules.job import more_jobs_than_cpus
from iopstui.model.findings.rules.waits import (
    needs_process_readings,
    no_completions,
    other_program,
    waits_for_cpu,
)
from iopstui.model.metrics.frame import FINAL, LATE, Frame, JobFrame

DIRECT = JobShape(jobs=1, iodepth=4, engine="libaio", direct=True)


# -- waiting for a CPU


def hungry(
    wait: float = 60.0, own: float = 30.0, busy: float = 100.0, jobs: int = 1, aqu: float = 0.2,
    **more: object,
) -> Evidence:  # fmt: skip
    frames = seconds(
        3, interval=fio(1_000, lat_ns=4e6), jobs=((1, own),) * jobs, cpu_wait=wait,
        busy=dict.fromkeys(range(4), busy), disks={"vda": disk(1_000, aqu=aqu)}, **more,
    )  # fmt: skip
    return Evidence(
        tuple(frames), devices=[device()], shape=replace(DIRECT, jobs=jobs), online=(0, 1, 2, 3)
    )


def test_a_job_beside_a_hog_waits_for_its_cpu() -> None:
    found = fired(waits_for_cpu(hungry()))
    assert "2.4 of 4.0 I/Os in flight wait for a CPU" in found.text
    assert "60 % of the time" in found.text
    assert "other programs or threads of the kernel use 70 % of a CPU on CPU 1" in found.text


def test_a_cgroup_may_stop_a_job_whose_cpus_have_time() -> None:
    """fio in a cgroup with a cpu.max of 20 %, on CPUs that others used for 30 % of the time."""
    found = fired(waits_for_cpu(hungry(own=20.0, wait=79.0, busy=40.0)))
    assert "CPU 1 had 60 % left: a limit of their cgroup may stop them" in found.text
    assert found.advice.startswith("raise cpu.max")


def test_one_job_does_not_share_the_cpu_with_itself() -> None:
    assert "share" not in fired(waits_for_cpu(hungry(own=80.0, wait=25.0))).text
    shared = replace(hungry(jobs=4, own=24.0, wait=76.0), shape=replace(DIRECT, jobs=4))
    assert "its own jobs share the CPUs" in fired(waits_for_cpu(shared)).text


def test_ios_that_are_hardly_ever_in_flight_are_not_counted() -> None:
    frames = seconds(
        3, interval=fio(1_000, lat_ns=20e3), jobs=((1, 30.0),), cpu_wait=60.0,
        busy=dict.fromkeys(range(4), 100.0), disks={"vda": disk(1_000, aqu=0.0)},
    )  # fmt: skip
    evidence = replace(hungry(), frames=tuple(frames))
    assert fired(waits_for_cpu(evidence)).text.startswith("jobs were ready to run 60 % of the time")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"policy": 5}, "SCHED_IDLE"),
        ({"nice": 19}, "nice 19"),
        ({"pinned": True}, "it is pinned"),
        ({"own": 45.0, "jobs": 2}, "its own jobs share"),
    ],
)
def test_why_it_gets_none(more: dict[str, object], words: str) -> None:
    assert words in fired(waits_for_cpu(hungry(**more))).text  # type: ignore[arg-type]


def test_the_kernels_threads_of_dm_crypt_may_have_the_cpu() -> None:
    crypt = replace(device(name="dm-0", kind="dm"), layer="dm-crypt")
    found = fired(waits_for_cpu(replace(hungry(), tree=[crypt, device()])))
    assert found.text.endswith("on CPU 1, which may be the encryption of dm-0")
    assert found.advice.startswith("cryptsetup benchmark")
    other = fired(waits_for_cpu(replace(hungry(), tree=[replace(crypt, layer="LVM"), device()])))
    assert "encryption" not in other.text


@pytest.mark.parametrize(
    "evidence",
    [hungry(wait=10.0), hungry(aqu=3.9), hungry(wait=60.0, aqu=3.5)],
    ids=["little", "they are in the device", "most are in the device"],
)
def test_who_has_a_cpu_does_not_wait_for_one(evidence: Evidence) -> None:
    assert waits_for_cpu(evidence) is None


def test_jobs_that_do_little_are_not_blamed_for_other_programs_load() -> None:
    """Eight jobs on four full CPUs, of which they use a tenth."""
    assert more_jobs_than_cpus(hungry(jobs=8, own=5.0)) is None
    assert more_jobs_than_cpus(hungry(jobs=8, own=45.0, wait=1.0)) is None, "none of them waits"
    assert more_jobs_than_cpus(hungry(jobs=8, own=45.0)) is not None
    rules = {one.rule for one in diagnose(hungry(jobs=8, own=5.0))}
    assert "cpu-wait" in rules and "above" not in rules
    assert "cpu-wait" not in {one.rule for one in diagnose(hungry(jobs=8, own=45.0))}


def test_completions_on_one_cpu_are_not_told_where_jobs_wait_for_one() -> None:
    def on_one(wait: float) -> list[str]:
        frames = seconds(
            3, interval=fio(9_000, lat_ns=4e5), jobs=((0, 40.0), (1, 40.0)), cpu_wait=wait,
            block={0: 8_500.0, 1: 500.0}, disks={"vda": disk(9_000, aqu=1.0)},
        )  # fmt: skip
        shape = replace(DIRECT, jobs=2)
        return [one.rule for one in diagnose(Evidence(tuple(frames), (), [device()], shape))]

    assert "one-cpu" in on_one(1.0)
    assert "one-cpu" not in on_one(60.0) and "cpu-wait" in on_one(60.0)


# -- nothing completes


def stuck(
    seconds_stuck: int = 4, worked: int = 3, in_flight: int = 16, shape: JobShape = DIRECT,
    late: bool = False, **more: object,
) -> Evidence:  # fmt: skip
    active = seconds(worked, interval=fio(900, lat_ns=4e6), disks={"vda": disk(900)})
    idle = changed(disk(0), in_flight=in_flight, aqu_sz=float(in_flight))
    held = seconds(seconds_stuck, 1.0 + worked, interval=None if late else fio(0),
                   disks={"vda": idle})  # fmt: skip
    if late:
        held = [replace(one, flags=frozenset({LATE})) for one in held]
    return Evidence((*active, *held), devices=[device()], shape=shape, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("late", [False, True])
def test_a_device_that_answers_nothing(late: bool) -> None:
    found = fired(no_completions(stuck(late=late)))
    assert "no completions for 4 s, 16 requests in flight in vda" in found.text


def test_a_suspended_device_holds_them_where_nobody_counts() -> None:
    states = {"dm-0": DeviceState(suspended=True)}
    found = fired(no_completions(stuck(in_flight=0, conditions=Conditions(1.0, states))))
    assert "dm-0 is suspended" in found.text and "dmsetup resume" in found.advice


def held_by(state: str | None, worked: int = 3, shape: JobShape = DIRECT) -> Evidence:
    """Nothing completes and no request is in the device, while the job is in this state."""
    evidence = stuck(in_flight=0, worked=worked, shape=shape)
    job = JobFrame(0, 0, False, 0.0, 42, 0.0, state=state)
    return replace(evidence, frames=tuple(replace(one, jobs=(job,)) for one in evidence.frames))


def test_a_frozen_file_system_holds_them_above_the_device() -> None:
    found = fired(no_completions(held_by("D")))
    assert "no completions for 4 s, 0 requests in flight in vda" in found.text
    assert "may be frozen (fsfreeze)" in found.text and "fsfreeze -u" in found.advice
    for state in ("S", "T", "R", None):
        assert no_completions(held_by(state)) is None, f"a job in state {state} is not held"
    assert no_completions(held_by("D", worked=0)) is None, "it may still open its files"


def test_seconds_before_the_first_request_do_not_count() -> None:
    """fio needs 4 s to start, then its first I/Os are in a slow disk for a second."""
    waiting = replace(stuck(seconds_stuck=4, worked=0, in_flight=0))
    last = replace(waiting.frames[-1], disks={"vda": changed(disk(0), in_flight=2)})
    starting = replace(waiting, frames=(*waiting.frames[:-1], last))
    assert no_completions(starting) is None
    two_later = replace(
        starting, frames=(*starting.frames, *(replace(last, t=last.t + n) for n in (1, 2)))
    )
    assert "no completions for 3 s" in fired(no_completions(two_later)).text


@pytest.mark.parametrize(
    "evidence",
    [
        stuck(seconds_stuck=2),
        stuck(in_flight=0),
        stuck(in_flight=0, shape=replace(DIRECT, paced=True)),
        stuck(worked=0, in_flight=0),
        replace(
            stuck(), frames=tuple(replace(f, flags=frozenset({FINAL})) for f in stuck().frames)
        ),
        replace(stuck(), frames=tuple(seconds(6, interval=fio(0), disks={"vda": disk(50)}))),
    ],
    ids=[
        "two seconds",
        "the job is stopped",
        "it waits by itself",
        "it has not begun",
        "it ends",
        "others complete",
    ],
)
def test_what_is_no_stall(evidence: Evidence) -> None:
    assert no_completions(evidence) is None


# -- a neighbour

LINKS = (DeviceLinks("dm-0", ("vda",)), DeviceLinks("vda"))


def shared(
    own: float = 500.0, below: float = 2_000.0, aqu: float = 8.0, size: float = 4096,
    count: int = 9, **more: object,
) -> Evidence:  # fmt: skip
    frames = seconds(
        count, interval=fio(own, lat_ns=4e6), links=LINKS,
        disks={"dm-0": disk(own, aqu=2.0, wait=2000 / own),
               "vda": disk(below, aqu=aqu, size=size, wait=1000 * aqu / below)},
    )  # fmt: skip
    tops = [device(name="dm-0", kind="dm")]
    return Evidence(
        tuple(frames),
        devices=tops,
        tree=(*tops, device()),
        links=LINKS,
        shape=DIRECT,
        **more,  # type: ignore[arg-type]
    )


def test_another_program_on_the_lower_disk_is_named() -> None:
    # a program's rate is over all its disks: 1.5 GB/s is no neighbour of 6 MB/s
    on_vda, elsewhere = frozenset({"vda1", "vda"}), frozenset({"vdb"})
    busiest = (ProcessLoad(41, "bash", 1.5e9, 0.0, "", on_vda, on_vda),
               ProcessLoad(42, "backup", 7e6, 0.0, "", on_vda),
               ProcessLoad(43, "sh", 10.0, 0.0, "", on_vda, on_vda),
               ProcessLoad(44, "fio", 6.1e6, 0.0, "", elsewhere, on_vda),
               ProcessLoad(45, "writer", 0.0, 6.1e6, "", on_vda, on_vda),
               ProcessLoad(46, "hidden", 6.1e6, 0.0))  # fmt: skip
    found = fired(other_program(shared(count=3, conditions=Conditions(1.0, processes=busiest))))
    assert "1.48k of 2.00k I/Os/s are not this job's, on vda" in found.text
    assert "they are 5.9 of the 8.0 requests in it" in found.text
    assert "it may be backup (PID 42: 6.68 MiB/s read" in found.text
    assert found.advice.endswith("backup, PID 42")
    # all I/O on vda is 8 MB/s, so these 9 MB/s are of other seconds
    more = Conditions(1.0, processes=(replace(busiest[1], read_bytes_s=9e6),))
    found = fired(other_program(shared(count=3, conditions=more)))
    assert "it may be backup (PID 42), with all open files on vda" in found.text


def test_a_disk_that_a_cache_keeps_the_job_away_from_is_not_shared() -> None:
    evidence = shared()
    loop = replace(evidence.devices[0], kind="loop")
    frames = [
        replace(one, disks={"dm-0": one.disks["dm-0"], "vda": disk(0, 2_000, aqu=8.0, wait=4.0)})
        for one in evidence.frames
    ]
    cached = replace(evidence, frames=tuple(frames), devices=[loop], tree=[loop, device()])
    assert other_program(cached) is None
    linear = replace(cached, devices=evidence.devices, tree=evidence.tree)
    assert other_program(linear) is None, "none of the job's reads is there"


def test_until_it_is_named_it_waits_a_while() -> None:
    assert other_program(shared(count=3)) is None and needs_process_readings(shared(count=3))
    # processes are ruled out only if they were read
    unread = fired(other_program(shared(count=10)))
    assert "process" not in unread.text and unread.key == "u"
    none_fits = shared(count=3, conditions=Conditions(1.0, processes=()))
    assert (
        "of the processes seen, none does that much I/O with all its files on vda"
        in fired(other_program(none_fits)).text
    )


@pytest.mark.parametrize(
    "evidence",
    [
        shared(below=500.0),
        shared(below=2_000.0, size=1024),
        shared(aqu=0.3),
        shared(own=2_000.0, below=2_030.0),
    ],
    ids=["alone", "split requests", "it waits for none of them", "a few"],
)
def test_whose_disk_is_not_shared(evidence: Evidence) -> None:
    assert not needs_process_readings(evidence)


def test_on_the_device_itself_it_is_a_neighbour_as_well() -> None:
    frames: list[Frame] = [
        frame(float(n), fio(500, lat_ns=4e6), disks={"vda": disk(1_500, aqu=6.0, wait=4.0)})
        for n in range(3)
    ]
    busiest = (ProcessLoad(42, "backup", 4e6, 0.0, "", frozenset({"vda"})),)
    evidence = Evidence(tuple(frames), devices=[device()], shape=DIRECT,
                        conditions=Conditions(1.0, processes=busiest))  # fmt: skip
    assert "backup" in fired(other_program(evidence)).text
