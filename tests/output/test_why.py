"""The page of `iopstui why`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from disks import changed
from hypothesis import given
from hypothesis import strategies as st
from watch_frames import frame, rates

from iopstui.cli.program import main
from iopstui.errors import EXIT_USAGE
from iopstui.model.answer.answer import NOTHING, UNKNOWN, WAITS
from iopstui.model.answer.evidence import excluded, not_seen
from iopstui.model.answer.judge import Pair, Seen, combined_verdict, judge
from iopstui.model.answer.process import (
    CHILD,
    DISK,
    EVENT,
    FROZEN,
    LEAST_LOOKS,
    LOCK,
    UNKNOWN_WAIT,
    ProcessWaits,
    beside,
    most_for_disk,
    own_disks,
    place_kind,
    process_text,
    process_verdict,
    waits_off_cpus,
)
from iopstui.model.answer.table import decide
from iopstui.model.answer.use import ALL_HIDDEN, DiskUse, DiskUser, LimitUse, RingWaiter
from iopstui.model.answer.who import Share
from iopstui.model.block.target import DEVICE, DeviceLinks, TargetPath, combine_targets
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.conditions import Conditions
from iopstui.model.metrics.frame import CpuFrame
from iopstui.model.rates import CpuLoad
from iopstui.output.pages.why import Report, why_json, why_lines

HOG = changed(rates(4000, 4000, 4), aqu_sz=32.0, util=100.0)
DISKS = ("vda", "vdb", "vdc", "vdd")
TARGET = combine_targets(
    [TargetPath(DEVICE, f"/dev/{n}", n, (n,), links=(DeviceLinks(n),)) for n in DISKS]
)


def report(waits: ProcessWaits | None = None) -> Report:
    seconds = {"vda": rates(), "vdb": HOG, "vdc": rates(), "vdd": HOG}
    use = DiskUse(5.0, 5.0, disks={"vdb": (0.0, 0.0, 32.0), "vdd": (0.0, 0.0, 32.0)}, hidden=3,
                  cpu_some=0.0)  # fmt: skip
    more = {"pressure": {"some": 40.0}, "memory": {"some": 0.0}}
    idle = {0: CpuFrame(CpuLoad(0.0, 0, 0, 0, 0, 0.0, 0), 0, 0, 0)}
    frames = [replace(frame(n + 1.0, seconds), more=more, cpus=idle) for n in range(5)]
    pairs = judge(Seen(TARGET, frames, {}, use=use))
    verdict = pairs[0][1].verdict
    verdict = verdict if waits is None else process_verdict(waits, verdict)
    return Report(pairs, verdict, 5, waits, "percentiles: only root")


def test_all_disks_at_fault_are_named_and_the_idle_ones_in_a_line() -> None:
    lines = list(why_lines(report()))
    assert [line[:12] for line in lines[:3]] == ["▲ vdb is bus", "▲ vdd is bus", "● idle: vda,"]
    assert ("  not seen: the I/O of 3 processes of other users (root sees it); errors in the "
            "kernel's log (root reads it); percentiles: only root") in lines  # fmt: skip
    evidence = [line for line in lines[3:] if not line.strip().startswith(("excluded", "not seen",
                                                                           "next"))]  # fmt: skip
    assert len(evidence) <= 5 and lines[-1].startswith("  next: ")


def test_only_causes_that_were_looked_at_are_excluded() -> None:
    situation, answer = report().pairs[0]
    loads = [(50.0, "full CPUs (at least 12 % idle)"), (2.0, "")]
    for idle, text in loads:
        parts = (90.0, idle, 12.0, 80.0, 80.0)
        cpus = [{0: CpuFrame(CpuLoad(100 - part, 0, 0, 0, 0, part, 0), 0, 0, 0)} for part in parts]
        pairs = zip(situation.frames, cpus, strict=True)
        frames = [replace(one, cpus=cpu) for one, cpu in pairs]
        found = excluded(replace(situation, frames=frames, machine_facts=None), answer)
        assert ", ".join(one for one in found if "CPU" in one) == text
    assert situation.use is not None and "I/O limits of cgroups" in excluded(situation, answer)
    inside = replace(situation, use=replace(situation.use, outer_groups=True))
    assert "I/O limits of cgroups" not in excluded(inside, answer)
    assert any("container" in one for one in not_seen(inside))
    assert not any(one.startswith("processes outside") for one in not_seen(inside))
    alone = replace(situation, use=replace(situation.use, outer_processes=True))
    assert any(one.startswith("processes outside this container") for one in not_seen(alone))
    unmounted = replace(situation, use=replace(situation.use, limits_readable=False))
    assert "I/O limits of cgroups" not in excluded(unmounted, answer)
    assert any(one.startswith("I/O limits of cgroups (no ") for one in not_seen(unmounted))


def test_the_same_as_json() -> None:
    document = json.loads(json.dumps(why_json(report(), "db1", 4)))
    assert (document["exit_code"], document["verdict"]) == (4, WAITS)
    assert [one["verdict"] for one in document["answers"]] == [WAITS, WAITS, NOTHING, NOTHING]
    assert document["sentences"] == report().sentences


WAITING = ProcessWaits(812, "postgres", "", 200, "D", {DISK: 83.0, LOCK: 2.0}, 12.0, 1.0,
                       devices=frozenset({"vdb"}))  # fmt: skip


@pytest.mark.parametrize(("waits", "text"), [
    (WAITING, "▲ postgres (812) waits for vdb 83 % of its time, runs 12 %"),
    (replace(WAITING, looks=19),
     "▲ postgres (812) waits for vdb most of its time (16 of 19 looks)"),
    (replace(WAITING, looks=8, threads=3, percents={DISK: 100.0}),
     "▲ postgres (812), 3 threads: at least one waits for vdb most of its time (8 of 8 "
     "looks)"),
    (replace(WAITING, looks=8, threads=3, percents={DISK: 50.0, LOCK: 50.0}),
     "● postgres (812) was examined only 8 times: too few to tell what it waits for"),
    (replace(WAITING, looks=4, percents={DISK: 100.0}),
     "● postgres (812) was examined only 4 times: too few to tell what it waits for"),
    (replace(WAITING, percents={UNKNOWN_WAIT: 60.0}, readable=False, devices=frozenset(),
             io_percent=55.0, not_seen=27.0),
     "▲ postgres (812) waits in state D, most likely for I/O, 60 % of its time, runs 12 %, 27 % "
     "not accounted for"),
    (replace(WAITING, percents={DISK: 41.0, LOCK: 3.0, EVENT: 15.0}, running=29.0, ready=12.0),
     "▲ postgres (812) waits for vdb 41 % of its time, waits for a CPU 12 %, runs 29 %, sleeps "
     "otherwise 15 %"),
    (replace(WAITING, percents={DISK: 41.0, EVENT: 99.0}, threads=2),
     "▲ postgres (812), 2 threads: at least one waits for vdb 41 % of its time, one runs 12 %"),
    (replace(WAITING, percents={EVENT: 60.0}, running=38.0),
     "● postgres (812) runs 38 %, sleeps 60 %; what it waits for cannot be read"),
    (replace(WAITING, percents={EVENT: 98.4}, running=82.4, threads=3),
     "● postgres (812), 3 threads: at least one runs 82 %, one sleeps 98 %; what it waits for "
     "cannot be read"),
    (replace(WAITING, percents={UNKNOWN_WAIT: 99.0}, running=0.0, io_percent=4.0),
     "● postgres (812) is in state D 99 % of its time, for I/O or for something else: it "
     "cannot be seen which"),
    (replace(WAITING, percents={FROZEN: 100.0}, running=0.0),
     "● postgres (812) is frozen (cgroup freezer) 100 %"),
    (replace(WAITING, state="T", percents={}),
     "● postgres (812) is stopped by a signal (SIGCONT lets it go on)"),
    (replace(WAITING, percents={}, ready=90.0, running=10.0, reached_quota=True),
     "● postgres (812) waits for a CPU 90 % (its cgroup reached its CPU quota), runs 10 %"),
    (replace(WAITING, threads=9),
     "▲ postgres (812), 9 threads: at least one waits for vdb 83 % of its time, one runs 12 %"),
    (replace(WAITING, pid=833, of=812),
     "▲ postgres (thread 833 of 812) waits for vdb 83 % of its time, runs 12 %"),
    (replace(WAITING, percents={CHILD: 97.0}, running=0.0, children=("dd (8)",)),
     "● postgres (812) waits for its child dd (8) 97 %"),
    (replace(WAITING, percents={CHILD: 97.0}, running=0.0, children=("sleep", "dd"),
             children_change=True),
     "● postgres (812) waits for its children (sleep, dd) 97 %"),
    # fio's first process only watches the processes that do the jobs
    (replace(WAITING, percents={EVENT: 99.0}, places=("hrtimer_nanosleep",), running=0.0,
             of_children=(replace(WAITING, pid=813, percents={DISK: 9.0}),
                          replace(WAITING, pid=814))),
     "▲ postgres (812) sleeps; its child postgres (814) waits for vdb 83 % of its time, runs 12 %"),
    (replace(WAITING, of_children=(replace(WAITING, pid=814),)),
     "▲ postgres (812) waits for vdb 83 % of its time, runs 12 %"),
    (replace(WAITING, comm="sh", command="", pid=7, percents={CHILD: 99.0}, running=0.0,
             children=("sleep", "dd"), children_change=True,
             of_children=(replace(WAITING, pid=9, comm="dd", command="", running=None,
                                  percents={DISK: 43.0, EVENT: 50.0}, in_turn=True),)),
     "▲ sh (7) waits for its children (sleep, dd) 99 %; its child dd (the last was 9) waits for "
     "vdb 43 % of the time"),
    (replace(WAITING, percents={LOCK: 90.0}, running=0.0),
     "● postgres (812) waits for a lock or another thread 90 %"),
    (replace(WAITING, percents={"event": 99.0}, running=0.0, readable=False),
     "● postgres (812) sleeps 99 %; what it waits for cannot be read"),
    (replace(WAITING, percents={"event": 99.0}, running=0.0, most_for_disk=0.0),
     "● postgres (812) sleeps, not for a disk; what it waits for cannot be read"),
    (replace(WAITING, percents={"event": 99.0}, running=0.0, most_for_disk=12.3),
     "● postgres (812) sleeps, at most 12 % of its time for a disk; what it waits for cannot be "
     "read"),
    (replace(WAITING, percents={"event": 99.0}, running=0.0, places=("io_cqring_wait",)),
     "● postgres (812) sleeps in io_uring, for a disk, a socket or a timer: it cannot be seen "
     "which"),
    (replace(WAITING, percents={"event": 99.0}, running=0.0, places=("io_cqring_wait",),
             in_idle_ring=True),
     "● postgres (812) sleeps in io_uring without disk I/O"),
    (replace(WAITING, percents={"event": 99.0}, running=0.0, places=("ep_poll",)),
     "● postgres (812) waits for no disk, lock or CPU: it sleeps until something happens"),
    (replace(WAITING, state="Z", parent=7, percents={}),
     "● postgres (812) has ended: its parent (7) has not asked for its exit code; it does no I/O"),
    (replace(WAITING, state="Z", parent=7),
     "● postgres (812) has ended while it was looked at: its parent (7) has not asked for its exit "
     "code; it does no I/O"),
    (replace(WAITING, state="", percents={}), "● postgres (812) has ended while it was looked at"),
])  # fmt: skip
def test_a_process(waits: ProcessWaits, text: str) -> None:
    assert report(waits).sentences[0] == text


def alone(second: DiskRates, use: DiskUse, waited: float = 0.0) -> list[Pair]:
    """The answers if only vdb is used."""
    disks = dict.fromkeys(DISKS, rates()) | {"vdb": second}
    frames = [replace(frame(n + 1.0, disks), more={"pressure": {"some": waited}}) for n in range(5)]
    return judge(Seen(TARGET, frames, {}, use=use))


def fast(in_flight: float, flush_ms: float = 0.0) -> DiskRates:
    second = changed(rates(9000, 0, 1), aqu_sz=in_flight, util=70.0, r_await=0.05)
    return replace(second, flushes=1000, flush_ms=1000 * flush_ms)


@pytest.mark.parametrize(("second", "reason"), [
    (fast(0.9), "; vdb is quick, 50.0 µs on average: it waits for one I/O after the other"),
    (fast(3.0), "; vdb is quick, 50.0 µs on average, so it waits often, not long"),
    (fast(0.9, 0.45), "; vdb is quick, 50.0 µs on average, flushes 450 µs: it waits for one I/O "
     "after the other"),
    (fast(0.9, 0.7), ""), (changed(rates(400, 0, 1), aqu_sz=0.9, util=95.0, r_await=2.2), ""),
])  # fmt: skip
def test_why_a_process_waits_much_for_a_quick_disk_is_told(second: DiskRates, reason: str) -> None:
    pairs = alone(second, DiskUse(5.0, 5.0, as_root=True))
    assert combined_verdict(pairs) == NOTHING
    hidden = replace(WAITING, devices=frozenset())
    sleeps = replace(WAITING, pid=7, percents={EVENT: 99.0}, running=0.0, of_children=(WAITING,),
                     places=("hrtimer_nanosleep",))  # fmt: skip
    for waits in (WAITING, hidden, sleeps):
        first, second_line, *lines = why_lines(Report(pairs, WAITS, 5, waits))
        assert first.startswith("▲ ") and first.endswith(f", runs 12 %{reason}")
        assert second_line.startswith("● vdb ")
        assert any("at a time (threads, a deeper queue)" in line for line in lines) is bool(reason)
    slow = [(pairs[0][0], replace(pairs[0][1], disk="vda", verdict=WAITS)), *pairs]
    assert next(why_lines(Report(slow, WAITS, 5, hidden))).endswith(", runs 12 %")
    behind = replace(WAITING, percents={DISK: 40.0}, ready=50.0)
    lines = list(why_lines(Report(pairs, NOTHING, 5, behind)))
    assert not any("quick, 50.0 µs on average:" in line or "at a time" in line for line in lines)


@pytest.mark.parametrize(("percents", "added_up", "verdict"), [
    ({DISK: 24.0, LOCK: 100.0}, 80.0, UNKNOWN), ({DISK: 24.0, LOCK: 100.0}, 24.0, NOTHING),
    ({DISK: 24.0, LOCK: 20.0}, 80.0, NOTHING), ({DISK: 5.0, LOCK: 100.0}, 80.0, NOTHING),
])  # fmt: skip
def test_threads_that_wait_in_turn_for_a_lock_may_wait_for_the_disk(
    percents: dict[str, float], added_up: float, verdict: str
) -> None:
    """Four threads under a mutex, of which one at a time reads from the disk."""
    threads = replace(WAITING, percents=percents, threads=5, all_for_disk=added_up)
    assert process_verdict(threads, NOTHING) == verdict


def test_a_process_whose_sleep_was_hardly_seen_cannot_be_judged() -> None:
    unseen = replace(WAITING, percents={DISK: 3.0}, running=33.0, not_seen=55.0)
    assert process_verdict(unseen, NOTHING) == UNKNOWN
    assert process_text(unseen, "vdb").endswith("runs 33 %, is not accounted for 55 % of its time")
    assert process_verdict(replace(unseen, not_seen=29.0), NOTHING) == NOTHING


def test_who_cannot_see_who_does_it_is_sent_to_root() -> None:
    for as_root, told in ((False, "  next: see more as root: iopstui why vdb"), (True, None)):
        disks = {"vdb": (36e6, 0.0, 16.0)}
        use = DiskUse(5.0, 5.0, hidden=3, as_root=as_root, disks=disks)
        pairs = alone(changed(fast(16.0), r_await=0.2), use)
        lines = [*why_lines(Report(pairs, NOTHING, 5))]
        assert lines[0].startswith("● vdb is in use and quick")
        assert ("only root sees who uses it" in lines[0]) is not as_root
        assert next((line for line in lines if "next:" in line), None) == told


@pytest.mark.parametrize(("waited", "in_flight", "told"), [
    (0.0, 16.0, True), (2.0, 16.0, True), (30.0, 16.0, False), (2.0, 0.5, False),
])  # fmt: skip
def test_waits_of_libaio_are_said_not_to_count_where_tasks_wait_for_little_else(
    waited: float, in_flight: float, told: bool
) -> None:
    second = changed(rates(4000, 0, 4), aqu_sz=in_flight)
    lines = why_lines(Report(alone(second, USED, waited), NOTHING, 5))
    assert any("(waits of libaio are not counted)" in line for line in lines) is told


def test_a_process_that_sleeps_in_a_ring_and_does_no_io_waits_for_no_disk() -> None:
    """Meanwhile another program, a reader, keeps the only disk busy."""
    sleeper = replace(WAITING, percents={"event": 99.0}, running=0.0, places=("io_cqring_wait",))
    ring, reader = RingWaiter(812, "postgres"), DiskUser(7, "fio", read_s=4e6)
    busy, silent = changed(rates(900, 0, 1), aqu_sz=0.9), changed(rates(), in_flight=3)
    for users, second, verdict in (
        ((reader,), busy, NOTHING), ((replace(reader, pid=812),), busy, UNKNOWN),
        ((reader,), silent, UNKNOWN),
    ):  # fmt: skip
        use = DiskUse(5.0, 5.0, users=users, ring_waiters=(ring,))
        pairs = judge(
            Seen(TARGET, [frame(n + 1.0, {"vdb": second}) for n in range(5)], {}, use=use)
        )
        assert process_verdict(beside(sleeper, pairs), NOTHING) == verdict
        thread = replace(sleeper, pid=833, of=812)
        assert process_verdict(beside(thread, pairs), NOTHING) == verdict


def test_who_sleeps_in_a_ring_for_its_own_ios_on_a_slow_disk_waits_for_it() -> None:
    """fio has 56 reads in flight with io_uring; the question may also be about its first
    process."""
    job = replace(WAITING, pid=814, percents={EVENT: 96.0}, running=3.0, places=("io_cqring_wait",),
                  devices=frozenset({"vdb"}))  # fmt: skip
    first = replace(WAITING, percents={EVENT: 99.0}, running=0.0, places=("hrtimer_nanosleep",),
                    of_children=(job,))  # fmt: skip
    other = DiskUser(7, "dd", read_s=4e6, devices=frozenset({"vdb"}))
    for own_s, second, found, text in (
        (9e5, HOG, WAITS, "sleeps; its child postgres (814) waits for vdb 96 % of its time"),
        (9e4, HOG, UNKNOWN, "sleeps; its child postgres (814) sleeps in io_uring, for a disk, a "
         "socket or a timer: it cannot be seen which"),
        (9e5, changed(rates(400, 0, 1), aqu_sz=0.9, util=95.0), UNKNOWN, "sleeps; its child "
         "postgres (814) sleeps in io_uring, for a disk, a socket or a timer: it cannot be "
         "seen which"),
    ):  # fmt: skip
        users = (DiskUser(814, "fio", read_s=own_s, devices=frozenset({"vdb"})),
                 replace(other, read_s=1e6 - own_s))  # fmt: skip
        use = DiskUse(5.0, 5.0, users=users, disks={"vdb": (1e6, 0.0, 20.0)},
                      ring_waiters=(RingWaiter(814, "fio"),))  # fmt: skip
        pairs = judge(
            Seen(TARGET, [frame(n + 1.0, {"vdb": second}) for n in range(5)], {}, use=use)
        )
        waits = beside(first, pairs)
        assert process_verdict(waits, WAITS) == found
        sentence = Report(pairs, found, 5, waits=waits).sentences[0]
        assert sentence.partition(" (812) ")[2].startswith(text)
        assert process_verdict(beside(job, pairs), WAITS) == found, "asked for itself"


def test_who_runs_while_its_own_ios_wait_may_poll_for_them() -> None:
    """fio with 24 reads in flight by io_uring and a polling thread: it ran for 98 % of the time."""
    job = replace(WAITING, state="R", percents={}, running=98.0, ready=1.0, places=())
    for own_s, found, text in (
        (9e5, UNKNOWN, "runs 98 %, may poll for its I/Os, which wait in vdb"),
        (9e4, NOTHING, "runs 98 %"),
    ):
        users = (DiskUser(812, "fio", read_s=own_s, devices=frozenset({"vdb"})),
                 DiskUser(7, "dd", read_s=1e6 - own_s, devices=frozenset({"vdb"})))  # fmt: skip
        use = DiskUse(5.0, 5.0, users=users, disks={"vdb": (1e6, 0.0, 20.0)})
        pairs = judge(Seen(TARGET, [frame(n + 1.0, {"vdb": HOG}) for n in range(5)], {}, use=use))
        waits = beside(job, pairs)
        assert process_verdict(waits, WAITS) == found
        assert Report(pairs, found, 5, waits=waits).sentences[0].endswith(f" {text}")


def test_the_functions_shown_are_those_of_the_child_that_waits() -> None:
    child = replace(WAITING, pid=814, places=("read_events",))
    parent = replace(WAITING, percents={EVENT: 99.0}, places=("hrtimer_nanosleep",))
    for of_children, shown in (((child,), "read_events"), ((), "hrtimer_nanosleep")):
        lines = why_lines(report(replace(parent, of_children=of_children)))
        assert f"  seen waiting in: {shown}" in lines
    both = replace(parent, percents={DISK: 83.0}, places=("folio_wait",), of_children=(child,))
    assert "  seen waiting in: folio_wait" in why_lines(report(both))


@pytest.mark.parametrize(("percent", "of_disks", "verdict"), [
    (83.0, NOTHING, WAITS), (25.0, WAITS, UNKNOWN), (29.0, UNKNOWN, UNKNOWN),
    (25.0, NOTHING, NOTHING), (9.0, WAITS, NOTHING),
])  # fmt: skip
def test_a_quarter_of_a_process_s_time_may_matter_where_ios_wait_for_its_disk(
    percent: float, of_disks: str, verdict: str
) -> None:
    """For example a process that swaps in a cgroup short of memory, and does other work in
    between."""
    assert process_verdict(replace(WAITING, percents={DISK: percent}), of_disks) == verdict
    assert process_verdict(replace(WAITING, state=""), of_disks) == UNKNOWN
    shell = replace(WAITING, percents={CHILD: 99.0}, running=0.0)
    assert process_verdict(shell, of_disks) == (NOTHING if of_disks == NOTHING else UNKNOWN)
    assert process_verdict(shell, UNKNOWN) == UNKNOWN, "its child may wait for the disk"
    for percent_of_child, found in ((83.0, WAITS), (25.0, NOTHING)):
        child = replace(WAITING, percents={DISK: percent_of_child})
        parent = replace(WAITING, percents={}, of_children=(child, replace(child, percents={})))
        assert process_verdict(parent, of_disks) == found
    behind = replace(WAITING, percents={DISK: 33.0}, running=19.0, ready=47.0)
    assert process_verdict(behind, of_disks) == of_disks, "it waits longer for a CPU"
    sleeps = replace(WAITING, percents={"event": 99.0}, running=0.0)
    assert process_verdict(sleeps, of_disks) == UNKNOWN, "where it sleeps cannot be read"
    bounded = replace(sleeps, most_for_disk=12.0)
    assert process_verdict(bounded, of_disks) == NOTHING, "it can't be for a disk"


@pytest.mark.parametrize(("percent", "of_disks", "verdict"), [
    (12.0, NOTHING, NOTHING), (12.0, WAITS, UNKNOWN), (40.0, NOTHING, UNKNOWN),
])  # fmt: skip
def test_a_small_part_of_the_time_in_state_d_matters_little_whatever_it_is_for(
    percent: float, of_disks: str, verdict: str
) -> None:
    """A database that writes its log 30 times a second, as another user sees it."""
    waits = replace(WAITING, percents={UNKNOWN_WAIT: percent, "event": 80.0}, running=0.0,
                    io_percent=2.0, most_for_disk=16.0)  # fmt: skip
    assert process_verdict(waits, of_disks) == verdict
    assert f"is in state D {percent:.0f} % of its time" in report(waits).sentences[0]


def test_state_d_of_a_process_that_starts_programs_may_be_for_that() -> None:
    """A shell whose commands are short, beside others' I/O, as another user sees it."""
    waits = replace(WAITING, percents={UNKNOWN_WAIT: 40.0, "event": 50.0}, running=0.0,
                    io_percent=90.0, busy_percent=100.0, readable=False)  # fmt: skip
    assert process_verdict(waits, NOTHING) == WAITS
    for other in (replace(waits, may_be_vfork=True), replace(waits, not_for_io=True),
                  replace(waits, odd_place="synchronize_rcu")):  # fmt: skip
        assert process_verdict(other, NOTHING) == UNKNOWN
        assert "for I/O or for something else" in report(other).sentences[0]
        assert "in synchronize_rcu 40 %" in report(other).sentences[0] or not other.odd_place


