"""Which answer is given in known situations; healthy loads must not be blamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from disks import changed
from evidence_frames import fio
from hypothesis import given
from hypothesis import strategies as st
from watch_frames import frame, rates

from iopstui.model.answer.answer import (
    CRITICAL,
    GOOD,
    NOTHING,
    UNKNOWN,
    WAITS,
    WARNING,
    Answer,
    shortened,
)
from iopstui.model.answer.evidence import evidence, excluded, not_seen
from iopstui.model.answer.job_rows import job_finding
from iopstui.model.answer.judge import Seen, combined_verdict, judge
from iopstui.model.answer.situation import Situation
from iopstui.model.answer.table import decide
from iopstui.model.answer.use import BlockedTask, DiskUse, DiskUser, LimitUse, RingWaiter, mean_use
from iopstui.model.answer.who import shares
from iopstui.model.block.device import BlockDevice, Hctx, QueueLimits
from iopstui.model.block.target import (
    DEVICE,
    DeviceLinks,
    Target,
    TargetPath,
    combine_targets,
)
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.advice import Advice, advise
from iopstui.model.findings.conditions import Array, Conditions, DeviceState
from iopstui.model.findings.evidence import JobShape
from iopstui.model.findings.finding import Finding
from iopstui.model.findings.rules.counts import FIND_PROGRAM
from iopstui.model.metrics.frame import FINAL, PARTIAL, WRONG_LATENCY, CpuFrame, Frame, JobFrame
from iopstui.model.metrics.probe import LatencyStats, ProbeInterval, RequestStats, TaskIo
from iopstui.model.metrics.waits import Waits
from iopstui.model.rates import CpuLoad

MIB = 1 << 20
NO_QUEUE = QueueLimits(*[None] * 1, (), *[None] * 13)
ONE = Target(DEVICE, "/dev/vda", "vda", ("vda",), links=(DeviceLinks("vda"),))
TWO = combine_targets([
    TargetPath(DEVICE, f"/dev/{name}", name, (name,), links=(DeviceLinks(name),))
    for name in ("vda", "vdb")
])  # fmt: skip
STACK = Target(DEVICE, "/dev/dm-0", "dm-0", ("dm-0", "vda"),
               links=(DeviceLinks("dm-0", ("vda",), "LVM"), DeviceLinks("vda")))  # fmt: skip
DEVICES = {
    "vda": BlockDevice("vda", "/dev/vda", 254, 0, "virtio-blk", 1 << 30, swap=True),
    "dm-0": BlockDevice("dm-0", "/dev/dm-0", 252, 0, "dm", 1 << 30, dm_name="data"),
}
IDLE = rates()
HOG = changed(rates(4000, 4000, 4), aqu_sz=32.0, util=100.0)
SLOW = changed(rates(10, 0, 100), aqu_sz=1.0, util=100.0)


def frames(
    disks: Sequence[Mapping[str, DiskRates]], pressure: float | None = None, memory: float = 0.0
) -> list[Frame]:
    more = {} if pressure is None else {"pressure": {"some": pressure}, "memory": {"some": memory}}
    return [replace(frame(n + 1.0, one), more=more) for n, one in enumerate(disks)]


def use(**given: object) -> DiskUse:
    facts: dict[str, object] = {"disks": {"vda": (0.0, 0.0, 0.0)}, "as_root": True} | given
    if "write_back" in given:
        facts["write_back"] = {"vda": given["write_back"]}
    return DiskUse(t=5.0, seconds=5.0, **facts)  # type: ignore[arg-type]


def first(
    disks: Sequence[DiskRates], seen_use: DiskUse | None = None, pressure: float | None = None,
    memory: float = 0.0, conditions: Conditions | None = None,
) -> Answer:  # fmt: skip
    seconds = frames([{"vda": one} for one in disks], pressure, memory)
    seen = Seen(ONE, seconds, DEVICES, conditions or Conditions(), seen_use)
    return judge(seen)[0][1]


def test_a_deep_queue_is_waited_for_and_its_program_is_named() -> None:
    hog = DiskUser(965, "fio", "fio --name=hog", write_s=50 * MIB, devices=frozenset({"vda"}))
    answer = first([HOG] * 5, use(users=(hog,), disks={"vda": (0.0, 60 * MIB, 32.0)}))
    assert answer.sentence == (
        "▲ vda is busy: I/Os take 4.00 ms on average with 32 in flight · fio --name=hog (965) "
        "does 83 % of its bytes"
    )
    assert answer.verdict == WAITS and answer.next == advise("hog", 965)
    bfq = replace(DEVICES["vda"], queue=replace(NO_QUEUE, scheduler="bfq"))
    seconds = frames([{"vda": HOG}] * 5)
    seen = Seen(ONE, seconds, {"vda": bfq}, use=use(users=(hog,), disks={"vda": (0.0, 6e7, 32.0)}))
    assert judge(seen)[0][1].next == advise("hog-bfq", 965)


def test_a_handful_of_requests_has_no_mean_worth_telling() -> None:
    few = changed(rates(1, 0, 1.0), util=0.0)
    text = first([few, IDLE, IDLE, few, IDLE], use(with_tasks=True), 0.0).text
    assert text == "vda did 2 I/Os in 5 s; nothing waits"
    assert "answers in 1.00 ms on average" in first([changed(few, util=1.0)] * 5).text
    assert "1.00 ms on average" in first([changed(rates(2, 0, 1.0), util=0.0)] * 5).text, "ten"
    slow = changed(rates(1, 0, 400.0), aqu_sz=0.4, util=40.0)
    assert "400 ms on average" in first([slow] * 5).text


def test_a_disk_that_rests_most_of_the_time_is_busy_at_times_only() -> None:
    """A burst of 64 requests every four seconds, each reaching into a second frame, proves no wait.
    A longer one does."""
    most, rest = changed(rates(400, 0, 95), aqu_sz=48.0), changed(rates(120, 0, 90), aqu_sz=11.0)
    bursts = [changed(most, util=78.0), changed(rest, util=20.0), IDLE, IDLE]
    answer = first((bursts * 3)[:10])
    assert (answer.rule, answer.verdict) == ("unsteady", UNKNOWN)
    assert "busy at times: I/Os waited in 3 of 10 s" in answer.text
    longer = [changed(most, util=95.0), changed(rest, util=40.0), IDLE, IDLE]
    assert first((longer * 3)[:10]).verdict == WAITS


def test_who_uses_a_quick_disk_is_told_though_it_is_hardly_busy() -> None:
    """37.5 MiB/s from a loop device, 0.9 % busy: the kernel samples that figure."""
    user = DiskUser(9, "backupd", read_s=37.5 * MIB, devices=frozenset({"vda"}))
    for rate, who in ((600, "backupd (9) does all of its bytes"), (20, "")):
        quick = changed(rates(rate, 0, 0, kib=64), aqu_sz=0.08, util=0.9)
        seen = use(users=(user,), disks={"vda": (37.5 * MIB, 0.0, 0.1)})
        assert first([quick] * 5, seen).who == who


def test_a_share_of_the_time_that_the_mean_queue_denies_is_not_said() -> None:
    hog = DiskUser(965, "fio", "fio", read_s=90 * MIB, devices=frozenset({"vda"}))
    seen = use(users=(hog,), disks={"vda": (94 * MIB, 0.0, 0.5)})
    short = changed(rates(6000, 0, 0.085), aqu_sz=0.5, util=0.2)
    answer = first([short] * 5, seen, 0.0)
    assert "busy" not in answer.text and answer.who.startswith("fio (965)")
    # a util that the mean queue allows is shown: 12 % with the same queue, 2 % of bursts
    assert "12 % busy" in first([changed(short, util=12.0)] * 5, seen, 0.0).text
    deep = changed(rates(50_000, 0, 0.37), aqu_sz=18.5, util=99.0)
    seen_deep = Situation("vda", frames([{"vda": deep}] * 5), ("vda",))
    assert seen_deep.busy == 99.0
    bursts = changed(rates(200, 0, 4.0), aqu_sz=0.8, util=2.0)
    assert "2.0 % busy" in first([bursts] * 5, seen, 0.0).text


def test_a_slow_member_of_an_array_is_the_answer_and_a_slow_disk_outside_one_is_not() -> None:
    members = tuple(f"sd{letter}" for letter in "abcde")
    links = DeviceLinks("md0", members, "raid5"), *map(DeviceLinks, members)
    top = Target(DEVICE, "/dev/md0", "md0", ("md0", *members), links=links)
    devices = {name: replace(DEVICES["vda"], name=name) for name in members}
    devices["md0"] = replace(DEVICES["vda"], name="md0", kind="md", layer="raid5")
    seconds = frames([dict.fromkeys(devices, HOG)] * 5)
    for rule, disk in (("slow-member", "sdc"), ("siblings", "md0")):
        found = Finding(rule, "sdc is slow for its load: ...", advise(rule, "sdc"), disk="sdc")
        answer = judge(Seen(top, seconds, devices, findings=(found,)))[0][1]
        assert answer.disk == disk and (answer.text == found.text) is (rule == "slow-member")


def test_one_slow_request_at_a_time_is_slow_if_a_program_waits_for_it_all_the_time() -> None:
    """A reader on a virtual disk of 100 IOPS; one on flash, and one of large requests."""
    small, quicker = (changed(rates(ios, 0, ms), util=95.0) for ios, ms in ((100, 8.7), (120, 7)))
    rarely = changed(rates(50, 0, 8.7), util=60.0)
    large = changed(rates(60, 0, 20, kib=1024), util=95.0)
    ring = use(ring_waiters=(RingWaiter(812, "dragonfly"),))
    for second, seen, pressure, verdict in (
        (small, use(), 30.0, WAITS), (quicker, use(), 30.0, UNKNOWN),
        (small, use(), 9.0, UNKNOWN), (small, ring, 30.0, UNKNOWN),
        (rarely, use(), 30.0, NOTHING), (large, use(), 30.0, UNKNOWN),
    ):  # fmt: skip
        assert first([second] * 7, seen, pressure).verdict == verdict
    flash = {"vda": replace(DEVICES["vda"], kind="nvme", queue=NO_QUEUE)}
    for ms, verdict in ((8.5, WAITS), (7.5, UNKNOWN), (3.0, NOTHING)):
        second = changed(rates(int(950 / ms), 0, ms), util=95.0)
        seen = Seen(ONE, frames([{"vda": second}] * 7, 30.0), flash, use=use())
        assert judge(seen)[0][1].verdict == verdict


def test_a_few_large_requests_wait_for_the_transfer_of_those_before_them() -> None:
    """Scans of 128 KiB at depth 8: of a healthy disk in a guest that gets little CPU time, and of a
    slow disk."""
    flash = {"vda": replace(DEVICES["vda"], kind="nvme", queue=NO_QUEUE)}
    for ios, ms, kib, verdict in (
        (1300, 3.56, 128, UNKNOWN), (1300, 3.56, 4, WAITS), (500, 9.3, 128, WAITS),
        (2640, 1.6, 128, NOTHING), (2600, 3.56, 128, WAITS),
    ):  # fmt: skip
        second = changed(rates(ios, 0, ms, kib=kib), util=100.0)
        seen = Seen(ONE, frames([{"vda": second}] * 7, 0.0), flash, use=use())
        assert judge(seen)[0][1].verdict == verdict


def test_the_next_step_for_a_slow_disk_is_its_main_user_if_another_program_waits() -> None:
    """dd reads 4 MiB at a time beside a reader of 4 KiB: four large requests take 112 ms."""
    slow = changed(rates(35, 0, 110, kib=800), util=100.0)
    dd = DiskUser(1254, "dd", read_s=28e6, devices=frozenset({"vda"}))
    tasks = BlockedTask(1254, "dd"), BlockedTask(1252, "fio")
    for second, blocked, share, step in (
        (slow, tasks, 1.0, "hog"), (slow, tasks[:1], 1.0, "slow"), (slow, tasks, 0.4, "slow"),
        (changed(rates(10, 0, 110, kib=800), util=100.0), tasks, 1.0, "slow"),
    ):  # fmt: skip
        users = (replace(dd, read_s=share * dd.read_s),)
        seen = use(users=users, blocked=blocked, disks={"vda": (28e6, 0.0, 4.0)})
        answer = first([second] * 5, seen, 66.0)
        about = "vda" if step == "slow" else 1254
        assert (answer.rule, answer.next) == ("slow", advise(step, about))


def test_samples_of_a_thinned_recording_are_not_called_seconds() -> None:
    for seconds, waited, short in (
        (1.0, "I/Os waited in 5 of 10 s,", "2 seconds measured"),
        (60.0, "I/Os waited in 5 of 10 samples of 60 s,", "2 samples of 60 s measured"),
    ):
        count = int(4000 * seconds)
        one = changed(replace(rates(count, count, 4), seconds=seconds), aqu_sz=32.0, util=100.0)
        idle = replace(IDLE, seconds=seconds)
        assert waited in first([one, idle] * 5).text
        assert short in first([one] * 2).text


def test_a_rate_of_other_seconds_is_not_put_beside_that_of_the_disk() -> None:
    hog = DiskUser(965, "fio", "fio", write_s=30 * MIB, devices=frozenset({"vda"}))
    busy = changed(HOG, w_bytes_s=70.0 * MIB)
    for moved, words in (
        (85 * MIB, "who, of its bytes: fio (9"),
        (33 * MIB, "who, of its bytes while vda did 33 MiB/s: fio (9"),
    ):
        seen = use(users=(hog,), disks={"vda": (0.0, moved, 32.0)})
        frames_seen = frames([{"vda": busy}] * 5)
        situation, answer = judge(Seen(ONE, frames_seen, DEVICES, use=seen))[0]
        assert any(line.startswith(words) for line in evidence(situation, answer))


@pytest.mark.parametrize(
    ("disks", "pressure"),
    [
        ([IDLE] * 5, 0.0),
        ([rates(50, 20, 1)] * 5, 3.0),
        # a reader that does one request after another, and one that reads ahead
        ([changed(rates(5000, 0, 0), aqu_sz=0.9, util=90.0)] * 5, 90.0),
        ([changed(rates(900, 0, 2, kib=512), aqu_sz=1.8, util=100.0)] * 5, 95.0),
        # many quick requests at a time
        ([changed(rates(60000, 0, 0), r_await=0.4, aqu_sz=24.0, util=100.0)] * 5, 0.0),
        # one busy second in a steady load
        ([changed(rates(5000, 0, 0), aqu_sz=0.9, util=90.0)] * 9 + [HOG], 90.0),
    ],
)
def test_innocent_loads_accuse_nobody(disks: list[DiskRates], pressure: float) -> None:
    answer = first(disks, use(write_back=0.0), pressure)
    assert (answer.state, answer.verdict) == (GOOD, NOTHING), answer


@pytest.mark.parametrize(
    ("seen_use", "pressure", "words"),
    [
        (None, None, "nothing is in flight"),
        (use(), None, "nothing is in flight"),
        (None, 0.0, "no task waits for I/O"),
        (use(with_tasks=False), 0.0, "no task waits for I/O"),
        (use(), 0.0, "nothing waits"),
        (use(blocked=(BlockedTask(7, "dd"),)), 0.0, "no task waits for I/O, but dd (7) is blocked"),
    ],
)
def test_nothing_waits_is_said_where_tasks_were_looked_at(
    seen_use: DiskUse | None, pressure: float | None, words: str
) -> None:
    assert first([IDLE] * 5, seen_use, pressure).text.endswith(f"; {words}")


def test_nothing_waits_is_not_said_of_a_task_that_waits_for_a_log_or_for_memory() -> None:
    """A program that calls fsync on xfs: blocked 74 % of the time, and 3 % I/O pressure. One that
    swaps to zram: no disk has a request in flight for long."""
    log = use(blocked=(BlockedTask(1527, "python3", "xlog_wait_on_iclog"),))
    used = changed(rates(0, 186, 2.76), aqu_sz=0.5, util=48.0)
    for pressure in (0.4, 3.0):
        text = first([used] * 5, log, pressure).text
        assert text.endswith("busy; python3 (1527) is blocked in xlog_wait_on_iclog")
    elsewhere = replace(log, disks={"vda": (0.0, 1e6, 0.5), "vdb": (0.0, 1e6, 4.0)})
    assert first([used] * 5, elsewhere, 3.0).text.endswith("busy; no queue (0.50 in flight)")
    assert not first([used] * 5, use(), 0.6).text.endswith("nothing waits"), "1 % is shown"
    swaps = use(swap_s=1678.0)
    for disk in (IDLE, used):
        assert first([disk] * 5, swaps, 0.2, 8.4).text.endswith("; tasks wait for memory 8 % of "
                                                                "the time")  # fmt: skip
        assert first([disk] * 5, use(), 0.2, 8.4).text.endswith("; nothing waits")


def test_a_task_that_the_pressure_denies_is_not_blocked_most_of_the_time() -> None:
    """One read of 100 ms each second. Looks at the same pace found the task waiting each time,
    which low I/O pressure refutes."""
    one = changed(rates(1, 0, 104), aqu_sz=0.1, util=10.0)
    seen = use(blocked=(BlockedTask(443, "fio", "submit_bio_wait"),))
    idle = {number: CpuFrame(CpuLoad(10.0, 0, 0, 90.0, 0, 0.0, 0), 0, 0, 0) for number in range(4)}
    for pressure, verdict in ((5.0, NOTHING), (40.0, UNKNOWN)):
        seconds = [replace(each, cpus=idle) for each in frames([{"vda": one}] * 5, pressure)]
        situation, answer = judge(Seen(ONE, seconds, DEVICES, use=seen))[0]
        assert answer.verdict == verdict
        assert any("blocked" in line for line in evidence(situation, answer)) is (pressure > 5)
    log = use(blocked=(BlockedTask(443, "fio", "xlog_wait_on_iclog"),))
    seconds = [replace(each, cpus=idle) for each in frames([{"vda": one}] * 5, 5.0)]
    assert judge(Seen(ONE, seconds, DEVICES, use=log))[0][0].blocked, "waits for a log don't count"


def test_a_process_that_is_blocked_in_several_functions_in_turn_is_named_once() -> None:
    """24 threads that call fsync on xfs; the fifth reading finds none of them."""
    log, page = (BlockedTask(2364, "python3", place)
                 for place in ("xlog_wait_on_iclog", "folio_wait_bit_common"))  # fmt: skip
    other = BlockedTask(7, "dd", "io_schedule")
    woken = [replace(log, place="")] * 9
    readings = [(log, log, page), (page, other), (log,), (log, page, log, *woken), ()]
    mean = mean_use([use(blocked=tasks) for tasks in readings])
    assert mean is not None and mean.blocked == (log,)


@pytest.mark.parametrize("place", ["blk_mq_get_tag", "rq_qos_wait", "ioc_rqos_throttle"])
def test_who_waits_before_the_disk_in_a_third_of_the_looks_is_said_to(
    place: str,
) -> None:
    """One of ten readers, whose queue has room for six requests. It waits longer for its request to
    complete than for room, but a third of the looks is enough."""
    looks = [place] * 3 + ["submit_bio_wait"] * 5
    reader = BlockedTask(31, "fio")
    for few, found in ((0, place), (1, "submit_bio_wait")):
        seen = [use(blocked=(replace(reader, place=each),)) for each in looks[few:]]
        mean = mean_use(seen)
        assert mean is not None and mean.blocked == (replace(reader, place=found),)


def test_who_reads_from_a_loop_device_is_named_for_the_disk_below_it() -> None:
    """fio read 2 MiB/s from a loop device on a slow disk. If the loop device's file is in the page
    cache, the loop device reads more than the disk, so the disk's reads may be another
    program's."""
    loop = Target(DEVICE, "/dev/loop0", "loop0", ("loop0", "vda"),
                  links=(DeviceLinks("loop0", ("vda",), "loop"), DeviceLinks("vda")))  # fmt: skip
    fio = DiskUser(4246, "fio", read_s=2.0 * MIB, devices=frozenset({"loop0", "vda"}))
    for rate, who in ((2.0, "fio (4246) does all of its bytes"), (90.0, "")):
        moved = {"loop0": (rate * MIB, 0.0, 15.0), "vda": (1.95 * MIB, 0.0, 14.7)}
        user = replace(fio, read_s=rate * MIB)
        seconds = frames([{"loop0": HOG, "vda": HOG}] * 5)
        situation, answer = judge(
            Seen(loop, seconds, DEVICES, use=use(users=(user,), disks=moved))
        )[0]
        assert (answer.disk, answer.who) == ("vda", who)
        assert situation.other_in_flight == 0.0


