from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from iopstui.linux.activity import task_waits
from iopstui.linux.activity.task_waits import TaskWaits
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.processes import cpu_s, thread_cpu_s
from iopstui.model.answer.process import CHILD, DISK, process_text


def test_a_thread_s_cpu_time_is_its_own() -> None:
    before, began = thread_cpu_s(threading.current_thread()), time.thread_time()
    while time.thread_time() - began < 0.05:
        sum(range(1000))
    used = thread_cpu_s(threading.current_thread()) - before
    assert 0.05 <= used < 0.05 + time.thread_time() - began
    assert thread_cpu_s(threading.Thread()) == 0.0


def test_a_process_that_is_gone_has_no_time() -> None:
    assert cpu_s((1 << 22) - 1) is None


def test_a_thread_is_looked_at_alone() -> None:
    may_end = threading.Event()
    thread = threading.Thread(target=may_end.wait)
    thread.start()
    try:
        alone = TaskWaits(thread.native_id or 0, {}, Roots()).result()
        process = TaskWaits(os.getpid(), {}, Roots()).result()
    finally:
        may_end.set()
        thread.join()
    assert (alone.of, alone.threads) == (os.getpid(), 1)
    assert process.of == 0 and process.threads >= 2


def test_a_process_whose_cgroup_used_up_its_cpu_time(tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    group = roots.sys / "fs/cgroup/work"
    for place in (roots.proc / "7", roots.proc / "7/task", group):
        place.mkdir(parents=True)
    (roots.proc / "7/cgroup").write_text("0::/work\n")
    (roots.proc / "7/stat").write_text("7 (x) R 1 " + "0 " * 40)
    (group / "cpu.stat").write_text("throttled_usec 100\n")
    waits = TaskWaits(7, {}, roots)
    assert not waits.result().reached_quota
    (group / "cpu.stat").write_text("throttled_usec 900\n")
    assert waits.result().reached_quota


@pytest.mark.parametrize("now, names, change", [
    ("8 9", ("dd (8)",), False), ("9", ("sleep (9)",), True),
])  # fmt: skip
def test_children_that_stay_are_told_from_those_that_come_and_go(
    tmp_path: Path, now: str, names: tuple[str, ...], change: bool
) -> None:
    roots = Roots.under(tmp_path)
    place = roots.proc / "7/task/7"
    for directory in (place, roots.proc / "8", roots.proc / "9"):
        directory.mkdir(parents=True)
    (roots.proc / "7/stat").write_text("7 (sh) S 1 " + "0 " * 40)
    (roots.proc / "8/comm").write_text("dd\n")
    (roots.proc / "9/comm").write_text("sleep\n")
    (place / "children").write_text("8")
    waits = TaskWaits(7, {}, roots)
    (place / "children").write_text(now)
    assert (waits.result().children, waits.result().children_change) == (names, change)


def test_children_that_come_and_go_are_looked_at_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop in a shell starts one dd after another; two of three wait for the disk."""
    roots = Roots.under(tmp_path)
    for pid in (7, *range(8, 38)):
        task = roots.proc / f"{pid}/task/{pid}"
        task.mkdir(parents=True)
        name, state = ("sh", "S") if pid == 7 else ("dd", "D")
        for directory in (task, roots.proc / f"{pid}"):
            (directory / "stat").write_text(f"{pid} ({name}) {state} 7 " + "0 " * 40)
        waits = {0: "pipe_read", 1: "submit_bio_wait", 2: "folio_wait_bit_common"}[pid % 3]
        (task / "wchan").write_text("do_wait" if pid == 7 else waits)
    now = roots.proc / "7/task/7/children"
    now.write_text("")
    shell = TaskWaits(7, {}, roots)
    assert shell.result().of_children == ()
    for pid in range(8, 38):
        now.write_text(f"{pid} ")
        shell.look()
    opened = {"37": {"vda"}}
    monkeypatch.setattr(task_waits.OpenDevices, "of_process", lambda _, place: (
        opened.get(Path(place).name, set()), set()))  # fmt: skip
    shell.look_until(0.0)
    (found,) = shell.result().of_children
    assert found.devices == {"vda"}
    assert (found.pid, found.comm, found.in_turn, found.looks) == (37, "dd", True, 36)
    assert found.percents[DISK] == pytest.approx(100 * 25 / 36)
    assert shell.result().child == found and {*found.places} == {
        "submit_bio_wait", "folio_wait_bit_common"
    }  # fmt: skip


def test_the_child_that_was_seen_waiting_is_named_not_the_last_one(tmp_path: Path) -> None:
    """A loop of dd and sleep: sleep runs at the end, dd waits for the disk."""
    roots = Roots.under(tmp_path)
    children = {7: ("sh", "S", "do_wait"), 8: ("dd", "D", "submit_bio_wait"),
                9: ("dd", "D", "0"), 10: ("sleep", "S", "hrtimer_nanosleep")}  # fmt: skip
    for pid, (name, state, place) in children.items():
        task = roots.proc / f"{pid}/task/{pid}"
        task.mkdir(parents=True)
        for directory in (task, roots.proc / f"{pid}"):
            (directory / "stat").write_text(f"{pid} ({name}) {state} 7 " + "0 " * 40)
            (directory / "comm").write_text(f"{name}\n")
        (task / "wchan").write_text(place)
    now = roots.proc / "7/task/7/children"
    now.write_text("")
    shell = TaskWaits(7, {}, roots)
    for pid in [10] * 10 + [8] * 12 + [9] * 12 + [10] * 10:
        now.write_text(f"{pid} ")
        shell.look()
    found = shell.result()
    assert (found.children, found.children_change) == (("dd", "sleep"), True)
    assert found.child is not None and (found.child.pid, found.child.comm) == (9, "dd")
    assert found.child.percents[DISK] == pytest.approx(100 * 24 / 45)
    text = process_text(found.child, "vda")
    assert text == "dd (the last was 9) waits for vda 53 % of the time"


@pytest.mark.parametrize("places, shown", [
    (("do_select", "hrtimer_nanosleep", "submit_bio_wait"), {"submit_bio_wait"}),
    (("do_select", "io_cqring_wait", "futex_wait_queue"), {"io_cqring_wait", "futex_wait_queue"}),
    (("do_select", "hrtimer_nanosleep"), {"do_select", "hrtimer_nanosleep"}),
])  # fmt: skip
def test_functions_in_which_other_threads_only_sleep_are_not_shown(
    tmp_path: Path, places: tuple[str, ...], shown: set[str]
) -> None:
    roots = Roots.under(tmp_path)
    for thread, place in enumerate(places, 7):
        task = roots.proc / f"7/task/{thread}"
        task.mkdir(parents=True)
        state = "D" if place == "submit_bio_wait" else "S"
        for directory in (task, roots.proc / "7"):
            (directory / "stat").write_text(f"7 (fio) {state} 1 " + "0 " * 40)
        (task / "wchan").write_text(place)
    assert {*TaskWaits(7, {}, roots).result().places} == shown


def test_a_few_children_are_looked_at_too(tmp_path: Path) -> None:
    """fio's first process sleeps, one of its jobs waits."""
    roots = Roots.under(tmp_path)
    for pid, state, place in ((7, "S", "hrtimer_nanosleep"), (8, "D", "submit_bio_wait"),
                              (9, "R", "0"), (os.getpid(), "D", "submit_bio_wait"),
                              *((pid, "R", "0") for pid in range(100, 120))):  # fmt: skip
        task = roots.proc / f"{pid}/task/{pid}"
        task.mkdir(parents=True)
        for directory in (task, roots.proc / f"{pid}"):
            (directory / "stat").write_text(f"{pid} (fio) {state} 7 " + "0 " * 40)
        (task / "wchan").write_text(place)
    children = roots.proc / "7/task/7/children"
    for pids, seen in (((8, 9, os.getpid()), [8, 9]), (range(100, 120), [])):
        children.write_text(" ".join(map(str, pids)))
        waits = TaskWaits(7, {}, roots)
        for _ in range(30):
            waits.look()
        assert [child.pid for child in waits.result().of_children] == seen
    children.write_text("8")
    waits = TaskWaits(7, {}, roots)
    waits.look_until(0.0)
    child = waits.result().child
    assert child is not None and (child.pid, child.percents) == (8, {DISK: 100.0})
    assert child.looks == waits.result().looks


@pytest.mark.parametrize("ready_ns, asleep, said", [
    (10**12, 10, None), (10**12, 4, 100.0), (0, 10, 0.0),
])  # fmt: skip
def test_a_thread_that_is_asleep_was_not_ready(
    tmp_path: Path, ready_ns: int, asleep: int, said: float | None
) -> None:
    place = tmp_path / "proc/7/task/7"
    place.mkdir(parents=True)
    for look in range(10):
        (place / "wchan").write_text("do_wait" if look < asleep else "0")
        text = f"7 (sh) {'S' if look < asleep else 'R'} 1 " + "0 " * 40
        (place.parents[1] / "stat").write_text(text)
        (place / "stat").write_text(text)
        (place / "schedstat").write_text(f"0 {ready_ns * (look > 0)} 9")
        if look == 0:
            waits = TaskWaits(7, {}, Roots.under(tmp_path))
        else:
            waits.look()
    assert waits.result().ready == said
    assert (waits.result().percents.get(CHILD, 0.0) == 100.0) == (asleep == 10)


@pytest.mark.parametrize(("later", "never_ran"), [
    (("900 50 3", "70 0 1"), True), (("900 50 3", "80 0 2"), False),
    (("900 60 3", "70 0 1"), False),
])  # fmt: skip
def test_a_process_whose_threads_all_slept_never_ran(
    tmp_path: Path, later: tuple[str, ...], never_ran: bool
) -> None:
    roots = Roots.under(tmp_path)

    def write(counts: tuple[str, ...]) -> None:
        for thread, text in enumerate(counts, 7):
            task = roots.proc / f"7/task/{thread}"
            task.mkdir(parents=True, exist_ok=True)
            (task / "schedstat").write_text(text)

    write(("900 50 3", "70 0 1"))
    (roots.proc / "7/stat").write_text("7 (client) S 1 " + "0 " * 40)
    waits = TaskWaits(7, {}, roots)
    write(later)
    waits.look()
    assert waits.result().never_ran is never_ran
    write(("900 50 3", ""))
    assert not TaskWaits(7, {}, roots).result().never_ran, "one of two cannot be read"
    write(("0 0 0", "0 0 0"))
    assert not TaskWaits(7, {}, roots).result().never_ran, "the kernel doesn't count it"


def test_a_late_second_still_has_some_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "proc/7"
    (place / "task/7").mkdir(parents=True)
    (place / "stat").write_text("7 (sh) S 1 " + "0 " * 40)
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(task_waits, "time", clock)
    waits = TaskWaits(7, {}, Roots.under(tmp_path))
    waits.look_until(99.0)
    assert waits.result().looks == 1 + task_waits.LEAST_LOOKS
    (place / "stat").unlink()
    waits.look_until(101.0)
    assert now[0] == pytest.approx(101.0), "a process that is gone is looked for no longer"
    waits.look_until(99.0)
    assert now[0] == pytest.approx(101.0)