@pytest.mark.parametrize(("pressure", "disk", "verdict"), [
    (26.0, HOG, WAITS), (4.0, HOG, UNKNOWN), (30.0, HOG, WAITS),
    (26.0, changed(rates(400, 0, 1), aqu_sz=0.9, util=95.0), UNKNOWN),
])  # fmt: skip
def test_state_d_beside_a_disk_that_ios_wait_for_as_long_is_for_it(
    pressure: float, disk: DiskRates, verdict: str
) -> None:
    """The other CPUs are busy: a reader in state D for 92 % of its time causes only 26 % of
    pressure."""
    seconds = [replace(frame(n + 1.0, {"vda": rates(), "vdb": disk}),
                       more={"pressure": {"some": pressure}}) for n in range(5)]  # fmt: skip
    pairs = judge(Seen(TARGET, seconds, {}, use=DiskUse(5.0, 5.0)))
    reader = replace(WAITING, percents={UNKNOWN_WAIT: 92.0}, running=0.0)
    waits = beside(replace(reader, percents={EVENT: 99.0}, of_children=(reader,)), pairs)
    assert process_verdict(waits.of_children[0], UNKNOWN) == verdict
    assert (process_verdict(waits, UNKNOWN) == WAITS) is (verdict == WAITS)


@pytest.mark.parametrize(("waits", "shown"), [
    (replace(WAITING, percents={EVENT: 99.0}, readable=False), "812"),
    (replace(WAITING, percents={UNKNOWN_WAIT: 90.0}, readable=False, io_percent=0.0), "812"),
    (replace(WAITING, percents={EVENT: 99.0}, readable=False, most_for_disk=3.0), "812"),
    (replace(WAITING, percents={EVENT: 99.0}), "vdb"),
    (replace(WAITING, state="Z", readable=False), "vdb"),
])  # fmt: skip
def test_root_is_sent_for_to_the_process_that_was_asked_about(
    waits: ProcessWaits, shown: str
) -> None:
    *_, last = why_lines(report(waits))
    assert last == f"  next: see more as root: iopstui why {shown}"
    idle = [frame(n + 1.0, {"vda": rates()}) for n in range(5)]
    pairs = judge(Seen(TARGET, idle, {}, use=DiskUse(5.0, 5.0)))
    *_, last = why_lines(Report(pairs, UNKNOWN, 5, waits))
    assert last.endswith("why 812") is bool(waits.unclear and not waits.readable)