def test_the_evidence_for_a_slow_disk_below_names_the_device_that_was_asked_for() -> None:
    """A linear volume on a quick disk and a slow one; the question is about the volume."""
    links = DeviceLinks("dm-0", ("vda", "vdb")), DeviceLinks("vda"), DeviceLinks("vdb")
    volume = Target(DEVICE, "/dev/dm-0", "dm-0", ("dm-0", "vda", "vdb"), links=links)
    quick = changed(rates(230, 0, 1.1), aqu_sz=0.26, util=20.0)
    for upper, said in ((HOG, True), (IDLE, False)):
        seconds = frames([{"dm-0": upper, "vda": quick, "vdb": HOG}] * 5)
        pair = next(one for one in judge(Seen(volume, seconds, DEVICES)) if one[1].disk == "vdb")
        name = DEVICES["dm-0"].dm_name
        assert any(line.startswith(f"dm-0 ({name}) above it: ") for line in evidence(*pair)) is said
        assert not any(" below it" in line for line in evidence(*pair))


@pytest.mark.parametrize(("paths", "named"), [
    ({"nvme1c1n1": HOG}, ["nvme1n1"]),
    ({"nvme1c1n1": HOG, "nvme1c2n1": IDLE}, ["nvme1n1"]),
    ({"nvme1c1n1": HOG, "nvme1c2n1": HOG}, ["nvme1n1"]),
    ({"nvme1c1n1": HOG, "nvme1c2n1": changed(rates(230, 0, 1.1), aqu_sz=0.26, util=20.0)},
     ["nvme1c1n1"]),
])  # fmt: skip
def test_a_namespace_is_named_not_its_hidden_path_unless_another_path_is_better(
    paths: dict[str, DiskRates], named: list[str]
) -> None:
    links = DeviceLinks("nvme1n1", tuple(paths)), *map(DeviceLinks, paths)
    target = Target(DEVICE, "/dev/nvme1n1", "nvme1n1", ("nvme1n1", *paths), links=links)
    head = replace(DEVICES["vda"], name="nvme1n1")
    hidden = {name: replace(head, name=name, hidden=True, holders=("nvme1n1",)) for name in paths}
    seconds = frames([{"nvme1n1": HOG, **paths}] * 5)
    pairs = judge(Seen(target, seconds, {"nvme1n1": head, **hidden}))
    assert [answer.disk for _, answer in pairs if answer.state != GOOD] == named


def test_an_array_is_named_where_all_its_members_are_at_fault() -> None:
    members = "sda", "sdb", "sdc", "sdd"
    links = DeviceLinks("md0", members, "raid0"), *map(DeviceLinks, members)
    array = Target(DEVICE, "/dev/md0", "md0", ("md0", *members), links=links)
    devices = {name: replace(DEVICES["vda"], name=name) for name in ("md0", *members)}
    each = changed(rates(120, 0, 60), aqu_sz=7.0, util=99.0)
    quick = changed(rates(120, 0, 0.9), aqu_sz=0.1, util=10.0)
    for last, named in ((each, ["md0"]), (quick, ["sda", "sdb", "sdc"]), (IDLE, ["md0"])):
        disks = {"md0": changed(rates(480, 0, 60), aqu_sz=28.0, util=99.0), **dict.fromkeys(
            members, each), "sdd": last}  # fmt: skip
        pairs = judge(Seen(array, frames([disks] * 5), devices))
        assert sorted(answer.disk for _, answer in pairs if answer.state != GOOD) == named
        if last is each:
            assert "in flight below it: sda 7.00, sdb 7.00, sdc 7.00, sdd 7.00" in evidence(
                *pairs[0]
            )


def test_the_lowest_of_three_devices_at_fault_is_named_alone() -> None:
    """A thin volume on a pool on a slow disk: only the disk is named."""
    links = DeviceLinks("dm-1", ("dm-0",)), DeviceLinks("dm-0", ("vda",)), DeviceLinks("vda")
    names = "dm-1", "dm-0", "vda"
    volume = Target(DEVICE, "/dev/dm-1", "dm-1", names, links=links)
    pairs = judge(Seen(volume, frames([dict.fromkeys(names, HOG)] * 5), DEVICES))
    assert [answer.disk for _, answer in pairs] == ["vda"]


@pytest.mark.parametrize(("layer", "below", "named"), [
    ("dm-crypt", 4.0, "dm-0"), ("dm-crypt", 10.0, "vda"), ("dm-thin", 4.0, "vda"),
])  # fmt: skip
def test_encryption_that_holds_most_requests_is_named_and_not_the_disk_below(
    layer: str, below: float, named: str
) -> None:
    links = DeviceLinks("dm-0", ("vda",)), DeviceLinks("vda")
    crypt = Target(DEVICE, "/dev/dm-0", "dm-0", ("dm-0", "vda"), links=links)
    devices = DEVICES | {"dm-0": replace(DEVICES["vda"], name="dm-0", kind="dm", layer=layer)}
    upper = changed(rates(0, 430, 66), aqu_sz=28.0, util=99.0)
    lower = changed(rates(0, 430, 1e3 * below / 430), aqu_sz=below, util=99.0)
    seconds = frames([{"dm-0": upper, "vda": lower}] * 5, 20.0)
    answers = [answer for _, answer in judge(Seen(crypt, seconds, devices))]
    assert [answer.disk for answer in answers] == [named]
    assert ("they are in dm-0, not in vda" in answers[0].text) is (named == "dm-0")


def test_the_members_of_a_busy_degraded_array_are_not_at_fault_each_of_them() -> None:
    """Reads of a raid5 without one of its disks: the answer names the array and the missing member,
    not the two busy ones."""
    md = DeviceLinks("md0", ("sda", "sdb", "sdc"), "raid5")
    members = [DeviceLinks(name) for name in md.below]
    names = (md.name, *md.below)
    every = combine_targets([
        TargetPath(DEVICE, "/dev/md0", "md0", names, links=(md, *members)),
        *(TargetPath(DEVICE, f"/dev/{one.name}", one.name, (one.name,), links=(one,))
          for one in members),
    ])  # fmt: skip
    devices = {name: replace(DEVICES["vda"], name=name) for name in names}
    deep, less = (changed(rates(number, 0, 60), aqu_sz=0.06 * number, util=99.0)
                  for number in (350, 120))  # fmt: skip
    disks = {"md0": changed(rates(240, 0, 112), aqu_sz=27.0), "sda": deep, "sdb": less}
    state = Conditions(devices={"md0": DeviceState(array=Array("idle", 1, 3))})
    pairs = judge(Seen(every, frames([{**disks, "sdc": IDLE}] * 5), devices, state))
    assert [answer.disk for _, answer in pairs if answer.state != GOOD] == ["md0"]
    assert "; md0 is degraded: 1 of 3 members is missing" in pairs[0][1].text
    alone = combine_targets([TargetPath(DEVICE, "/dev/sda", "sda", ("sda",), links=(members[0],))])
    assert judge(Seen(alone, frames([disks] * 5), devices))[0][1].verdict == WAITS


def test_who_uses_an_array_does_all_of_its_bytes_though_its_disks_write_each_twice() -> None:
    links = DeviceLinks("md0", ("vda", "vdb"), "raid1"), DeviceLinks("vda"), DeviceLinks("vdb")
    mirror = Target(DEVICE, "/dev/md0", "md0", ("md0", "vda", "vdb"), links=links)
    devices = {name: replace(DEVICES["vda"], name=name) for name in ("md0", "vda", "vdb")}
    one = changed(rates(0, 256, 40), aqu_sz=10.0, util=100.0)
    app = DiskUser(7, "app", write_s=1.0 * MIB, devices=frozenset({"md0", "vda", "vdb"}))
    moved = dict.fromkeys(("vda", "vdb"), (0.0, 1.0 * MIB, 10.0))
    seconds = frames([dict.fromkeys(devices, one)] * 5)
    pairs = judge(Seen(mirror, seconds, devices, use=use(users=(app,), disks=moved)))
    top = Situation("md0", seconds, ("md0", "vda", "vdb"), devices, {"md0": ("vda", "vdb")},
                    use=pairs[0][0].use)  # fmt: skip
    assert decide(top).who == "app (7) does all of its bytes"
    assert not any("while md0 did" in line for line in evidence(top, decide(top)))


def test_one_reading_of_tasks_is_enough_to_have_looked() -> None:
    mean = mean_use([use(with_tasks=True), use(with_tasks=False)])
    assert mean is not None and mean.with_tasks


def test_no_request_takes_0_ns() -> None:
    """For a few quick requests the kernel counts 0 ms."""
    told = first([changed(rates(5, 0, 0), r_await=0.0)] * 5).text
    assert told.startswith("vda answers in less than 1 ms at ")


def test_write_back_that_nobody_waits_for_is_no_trouble() -> None:
    flush = changed(rates(0, 500, 200, kib=512), aqu_sz=100.0, util=100.0)
    quiet = first([flush] * 5, use(write_back=100.0 * 512 * 1024), 2.0)
    assert (quiet.rule, quiet.verdict) == ("flush", NOTHING)
    assert quiet.text.startswith("vda is busy with writes: 250 MiB/s")
    assert quiet.text.endswith("with 100 in flight; tasks wait for I/O 2 % of the time")
    unknown = first([flush] * 5, pressure=None)
    assert unknown.verdict == UNKNOWN, "neither pressure nor the page cache's part is known"
    assert unknown.text.endswith("whether programs wait for them is not known")
    throttled = first([flush] * 5, use(write_back=100.0 * 512 * 1024), 80.0)
    assert throttled.verdict == WAITS
    # dd, which the kernel throttles all the time, beside 15 busy CPUs
    held = use(write_back=100.0 * 512 * 1024, blocked=(BlockedTask(7, "dd"),))
    beside = first([flush] * 5, held, 6.3)
    assert beside.verdict == UNKNOWN and beside.text.endswith("; dd (7) is blocked")
    direct = first([flush] * 5, use(write_back=0.0), 2.0)
    assert direct.verdict == WAITS, "writes that are not the page cache's"


def test_one_reading_between_bursts_of_write_back_accuses_nobody() -> None:
    """4 MiB/s of buffered writes, 12 % busy: the only reading with a request in flight saw a commit
    of the journal, and the disk was said to answer slowly."""
    burst = changed(rates(0, 35, 23, kib=112), aqu_sz=0.8, util=12.0)
    between, commit = use(), use(write_back=4096.0)
    once = first([burst] * 5, mean_use([between, between, commit, between]), 0.0)
    assert once.verdict != WAITS
    direct = first([burst] * 5, mean_use([commit] * 4), 0.0)
    assert (direct.rule, direct.verdict) == ("slow", WAITS), "seen each time, it is no chance"


def test_write_back_in_bursts_that_nobody_waits_for_is_no_waiting() -> None:
    """The size of the write-back may be read during a burst or only between two bursts."""
    flush = changed(rates(0, 500, 200, kib=512), aqu_sz=100.0, util=100.0)
    between = use()
    during = use(write_back=100.0 * 512 * 1024)
    bursts = first([flush, flush, IDLE, IDLE, flush], mean_use([between, during, between]), 1.0)
    assert (bursts.rule, bursts.verdict) == ("flush", NOTHING)
    unseen = first([flush, flush, IDLE, IDLE, flush], mean_use([between, between]), 1.0)
    assert (unseen.rule, unseen.verdict) == ("flush", NOTHING)
    steady = first([flush] * 5, mean_use([between, between]), 1.0)
    assert (steady.rule, steady.verdict) == ("flush", UNKNOWN), "they may be direct, by libaio"


def test_a_slow_device_and_the_layer_that_holds_the_requests() -> None:
    assert first([SLOW] * 5).rule == "slow"
    seconds = frames([{"dm-0": SLOW, "vda": rates(10, 0, 0)}] * 5)
    answer = judge(Seen(STACK, seconds, DEVICES))[0][1]
    assert answer.disk == "dm-0" and answer.text.endswith("they are in dm-0, not in vda below it")
    assert answer.next == advise("table", "data")
    # dm-crypt above a disk that is itself just within the bounds
    crypt = changed(rates(131, 31, 31.4), aqu_sz=5.08, util=97.0)
    for held, end in ((3.43, "5 in flight; vda below it has 3 in flight"), (2.2, "5 in flight")):
        disk = changed(rates(131, 31, 18.4), aqu_sz=held, util=88.0)
        pairs = judge(Seen(STACK, frames([{"dm-0": crypt, "vda": disk}] * 7), DEVICES))
        assert pairs[0][1].disk == "dm-0" and pairs[0][1].text.endswith(end)
    below = frames([{"dm-0": SLOW, "vda": SLOW}] * 5)
    assert [one.disk for _, one in judge(Seen(STACK, below, DEVICES))] == ["vda"]


def test_nothing_completes() -> None:
    stuck = changed(IDLE, in_flight=16, aqu_sz=16.0)
    answer = first([HOG, stuck, stuck, stuck])
    assert answer.text == "vda has answered nothing for 3.0 s; 16 requests are in flight"
    assert answer.verdict == WAITS


def test_a_disk_with_a_request_is_not_idle() -> None:
    begun = changed(IDLE, in_flight=3)
    assert first([IDLE, IDLE, begun]).text == "vda: no I/O completed in 3 s; 3 in flight"
    assert first([IDLE] * 5).text == "vda is idle: no I/O for 5 s; nothing is in flight"
    elsewhere = first([IDLE] * 5, use(remote=True), 80.0).text
    assert elsewhere.endswith("tasks wait for I/O 80 % of the time, but it has none")


def test_a_load_that_begins_in_the_last_second_is_not_denied() -> None:
    """In the last second 38 reads completed and 30 are in flight, so "nothing waits" would be
    wrong."""
    begun = changed(rates(38, 0, 20), aqu_sz=1.5, util=8.0, in_flight=30)
    answer = first([IDLE] * 9 + [begun], use(), 0.0)
    assert (answer.verdict, answer.next) == (UNKNOWN, advise("longer", "vda"))
    assert answer.text == (
        "vda had little or no I/O for 9 s, then many I/Os began: 30 requests were in flight at the "
        "end"
    )
    # few requests in flight, write-back, or a burst that is not the first prove nothing
    for seconds in (
        [IDLE] * 9 + [changed(begun, in_flight=3)],
        [IDLE] * 9 + [changed(rates(0, 38, 20), aqu_sz=1.5, in_flight=30)],
        [IDLE] * 4 + [changed(begun, in_flight=0), IDLE, IDLE, IDLE, IDLE, begun],
    ):
        assert first(seconds, use(), 0.0).verdict == NOTHING


def test_discards_have_no_time_and_no_dash() -> None:
    discards = changed(IDLE, d_s=900.0, d_bytes_s=9e8, aqu_sz=0.2, util=15.0)
    assert (
        first([discards] * 5).text == "vda does 900 I/Os/s at 15 % busy; no queue (0.20 in flight)"
    )
    assert first([discards] * 5, use(), 0.2).text.endswith("; nothing waits")
    assert first([discards] * 5, use(), 4.0).text.endswith("; tasks wait for I/O 4 % of the time")
    many = first([changed(discards, aqu_sz=3.0)] * 5).text
    assert "quick" not in many and "in use: 900 discards/s, " in many


def test_what_is_discarded_is_not_moved() -> None:
    for each in (HOG, changed(rates(400, 400, 1), aqu_sz=0.4, util=60.0), SLOW):
        # 858 MiB/s of discards don't change the text
        both = changed(each, d_s=900.0, d_bytes_s=9e8)
        assert first([both] * 5).text == first([each] * 5).text


def test_quick_writes_are_quick_whoever_waits_for_them() -> None:
    quick = changed(rates(0, 70000, 0), w_await=0.06, aqu_sz=4.2, util=40.0)
    assert first([quick] * 5, use(write_back=1e9), 0.0).text.startswith("vda is in use and quick")
    assert first([quick] * 5).rule == "busy"


def test_times_that_are_long_for_this_very_disk_are_not_called_quick() -> None:
    some = changed(rates(300, 300, 1.5), aqu_sz=0.9, util=90.0)
    for boot_ms, begin in ((0.3, "vda is in use: 1.50 ms"), (2.0, "vda is in use and quick: 1.50")):
        assert first([some] * 5, use(boot_ms={"vda": boot_ms})).text.startswith(begin)
    virtual = changed(rates(220, 0, 3.75), aqu_sz=0.83, util=83.0)
    own = use(boot_ms={"vda": 3.7}, boot_in_flight={"vda": 0.9}, up_s=60.0)
    assert "quick" not in first([virtual] * 5, own).text, "its past is this load"


def test_a_queue_is_not_called_quick_where_nobody_knows_the_time_without_it() -> None:
    some = changed(rates(3000, 3000, 1.9), aqu_sz=12.0, util=100.0)
    few = changed(rates(300, 300, 1.9), aqu_sz=1.2, util=100.0)
    single = {"boot_ms": {"vda": 1.8}, "boot_in_flight": {"vda": 1.1}}
    for load, seen_use, quick in (
        (some, None, False),
        (some, use(boot_ms={"vda": 1.8}, boot_in_flight={"vda": 9.0}), False),
        (some, use(**single), True),
        (few, None, False),
        (few, use(**single), True),
        (changed(few, r_await=0.4, w_await=0.4), None, True),
    ):
        answer = first([load] * 5, seen_use)
        assert answer.rule == "busy" and ("quick" in answer.text) is quick


def test_a_disk_whose_slowest_requests_take_long_is_not_called_quick() -> None:
    some = changed(rates(300, 300, 1.5), aqu_sz=0.9, util=90.0)
    for p99_ns, quick in ((52_000_000, False), (9_000_000, True)):
        usual = use(boot_ms={"vda": 2.0})
        situation = Situation("vda", frames([{"vda": some}] * 5), ("vda",), DEVICES, use=usual)
        situation.__dict__["p99_ns"] = p99_ns  # as the probe measured it
        assert ("quick" in decide(situation).text) is quick


def test_percentiles_of_some_of_the_seconds_are_not_put_beside_figures_of_all() -> None:
    hog = DiskUser(965, "fio", "fio --name=hog", write_s=31 * MIB, devices=frozenset({"vda"}))
    stats = RequestStats(1.0, LatencyStats.from_bins({4_000_000: 8000}))
    task = TaskIo(965, "fio", "/", "vda", 8000, 0, 8000, 5e7, None, None, {3_932_160: 8000})
    counted = ProbeInterval(1.0, 0.0, (), {"vda": {"write": stats}}, {}, (task,), None, None, 0, 0,
                            0, None, None)  # fmt: skip
    seen_use = use(users=(hog,), disks={"vda": (0.0, 31 * MIB, 32.0)})
    for probed, told in ((5, True), (4, False)):
        seconds = [
            replace(one, probe=counted if number < probed else None)
            for number, one in enumerate(frames([{"vda": HOG}] * 5))
        ]
        situation = Situation("vda", seconds, ("vda",), DEVICES, use=seen_use)
        answer = decide(situation)
        who = [line for line in evidence(situation, answer) if line.startswith("who")]
        assert len(who) == told, "without percentiles it would repeat the sentence"
        # the bins of a process are 12 % wide
        assert all("(p50 about 3.9 ms, p99 about 3.9 ms)" in line for line in who)
        assert (situation.p99_ns is not None) is told
        assert answer.who.startswith("fio --name=hog (965) does ")


def test_full_cpus_are_no_news_of_an_idle_disk_beside_one_in_use() -> None:
    both = Target(DEVICE, "/dev/vda:/dev/dm-0", "vda", ("vda", "dm-0"), parts=(
        replace_target("vda"), replace_target("dm-0")))  # fmt: skip
    full = {0: CpuFrame(CpuLoad(100.0, 0, 0, 0, 0, 0.0, 0), 0, 0, 0)}
    waits = use(cpu_some=90.0)
    for used, rules in ((HOG, ["queue", "quiet"]), (IDLE, ["cpu", "quiet"])):
        seconds = [replace(one, cpus=full) for one in frames([{"vda": used, "dm-0": IDLE}] * 5)]
        answers = [one for _, one in judge(Seen(both, seconds, DEVICES, use=waits))]
        assert [one.rule for one in answers] == rules
        assert answers[0].text.endswith("; the CPUs are full, which may be why") is (used is HOG)
    assert "CPUs" not in first([HOG] * 5, waits).text, "nobody measured how full they are"


def test_full_cpus_do_not_clear_a_disk_that_requests_are_in_most_of_the_time() -> None:
    full = {0: CpuFrame(CpuLoad(100.0, 0, 0, 0, 0, 0.0, 0), 0, 0, 0)}
    one_by_one = changed(rates(5000, 0, 0), aqu_sz=0.7, util=66.0)
    for used, begin in ((one_by_one, "The CPUs are full"), (IDLE, "Not the disk: the CPUs are")):
        seconds = [replace(one, cpus=full) for one in frames([{"vda": used}] * 5)]
        answer = judge(Seen(ONE, seconds, DEVICES, use=use(cpu_some=90.0)))[0][1]
        assert answer.rule == "cpu" and answer.text.startswith(begin)
        assert "busiest" not in answer.text, "it was not looked for, or there is none"
        busy = use(cpu_some=90.0, cpu_user="cc1 (965) with 98 %")
        answer = judge(Seen(ONE, seconds, DEVICES, use=busy))[0][1]
        assert answer.text.endswith("; the busiest program is cc1 (965) with 98 % of a CPU")
        short = shortened(answer.text, answer.who, 78, len)[0]
        assert short.startswith(begin) and "; vda " in short, "the disk is told of, too"


def test_a_load_that_has_ended_is_of_the_past() -> None:
    fio = DiskUser(9, "fio", write_s=9e9, devices=frozenset({"vda"}))
    seen = use(users=(fio,), disks={"vda": (0.0, 6e7, 9.0)})
    quick = changed(HOG, aqu_sz=32.0, r_await=0.4, w_await=0.4)
    for busy, busy_s, verdict, ms in ((HOG, 6, UNKNOWN, 4), (HOG, 1, UNKNOWN, 4),
                                      (quick, 6, NOTHING, 0.4)):  # fmt: skip
        answer = first([busy] * busy_s + [IDLE] * (10 - busy_s), seen, 0.0)
        assert (answer.rule, answer.verdict, answer.who) == ("ended", verdict, "fio (9) did most "
                                                             "of it")  # fmt: skip
        took = "4.00 ms" if ms == 4 else "400 µs"
        assert answer.text == (f"vda is idle: no I/O for {10 - busy_s} s; before that {took} on "
                               "average, 31.2 MiB/s, 32 in flight")  # fmt: skip
    assert first([HOG] * 8 + [IDLE] * 2, seen).rule == "queue", "a pause of 2 s is no end"
    journal = changed(rates(0, 2, 1), aqu_sz=0.0)
    text = first([HOG] * 6 + [journal] * 4, seen).text
    assert text.startswith("vda has little I/O (2.00/s) for 4 s")


def test_a_blocked_task_is_named_where_no_disk_has_a_request() -> None:
    frozen = use(blocked=(BlockedTask(7, "dd", "percpu_rwsem_wait"),))
    assert first([IDLE] * 5, frozen, 0.0).text == (
        "vda is idle: no I/O for 5 s; no task waits for I/O, but dd (7) is blocked in "
        "percpu_rwsem_wait"
    )
    assert first([IDLE] * 5, frozen).text.endswith("5 s; dd (7) is blocked in percpu_rwsem_wait")
    assert first([IDLE] * 5, frozen, 2.0).text.endswith("for I/O 2 % of the time, but dd (7) is "
                                                        "blocked in percpu_rwsem_wait")  # fmt: skip


@pytest.mark.parametrize(("place", "elsewhere", "verdict"), [
    ("dm_wait_event", 0.0, UNKNOWN), ("", 0.0, UNKNOWN), ("percpu_rwsem_wait", 0.0, NOTHING),
    ("p9_client_rpc", 0.0, NOTHING), ("io_schedule", 3.0, NOTHING),
])  # fmt: skip
def test_nobody_can_tell_what_a_task_waits_for_that_is_blocked_while_all_disks_are_idle(
    place: str, elsewhere: float, verdict: str
) -> None:
    """dd waits all the time, beside 15 busy CPUs: 6 % of I/O pressure. A disk that has requests may
    be what it waits for."""
    blocked = use(blocked=(BlockedTask(7, "dd", place),),
                  disks={"vda": (0.0, 0.0, 0.0), "vdb": (1e6, 0.0, elsewhere)})  # fmt: skip
    answer = first([IDLE] * 5, blocked, 6.3)
    assert (answer.rule, answer.state, answer.verdict) == ("quiet", GOOD, verdict)
    # the same if the few looks of a busy machine found no blocked task
    unseen = replace(blocked, blocked=())
    assert first([IDLE] * 5, unseen, 15.0).verdict == (NOTHING if elsewhere else UNKNOWN)
    ring = replace(unseen, ring_waiters=(RingWaiter(812, "dragonfly"),))
    assert first([IDLE] * 5, ring, 15.0).verdict == NOTHING
    assert first([IDLE] * 5, replace(unseen, remote=True), 15.0).verdict == NOTHING, "a server"
    # an idle volume is cleared if the disk below it serves others
    volume = replace(unseen, disks={"dm-0": (0.0, 0.0, 0.0), "vda": (1e6, 0.0, elsewhere)})
    idle = frames([{"dm-0": IDLE, "vda": IDLE}] * 5, 15.0)
    pairs = judge(Seen(STACK, idle, DEVICES, use=volume))
    verdicts = {situation.disk: one.verdict for situation, one in pairs}
    assert verdicts["dm-0"] == (NOTHING if elsewhere else UNKNOWN)


def test_a_counter_of_a_stacked_device_that_nothing_confirms_is_no_stall() -> None:
    stuck = changed(IDLE, in_flight=3, aqu_sz=3.0)
    seconds = frames([{"dm-0": stuck, "vda": IDLE}] * 5, 0.0)
    answer = judge(Seen(STACK, seconds, DEVICES, use=use()))[0][1]
    assert (answer.rule, answer.verdict) == ("counter", UNKNOWN)
    waits = use(blocked=(BlockedTask(7, "dd"),))
    assert judge(Seen(STACK, seconds, DEVICES, use=waits))[0][1].rule == "silent"
    # multipath without a path, asynchronous I/O: dm devices with blk-mq queues count their requests
    exact = DEVICES | {"dm-0": replace(DEVICES["dm-0"], hctxs=(Hctx(0, (0, 1), 128, 0),))}
    assert judge(Seen(STACK, seconds, exact, use=use()))[0][1].rule == "silent"


def test_a_suspended_device() -> None:
    held = Conditions(devices={"dm-0": DeviceState(suspended=True)})
    seconds = frames([{"dm-0": IDLE, "vda": IDLE}] * 5, 50.0)
    blocked = use(blocked=(BlockedTask(7, "dd", "io_schedule"),))
    answer = judge(Seen(STACK, seconds, DEVICES, held, blocked))[0][1]
    assert answer.text == ("dm-0 (data) is suspended: nothing passes; dd (7) waits in io_schedule")
    assert (answer.verdict, answer.next) == (WAITS, advise("resume", "data"))
    # the few looks of a busy machine found no blocked task
    for waited, elsewhere, verdict in ((50.0, 0, UNKNOWN), (0.0, 0, NOTHING), (50.0, 3, NOTHING)):
        seconds = frames([{"dm-0": IDLE, "vda": IDLE}] * 5, waited)
        others = use(disks={"dm-0": (0.0, 0.0, 0.0), "vdb": (1e6, 0.0, float(elsewhere))})
        unseen = judge(Seen(STACK, seconds, DEVICES, held, others))[0][1]
        assert (unseen.rule, unseen.verdict) == ("suspended", verdict)


@pytest.mark.parametrize(("looks", "task", "waited", "verdict"), [
    # suspended for 2 of 5 s, in a virtual machine
    ((1, 0, 0, 1, 1, 0, 0, 1), "fio", 40.0, WAITS),
    ((1, 0, 0, 1, 1, 0, 0, 1), "", 40.0, WAITS),
    # asynchronous requests, which cause no pressure; a short suspension to make a snapshot
    ((1, 0, 0, 1, 1, 0, 0, 1), "", 0.0, UNKNOWN), ((0, 0, 1, 0, 0, 0, 0, 0), "fio", 20.0, UNKNOWN),
    ((0,) * 8, "", 0.0, NOTHING),
])  # fmt: skip
def test_a_device_that_is_suspended_at_times(
    looks: Sequence[int], task: str, waited: float, verdict: str
) -> None:
    blocked = (BlockedTask(7, task),) if task else ()
    seen = mean_use([use(suspended={"dm-0": 1.0} if look else {}, blocked=blocked)
                     for look in looks])  # fmt: skip
    quick = rates(2000, 0, 0.2)
    answer = judge(Seen(STACK, frames([{"dm-0": quick, "vda": quick}] * 8, waited), DEVICES,
                        use=seen))[0][1]  # fmt: skip
    assert answer.verdict == verdict
    if any(looks):
        share = 100 * sum(looks) / len(looks)
        assert answer.text.startswith(f"dm-0 (data) was suspended in {share:.0f} % of the checks")


def test_a_limit_is_not_the_disk_s_fault() -> None:
    limit = LimitUse("vda", "/work", "1,000 reads/s", "io.max")
    answer = first([rates(1000, 0, 0)] * 5, use(limits=(limit,)), 95.0)
    assert answer.text == ("Not the disk: /work is at its limit of 1,000 reads/s on vda (io.max)")
    assert answer.verdict == WAITS
    assert first([SLOW] * 5, use(limits=(limit,)), 95.0).rule == "slow", "it may be the disk"


def test_a_limit_is_reached_in_the_mean_of_the_readings() -> None:
    limit = LimitUse("vda", "/work", "200 reads/s", "io.max")
    for shares_done, is_reached in (
        ((0.9, 1.08, 0.99), True), ((0.95, 0.94, 0.96), False), ((0.95,), False), ((1.0,), True),
    ):  # fmt: skip
        uses = [use(limits=(replace(limit, share=share),)) for share in shares_done]
        together = mean_use(uses)
        assert together is not None and bool(together.limits) is is_reached
    lumps = [use(limits=(replace(limit, share=3.9),) * (second % 4 == 0)) for second in range(10)]
    together = mean_use(lumps)
    assert together is not None and together.limits
    for shifted in (lumps[1:], lumps[2:8]):
        together = mean_use(shifted)
        assert together is not None and not together.limits and together.near_limits
    rarely = mean_use([use(limits=(limit,)), use(), use(), use()])
    assert rarely is not None and not rarely.limits and not rarely.near_limits


@pytest.mark.parametrize(("shares_done", "is_near"), [
    ((0.93,), True), ((1.02, None, 0.99, None), True), ((0.9, 0.9, 0.9, 0.9), False),
    # held back all the time, on a busy machine
    ((0.93, 0.95, 0.96, 0.95), True),
    ((1.0, 1.0, 1.0), False),
])  # fmt: skip
def test_of_a_limit_that_may_have_been_reached_nobody_says_that_nothing_waits(
    shares_done: Sequence[float | None], is_near: bool
) -> None:
    """Requests of libaio that wait for a limit are seen neither in the disk nor in the pressure."""
    limit = LimitUse("vda", "/work", "200 reads/s", "io.max")
    together = mean_use([use(limits=() if share is None else (replace(limit, share=share),))
                         for share in shares_done])  # fmt: skip
    seconds = frames([{"vda": rates(200, 0, 3)}] * 5, 0.0)
    situation, answer = judge(Seen(ONE, seconds, DEVICES, use=together))[0]
    assert (answer.rule == "near-limit") is is_near
    if is_near:
        assert answer.verdict == UNKNOWN and "at or near its limit of 200 reads/s" in answer.text
        assert "I/O limits of cgroups" not in excluded(situation, answer)
        above = frames([{"dm-0": IDLE, "vda": rates(200, 0, 3)}] * 5, 0.0)
        assert judge(Seen(STACK, above, DEVICES, use=together))[0][1].rule == "quiet"


def test_a_limit_that_is_nearly_reached_may_hold_back_a_program_that_waits() -> None:
    """A writer with O_DSYNC, whose cgroup's limit lets its requests pass one by one."""
    limit = LimitUse("vda", "db.service", "1.43 MiB/s written", "io.max")
    writer = (BlockedTask(352, "python3", "jbd2_log_wait_commit"),)
    for share, blocked, pressure, rule in (
        (0.85, writer, 7.0, "near-limit"), (0.85, (), 17.0, "near-limit"), (0.85, (), 7.0, "quiet"),
    ):  # fmt: skip
        held = use(limits=(replace(limit, share=share),), blocked=blocked)
        second = changed(rates(0, 218, 2.2), aqu_sz=0.69, util=52.0)
        answer = first([second] * 8, mean_use([held] * 8), pressure)
        assert answer.rule == rule
        if rule == "near-limit":
            assert answer.verdict == UNKNOWN and answer.text.endswith(
                "; db.service is at 85 % of its limit of 1.43 MiB/s written (io.max)"
            )
    often = [use(limits=(replace(limit, share=0.85),) * (n % 2), blocked=writer) for n in range(8)]
    assert first([second] * 8, mean_use(often), 17.0).rule == "quiet", "in half of the readings"


def test_tasks_that_wait_much_longer_than_the_disk_has_requests_wait_for_the_limit() -> None:
    """A limit of the cgroup two levels up; a busy machine reaches only 96 % of it."""
    limit = LimitUse("vda", "/top", "120 reads/s", "io.max", 0.96)
    seen = mean_use([use(limits=(limit,), disks={"vda": (4.8e5, 0.0, 0.23)})] * 7)
    seconds = [changed(rates(120, 0, 1.9), aqu_sz=0.23, util=20.0)] * 7
    answer = first(seconds, seen, 67.0)
    assert answer.verdict == WAITS
    assert answer.text.endswith(
        "120 reads/s (io.max) at times; tasks wait for I/O 67 % of the time"
    )
    assert first(seconds, seen, 40.0).verdict == UNKNOWN
    assert seen is not None
    assert first(seconds, replace(seen, remote=True), 67.0).verdict == UNKNOWN, "or for a server"


def test_the_limit_of_the_top_cgroup_is_called_so() -> None:
    limit = LimitUse("vda", "the top cgroup", "200 reads/s", "io.max")
    answer = first([IDLE] * 5, use(limits=(limit,)), 10.0)
    assert answer.text.startswith("Not the disk: the top cgroup is at its limit of 200 reads/s")
    assert answer.next == "the limit io.max of the top cgroup may be raised, or lifted"