def test_a_process_can_wait_for_disks_only_while_they_have_requests() -> None:
    rest = {"vda": rates(), "vdb": changed(rates(100, 0, 1), aqu_sz=0.1, util=10.0)}
    for disks, use, most in (
        (rest, DiskUse(5.0, 5.0, disks={"vdb": (1e6, 0.0, 0.2)}), 20.0),
        (rest, None, None),
        (rest, DiskUse(5.0, 5.0, disks={"vdc": (1e6, 0.0, 0.9)}), None),
        (rest, DiskUse(5.0, 5.0, limits=(LimitUse("vdb", "/app", "9 reads/s", "io.max"),)), None),
        (rest | {"vda": changed(rates(), in_flight=1)}, DiskUse(5.0, 5.0), None),
    ):
        frames = [frame(n + 1.0, disks) for n in range(5)]
        found = most_for_disk(judge(Seen(TARGET, frames, {}, use=use)))
        assert found == (most and pytest.approx(most))
    pressed = [replace(frame(n + 1.0, rest), more={"pressure": {"some": 50.0}}) for n in range(5)]
    assert most_for_disk(judge(Seen(TARGET, pressed, {}, use=DiskUse(5.0, 5.0)))) is None


USED = DiskUse(5.0, 5.0)


@pytest.mark.parametrize(("never_ran", "in_flight", "use", "verdict"), [
    (True, 0, USED, NOTHING), (True, 1, USED, UNKNOWN), (True, None, USED, UNKNOWN),
    (False, 0, USED, UNKNOWN), (True, 0, None, UNKNOWN),
    (True, 0, replace(USED, limits_readable=False), UNKNOWN),
    (True, 0, replace(USED, outer_groups=True), UNKNOWN),
])  # fmt: skip
def test_who_never_ran_does_not_wait_for_a_disk_without_requests(
    never_ran: bool, in_flight: int | None, use: DiskUse | None, verdict: str
) -> None:
    """As another user sees it, a client of a slow server sleeps while a program reads a disk."""
    reader = changed(rates(2000, 0, 0.4), aqu_sz=0.7, util=74.0, in_flight=1)
    last = replace(reader, in_flight=in_flight)
    seconds = [replace(frame(n + 1.0, {"vda": rates(), "vdb": last if n == 3 else reader}),
                       more={"pressure": {"some": 50.0}}) for n in range(5)]  # fmt: skip
    pairs = judge(Seen(TARGET, seconds, {}, use=use))
    sleeps = replace(WAITING, percents={EVENT: 99.0}, running=0.0, never_ran=never_ran)
    assert process_verdict(beside(sleeps, pairs), NOTHING) == verdict