@pytest.mark.parametrize(("state", "words"), [
    ("out_of_data_space", "The thin pool dm-0 (data) is full: writes to new blocks wait, or fail"),
    ("ro", "The thin pool dm-0 (data) is read-only: "), ("Fail", "dm-0 (data) has failed"),
])  # fmt: skip
def test_a_thin_pool_that_cannot_be_written(state: str, words: str) -> None:
    """dd writes to a thin volume of a full pool; the answer about another disk is good."""
    thin = (DeviceLinks("dm-1", ("dm-0",), "thin"), DeviceLinks("dm-0", ("vda",)),
            DeviceLinks("vda"))  # fmt: skip
    target = combine_targets([
        TargetPath(DEVICE, "/dev/dm-1", "dm-1", ("dm-1", "dm-0", "vda"), links=thin),
        TargetPath(DEVICE, "/dev/vdb", "vdb", ("vdb",), links=(DeviceLinks("vdb"),)),
    ])  # fmt: skip
    seconds = frames([dict.fromkeys(("dm-1", "dm-0", "vda", "vdb"), IDLE)] * 5, 78.0)
    pool = Conditions(devices={"dm-0": DeviceState(pool=state)})
    for blocked, verdict in (((BlockedTask(7, "dd", "submit_bio_wait"),), WAITS), ((), NOTHING)):
        pairs = judge(Seen(target, seconds, DEVICES, pool, use(blocked=blocked)))
        answer = pairs[0][1]
        assert words in answer.text and (answer.state, answer.verdict) == (CRITICAL, verdict)
        assert ("; dd (7) waits in submit_bio_wait" in answer.text) is bool(blocked)
        assert answer.next == advise("thin-pool", "data")
        assert not [one for _, one in pairs[1:] if one.state != GOOD]
    held = replace(IDLE, in_flight=3)
    seconds = frames([{"dm-1": IDLE, "dm-0": held, "vda": IDLE, "vdb": IDLE}] * 5, 78.0)
    answer = judge(Seen(target, seconds, DEVICES, pool, use()))[0][1]
    assert answer.verdict == WAITS and not answer.text.endswith("; ")


@pytest.mark.parametrize(("seen", "state", "verdict"), [
    ({"aio_waiters": (RingWaiter(9, "fio"),)}, "out_of_data_space", UNKNOWN),
    ({"ring_waiters": (RingWaiter(9, "fio"),)}, "out_of_data_space", UNKNOWN),
    ({"aio_waiters": (RingWaiter(9, "fio"),)}, "Fail", NOTHING),
])  # fmt: skip
def test_who_sleeps_for_an_asynchronous_io_may_wait_for_a_full_pool(
    seen: dict[str, object], state: str, verdict: str
) -> None:
    """fio's libaio writer of a full pool is in state S, and the pool counts none of its I/Os."""
    pool = Conditions(devices={"vda": DeviceState(pool=state)})
    assert first([IDLE] * 5, use(**seen), 0.0, conditions=pool).verdict == verdict


def test_a_user_is_not_told_that_a_pool_without_io_is_idle() -> None:
    """Only root may read its state; another volume that writes shows that the pool has room."""
    thin = (DeviceLinks("dm-1", ("dm-0",), "thin"), DeviceLinks("dm-0", ("vda",)),
            DeviceLinks("vda"))  # fmt: skip
    target = combine_targets([
        TargetPath(DEVICE, "/dev/dm-1", "dm-1", ("dm-1", "dm-0", "vda"), links=thin),
    ])  # fmt: skip
    pool = Conditions(devices={"dm-0": DeviceState(pool="unreadable")})
    user = replace(use(), as_root=False)
    writer = BlockedTask(7, "dd")
    for below, seen, some, rule, verdict in (
        (IDLE, user, 0.0, "hidden-pool", UNKNOWN),
        (IDLE, replace(user, ring_waiters=(RingWaiter(9, "fio"),)), 60.0, "hidden-pool", UNKNOWN),
        (IDLE, replace(user, blocked=(writer,)), 60.0, "above", UNKNOWN),
        (rates(0, 10, 1), user, 0.0, "quiet", NOTHING),
    ):
        seconds = frames([{"dm-1": IDLE, "dm-0": below, "vda": below}] * 5, some)
        answer = judge(Seen(target, seconds, DEVICES, pool, seen))[0][1]
        assert (answer.disk, answer.rule, answer.verdict) == ("dm-1", rule, verdict)
        if rule == "hidden-pool":
            assert answer.text == (
                "dm-1 is idle: no I/O for 5 s; only root sees whether dm-0 (data) below it is a "
                "full thin pool, in which writes wait uncounted"
            )
            assert answer.next == advise("root", "dm-1")


def test_the_verdict_on_all_disks_is_not_that_of_a_pool_that_nobody_writes_to() -> None:
    full = Conditions(devices={"vda": DeviceState(pool="out_of_data_space")})
    for other, verdict in ((HOG, WAITS), (IDLE, NOTHING)):
        pairs = judge(Seen(TWO, frames([{"vda": IDLE, "vdb": other}] * 5), DEVICES, full))
        assert pairs[0][1].verdict == NOTHING and combined_verdict(pairs) == verdict
        # on a busy machine, no reading of blocked tasks may end in time
        assert combined_verdict(pairs, was_read=False) == (WAITS if other is HOG else UNKNOWN)
    assert combined_verdict([]) == UNKNOWN


def test_what_io_cost_holds_back_is_not_the_disk_s_fault() -> None:
    """Two programs read from a disk that io.cost limits to 100 reads/s. It has 0.16 requests in
    flight, and tasks wait for I/O 66 % of the time."""
    used = changed(rates(92, 0, 1.7), aqu_sz=0.16, util=15.0)
    cost = Conditions(devices={"vda": DeviceState(has_iocost=True)})
    moved = {"vda": (370e3, 0.0, 0.16)}
    tasks = (BlockedTask(4500, "fio", "ioc_rqos_throttle"),
             BlockedTask(4501, "fio", "ioc_rqos_throttle"))  # fmt: skip
    held = use(blocked=tasks, disks=moved)
    answer = first([used] * 5, held, 66.0, conditions=cost)
    assert answer.text == ("Not the disk: fio (4500) and 1 more wait in ioc_rqos_throttle, for "
                           "io.cost (io.cost.qos, io.weight)")  # fmt: skip
    assert (answer.verdict, answer.next) == (WAITS, advise("iocost"))
    # in the top cgroup nothing shows whether io.cost is on; the root file system is 9p, thus remote
    seconds = frames([{"vda": used}] * 5, 66.0)
    top = judge(Seen(ONE, seconds, DEVICES, use=replace(held, remote=True)))
    assert top[0][1] == answer and "I/O limits of cgroups" not in excluded(*top[0])
    two = replace(held, remote=True, disks=moved | {"vdb": (1e6, 0.0, 0.15)})
    assert first([used] * 5, two, 66.0).rule == "above", "which disk is not known"
    # an ordinary user does not see where they wait
    unread = use(blocked=tuple(replace(task, place="") for task in tasks), disks=moved)
    hidden = first([used] * 5, unread, 42.0, conditions=cost)
    assert hidden.verdict == UNKNOWN and "io.cost may hold I/O back" in hidden.text
    assert first([used] * 5, use(disks=moved), 2.0, conditions=cost).verdict == NOTHING
    full = {0: CpuFrame(CpuLoad(100.0, 0, 0, 0, 0, 0.0, 0), 0, 0, 0)}
    for rate, verdict in ((used, UNKNOWN), (IDLE, NOTHING)):
        seconds = [replace(one, cpus=full) for one in frames([{"vda": rate}] * 5, 2.0)]
        busy = Seen(ONE, seconds, DEVICES, cost, use(disks=moved, cpu_some=90.0))
        assert judge(busy)[0][1].verdict == verdict, "looks at tasks are few, and pressure is low"
    assert first([HOG] * 5, held, 66.0, conditions=cost).rule == "queue"
    seen = Seen(ONE, frames([{"vda": used}] * 5, 2.0), DEVICES, cost, use(disks=moved))
    assert "I/O limits of cgroups" not in excluded(*judge(seen)[0])


def test_an_idle_disk_is_cleared_by_another_whose_requests_the_frames_have() -> None:
    """A healthy reader in a starved guest, where the users of the disks could not be read in
    time."""
    reader = changed(rates(145, 0, 4.5), aqu_sz=0.65, util=78.0)
    seconds = frames([{"vda": IDLE, "vdb": reader}] * 5, 15.0)
    for read in (None, use(disks={"vda": (0.0, 0.0, 0.0), "vdb": (0.0, 0.0, 0.0)})):
        pairs = judge(Seen(TWO, seconds, DEVICES, use=read))
        assert combined_verdict(pairs) == NOTHING
    alone = frames([{"vda": IDLE}] * 5, 15.0)
    assert judge(Seen(ONE, alone, DEVICES))[0][1].verdict == UNKNOWN, "others were not looked at"


def test_a_reader_that_few_looks_found_blocked_too_often_may_wait_for_the_disk() -> None:
    """tar reads a healthy disk 36 % of the time; five of eight looks found it blocked."""
    tar = BlockedTask(5150, "tar", "folio_wait_bit_common")
    reading = changed(rates(181, 0, 1.9), aqu_sz=0.35, util=36.0)
    for found, of, verdict in ((5, 8, NOTHING), (7, 8, UNKNOWN), (38, 60, UNKNOWN)):
        looks = [use(blocked=(tar,) * (n < found), disks={"vda": (6e6, 0.0, 0.35)})
                 for n in range(of)]  # fmt: skip
        assert first([reading] * 8, mean_use(looks), 4.0).verdict == verdict


@pytest.mark.parametrize(("pressure", "verdict"), [(32.0, UNKNOWN), (2.0, NOTHING)])
def test_who_waited_before_the_i_o_ended_is_not_denied(pressure: float, verdict: str) -> None:
    """A copy: it syncs for two seconds, and reads another disk for five. Tasks waited 9 % of all
    the time."""
    writing = changed(rates(0, 9, 712, kib=1000), aqu_sz=6.4, util=85.0)
    seconds = [*frames([{"vda": writing}] * 2, pressure), *frames([{"vda": IDLE}] * 5, 0.0)]
    answer = judge(Seen(ONE, seconds, DEVICES, use=use(write_back=9e6)))[0][1]
    assert (answer.rule, answer.verdict) == ("ended", verdict)


@pytest.mark.parametrize(("count", "place", "ms", "util", "elsewhere", "verdict"), [
    (8, "jbd2_log_wait_commit", 5.9, 90.0, 0.0, WAITS), (8, "", 5.9, 90.0, 0.0, WAITS),
    (3, "jbd2_log_wait_commit", 5.9, 90.0, 0.0, UNKNOWN),
    (8, "rpc_wait_bit_killable", 5.9, 90.0, 0.0, NOTHING),
    (8, "jbd2_log_wait_commit", 3.0, 90.0, 0.0, UNKNOWN),
    (8, "jbd2_log_wait_commit", 5.9, 60.0, 0.0, UNKNOWN),
    (8, "jbd2_log_wait_commit", 5.9, 90.0, 2.0, NOTHING),
])  # fmt: skip
def test_programs_wait_for_the_commits_of_a_journal(
    count: int, place: str, ms: float, util: float, elsewhere: float, verdict: str
) -> None:
    """Eight programs with O_SYNC on ext4, whose journal has 1.2 requests in flight."""
    second = changed(rates(0, 96, ms), aqu_sz=1.2, util=util)
    tasks = tuple(BlockedTask(n, "python3", place) for n in range(count))
    moved = {"vda": (0.0, 9e5, 1.2), "vdb": (0.0, 1e6, elsewhere)}
    answer = first([second] * 8, use(blocked=tasks, disks=moved), 30.0)
    assert answer.verdict == verdict
    if verdict == WAITS:
        assert "1.2 in flight; python3 (0) and 7 more wait" in answer.text
    if not place:
        remote = use(blocked=tasks, disks=moved, remote=True)
        assert first([second] * 8, remote, 30.0).verdict == UNKNOWN, "it may be a server"
        for journal, verdict in (("jbd2/vda-8", WAITS), ("jbd2/vdb-8", UNKNOWN)):
            thread = BlockedTask(99, journal, kernel=True)
            beside = replace(remote, blocked=(*tasks, thread))
            assert first([second] * 8, beside, 30.0).verdict == verdict, "a journal proves it"


def test_programs_wait_behind_the_requests_of_md() -> None:
    """Two readers of a mirror while it is checked: 3.7 requests in flight, each takes 16.6 ms."""
    second = changed(rates(224, 0, 16.6), aqu_sz=3.7, util=100.0)
    syncing = Conditions(devices={"md0": DeviceState(array=Array("check", 0, 2))})
    devices = DEVICES | {"md0": replace(DEVICES["vda"], name="md0", kind="md", slaves=("vda",))}
    for pressure, conditions, verdict in (
        (41.0, syncing, WAITS), (2.0, syncing, UNKNOWN), (9.0, Conditions(), UNKNOWN),
    ):  # fmt: skip
        seconds = frames([{"vda": second}] * 8, pressure)
        answer = judge(Seen(ONE, seconds, devices, conditions, use()))[0][1]
        assert answer.verdict == verdict


def test_a_partition_is_no_other_disk() -> None:
    part = replace(DEVICES["vda"], name="vda1", disk="vda")
    frame_disks = {"vda1": rates(100, 0, 5), "vda": rates(100, 0, 5)}
    seen = Seen(ONE, frames([frame_disks] * 5), DEVICES | {"vda1": part}, use=use())
    assert judge(seen)[0][0].other_in_flight == 0.0


def test_what_the_kernel_holds_back_before_a_quick_disk_is_not_cleared() -> None:
    """A reader that io.latency protects has a request in flight nearly all the time. For its sake
    the kernel holds another program back."""
    reader = changed(rates(450, 0, 2.0), aqu_sz=0.9, util=92.0)
    moved = {"vda": (2e6, 0.0, 0.9)}
    protected = BlockedTask(11, "fio", "submit_bio_wait")
    held = BlockedTask(12, "dd", "rq_qos_wait")
    seen = use(blocked=(protected, held), disks=moved)
    answer = first([reader] * 5, seen, 90.0)
    assert (answer.verdict, answer.next) == (WAITS, advise("held"))
    assert answer.text == (
        "Not the disk: dd (12) waits in rq_qos_wait, for io.latency of a cgroup, or the throttling "
        "of write-back (wbt_lat_usec)"
    )
    two = replace(seen, disks=moved | {"vdb": (1e6, 0.0, 0.5)})
    assert first([reader] * 5, two, 90.0).verdict == UNKNOWN, "of which disk is not known"
    # an ordinary user sees two blocked tasks, but not where they are blocked
    unread = replace(seen, blocked=(replace(protected, place=""), replace(held, place="")))
    hidden = first([reader] * 5, unread, 90.0)
    assert hidden.verdict == UNKNOWN
    assert hidden.text.endswith("; more programs than that are blocked: fio (11) and 1 more")
    assert first([reader] * 5, replace(unread, disks=two.disks), 90.0).verdict == NOTHING
    assert first([reader] * 5, replace(seen, blocked=(protected,)), 90.0).verdict == NOTHING
    quick = changed(rates(150, 0, 2.0), aqu_sz=0.3, util=30.0)
    both = replace(unread, disks={"vda": (6e5, 0.0, 0.3)})
    beside = first([quick] * 5, both, 30.0)
    assert beside.verdict == UNKNOWN and beside.text.endswith(
        "no queue (0.30 in flight); more programs than that are blocked: fio (11) and 1 more"
    )
    flushes = changed(replace(reader, flushes=20, flush_ms=800.0), aqu_sz=0.9)
    assert first([flushes] * 5, unread, 90.0).verdict == NOTHING, "they wait for flushes"
    delayed = (DeviceLinks("dm-0", ("vda",), "delay"), DeviceLinks("vda"))
    top = Target(DEVICE, "/dev/dm-0", "dm-0", ("dm-0", "vda"), links=delayed)
    both = frames([{"dm-0": changed(reader, aqu_sz=1.0), "vda": reader}] * 5, 90.0)
    by_name = {one.disk: one for one, _ in judge(Seen(top, both, DEVICES, use=unread))}
    below = replace(next(iter(by_name.values())), disk="vda", below=("vda",))
    assert decide(below).verdict == NOTHING, "dm-0 holds a request"
    lock = replace(protected, place="rwsem_down_write_slowpath")
    assert first([reader] * 5, replace(seen, blocked=(protected, lock)), 90.0).verdict == NOTHING


def test_write_back_is_not_waited_for_because_tasks_wait_for_another_disk() -> None:
    """A writer to a slow disk is throttled at the limit of dirty pages, while another program's
    data is written back to a quick disk."""
    flush = changed(rates(0, 3780, 11, kib=5), aqu_sz=42.0, util=76.0)
    slow = changed(rates(0, 492, 83, kib=5), aqu_sz=41.0, util=98.0)
    held = BlockedTask(1011, "python3", "balance_dirty_pages")
    there = DiskUser(1011, "python3", write_s=2.0 * MIB, devices=frozenset({"vdb"}))
    moved = {"vda": (0.0, 19e6, 42.0), "vdb": (0.0, 2.4e6, 41.0)}
    seen = use(write_back=60.0 * MIB, blocked=(held,), disks=moved)
    seen = replace(seen, write_back={"vda": 60.0 * MIB, "vdb": 60.0 * MIB})
    seconds = frames([{"vda": flush, "vdb": slow}] * 5, 21.0)
    runs = DiskUser(1014, "python3", write_s=19.0 * MIB, devices=frozenset({"vda"}))
    for users, told in (
        ((there, runs), {"vda": UNKNOWN, "vdb": WAITS}),
        ((replace(there, devices=frozenset({"vda"})),), {"vda": WAITS, "vdb": UNKNOWN}),
        ((), {"vda": UNKNOWN, "vdb": UNKNOWN}),
    ):
        pairs = judge(Seen(TWO, seconds, DEVICES, use=replace(seen, users=users)))
        assert {answer.disk: answer.verdict for _, answer in pairs} == told
    nobody = judge(Seen(TWO, seconds, DEVICES, use=replace(seen, blocked=())))
    assert {answer.verdict for _, answer in nobody} == {UNKNOWN}
    assert nobody[0][1].text.endswith("wait for I/O 21 % of the time, for this disk or another")
    little = replace(seen, disks={"vda": (0.0, 19e6, 42.0), "vdb": (0.0, 2e5, 0.1)})
    assert first([flush] * 5, little, 21.0).verdict == WAITS, "the other has too few requests"
    ring = replace(little, blocked=(), ring_waiters=(RingWaiter(812, "dragonfly"),))
    assert first([flush] * 5, ring, 21.0).verdict == NOTHING