@pytest.mark.parametrize("rule", ["limit", "near-limit", "iocost"])
def test_a_process_below_a_limit_waits_for_io_on_the_disk(rule: str) -> None:
    pairs = [
        (situation, replace(answer, rule=rule) if answer.disk == "vdb" else answer)
        for situation, answer in report().pairs
    ]
    sentence = replace(report(WAITING), pairs=pairs).sentences[0]
    assert sentence == "▲ postgres (812) waits for I/O on vdb 83 % of its time, runs 12 %"


def test_a_process_seen_in_io_cost_waits_for_no_disk_though_nobody_was_found_blocked() -> None:
    held = replace(WAITING, places=("do_select", "ioc_rqos_throttle"))
    for waits, what in ((held, "I/O on vdb"), (replace(held, devices=frozenset()), "I/O")):
        sentence = report(waits).sentences[0]
        assert sentence == f"▲ postgres (812) waits for {what} 83 % of its time, runs 12 %"


def test_the_kernel_s_log_is_excluded_only_after_the_pauses_in_which_it_drops_errors() -> None:
    situation, answer = report().pairs[0]
    for count, logged, told in ((8, {}, False), (13, {}, True), (13, None, False)):
        frames = [replace(situation.frames[0], t=float(t)) for t in range(count)]
        looked = replace(situation, frames=frames, conditions=Conditions(logged=logged))
        assert any("kernel's log" in one for one in excluded(looked, answer)) is told


def test_what_was_not_read_in_time_is_told() -> None:
    situation, answer = report().pairs[0]
    unread = replace(situation, use=None)
    assert "who uses it, blocked tasks, limits of cgroups (not read in these seconds)" in not_seen(
        unread
    )
    assert not any("limits" in one for one in excluded(unread, answer))
    assert not any("who uses it" in one for one in not_seen(situation))
    assert situation.use is not None
    hides = replace(situation, use=replace(situation.use, hidden=ALL_HIDDEN))
    assert "the I/O of all processes of other users (root sees it)" in not_seen(hides)
    closed = replace(situation, use=replace(situation.use, hidden=8, as_root=True), devices={})
    assert "the I/O of 8 processes closed even to root" in not_seen(closed)
    assert decide(closed).who == "who uses it cannot be seen"
    closed.__dict__["shares"] = (Share("fio (965)", 0.96, 9e6, 965),)
    assert not any("8 processes" in one for one in not_seen(closed)), "all of its users are known"


@pytest.mark.parametrize(("more", "cpu_some", "missing"), [
    ({"pressure": {"some": 1.0}, "memory": {"some": 0.0}}, 0.0, None),
    ({"pressure": {"some": 1.0}}, None,
     "how long tasks wait: no /proc/pressure/memory, /proc/pressure/cpu here"),
    ({}, None, "pressure (the kernel needs CONFIG_PSI, or psi=1)"),
])  # fmt: skip
def test_waits_and_cpus_that_cannot_be_read_are_told(
    more: dict[str, dict[str, float | None]], cpu_some: float | None, missing: str | None
) -> None:
    situation, _ = report().pairs[0]
    assert situation.use is not None
    frames = [replace(one, more=more) for one in situation.frames]
    seen = replace(situation, frames=frames, machine_facts=None,
                   use=replace(situation.use, cpu_some=cpu_some))  # fmt: skip
    told = not_seen(seen)
    assert [one for one in told if "pressure" in one] == ([missing] if missing else [])
    assert not any("/proc/stat" in one for one in told)
    without = replace(seen, frames=[replace(one, cpus={}) for one in frames])
    assert any("/proc/stat" in one for one in not_seen(without))