def test_two_disks_whose_waits_explain_the_pressure_for_each_other_are_not_cleared() -> None:
    """As an ordinary user sees them: appends with fsync on one, and files that are copied and
    synced by programs that come and go on the other."""
    appends = changed(rates(0, 52, 16.9, kib=5), aqu_sz=1.3, util=91.0)
    copies = changed(rates(0, 4, 946, kib=1120), aqu_sz=3.6, util=71.0)
    journal = BlockedTask(210, "jbd2/vda-8", "", kernel=True)
    moved = {"vda": (0.0, 280e3, 1.3), "vdb": (0.0, 4.4e6, 3.6)}
    for pressure, blocked, told in (
        (36.0, (journal,), {"vda": WAITS, "vdb": UNKNOWN}),
        (36.0, (), {"vda": NOTHING, "vdb": UNKNOWN}),
        (5.0, (journal,), {"vda": NOTHING, "vdb": NOTHING}),
    ):
        seen = use(blocked=blocked, disks=moved, as_root=False)
        seconds = frames([{"vda": appends, "vdb": copies}] * 5, pressure)
        pairs = judge(Seen(TWO, seconds, DEVICES, use=seen))
        assert {answer.disk: answer.verdict for _, answer in pairs} == told


def test_a_queue_of_four_requests_is_waited_for_though_none_wait_in_it() -> None:
    four = changed(rates(2000, 0, 1.9), aqu_sz=3.8, util=100.0)
    short = replace(DEVICES["vda"], queue=replace(NO_QUEUE, nr_requests=4))
    seconds = frames([{"vda": four}] * 5, 95.0)
    for place, blocked, verdict in (
        ("blk_mq_get_tag", True, WAITS), ("", True, UNKNOWN), ("", False, NOTHING),
        ("submit_bio_wait", True, NOTHING),
    ):  # fmt: skip
        tasks = (BlockedTask(31, "fio", place),) * blocked
        seen = use(blocked=tasks, disks={"vda": (8e6, 0.0, 3.8)})
        for device, told in ((short, verdict), (DEVICES["vda"], NOTHING)):
            answer = judge(Seen(ONE, seconds, {"vda": device}, use=seen))[0][1]
            assert answer.verdict == told
            assert ("takes 4 at once (nr_requests)" in answer.text) is (told != NOTHING)


def test_threads_that_sync_and_wait_half_of_the_time_are_not_cleared() -> None:
    """Eight threads that sync each write, on a disk of 500 IOPS: two in flight."""
    eight = changed(rates(0, 445, 3.93, kib=5), aqu_sz=2.0, util=94.0)
    for pressure, held, boot_ms, verdict in (
        (48.0, 2.0, None, UNKNOWN), (12.0, 2.0, None, NOTHING), (48.0, 2.0, 3.0, NOTHING),
    ):  # fmt: skip
        boot = {"vda": boot_ms} if boot_ms else {}
        tasks = (BlockedTask(2260, "fio", "jbd2_log_wait_commit"),)
        seen = use(blocked=tasks, disks={"vda": (0.0, 2.3e6, held)}, boot_ms=boot,
                   boot_in_flight=dict.fromkeys(boot, 1.0))  # fmt: skip
        answer = first([eight] * 5, seen, pressure)
        assert (answer.rule, answer.verdict) == ("busy", verdict)
        assert ("48 % of the time" in answer.text) is (verdict == UNKNOWN)
    # the probe's times are of these eight threads' requests; they don't tell what one alone takes
    parts = {"write": RequestStats(1.0, LatencyStats.from_bins({3_930_000: 445}))}
    counted = ProbeInterval(1.0, 0.0, (), {"vda": parts}, {}, (), None, None, 0, 0, 0, None, None)
    probed = [replace(one, probe=counted) for one in frames([{"vda": eight}] * 5, 48.0)]
    assert judge(Seen(ONE, probed, DEVICES, use=use()))[0][1].verdict == UNKNOWN
    other = use(disks={"vda": (0.0, 2.3e6, 2.0), "vdb": (1e6, 0.0, 4.0)})
    assert first([eight] * 5, other, 48.0).verdict == NOTHING


@pytest.mark.parametrize(
    ("place", "memory", "verdict"),
    [("", 69.0, NOTHING), ("", 0.0, UNKNOWN), ("", 20.0, UNKNOWN),
     ("submit_bio_wait", 69.0, UNKNOWN), ("mem_cgroup_handle_over_high", 0.0, NOTHING)],
)  # fmt: skip
def test_a_task_blocked_for_memory_does_not_wait_for_an_idle_disk(
    place: str, memory: float, verdict: str
) -> None:
    """A cgroup over memory.high, without swap. An ordinary user can't see where the task is
    blocked."""
    seen = use(blocked=(BlockedTask(965, "python", place, share=0.9),), as_root=bool(place))
    answer = first([IDLE] * 5, seen, 0.0, memory)
    assert answer.verdict == verdict
    told = "python (965) is blocked" in answer.text, "for memory 69 % of the time" in answer.text
    assert told == (True, memory == 69.0)


@pytest.mark.parametrize(
    ("states", "stopped"), [("TT", True), ("Tt", True), ("TS", False), ("", False)]
)
def test_a_stopped_fio_is_told_before_any_finding_of_older_seconds(
    states: str, stopped: bool
) -> None:
    jobs = tuple(JobFrame(n, 0, False, 0.0, 40 + n, state=state) for n, state in enumerate(states))
    late = [replace(one, step=1, fio=None, jobs=jobs) for one in frames([{"vda": IDLE}] * 5)]
    old = Finding("cpu-wait", "11.1 of 32.0 I/Os in flight wait for a CPU", since=1.0, until=4.0)
    answer = judge(Seen(ONE, late, DEVICES, findings=(old,)))[0][1]
    assert (answer.rule == "stopped") is stopped
    if stopped:
        assert answer.sentence == (
            "▲ fio is stopped by a signal (SIGSTOP): its 2 jobs do nothing until it is continued"
        )
        assert (answer.verdict, answer.next) == (UNKNOWN, advise("continue"))


def test_a_check_of_an_array_that_nobody_uses_is_waited_for_by_nobody() -> None:
    checked = changed(rates(15, 2, 76, kib=850), aqu_sz=1.4, util=94.0)
    devices = DEVICES | {"md0": replace(DEVICES["vda"], name="md0", kind="md", slaves=("vda",))}
    state = Conditions(devices={"md0": DeviceState(array=Array("check", 0, 2))})
    reader = DiskUser(965, "fio", read_s=MIB, devices=frozenset({"vda", "md0"}))
    read = rates(100, 0, 1)
    commit = changed(rates(0, 1, 9), aqu_sz=0.01)
    for array, users, pressure, as_root, rule in (
        (IDLE, (), 0.0, False, "resync"), (None, (), 0.0, True, "resync"),
        (commit, (), 0.0, False, "resync"),
        (changed(commit, aqu_sz=0.06), (), 0.0, False, "slow"),
        (replace(IDLE, in_flight=1), (), 0.0, False, "slow"),
        (None, (), 0.0, False, "slow"), (read, (), 0.0, True, "slow"),
        (IDLE, (reader,), 0.0, True, "slow"), (IDLE, (), 5.0, True, "slow"),
    ):  # fmt: skip
        seconds = frames([{"vda": checked} | ({"md0": array} if array else {})] * 5, pressure)
        seen_use = use(disks={"vda": (1.5e7, 0.0, 1.4)}, users=users, as_root=as_root)
        answer = judge(Seen(ONE, seconds, devices, state, seen_use))[0][1]
        assert answer.rule == rule
        assert answer.verdict == (NOTHING if rule == "resync" else WAITS)
        if rule == "resync":
            assert answer.sentence == (
                "● vda is in use: 76.0 ms on average, 14.1 MiB/s, 1.4 in flight; nothing waits "
                "· check of md0 (md) is under way"
            )
        unread = judge(Seen(ONE, seconds, devices, state))[0][1]
        idle = array in (IDLE, commit) and not pressure
        assert unread.rule == ("resync" if idle else "slow"), "nobody has read who uses it yet"


@pytest.mark.parametrize(("array", "as_root", "pressure", "rule"), [
    (IDLE, True, 0.0, "resync"), (IDLE, False, 0.0, "slow"), (IDLE, True, 5.0, "slow"),
    (rates(100, 0, 1), True, 0.0, "slow"), (None, True, 0.0, "slow"),
])  # fmt: skip
def test_a_check_that_has_just_ended_is_waited_for_by_nobody(
    array: DiskRates | None, as_root: bool, pressure: float, rule: str
) -> None:
    """The array is checked again and again; between two checks it is idle for half a second."""
    links = DeviceLinks("md0", ("vda",), "raid1"), DeviceLinks("vda")
    target = Target(DEVICE, "/dev/md0", "md0", ("md0", "vda"), links=links)
    devices = {"vda": DEVICES["vda"], "md0": replace(DEVICES["vda"], name="md0", kind="md")}
    checked = changed(rates(13, 1, 98, kib=1000), aqu_sz=1.4, util=96.0)
    seconds = frames([{"vda": checked} | ({"md0": array} if array else {})] * 5, pressure)
    seen_use = use(disks={"vda": (1.4e7, 0.0, 1.4)}, as_root=as_root)
    pairs = judge(Seen(target, seconds, devices, Conditions(), seen_use))
    found = [answer for situation, answer in pairs if answer.rule in ("resync", "slow")]
    if rule == "slow":
        assert [answer.rule for answer in found] == ["slow"]
        return
    top = pairs[0][0]
    below = decide(Situation("vda", top.frames, ("vda",), devices, {"md0": ("vda",)}, use=seen_use))
    assert not found and below.sentence == (
        "● vda is in use: 98.0 ms on average, 13.7 MiB/s, 1.4 in flight; nothing waits · md0 (md) "
        "does it by itself"
    )


def test_a_check_is_of_the_array_and_its_members_not_of_what_lies_on_the_array() -> None:
    """A loop device that is read from the page cache: its users do nothing on the disks."""
    on_array = "loop0"
    links = (DeviceLinks(on_array, ("md0",)), DeviceLinks("md0", ("vda",), "raid1"),
             DeviceLinks("vda"))  # fmt: skip
    target = Target(DEVICE, f"/dev/{on_array}", on_array, (on_array, "md0", "vda"), links=links)
    devices = {"vda": DEVICES["vda"],
               "md0": replace(DEVICES["vda"], name="md0", kind="md", slaves=("vda",)),
               on_array: replace(DEVICES["vda"], name=on_array)}  # fmt: skip
    checked = changed(rates(13, 1, 98, kib=1000), aqu_sz=1.4, util=96.0)
    upper = changed(rates(128, 0, 3, kib=64), aqu_sz=0.4, util=40.0)
    seconds = frames([{"vda": checked, "md0": IDLE, on_array: upper}] * 5, 0.0)
    user = DiskUser(965, "fio", read_s=8.0 * MIB, devices=frozenset({"vda", "md0", on_array}),
                    only_read=frozenset({"vda", "md0", on_array}))  # fmt: skip
    seen_use = use(disks={"vda": (1.4e7, 0.0, 1.4), on_array: (8.0 * MIB, 0.0, 0.4)},
                   users=(user,), links=links, as_root=True, kernel_s=(0.1 * MIB, 0.0))  # fmt: skip
    running = Conditions(devices={"md0": DeviceState(array=Array("check", 0, 2))})
    for state in (running, Conditions()):
        pairs = judge(Seen(target, seconds, devices, state, seen_use))
        assert not [answer for _, answer in pairs if answer.state != GOOD], "nothing waits"
        told = {answer.disk: answer.who for _, answer in pairs}
        assert told[on_array] == "fio (965) does all of its bytes"
    # another user sees neither the reader nor whether it waits for the disks
    hidden = replace(seen_use, users=(), as_root=False, hidden=8, kernel_s=None)
    pairs = judge(Seen(target, seconds, devices, running, hidden))
    assert [(answer.disk, answer.rule, answer.who) for _, answer in pairs] == [
        (on_array, "quiet", "")
    ]


def test_a_check_that_ended_in_these_seconds_is_told() -> None:
    state = Conditions(devices={"md0": DeviceState(array=Array("idle", 0, 2, ended="check"))})
    devices = DEVICES | {"md0": replace(DEVICES["vda"], name="md0", kind="md", slaves=("vda",))}
    checked = changed(rates(15, 2, 76, kib=850), aqu_sz=1.4, util=94.0)
    seconds = frames([{"vda": checked, "md0": IDLE}] * 5, 0.0)
    seen_use = use(disks={"vda": (1.5e7, 0.0, 1.4)}, as_root=False)
    answer = judge(Seen(ONE, seconds, devices, state, seen_use))[0][1]
    assert answer.verdict == NOTHING
    assert answer.who == "check of md0 (md) has just ended"
    assert not answer.next


def test_a_ram_disk_is_not_called_idle() -> None:
    """brd counts none of its I/Os."""
    target = Target(DEVICE, "/dev/ram0", "ram0", ("ram0",), links=(DeviceLinks("ram0"),))
    answer = judge(Seen(target, frames([{"ram0": IDLE}] * 5, 0.0), {}))[0][1]
    assert answer.verdict == NOTHING and "idle" not in answer.text


def test_bursts_of_writes_that_somebody_syncs_are_not_cleared() -> None:
    """A program that calls sync again and again: the disk rests 60 % of the time."""
    burst = changed(rates(0, 246, 77, kib=9), aqu_sz=19.0, util=38.0)
    seen = use(write_back=2.0 * MIB, disks={"vda": (0.0, 2.3e6, 19.0)})
    answer = first([burst] * 5, seen, 11.0)
    assert answer.verdict == UNKNOWN
    assert answer.text.endswith("none for 62 % of the time; tasks wait for I/O 11 % of the time")
    assert first([burst] * 5, seen, 9.0).verdict == NOTHING
    quicker = changed(rates(0, 4000, 4), aqu_sz=19.0, util=38.0)
    assert first([quicker] * 5, seen, 11.0).verdict == NOTHING, "no request waits for long"
    other = replace(seen, disks=seen.disks | {"vdb": (2e6, 0.0, 0.3)})
    assert first([burst] * 5, other, 11.0).text.endswith("for this disk or another")


def test_requests_that_may_wait_for_bfq_s_other_programs_are_not_cleared() -> None:
    """Three readers, one of them in a cgroup of weight 1. A request takes 6 ms on average, most of
    that reader's ten times as long; alone a request takes 2 ms."""
    three = changed(rates(400, 0, 6.2), aqu_sz=2.5, util=96.0)
    seconds = frames([{"vda": three}] * 5, 40.0)
    for scheduler, boot, verdict in (
        ("bfq", (67.0, 30.0), UNKNOWN), ("bfq", (2.0, 1.0), UNKNOWN), ("bfq", (5.0, 1.0), NOTHING),
        ("none", (67.0, 30.0), UNKNOWN), ("none", (5.0, 1.0), NOTHING),
    ):  # fmt: skip
        quick = [{"vda": changed(rates(8000, 0, 0.3), aqu_sz=2.5, util=96.0)}] * 5
        seen = use(boot_ms={"vda": boot[0]}, boot_in_flight={"vda": boot[1]})
        device = replace(DEVICES["vda"], queue=replace(NO_QUEUE, scheduler=scheduler))
        answer = judge(Seen(ONE, seconds, {"vda": device}, use=seen))[0][1]
        assert answer.verdict == verdict
        told = {"bfq": "whether they wait for each other cannot be told",
                "none": "tasks wait for I/O 40 % of the time"}[scheduler]  # fmt: skip
        assert answer.text.endswith(told) is (verdict == UNKNOWN)
        quickly = Seen(ONE, frames(quick, 40.0), {"vda": device}, use=seen)
        assert judge(quickly)[0][1].verdict == NOTHING


def test_a_third_of_the_seconds_is_enough_if_tasks_wait_for_very_slow_requests() -> None:
    """A copy of 60 MB with fsync, again and again, to a disk of 20 MB/s."""
    sync = changed(rates(0, 38, 1150, kib=480), aqu_sz=44.0, util=100.0)
    quicker = changed(rates(0, 380, 11, kib=48), aqu_sz=44.0, util=100.0)
    for second, seconds, pressure, moved, verdict in (
        (sync, 4, 33.0, 0.0, WAITS), (sync, 3, 16.0, 0.0, WAITS), (sync, 2, 33.0, 0.0, UNKNOWN),
        (sync, 4, 33.0, 0.2, UNKNOWN), (quicker, 4, 33.0, 0.0, UNKNOWN),
    ):  # fmt: skip
        seen = use(disks={"vda": (0.0, 1.2e7, 30.0), "vdb": (1e6, 0.0, moved)})
        shown = [IDLE] * 7
        for index in (6, 0, 3, 2)[:seconds]:
            shown[index] = second
        answer = first(shown, seen, pressure)
        assert (answer.rule, answer.verdict) == ("unsteady", verdict)
        if verdict == WAITS and seconds == 4:
            assert answer.next == advise("many", "vda") and answer.text == (
                "vda is busy at times: I/Os waited in 4 of 7 s, 1.15 s on average over all; tasks "
                "wait for I/O 33 % of the time"
            )
    begins = first([IDLE, IDLE, IDLE, sync, sync], use(), 33.0)
    assert begins.verdict == UNKNOWN, "on the screen a second later it is clear"
    reads = changed(rates(38, 0, 1150, kib=480), util=100.0)
    for rings, verdict in (((), WAITS), ((RingWaiter(812, "dragonfly"),), UNKNOWN)):
        answer = first([reads, IDLE, reads, reads, IDLE, IDLE, reads], use(ring_waiters=rings), 33)
        assert (answer.rule, answer.verdict) == ("unsteady", verdict), "it may be their pressure"