@pytest.mark.parametrize(("io_percent", "words"), [
    (None, "cannot be seen which"), (3.0, "cannot be seen which"), (29.0, "cannot be seen which"),
    (60.0, "most likely for I/O"),
])  # fmt: skip
def test_little_pressure_does_not_deny_that_a_task_in_state_d_waits_for_io(
    io_percent: float | None, words: str
) -> None:
    """Busy CPUs and waits that don't count keep the pressure low. dd waited for a full thin pool
    all the time: 29 %. A program that calls fsync on xfs waited for its log 74 % of the time: 3
    %."""
    dd = ProcessWaits(1646, "dd", "", 60, "D", {UNKNOWN_WAIT: 100.0}, 0.0, 0.0, readable=False,
                      io_percent=io_percent)  # fmt: skip
    text = process_text(dd, "")
    assert words in text and "hardly" not in text


def test_a_process_without_times_of_its_own_is_not_said_to_need_no_cpu() -> None:
    asleep = ProcessWaits(965, "fio", "", 60, "S", {}, 0.0, 0.0)
    for waits, told in ((asleep, False), (replace(asleep, running=None, ready=None), True)):
        lines = list(why_lines(report(waits)))
        assert ("CPU" in lines[0]) is not told
        assert any("no /proc/965/schedstat" in line for line in lines) is told


def test_a_process_on_a_stack_waits_for_its_top_and_on_two_disks_for_one_of_them() -> None:
    both = replace(WAITING, devices=frozenset({"vdb", "vdd"}))
    for below, disk in ((("vdb", "vdd"), "vdb"), (("vdb",), "a disk")):
        pairs = [(replace(one, below=below) if one.disk == "vdb" else one, answer)
                 for one, answer in report().pairs]  # fmt: skip
        sentence = replace(report(both), pairs=pairs).sentences[0]
        assert sentence == f"▲ postgres (812) waits for {disk} 83 % of its time, runs 12 %"


def test_a_process_waits_for_no_disk_that_had_nothing_to_do() -> None:
    """It has a log open on vda, which another program reads. It waits for a file on vdb that it has
    mapped and closed, or for swap, or for another disk's write-back at the limit of dirty pages."""
    used = {"vda": changed(rates(100, 0, 1), aqu_sz=0.1, util=10.0), "vdb": HOG}
    waiting = replace(WAITING, devices=frozenset({"vda"}))
    for place, swapped, in_flight, disk in (
        ("folio_wait_bit_common", 0.0, 0.1, "a disk"),
        ("folio_wait_bit_common", 0.0, 0.9, "vda"),
        ("folio_wait_bit_common", 900.0, 0.9, "a disk"),
        ("balance_dirty_pages", 0.0, 0.9, "a disk"),
    ):
        disks = used | {"vda": changed(used["vda"], aqu_sz=in_flight)}
        use = DiskUse(5.0, 5.0, disks={"vdb": (0.0, 0.0, 32.0)}, swap_s=swapped)
        pairs = judge(Seen(TARGET, [frame(n + 1.0, disks) for n in range(5)], {}, use=use))
        waits = replace(waiting, places=(place,))
        own = own_disks(waits, pairs)
        assert ("vdb" in {answer.disk for _, answer in own}) is (disk == "a disk"), "may be it"
        shell = replace(waits, percents={CHILD: 83.0})
        assert own_disks(shell, pairs) == own, "its child may wait"
        sentence = Report(own, WAITS, 5, waits).sentences[0]
        assert sentence == f"▲ postgres (812) waits for {disk} 83 % of its time, runs 12 %"


def test_a_process_waits_for_a_disk_whose_requests_are_not_counted_yet() -> None:
    """Its requests are held back by a limit; or the disk completes nothing; or no other disk is
    used."""
    few = changed(rates(100, 0, 1), aqu_sz=0.1, util=10.0)
    silent = changed(rates(), in_flight=3)
    group = LimitUse("vdb", "/app", "100 reads/s", "io.max")
    swaps = DiskUse(5.0, 5.0, disks={"vdb": (1e6, 0.0, 0.9)}, swap_s=900.0)
    limited = DiskUse(5.0, 5.0, limits=(group,))
    used = changed(few, aqu_sz=0.9)
    for rates_seen, use in ((few, limited), (silent, DiskUse(5.0, 5.0)), (used, swaps)):
        seconds = [frame(n + 1.0, {"vdb": rates_seen}) for n in range(5)]
        pairs = judge(Seen(TARGET, seconds, {}, use=use))
        assert " vdb 83 % of its time" in Report(pairs, WAITS, 5, WAITING).sentences[0]