def test_bursts_that_come_again_are_not_cleared() -> None:
    """Every five seconds 32 random reads at a time for a second, on a slow disk."""
    burst = changed(rates(500, 0, 55), aqu_sz=28.0, util=95.0)
    again = [IDLE, burst, *[IDLE] * 4, burst, IDLE]
    for seconds, rule in (([*again, IDLE], "unsteady"), ([*again, IDLE, IDLE], "ended")):
        answer = first(seconds, use(), 0.0)
        assert (answer.rule, answer.verdict, answer.state) == (rule, UNKNOWN, GOOD)
    once = first([IDLE, burst, *[IDLE] * 8], use(), 0.0)
    assert (once.rule, once.verdict) == ("ended", UNKNOWN), "the other bursts were not looked at"
    assert first([*[IDLE] * 8, burst, IDLE], use(), 0.0).text.startswith(
        "vda is busy at times: I/Os waited in 1 of 10 s"
    )


def test_a_wait_that_is_too_long_for_the_requests_in_flight_is_not_explained() -> None:
    few = changed(rates(92, 0, 1.7), aqu_sz=0.16, util=15.0)
    held = use(blocked=(BlockedTask(7, "dd", "submit_bio_wait"),), disks={"vda": (1e6, 0.0, 0.16)})
    answer = first([few] * 5, held, 66.0)
    assert answer.verdict == UNKNOWN and answer.text == (
        "Tasks wait for I/O 66 % of the time, but requests are in flight at most 16 % of the time: "
        "dd (7) waits in submit_bio_wait"
    )
    assert first([few] * 5, held, 30.0).rule == "quiet"
    # dd waits for vda, which completes nothing: the time of its requests is not counted yet
    silent = changed(IDLE, in_flight=4, aqu_sz=0.0, util=100.0)
    stalled = frames([{"vda": silent, "vdb": IDLE}] * 5, 90.0)
    answers = judge(Seen(TWO, stalled, DEVICES, use=replace(held, disks={"vda": (0.0, 0.0, 0.0)})))
    assert [one.rule for _, one in answers] == ["silent", "quiet"]
    assert "0 B/s, 4 in flight, at least one" in evidence(*answers[0])[0]
    assert answers[1][0].other_in_flight == answers[1][0].all_in_flight == 4.0
    # dd waits for vda, whose requests dm delays: /proc/diskstats counts them for dm-0 only
    delay = (DeviceLinks("dm-0", ("vda",), "delay"), DeviceLinks("vda"))
    both = combine_targets([
        TargetPath(DEVICE, "/dev/dm-0", "dm-0", ("dm-0", "vda"), links=delay),
        TargetPath(DEVICE, "/dev/vdb", "vdb", ("vdb",), links=(DeviceLinks("vdb"),)),
    ])  # fmt: skip
    one = changed(rates(10, 0, 100), aqu_sz=1.0, util=100.0)
    seconds = frames([{"dm-0": one, "vda": rates(10, 0, 0), "vdb": IDLE}] * 5, 95.0)
    pairs = judge(Seen(both, seconds, DEVICES, use=replace(held, disks={"vda": (4e4, 0.0, 0.0)})))
    assert [answer.rule for _, answer in pairs] == ["slow", "quiet"]


def test_pressure_without_io() -> None:
    ring = use(ring_waiters=(RingWaiter(812, "dragonfly"),))
    answer = first([IDLE] * 5, ring, 50.0)
    assert answer.sentence == (
        "● Pressure without I/O: dragonfly (812) sleeps in io_uring; 50 % I/O pressure, but the "
        "disks have hardly any request"
    )
    assert answer.verdict == NOTHING
    # requests in flight on another disk explain at most 20 % of the time
    some = replace(ring, disks={"vdb": (1e6, 0.0, 0.2)})
    assert first([IDLE] * 5, some, 50.0).text.endswith(
        "sleeps in io_uring; 50 % I/O pressure, but requests are in flight at most 20 % of the time"
    )
    assert first([IDLE] * 5, some, 35.0).rule == "quiet"
    # a server's answer may be waited for, or another disk
    assert first([IDLE] * 5, replace(ring, remote=True), 50.0).rule == "quiet"
    busy = replace(ring, disks={"vdb": (1e6, 0.0, 0.9)})
    assert first([IDLE] * 5, busy, 50.0).rule == "quiet"
    # an idle loop device on a disk that is not idle
    below = Seen(ONE, frames([{"vda": IDLE}] * 5, 50.0), DEVICES,
                 use=replace(busy, disks={"vda": (1e6, 0.0, 0.9)}))  # fmt: skip
    assert judge(below)[0][1].rule == "quiet"


def test_tasks_that_wait_while_no_disk_has_anything_are_not_explained() -> None:
    answer = first([IDLE] * 5, use(blocked=(BlockedTask(7, "dd"),)), 90.0)
    assert (answer.rule, answer.verdict) == ("above", UNKNOWN)
    user = use(blocked=(BlockedTask(7, "dd"),), as_root=False)
    assert first([IDLE] * 5, user, 90.0).next == "see more as root: iopstui why"
    # with a network file system mounted, a task may wait for its server, but not one that is
    # blocked in the block layer (a full thin pool)
    for place, rule in (("nfs_wait_bit", "quiet"), ("submit_bio_wait", "above"), ("", "above")):
        seen = use(blocked=(BlockedTask(6334, "dd", place),), remote=True)
        assert first([IDLE] * 5, seen, 46.0).rule == rule
    assert first([IDLE] * 5, seen, 46.0).text.endswith("; a file server or FUSE may be why")
    held = replace(seen, near_limits=(LimitUse("vdb", "/app", "9 reads/s", "io.max"),))
    assert first([IDLE] * 5, held, 46.0).text.endswith("; the limit of a cgroup may be why")


def test_memory_that_is_short() -> None:
    swap = changed(rates(500, 500, 3), aqu_sz=3.0)
    answer = first([swap] * 5, use(swap_s=4000.0), 60.0, memory=40.0)
    assert answer.text.startswith("Memory is short, and swap is on vda")
    # a single swapping task keeps less than one page in flight
    one_task = changed(rates(900, 900, 0), aqu_sz=0.84, util=80.0)
    assert first([one_task] * 5, use(swap_s=1800.0), 60.0, memory=60.0).rule == "memory"
    # memory short in a cgroup: tasks that wait for pages of their own count as waiting for I/O only
    in_group = changed(rates(945, 944, 3.4), aqu_sz=6.4, util=64.0)
    for moved, rule in ((7.4 * MIB, "memory"), (40.0 * MIB, "busy")):
        seen = use(swap_s=1890.0, disks={"vda": (moved / 2, moved / 2, 6.4)})
        answer = first([in_group] * 5, seen, 25.0, memory=5.6)
        assert answer.rule == rule
        if rule == "memory":
            assert answer.verdict == WAITS and answer.text == (
                "Memory is short: most of the I/O of vda is swap, and tasks wait for I/O 25 % of "
                "the time"
            )
    zram = replace(DEVICES["vda"], name="zram0", path="/dev/zram0", swap=True)
    seen = use(swap_s=1890.0, disks={"vda": (3.7 * MIB, 3.7 * MIB, 6.4)})
    seconds = frames([{"vda": in_group}] * 5, 25.0, 5.6)
    two = judge(Seen(ONE, seconds, DEVICES | {"zram0": zram}, use=seen))
    assert two[0][1].rule == "busy", "the pages may be there"
    little = changed(rates(40, 40, 0), aqu_sz=0.1, util=10.0)
    assert first([little] * 5, use(swap_s=80.0), 60.0, memory=60.0).rule != "memory"


def test_short_memory_is_not_excluded_while_pages_are_swapped() -> None:
    for pages, is_excluded in ((600.0, False), (0.0, True), (None, True)):
        seconds = frames([{"vda": rates(400, 30, 2)}] * 5, 20.0, memory=7.0)
        situation, answer = judge(Seen(ONE, seconds, DEVICES, use=use(swap_s=pages)))[0]
        assert ("short memory" in excluded(situation, answer)) is is_excluded


def test_a_resync_is_named() -> None:
    array = Conditions(devices={"vda": DeviceState(array=Array("resync", 0, 2))})
    for seconds in ([HOG] * 5, [SLOW] * 5, [HOG, IDLE] * 3, [IDLE] * 5):
        assert first(seconds, conditions=array).who == "resync of vda (md) is under way"
    for one in (HOG, SLOW):
        assert first([one] * 5, conditions=array).next == advise("resync", "vda", "20000")


def test_a_resync_is_named_of_a_member_that_is_looked_at_alone() -> None:
    state = Conditions(devices={"md0": DeviceState(array=Array("resync", 0, 2))})
    seconds = frames([{"vda": HOG}] * 5)
    for slaves in (("vda", "vdb"), ("vda1", "vdb1")):
        md = BlockDevice("md0", "/dev/md0", 9, 0, "md", 1 << 30, slaves=slaves)
        part = BlockDevice("vda1", "/dev/vda1", 254, 1, "virtio-blk", 1 << 30, disk="vda")
        seen = Seen(ONE, seconds, {**DEVICES, "md0": md, "vda1": part}, state)
        assert judge(seen)[0][1].who == "resync of md0 (md) is under way"
    other = BlockDevice("md0", "/dev/md0", 9, 0, "md", 1 << 30, slaves=("vdc", "vdb"))
    seen = Seen(ONE, seconds, {**DEVICES, "md0": other}, state)
    assert "resync" not in judge(seen)[0][1].who


def test_a_degraded_array_is_told_though_nothing_waits() -> None:
    array = Conditions(devices={"vda": DeviceState(array=Array("idle", 1, 2))})
    answer = first([IDLE] * 5, conditions=array)
    assert answer.text.startswith("vda is degraded: 1 of 2 members is missing; vda is idle")
    assert answer.verdict == NOTHING
    quiet = Conditions(devices={"vda": DeviceState(array=Array("check", 0, 2))})
    assert first([IDLE] * 5, conditions=quiet).who == "check of vda (md) is under way"


def test_a_drive_that_warns_of_itself_is_told_first_though_it_is_idle() -> None:
    warned = Finding("wear", "nvme0: it is read-only (SMART): its performance may ...",
                     advise("health", "nvme0"), disk="vda")  # fmt: skip
    old = replace(warned, text="nvme0: 104 % of its rated endurance is used (SMART): its ...")
    other = replace(warned, disk="vdb")

    def with_finding(found: Finding, disk: DiskRates) -> Answer:
        return judge(Seen(ONE, frames([{"vda": disk}] * 5), DEVICES, findings=(found,)))[0][1]

    answer = with_finding(warned, IDLE)
    assert answer.text.startswith("nvme0: it is read-only (SMART); vda is idle: no I/O for 5 s")
    assert (answer.state, answer.verdict, answer.next) == (CRITICAL, NOTHING, warned.advice)
    assert "; nvme0: it is read-only (SMART)" in with_finding(warned, HOG).text
    assert with_finding(old, IDLE).state == with_finding(other, IDLE).state == GOOD


def test_a_degraded_array_does_not_hide_that_nobody_can_tell_what_waits() -> None:
    array = Conditions(devices={"vda": DeviceState(array=Array("idle", 1, 2))})
    answer = first([MANY] * 5, use(write_back=0.0, boot_ms={}), conditions=array)
    assert "degraded: 1 of 2 members is missing; vda is in use: 940 µs" in answer.text
    assert (answer.state, answer.verdict) == (CRITICAL, UNKNOWN)


def test_slow_writes_may_be_waited_for_though_busy_cpus_hide_most_of_the_pressure() -> None:
    """Short processes that sync their files wait for 39 % of their time; with three of four CPUs
    busy that is 6 % of pressure, and xfs's log is not in it at all."""
    synced = changed(rates(0, 20, 0, kib=9), w_await=26.0, aqu_sz=0.57, util=35.0)
    busy = dict.fromkeys(range(4), CpuFrame(CpuLoad(70.0, 0, 0, 70, 0, 0.0, 30), 0, 0, 0))

    def verdict(
        pressure: float, disk: DiskRates = synced, count: int = 5, **seen: object
    ) -> str:  # fmt: skip
        disks = [{"vda": disk}] * count + [{"vda": rates(0, 9, 3)}] * (5 - count)
        seconds = [replace(one, cpus=busy) for one in frames(disks, pressure)]
        seen_use = use(write_back=3000.0, **seen)
        return judge(Seen(ONE, seconds, DEVICES, use=seen_use))[0][1].verdict

    assert verdict(6.0) == UNKNOWN
    assert verdict(6.0, count=2) == UNKNOWN and verdict(6.0, count=1) == NOTHING
    assert verdict(1.0) == NOTHING, "the page cache's own"
    log = BlockedTask(1802, "python", "xlog_wait_on_iclog")
    assert verdict(1.0, blocked=(log,)) == WAITS
    assert verdict(1.0, blocked=(replace(log, place=""),)) == UNKNOWN, "only root reads where"
    assert verdict(6.0, changed(synced, w_await=3.0)) == NOTHING, "quick ones"


def test_bursts_of_write_back_between_which_the_disk_rests_are_no_queue() -> None:
    bursts = changed(rates(0, 400, 12, kib=1024), aqu_sz=5.0, util=13.0)
    assert first([bursts] * 5, use(write_back=1e7), 40.0).state == GOOD
    mixed = changed(rates(5000, 100, 0), r_await=0.1, w_await=150.0, aqu_sz=15.0, util=90.0)
    assert first([mixed] * 5, use(write_back=1e9), 5.0).state == GOOD, "slow are the kernel's alone"


def test_reads_behind_the_page_cache_s_writes_wait_in_a_queue_and_for_no_slow_device() -> None:
    mixed = changed(rates(20, 1600, 0), r_await=35.0, w_await=25.0, aqu_sz=40.7, util=100.0)
    assert first([mixed] * 5, use(write_back=1e9), 2.0).rule == "queue"
    alone = changed(mixed, w_s=0.0, writes=0, aqu_sz=0.7)
    assert first([alone] * 5, use(write_back=1e9), 2.0).rule == "slow"
    quick = changed(mixed, r_await=3.0)
    assert first([quick] * 5, use(write_back=1e9), 2.0).state == GOOD


MANY = changed(rates(16000, 16000, 0), r_await=0.94, w_await=0.94, aqu_sz=30.0, util=100.0)


@pytest.mark.parametrize(
    ("boot_ms", "boot_in_flight", "device_ms", "rule"),
    [
        # (mean ms since boot, mean in flight since boot, ms in the device) → the rule for 30
        # requests in flight that take 0.94 ms
        (None, None, None, "unclear"),
        (0.15, 1.1, None, "queue"),
        (0.15, 20.0, None, "queue"),
        (0.6, 1.1, None, "busy"),
        (0.6, 20.0, None, "unclear"),
        (0.6, None, None, "unclear"),
        # a loop device's time includes its own queue, so it adds nothing
        (0.15, 1.1, 0.9, "queue"),
        (0.6, 1.1, 0.9, "busy"),
        (0.6, 20.0, 0.9, "unclear"),
        # the device serves one request at a time; the others wait before it
        (0.6, 20.0, 0.03, "queue"),
        (None, None, 0.03, "queue"),
    ],
)
def test_a_fast_disk_s_queue_is_known_by_what_a_request_takes_alone(
    boot_ms: float | None, boot_in_flight: float | None, device_ms: float | None, rule: str
) -> None:
    boot = {"vda": boot_ms} if boot_ms is not None else {}
    depth = {"vda": boot_in_flight} if boot_in_flight is not None else {}
    seconds = frames([{"vda": MANY}] * 5)
    if device_ms is not None:
        parts = {"read": RequestStats(1.0, LatencyStats.from_bins({int(device_ms * 1e6): 32000}))}
        counted = ProbeInterval(1.0, 0.0, (), {"vda": parts}, {}, (), None, None, 0, 0, 0,
                                None, None)  # fmt: skip
        seconds = [replace(one, probe=counted) for one in seconds]
    seen_use = use(write_back=0.0, boot_ms=boot, boot_in_flight=depth)
    answer = judge(Seen(ONE, seconds, DEVICES, use=seen_use))[0][1]
    assert answer.rule == rule
    assert answer.verdict == {"queue": WAITS, "busy": NOTHING, "unclear": UNKNOWN}[rule]
    assert ("quick" in answer.text) is (rule == "busy")


@pytest.mark.parametrize(
    ("kind", "boot_ms", "rule"),
    [
        ("virtio-blk", None, "queue"),
        ("virtio-blk", 0.3, "queue"),
        # one request alone takes as long, so the device serves many at a time
        ("virtio-blk", 1.4, "busy"),
        # null_blk with a timer: each request takes its set time, whatever else is in flight
        ("null_blk", None, "unclear"),
    ],
)
def test_requests_that_take_as_long_alone_do_not_wait_for_each_other(
    kind: str, boot_ms: float | None, rule: str
) -> None:
    second = changed(rates(8000, 8000, 0), r_await=1.5, w_await=1.5, aqu_sz=24.0, util=100.0)
    devices = {"vda": replace(DEVICES["vda"], kind=kind)}
    boot = {"vda": boot_ms} if boot_ms is not None else {}
    seen_use = use(write_back=0.0, boot_ms=boot, boot_in_flight=dict.fromkeys(boot, 1.1))
    seen = Seen(ONE, frames([{"vda": second}] * 5), devices, use=seen_use)
    assert judge(seen)[0][1].rule == rule


def test_a_percentile_of_last_tries_is_none_of_the_requests() -> None:
    bins = LatencyStats.from_bins({400_000: 500})
    for sent_again, is_shown in ((0.0, True), (1.0, True), (20.0, False)):
        parts = {"read": RequestStats(1.0, bins, None, {})}
        probe = ProbeInterval(1.0, 0.0, (), {"vda": parts}, {}, (), sent_again, None, 0, 0, 0,
                              None, None)  # fmt: skip
        seconds = [replace(one, probe=probe) for one in frames([{"vda": rates(500, 0, 1)}] * 5)]
        situation, answer = judge(Seen(ONE, seconds, DEVICES, use=use()))[0]
        assert ("p99" in answer.text) is is_shown
        last_tries = "percentiles of single requests: some were sent again"
        assert any(one.startswith(last_tries) for one in not_seen(situation)) is not is_shown


def test_too_short_unsteady_and_gone() -> None:
    assert first([HOG] * 2).verdict == UNKNOWN
    assert first([HOG, IDLE] * 5).rule == "unsteady"
    gone = [*frames([{"vda": IDLE}] * 3), frame(4.0, {"vdb": IDLE})]
    assert judge(Seen(ONE, gone, DEVICES))[0][1].rule == "gone"


def test_libaio_is_in_no_pressure_and_a_mean_that_is_long_clears_no_disk() -> None:
    """A reader of queue depth 16 on a RAID 0 whose slow disk holds 4 requests, at times fewer. A
    reader of depth 4 whose completions wait for a CPU that another program uses."""
    more, less = (changed(rates(560, 0, ms), aqu_sz=depth, util=97.0)
                  for ms, depth in ((12.0, 6.7), (6.1, 3.4)))  # fmt: skip
    array = first([less, less, more, more, less, less, less, less], use(), 0.0)
    assert (array.rule, array.state, array.verdict) == ("busy", GOOD, UNKNOWN)
    for ms, util, rule, depth in (
        (13.3, 77.0, "busy", 1.2), (13.3, 85.0, "busy", 1.2), (11.0, 45.0, "quiet", 0.9),
        (5.9, 90.0, "busy", 0.88),  # one program reads a mapped file, 150 times a second
        (5.5, 80.0, "busy", 0.78),  # the same in a machine with less CPU time
    ):  # fmt: skip
        one = changed(rates(int(1e3 * depth / ms), 0, ms), aqu_sz=depth, util=util)
        answer = first([one] * 5, use(), 0.0)
        assert (answer.rule, answer.verdict) == (rule, UNKNOWN)
        assert answer.text.endswith("; that may be slow for it")
        assert answer.next == advise("slow", "vda"), "what would tell"
        known = use(boot_ms={"vda": 12.0}, boot_in_flight={"vda": 1.1})
        assert first([one] * 5, known, 0.0).verdict == NOTHING, "as always"
        of_this_load = replace(known, up_s=60.0)
        assert first([one] * 5, of_this_load, 0.0).verdict == UNKNOWN, "booted a minute ago"
        rarely = changed(rates(int(7e2 / ms), 0, ms), util=70.0)
        assert first([rarely] * 5, use(), 0.0).verdict == (UNKNOWN if ms > 10 else NOTHING)
        written = changed(replace(one, reads=0, read_ms=0, writes=one.reads, write_ms=one.read_ms))
        assert first([written] * 5, use(write_back=1e9), 0.0).verdict == NOTHING


def test_full_cpus_may_be_why_a_disk_seems_slow() -> None:
    full = {0: CpuFrame(CpuLoad(100.0, 0, 0, 0, 0, 0.0, 0), 0, 0, 0)}
    slow = changed(rates(90, 0, 13.3), aqu_sz=1.2, util=85.0)
    seconds = [replace(one, cpus=full) for one in frames([{"vda": slow}] * 5, 0.0)]
    answer = judge(Seen(ONE, seconds, DEVICES, use=use(cpu_some=90.0)))[0][1]
    assert answer.text.endswith("; that may be slow for it; the CPUs are full, which may be why")
    assert answer.next == advise("cpu-users")


def test_a_disk_below_a_delaying_device_sends_to_that_one() -> None:
    """dm-delay holds each of a reader's requests for 60 ms; the question is about the disk below
    it."""
    devices = {"vda": replace(DEVICES["vda"], holders=("dm-0",)), "dm-0": DEVICES["dm-0"]}
    blocked = (BlockedTask(7, "fio", "submit_bio_wait"),)
    for second, rule in ((rates(15, 0, 1), "above"), (rates(900, 0, 0.4), "quiet")):
        seen = use(blocked=blocked, disks={"vda": (6e4, 0.0, second.aqu_sz or 0.0)})
        below = Seen(ONE, frames([{"vda": second}] * 5, 57.0), devices, use=seen)
        answer = judge(below)[0][1]
        assert (answer.rule, answer.verdict) == (rule, UNKNOWN)
        assert answer.next == advise("upper", "dm-0")
        assert judge(replace(below, devices=DEVICES))[0][1].next != answer.next


def test_a_program_in_a_container_is_named_with_it() -> None:
    disks = {"vda": (16 * MIB, 0.0, 32.0)}
    for group, name in (("container docker 8c1d2f0a9b7e", "etl (7, container docker 8c1d2f0a9b7e)"),
                        ("etl.service", "etl (7)"), ("", "etl (7)")):  # fmt: skip
        user = DiskUser(7, "etl", read_s=16 * MIB, devices=frozenset({"vda"}), group=group)
        answer = first([HOG] * 5, use(users=(user,), disks=disks))
        assert answer.who == f"{name} does all of its bytes"


def test_all_disks_at_fault_are_named_the_worst_first() -> None:
    both = Target(DEVICE, "/dev/vda:/dev/dm-0", "vda", ("vda", "dm-0"), parts=(
        replace_target("vda"), replace_target("dm-0")))  # fmt: skip
    seconds = frames([{"vda": SLOW, "dm-0": HOG}] * 5)
    assert [one.disk for _, one in judge(Seen(both, seconds, DEVICES))] == ["dm-0", "vda"]


def replace_target(name: str) -> Target:
    return Target(DEVICE, f"/dev/{name}", name, (name,), links=(DeviceLinks(name),))


BYTES = st.floats(0, 1e9)


@given(
    st.lists(st.tuples(BYTES, BYTES, st.sets(st.sampled_from(["vda", "vdb"]))), max_size=6),
    BYTES, BYTES, BYTES,
)  # fmt: skip
def test_no_process_does_more_than_the_disk(
    users: list[tuple[float, float, set[str]]], read: float, write: float, other: float
) -> None:
    found = use(
        users=tuple(DiskUser(n, "x", read_s=r, write_s=w, devices=frozenset(on))
                    for n, (r, w, on) in enumerate(users)),
        disks={"vda": (read, write, 1.0), "vdb": (other, other, 1.0)},
    )  # fmt: skip
    seen = shares("vda", {"vda"}, found)
    assert sum(one.share for one in seen) <= 1.0 + 1e-9
    assert sum(one.bytes_s for one in seen) <= (read + write) * (1 + 1e-9)
    assert all("vda" in users[one.pid or 0][2] for one in seen), "only of what is open there"


def test_a_process_with_files_on_two_busy_disks_is_not_named() -> None:
    user = DiskUser(7, "x", read_s=9e6, devices=frozenset({"vda", "vdb"}))
    both = use(users=(user,), disks={"vda": (9e6, 0.0, 1.0), "vdb": (9e6, 0.0, 1.0)})
    assert not shares("vda", {"vda"}, both)
    only = replace(both, disks={"vda": (9e6, 0.0, 1.0), "vdb": (0.0, 0.0, 0.0)})
    assert shares("vda", {"vda"}, only)[0].share == 1.0


def test_of_requests_that_take_seconds_a_share_is_a_bound() -> None:
    hog = DiskUser(965, "fio", "fio --name=hog", write_s=50 * MIB, devices=frozenset({"vda"}))
    slow = rates(writes=80, wait_ms=900, kib=768)
    answer = first([slow] * 5, use(users=(hog,), disks={"vda": (0.0, 60 * MIB, 72.0)}))
    assert answer.who == "fio --name=hog (965) does at least 83 % of its bytes"
    alone = use(users=(hog,), disks={"vda": (0.0, 50 * MIB, 72.0)})
    whole = judge(Seen(ONE, frames([{"vda": slow}] * 5), DEVICES, use=alone))[0][1]
    assert whole.who == "fio --name=hog (965) does all of its bytes", "it can't be more"


def test_a_log_on_a_busy_disk_hides_no_reads_of_another() -> None:
    log = DiskUser(7, "app", read_s=9e6, write_s=1e5, devices=frozenset({"vda", "vdb"}),
                   only_read=frozenset({"vda"}), only_written=frozenset({"vdb"}))  # fmt: skip
    found = use(users=(log,), disks={"vda": (9e6, 0.0, 1.0), "vdb": (9e6, 9e6, 1.0)})
    assert shares("vda", {"vda"}, found)[0].bytes_s == pytest.approx(8.9e6), "less the log's pages"
    assert not shares("vdb", {"vdb"}, replace(found, users=(replace(log, write_s=0.0),)))
    in_place = replace(found, users=(replace(log, write_s=9e6),))
    only_there = shares("vdb", {"vdb"}, in_place)
    assert [one.bytes_s for one in only_there] == [9e6], "its writes alone, and no reads of vda"
    assert not shares("vda", {"vda"}, in_place), "as much may be read to change parts of pages"
    moments = replace(log, devices=frozenset({"vdb"}), only_read=frozenset())
    seldom = shares("vdb", {"vdb"}, replace(found, users=(moments,)))
    assert seldom[0].bytes_s > 9e6, "it has no file open for reading anywhere"
    later = replace(log, only_written=frozenset(), only_read=frozenset({"vda"}))
    both = mean_use([found, replace(found, users=(later,)), found])
    assert both is not None and both.users[0].only_written == frozenset()
    assert both.users[0].only_read == {"vda"}
    assert not shares("vda", {"vda"}, both)


def test_a_process_that_writes_to_a_server_is_not_named_for_the_disk_s_writes() -> None:
    user = DiskUser(7, "rsync", read_s=6e6, write_s=6e6,
                    devices=frozenset({"vda", "(writes elsewhere)"}))  # fmt: skip
    found = use(users=(user,), disks={"vda": (6e6, 4e6, 1.0)})
    assert shares("vda", {"vda"}, found)[0].share == pytest.approx(0.6), "its reads alone"


def test_a_finding_of_a_run_has_the_seconds_that_its_figures_are_of() -> None:
    found = Finding("neighbour", "18.0k of 74.8k I/Os are not this job's", since=16.0, until=19.0)
    seconds = [replace(one, step=1) for one in frames([{"vda": HOG}] * 5)]
    answer = judge(Seen(ONE, seconds, DEVICES, findings=[found]))[0][1]
    assert answer.text.startswith("Another program uses the same disk (0:16-0:19): 18.0k of")
    now = replace(found, since=None, until=None)
    answer = judge(Seen(ONE, seconds, DEVICES, findings=[now]))[0][1]
    assert answer.text.startswith("Another program uses the same disk: 18.0k of")


def test_what_is_found_of_one_disk_is_no_answer_for_another() -> None:
    seconds = frames([{"vda": HOG}] * 5)
    for disk, answered in (("vda", True), ("nvme9n9", False), ("", True)):
        found = Finding("volume-limit", "for at least 312 ms of each second ...", disk=disk)
        answer = judge(Seen(ONE, seconds, DEVICES, findings=[found]))[0][1]
        assert ("312 ms" in answer.text) == answered
    both = Target(DEVICE, "/dev/vda:/dev/dm-0", "vda", ("vda", "dm-0"), parts=(
        replace_target("vda"), replace_target("dm-0")))  # fmt: skip
    seconds = frames([{"vda": IDLE, "dm-0": IDLE}] * 5)
    for rule, disk, accused in (("scsi-errors", "vda", ["vda"]), ("iostats", "", [])):
        found = Finding(rule, "...", disk=disk)
        pairs = judge(Seen(both, seconds, DEVICES, findings=[found]))
        assert [one.disk for _, one in pairs if one.state != GOOD] == accused


def test_failed_commands_are_told_and_prove_no_wait() -> None:
    found = Finding("scsi-errors", "vda: 3 commands failed ...", disk="vda")
    for load, verdict in ((IDLE, UNKNOWN), (HOG, WAITS)):
        seen = Seen(ONE, frames([{"vda": load}] * 5), DEVICES, findings=[found])
        assert judge(seen)[0][1].verdict == verdict


def test_several_readings_are_one() -> None:
    limit = LimitUse("vda", "/a", "5 reads/s", "io.max")
    readings = [use(users=(DiskUser(7, "x", read_s=4.0 * n),), limits=(limit,) * (n > 0))
                for n in range(3)]  # fmt: skip
    mean = mean_use(readings)
    assert mean is not None and mean.users[0].read_s == pytest.approx(4.0)
    assert mean.limits == (limit,) and mean.seconds == 15.0
    once = mean_use([*readings[:1], *readings[:1], readings[1]])
    assert once is not None and not once.limits, "reached once in three is chance"


def test_a_device_that_takes_4_s_for_each_read_is_not_idle_in_between() -> None:
    """dm-delay shows no request in flight until it sends it on."""
    read = changed(rates(1, 0, 4090), aqu_sz=4.09, util=100.0)
    wait = [IDLE] * 3
    for seconds in ([*wait, read, *wait, read, *wait], [IDLE, read, *wait, read, *wait, read]):
        answer = first(seconds, use(), 50.0)
        assert (answer.rule, answer.verdict) == ("slow", WAITS)
        assert answer.text.startswith("vda answers slowly: 4.09 s on average")
    assert first([*wait, read, *wait, read, *wait, IDLE, IDLE], use(), 50.0).verdict != NOTHING
    short = changed(rates(1, 0, 900), aqu_sz=0.9, util=100.0)
    assert first([*wait, short, *wait, short], use(), 20.0).rule != "slow", "idle in between"


def test_a_disk_whose_commands_time_out_is_slow_though_few_of_its_seconds_show_it() -> None:
    # SCSI commands that got no answer for 5 s: 4 in flight, the others take 0.2 ms
    ran = changed(rates(250, 0, 124), util=99.0, in_flight=4)
    hung = changed(IDLE, util=99.0, in_flight=4)
    answer = first([ran, hung, hung, hung, ran, hung, hung, ran], use(), 0.0)
    assert (answer.rule, answer.verdict) == ("slow", WAITS)
    assert "answers slowly: 124 ms on average" in answer.text
    assert "and nothing in 5 of 8 s" in answer.text
    # quick requests; few requests; write-back
    quick, few = changed(rates(4000, 0, 1), in_flight=4), changed(rates(1, 0, 100), in_flight=4)
    written = changed(rates(0, 250, 124), in_flight=4)
    for innocent in (quick, few, written):
        seconds = [innocent, hung, innocent, hung, innocent, hung, innocent, innocent]
        assert first(seconds, use(), 0.0).rule not in ("slow", "unsteady")
    # nothing was in flight when the second began
    some = changed(rates(10, 0, 1), in_flight=0)
    seconds = [changed(ran, in_flight=0), hung, some, hung, some, hung, some, some]
    assert first(seconds, use(), 0.0).rule not in ("slow", "unsteady")


def test_a_disk_is_busy_for_no_longer_than_its_requests_took() -> None:
    """A paced program on a loop device: the ticks said 86 %, by hand it was 7 to 21 %."""
    paced = changed(rates(1700, 0, 0.12), aqu_sz=0.204, util=86.0, in_flight=0)
    answer = first([paced] * 5, use(), 0.0)
    assert "at 20 % busy" in answer.text and answer.verdict == NOTHING


def test_a_loop_device_that_lost_its_file_is_not_called_idle() -> None:
    off = Conditions(devices={"vda": DeviceState(detached=True)})
    answer = first([IDLE] * 5, use(), 0.0, conditions=off)
    assert (answer.rule, answer.state, answer.verdict) == ("gone", GOOD, NOTHING)
    assert answer.text == "vda was detached: it has no file and no size any more"
    again = first([IDLE] * 4 + [rates(50, 0, 1)], use(), 0.0, conditions=off)
    assert again.rule != "gone", "it has a file again, which was not read yet"


def test_an_offline_disk_fails_each_io_and_a_path_is_left_to_the_device_above_it() -> None:
    off = Conditions(devices={"vda": DeviceState(offline="offline")})
    answer = first([IDLE] * 5, use(), 0.0, conditions=off)
    assert (answer.rule, answer.state, answer.verdict) == ("offline", CRITICAL, NOTHING)
    held = first([changed(IDLE, in_flight=2)] * 5, use(), 0.0, conditions=off)
    assert (held.rule, held.verdict) == ("offline", WAITS)
    devices = {"vda": replace(DEVICES["vda"], holders=("dm-0",)),
               "dm-0": replace(DEVICES["dm-0"], layer="dm-multipath")}  # fmt: skip
    path = judge(Seen(ONE, frames([{"vda": IDLE}] * 5, 0.0), devices, off, use()))
    assert path[0][1].rule == "quiet"


@pytest.mark.parametrize(("up_s", "told"), [(36.0, False), (None, False), (640.0, True)])
def test_a_mean_since_boot_is_told_with_how_long_that_is(up_s: float | None, told: bool) -> None:
    seen_use = use(boot_ms={"vda": 3.0}, up_s=up_s)
    pair = judge(Seen(ONE, frames([{"vda": rates(9, 0, 1)}] * 5), DEVICES, use=seen_use))[0]
    lines = [line for line in evidence(*pair) if "since boot" in line]
    assert lines == ["vda since boot: 3.00 ms a request on average (10 min)"] * told


def test_what_was_before_a_run_comes_after_what_is_now() -> None:
    before, now = Finding("background", "vda did 9 r/s"), Finding("cpu-wait", "2 of 4 wait")
    for findings, rule in (((before, now), "finding-cpu-wait"), ((before,), "finding-background")):
        answer = job_finding(Situation("vda", (), ("vda",), findings=findings))
        assert answer is not None and answer.rule == rule


@pytest.mark.parametrize(("until", "told"), [(4.0, False), (8.0, True)])
def test_what_was_before_a_run_is_not_the_answer_for_ever(until: float, told: bool) -> None:
    """A finding of the time before a run is not shown for a job that has run for two minutes."""
    before = Finding("background", "vda did 87 r/s", since=until - 3, until=until)
    seen = frames([{"vda": IDLE}] * 15, 0.0)
    found = job_finding(Situation("vda", seen, ("vda",), findings=(before,)))
    assert (found is not None) is told


def test_what_a_job_waits_for_is_its_answer_even_if_nothing_is_at_fault() -> None:
    """A dm-delay of 20 ms on reads: 6.6 of the job's 7.9 I/Os were in it."""
    held = Finding("layer", "6.6 of 7.9 I/Os in flight are in dm-0", advise("table", "/dev/dm-0"))
    odd, fault = Finding("disagree", "fio does 9 IOPS, vda 8"), Finding("cpu-wait", "2 of 4 wait")
    answer = job_finding(Situation("dm-0", (), ("dm-0",), findings=(odd, held)))
    assert answer is not None and (answer.state, answer.verdict) == (GOOD, WAITS)
    assert "layer above the disk: 6.6 of 7.9" in answer.text and "dmsetup" in answer.next
    assert job_finding(Situation("dm-0", (), ("dm-0",), findings=(odd,))) is None
    answer = job_finding(Situation("dm-0", (), ("dm-0",), findings=(held, fault)))
    assert answer is not None and answer.state == WARNING