@pytest.mark.parametrize(("waits", "in_flight", "remote", "verdict", "said"), [
    # (what it waits in, requests in flight on the disk, FUSE or a server is mounted, ...)
    ({DISK: 94.0}, 0.0, True, UNKNOWN, "in state D in folio_wait_bit_common 94 % of its time, for"),
    ({DISK: 94.0}, 0.9, True, WAITS, "waits for a disk 94 % of its time"),
    ({DISK: 94.0}, 0.0, False, WAITS, "waits for a disk 94 % of its time"),
    ({UNKNOWN_WAIT: 91.0}, 0.0, True, UNKNOWN, "is in state D 91 % of its time, for I/O or"),
    ({UNKNOWN_WAIT: 91.0}, 0.9, True, UNKNOWN, "is in state D 91 % of its time, for I/O or"),
    ({UNKNOWN_WAIT: 91.0}, 0.0, False, WAITS, "in state D, most likely for I/O, 91 %"),
    ({UNKNOWN_WAIT: 91.0}, 0.9, False, WAITS, "in state D, most likely for I/O, 91 %"),
])  # fmt: skip
def test_a_process_waits_for_no_disk_while_fuse_keeps_its_pages_and_the_disks_are_idle(
    waits: dict[str, float], in_flight: float, remote: bool, verdict: str, said: str
) -> None:
    """A FUSE file system whose server takes 100 ms: its reader waits where one of a disk does."""
    disk = changed(rates(90, 0, 1), aqu_sz=in_flight, util=90.0) if in_flight else rates()
    seconds = [replace(frame(n + 1.0, {"vdb": disk}), more={"pressure": {"some": 90.0}})
               for n in range(5)]  # fmt: skip
    pairs = judge(Seen(TARGET, seconds, {}, use=DiskUse(5.0, 5.0, remote=remote)))
    places = ("folio_wait_bit_common",) if DISK in waits else ()
    seen = replace(WAITING, percents=waits, places=places, running=0.0, devices=frozenset())
    found = beside(seen, pairs)
    assert process_verdict(found, NOTHING) == verdict
    assert said in Report(pairs, verdict, 5, found).sentences[0]
    there = beside(replace(seen, elsewhere=True), pairs)
    if verdict == UNKNOWN and DISK in waits:
        assert process_verdict(there, NOTHING) == NOTHING
        assert "waits for a file server (NFS, SMB, FUSE) 94 %" in (
            Report(pairs, NOTHING, 5, there).sentences[0])  # fmt: skip
    else:  # beside others' I/O nobody knows
        assert process_verdict(there, NOTHING) == (
            UNKNOWN if in_flight and remote else verdict)  # fmt: skip
        here = beside(replace(seen, elsewhere=True, devices=frozenset({"vdb"})), pairs)
        assert process_verdict(here, NOTHING) == verdict
    uncounted = [(s, replace(answer, rule="finding-iostats")) for s, answer in pairs]
    assert DISK not in waits or process_verdict(beside(seen, uncounted), NOTHING) == WAITS
    journal = beside(replace(seen, places=("jbd2_log_wait_commit",)), pairs)
    assert DISK not in waits or process_verdict(journal, NOTHING) == WAITS


def test_a_process_waits_for_flushes_that_no_request_in_flight_counts() -> None:
    slow = changed(replace(rates(0, 20, 2), flushes=8, flush_ms=800.0), aqu_sz=0.04)
    seconds = {"vdb": slow}
    pairs = judge(Seen(TARGET, [frame(n + 1.0, seconds) for n in range(5)], {}))
    assert " waits for vdb 83 %" in Report(pairs, WAITS, 5, WAITING).sentences[0]


@given(st.dictionaries(st.sampled_from([DISK, LOCK, "event"]),
                       st.floats(0, 100, allow_subnormal=False), max_size=3),
       st.floats(-5, 100), st.floats(0, 20))  # fmt: skip
def test_a_thread_waits_as_long_as_it_is_off_the_cpus(
    percents: dict[str, float], off: float, looks: float
) -> None:
    found, total = waits_off_cpus(percents, off, looks), sum(percents.values())
    if not total:
        assert found == percents
    elif looks < LEAST_LOOKS and off >= total:
        assert found == pytest.approx(percents), "too few looks to tell more"
    else:
        assert sum(found.values()) == pytest.approx(max(0.0, off))
    assert all(found[kind] * total == pytest.approx(percents[kind] * sum(found.values()))
               for kind in found)  # fmt: skip


@pytest.mark.parametrize(("place", "blocked", "kind"), [
    ("folio_wait_bit_common", True, DISK), ("jbd2_log_wait_commit", True, DISK),
    ("futex_wait_queue", False, LOCK), ("ep_poll", False, "event"),
    ("rpc_wait_bit_killable", True, "server"), ("", True, UNKNOWN_WAIT),
    ("read_events", False, DISK), ("balance_dirty_pages", True, DISK),
    ("write_all_supers", True, DISK), ("wait_log_commit", True, DISK),
    ("_wait_barrier", True, DISK), ("wb_wait_for_completion", True, DISK),
    ("ioc_rqos_throttle", True, DISK),
    ("io_cqring_wait", False, "event"), ("snd_audio_wait", False, "event"),
    ("kswapd", False, "event"), ("do_wait", False, "child"),
    ("mem_cgroup_handle_over_high", True, "memory"), ("kernel_clone", True, "child"),
    ("wait_for_vfork_done", True, "child"), ("__refrigerator", True, FROZEN),
    ("do_freezer_trap", False, FROZEN), ("get_signal", False, FROZEN),
    ("hrtimer_nanosleep", True, UNKNOWN_WAIT),
])  # fmt: skip
def test_what_a_kernel_function_waits_for(place: str, blocked: bool, kind: str) -> None:
    assert place_kind(place, blocked) == kind


def test_a_process_that_proc_hides_is_not_said_to_be_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(pid: int, signal: int) -> None:
        assert (pid, signal) == (4999999, 0)
        raise PermissionError

    monkeypatch.setattr("os.kill", kill)
    assert main(["why", "4999999"]) == EXIT_USAGE
    assert "/proc does not show process 4999999 to this user" in capsys.readouterr().err


def test_a_process_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "4999999"]) == EXIT_USAGE
    assert "There is no process 4999999." in capsys.readouterr().err