def test_a_finding_of_a_run_is_about_its_target_not_the_lowest_disk() -> None:
    """Parity of a raid5: the answer is about the array, not about its last member."""
    found = Finding("parity", "dm-0 (raid5): 957 writes/s cost 952 reads/s on its members")
    for step, disk in ((1, "dm-0"), (0, "vda")):
        seconds = [replace(one, step=step) for one in frames([{"dm-0": SLOW, "vda": SLOW}] * 5)]
        assert judge(Seen(STACK, seconds, DEVICES, findings=[found]))[0][1].disk == disk


def of_a_run(waits: Waits, *flags: str) -> Answer:
    """The answer for seconds in which fio does 543 IOPS."""
    total = fio(543.0, lat_ns=1.79e6)
    total = replace(total, total=replace(total.total, percentiles={"p99": 4_750_000}))
    seconds = [
        replace(one, step=1, fio=total, waits=waits, flags=frozenset(flags))
        for one in frames([{"vda": HOG}] * 5)
    ]
    return judge(Seen(ONE, seconds, DEVICES))[0][1]


@pytest.mark.parametrize(("ios", "held", "is_said"), [
    (1.0, 0.9, True), (4.0, 3.9, False), (0.1, 0.1, False), (1.0, 0.2, False)
])  # fmt: skip
def test_one_io_at_a_time_leaves_a_disk_that_may_do_more(
    ios: float, held: float, is_said: bool
) -> None:
    answer = of_a_run(Waits(ios, 0.0, ios - held, {"vda": held}, None, None, 0.0))
    assert "fio does 543 IOPS, 1.79 ms on average, p99 4.75 ms" in answer.text
    assert answer.next.startswith("compare with a larger iodepth") == is_said


@pytest.mark.parametrize(("ios", "busy", "shape", "is_said"), [
    (0.2, 3.0, JobShape(pace="rate_iops=500"), True),
    (0.9, 3.0, JobShape(pace="rate_iops=500"), False),
    (0.9, 3.0, JobShape(iodepth=8, pace="rate_iops=500"), True),
    (0.2, 70.0, JobShape(pace="rate_iops=500"), False),
    (0.2, 3.0, JobShape(pace="thinktime=5ms", syncs=True), False),
    (0.2, 3.0, JobShape(), False),
])  # fmt: skip
def test_a_job_that_sleeps_by_itself_is_its_own_limit(
    ios: float, busy: float, shape: JobShape, is_said: bool
) -> None:
    waits = Waits(ios, 0.0, 0.0, {"vda": ios}, None, None, 0.0)
    seconds = [
        replace(one, step=1, fio=fio(500.0), waits=waits, jobs=(JobFrame(0, 1, False, busy, None),))
        for one in frames([{"vda": HOG}] * 5)
    ]
    answer = judge(Seen(ONE, seconds, DEVICES, shape=shape))[0][1]
    assert (f"fio does 500 IOPS, as its {shape.pace or None} allows" in answer.text) == is_said
    assert (answer.next == f"compare without {shape.pace}: the disk may do more") == is_said


def test_the_directions_of_a_mix_have_a_latency_each() -> None:
    """dm-delay delays only writes, by 20 ms. No request takes 11.4 ms, the mean of both
    directions."""
    mixed = fio(346.0, lat_ns=1.14e7)
    parts = {
        name: replace(mixed.total, lat_ns=ns) for name, ns in (("read", 2.6e6), ("write", 2.4e7))
    }
    mixed = replace(mixed, directions=parts)
    seconds = [replace(one, step=1, fio=mixed) for one in frames([{"vda": HOG}] * 5)]
    answer = judge(Seen(ONE, seconds, DEVICES))[0][1]
    assert answer.text == "fio does 346 IOPS, reads 2.60 ms, writes 24.0 ms on average"


def test_a_job_whose_ios_are_nowhere_in_particular_has_no_list_of_places() -> None:
    waits = Waits(0.06, 0.0, 0.02, {"vda": 0.04}, None, None, 0.0)
    assert of_a_run(waits).text.endswith("; in flight 0.1")


def test_ios_in_no_known_place_are_told_as_rest() -> None:
    for in_vda, end in ((5.0, "vda 5.0, above the device 2.0, elsewhere 1.0"),
                        (5.7, "vda 5.7, above the device 2.0")):  # fmt: skip
        waits = Waits(8.0, None, 2.0, {"vda": in_vda}, None, None, 0.0)
        assert of_a_run(waits).text.endswith(f"; in flight 8.0: {end}")


def test_impossible_latencies_of_fio_are_not_repeated() -> None:
    """sqthread_poll of fio 3.33: p99 was 17.1 s, in a run of 9 s."""
    answer = of_a_run(Waits(8.0, 0.0, 6.0, {"vda": 2.0}, None, None, 0.0), WRONG_LATENCY)
    assert (
        "543 IOPS, its latencies are impossible; in flight 8.0: above the device 6.0, vda 2.0"
        in (answer.text)
    )
    assert "ms" not in answer.text


def test_the_ios_in_flight_are_of_the_same_second_as_the_iops() -> None:
    """Otherwise IOPS x latency would differ from the number beside it and from the panels' bar."""
    waits = [Waits(ios, 0.0, 0.0, {"vda": ios}, None, None, 0.0) for ios in (8.0, 8.0, 8.0, 4.0)]
    seconds = [
        replace(one, step=1, fio=fio(1000.0, lat_ns=4e6), waits=of_second)
        for one, of_second in zip(frames([{"vda": HOG}] * 4), waits, strict=True)
    ]
    answer = judge(Seen(ONE, seconds, DEVICES))[0][1]
    assert answer.text == "fio does 1.00k IOPS, 4.00 ms on average; in flight 4.0: vda 4.0"


def test_the_last_part_of_a_run_says_nothing_of_where_its_ios_are() -> None:
    """A mirror with a leg on dm-delay: in its last 0.5 s the kernel's requests are fewer than
    fio's."""
    whole = Waits(15.94, 2.99, 0.62, {"vda": 12.33}, None, None, 0.0)
    last = Waits(16.09, 0.0, 12.29, {"vda": 3.8}, None, None, 0.0)
    seconds = [
        replace(one, step=1, fio=fio(996.0, lat_ns=1.6e7), waits=whole)
        for one in frames([{"vda": HOG}] * 4)
    ]
    seconds.append(
        replace(seconds[-1], t=4.5, fio=fio(451.0), waits=last, flags=frozenset({PARTIAL, FINAL}))
    )
    answer = judge(Seen(ONE, seconds, DEVICES))[0][1]
    assert answer.text == (
        "fio does 996 IOPS, 16.0 ms on average; in flight 15.9: vda 12.3, waiting for a CPU "
        "3.0, above the device 0.6"
    )


@pytest.mark.parametrize(("disk", "waits", "verdict", "step"), [
    # iodepth=200 on a disk of 500 IOPS; then 8 in flight, each of 0.1 ms
    (changed(rates(500, 0, 398.0), aqu_sz=199.0, util=100.0),
     Waits(200.0, 0.0, 1.7, {"vda": 198.3}, None, None, 0.0), WAITS, advise("shallower")),
    (changed(rates(20_000, 0, 0.4), aqu_sz=8.0, util=100.0),
     Waits(8.0, 0.0, 0.4, {"vda": 7.6}, None, None, 0.0), NOTHING, ""),
    # 48 in flight, nr_requests is 6 and the guest's CPUs are slow: no counter shows why they wait
    (changed(rates(4600, 0, 0.6), aqu_sz=2.9, util=60.0),
     Waits(47.6, 1.3, 43.4, {"vda": 2.9}, None, None, 0.0), UNKNOWN, ""),
    # 4 of the 13.5 requests in flight are the job's, on a disk of 500 IOPS
    (changed(rates(500, 0, 27.3), aqu_sz=13.5, util=97.0),
     Waits(4.1, 0.0, 0.0, {"vda": 4.1}, None, None, 0.0), WAITS, ""),
])  # fmt: skip
def test_where_most_of_a_jobs_ios_are_decides_on_the_next_step(
    disk: DiskRates, waits: Waits, verdict: str, step: str
) -> None:
    seconds = [
        replace(one, step=1, fio=fio(500.0), waits=waits) for one in frames([{"vda": disk}] * 5)
    ]
    answer = judge(Seen(ONE, seconds, DEVICES))[0][1]
    assert (answer.state, answer.verdict, answer.next) == (GOOD, verdict, step)


def test_a_deep_queue_of_which_one_io_is_in_flight_needs_no_deeper_one() -> None:
    waits = Waits(1.0, 0.0, 0.1, {"vda": 0.9}, None, None, 0.0)
    seconds = [
        replace(one, step=1, fio=fio(543.0), waits=waits) for one in frames([{"vda": HOG}] * 5)
    ]
    for depth, step in ((1, advise("deeper")), (32, "")):
        answer = judge(Seen(ONE, seconds, DEVICES, shape=JobShape(iodepth=depth)))[0][1]
        assert answer.next == step


def test_a_layer_that_holds_a_jobs_only_io_is_where_to_look() -> None:
    """dm-delay with 8 ms on a disk that takes 1.3 ms, one I/O at a time."""
    both = {
        "dm-0": changed(rates(83, 0, 10.6), aqu_sz=0.88, util=88.0),
        "vda": changed(rates(83, 0, 1.34), aqu_sz=0.11, util=9.0),
    }
    waits = Waits(1.0, 0.0, 0.12, {"dm-0": 0.77, "vda": 0.11}, None, None, 0.0)
    seconds = [replace(one, step=1, fio=fio(83.0), waits=waits) for one in frames([both] * 5)]
    answer = judge(Seen(STACK, seconds, DEVICES))[0][1]
    assert answer.disk == "dm-0" and answer.text.endswith(
        "in flight 1.0: dm-0 0.8, above the device 0.1, vda 0.1"
    )
    assert answer.next == advise("table", "data")


@pytest.mark.parametrize(("fast", "level", "is_named"), [
    (rates(480, 0, 0.29), "raid0", True),
    # vda does nearly twice as many I/Os as vdb
    (rates(900, 0, 0.29), "raid0", False),
    # a mirror sends its reads to whichever member answers
    (rates(480, 0, 0.29), "raid1", False),
    # not much quicker than the other
    (changed(rates(480, 0, 8.3), aqu_sz=4.0), "raid0", False),
])  # fmt: skip
def test_the_slow_member_of_two_is_why_a_job_waits(
    fast: DiskRates, level: str, is_named: bool
) -> None:
    """raid0 of a quick disk and one of 500 IOPS, 16 I/Os at a time."""
    slow = changed(rates(500, 0, 31.4), aqu_sz=15.7, util=100.0)
    both = {"md0": changed(rates(980, 0, 16.2), aqu_sz=15.8), "vda": fast, "vdb": slow}
    held = 4.0 if (fast.aqu_sz or 0.0) > 1 else 0.1
    waits = Waits(15.8, 0.0, 0.1, {"vda": held, "vdb": 15.6 - held}, None, None, 0.0)
    seconds = [replace(one, step=1, fio=fio(980.0), waits=waits) for one in frames([both] * 5)]
    vda = DEVICES["vda"]
    array = replace(vda, name="md0", kind="md", layer=level, slaves=("vda", "vdb"))
    devices = {"md0": array, "vda": vda, "vdb": replace(vda, name="vdb")}
    target = Target(DEVICE, "/dev/md0", "md0", ("md0", "vda", "vdb"),
                    links=(DeviceLinks("md0", ("vda", "vdb"), level),))  # fmt: skip
    answer = judge(Seen(target, seconds, devices))[0][1]
    assert (answer.rule == "member") is is_named
    assert (answer.next == advise("slow-member", "vdb")) is is_named
    if is_named:
        assert answer.text == (
            "The job waits for vdb: it holds 15.5 of 15.8 I/Os in flight, "
            "but does as many as the other members of md0"
        )
        assert (answer.state, answer.verdict) == (WARNING, WAITS)


@pytest.mark.parametrize(("used", "iodepth", "above", "verdict", "step"), [
    # libaio on a quick disk of a guest without KVM
    (80.0, 16, 10.3, NOTHING, advise("numjobs")),
    (65.0, 16, 10.3, UNKNOWN, advise("numjobs")),
    (20.0, 16, 10.3, UNKNOWN, ""),
    (80.0, 16, 1.0, NOTHING, ""),
    (80.0, 1, 10.3, UNKNOWN, ""),
])  # fmt: skip
def test_a_busy_job_is_what_its_ios_may_wait_for(
    used: float, iodepth: int, above: float, verdict: str, step: str
) -> None:
    waits = Waits(16.0, 0.0, above, {"vda": 16.0 - above}, None, None, 0.0)
    disk = changed(rates(30_000, 0, 0.2), aqu_sz=16.0 - above, util=90.0)
    seconds = [
        replace(one, step=1, fio=fio(30_000.0), waits=waits,
                jobs=(JobFrame(0, 1, False, used, None),))
        for one in frames([{"vda": disk}] * 5)
    ]  # fmt: skip
    answer = judge(Seen(ONE, seconds, DEVICES, shape=JobShape(iodepth=iodepth)))[0][1]
    assert (answer.verdict, answer.next) == (verdict, step)
    is_said = answer.text.endswith(f"; each job uses {used:.0f} % of a CPU, and its I/Os may wait "
                                   "for it")  # fmt: skip
    assert is_said is (step == advise("numjobs"))


def test_a_job_on_bfq_is_sent_to_compare_without_it() -> None:
    waits = Waits(31.7, 1.1, 6.3, {"vda": 24.3}, None, None, 0.0)
    disk = changed(rates(17_000, 0, 0.94), aqu_sz=24.0, util=96.0)
    seconds = [replace(one, step=1, fio=fio(18_000.0), waits=waits)
               for one in frames([{"vda": disk}] * 5)]  # fmt: skip
    for scheduler, step in (("bfq", advise("scheduler")), ("none", "")):
        on = replace(DEVICES["vda"], queue=replace(NO_QUEUE, scheduler=scheduler))
        answer = judge(Seen(ONE, seconds, {"vda": on}))[0][1]
        assert answer.next == step
        assert ("; some of those in vda may wait in its scheduler bfq" in answer.text) is bool(step)


@pytest.mark.parametrize(("disk", "advice", "is_said"), [
    # 16 I/Os of this job and 8 of another program wait in a disk of 500 IOPS
    (changed(rates(500, 0, 47.6), aqu_sz=23.8, util=100.0), FIND_PROGRAM, True),
    # a quick disk: the job does not wait for the other one
    (changed(rates(500, 0, 0.2), aqu_sz=0.1, util=9.0), FIND_PROGRAM, False),
    (changed(rates(500, 0, 47.6), aqu_sz=23.8, util=100.0), advise("passthrough", "vda"), False),
])  # fmt: skip
def test_io_beyond_the_jobs_is_the_answer_where_it_waits(
    disk: DiskRates, advice: Advice, is_said: bool
) -> None:
    waits = Waits(15.9, 0.0, 0.0, {"vda": 15.9}, None, None, 0.0)
    seconds = [replace(one, step=1, fio=fio(331.0), waits=waits)
               for one in frames([{"vda": disk}] * 5)]  # fmt: skip
    found = Finding("disagree", "fio does 331 IOPS, vda 500: 169 I/Os per second more", advice)
    answer = judge(Seen(ONE, seconds, DEVICES, findings=(found,)))[0][1]
    assert (answer.rule == "finding-disagree") is is_said
    if is_said:
        assert (answer.state, answer.verdict, answer.next) == (GOOD, WAITS, FIND_PROGRAM)


def test_a_busy_job_on_bfq_is_told_of_both() -> None:
    waits = Waits(31.8, 1.2, 16.2, {"vda": 14.3}, None, None, 0.0)
    disk = changed(rates(13_000, 0, 1.17), aqu_sz=14.3, util=96.0)
    seconds = [replace(one, step=1, fio=fio(13_000.0), waits=waits,
                       jobs=(JobFrame(0, 1, False, 69.0, None),))
               for one in frames([{"vda": disk}] * 5)]  # fmt: skip
    bfq = replace(DEVICES["vda"], queue=replace(NO_QUEUE, scheduler="bfq"))
    answer = judge(Seen(ONE, seconds, {"vda": bfq}, shape=JobShape(iodepth=16)))[0][1]
    assert "; each job uses 69 % of a CPU" in answer.text and "scheduler bfq" in answer.text
    assert answer.next == advise("scheduler")


@pytest.mark.parametrize(("kind", "sent", "shape", "is_said"), [
    ("dm", 0, JobShape(direct=True, iodepth=8), True),
    ("dm", 3700, JobShape(direct=True, iodepth=8), False),
    # the page cache may have answered the reads
    ("dm", 0, JobShape(direct=False, iodepth=8), False),
    ("loop", 0, JobShape(direct=True, iodepth=8), False),
    # writes of blocks that a layer does not have yet reach its disks
    ("dm", 0, JobShape(direct=True, iodepth=8, writes=True), False),
])  # fmt: skip
def test_reads_of_blocks_that_a_thin_volume_does_not_have(
    kind: str, sent: float, shape: JobShape, is_said: bool
) -> None:
    both = {"dm-0": changed(rates(3740, 0, 1.2), aqu_sz=4.4), "vda": rates(sent, 0, 0.3)}
    waits = Waits(7.9, 0.1, 3.4, {"dm-0": 4.4, "vda": 0.0}, None, None, 0.0)
    seconds = [replace(one, step=1, fio=fio(3740.0), waits=waits) for one in frames([both] * 5)]
    vda = DEVICES["vda"]
    devices = {"dm-0": replace(vda, name="dm-0", kind=kind, slaves=("vda",)), "vda": vda}
    target = Target(DEVICE, "/dev/dm-0", "dm-0", ("dm-0", "vda"),
                    links=(DeviceLinks("dm-0", ("vda",), kind),))  # fmt: skip
    answer = judge(Seen(target, seconds, devices, shape=shape))[0][1]
    end = "; dm-0 sends hardly any to vda: blocks that were never written need no read"
    assert answer.text.endswith(end) is is_said
    assert (answer.next == advise("never-written")) is is_said
