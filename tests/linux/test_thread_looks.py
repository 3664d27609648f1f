from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from iopstui.linux.activity import thread_looks
from iopstui.linux.activity.task_waits import TaskWaits
from iopstui.linux.activity.thread_looks import Look, WaitCounts, seen_at, wchan
from iopstui.linux.kernel_files import Roots
from iopstui.model.answer.process import DISK, EVENT, MIN_LOOKS, UNKNOWN_WAIT, ProcessWaits

READS, UNREAD, RUNS = ("S", "read_events"), ("S", "0"), ("R", "0")


class Threads:
    """Threads of process 7, looked at every 50 ms."""

    def __init__(self, proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._roots, self._now = Roots.under(proc), [100.0]
        clock = SimpleNamespace(monotonic=lambda: self._now[0])
        monkeypatch.setattr(thread_looks, "time", clock)

    def watch(
        self, looks: Sequence[Sequence[tuple[str, str]]], run: float = 0.29, ready: float = 0.1
    ) -> ProcessWaits:
        """Each of ``looks`` has (state, function) of each thread. All threads run for the same
        share of the time."""
        waits = None
        for number, threads in enumerate(looks):
            for thread, (state, place) in enumerate(threads, 7):
                task = self._roots.proc / f"7/task/{thread}"
                task.mkdir(parents=True, exist_ok=True)
                stat = f"7 (fio) {state} 1 " + "0 " * 40
                (task / "stat").write_text(stat)
                (self._roots.proc / "7/stat").write_text(stat)
                (task / "wchan").write_text(place)
                ns = 50e6 * number
                (task / "schedstat").write_text(f"{int(run * ns)} {int(ready * ns)} 9")
            if waits is None:
                waits = TaskWaits(7, {}, self._roots)
            else:
                waits.look()
            self._now[0] += 0.05
        assert waits is not None
        return waits.result()


@pytest.mark.parametrize(("looks", "disk", "event"), [
    # fio with libaio: in many looks the function in which it sleeps can't be read
    ([READS] * 47 + [UNREAD] * 16 + [RUNS] * 37, 61.0, 0.0),
    # the looks find it asleep too seldom, or too often
    ([READS] * 10 + [RUNS] * 90, 61.0, 0.0),
    ([READS] * 90 + [RUNS] * 10, 61.0, 0.0),
    ([READS] * 30 + [("S", "ep_poll")] * 20 + [UNREAD] * 11 + [RUNS] * 39, 36.6, 24.4),
    # more looks without than with a function: what it waits for stays unknown
    ([READS] * 20 + [UNREAD] * 41 + [RUNS] * 39, 20.0, 41.0),
    ([UNREAD] * 61 + [RUNS] * 39, 0.0, 61.0),
    # too few looks to know what it sleeps for
    ([READS] * 4 + [RUNS] * 96, 4.0, 0.0),
])  # fmt: skip
def test_a_thread_s_waits_add_up_to_the_time_it_was_off_the_cpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: list[tuple[str, str]], disk: float,
    event: float,
) -> None:  # fmt: skip
    found = Threads(tmp_path, monkeypatch).watch([[look] for look in looks])
    assert (found.running, found.ready) == (pytest.approx(29.0), pytest.approx(10.0))
    assert found.percents.get(DISK, 0.0) == pytest.approx(disk, abs=0.1)
    assert found.percents.get(EVENT, 0.0) == pytest.approx(event, abs=0.1)
    assert found.not_seen == pytest.approx(61.0 - disk - event, abs=0.1)


def test_without_times_the_looks_alone_tell(tmp_path: Path) -> None:
    task = tmp_path / "proc/7/task/7"
    task.mkdir(parents=True)
    waits = None
    for state, place in [("D", "submit_bio_wait")] * 10 + [("D", "0")] * 10 + [RUNS] * 20:
        for directory in (task, task.parents[1]):
            (directory / "stat").write_text(f"7 (fio) {state} 1 " + "0 " * 40)
        (task / "wchan").write_text(place)
        if waits is None:
            waits = TaskWaits(7, {}, Roots.under(tmp_path))
        else:
            waits.look()
    assert waits is not None and waits.result().percents == {DISK: 50.0}
    assert waits.result().looks >= MIN_LOOKS and waits.result().not_seen == 0.0


def test_only_one_of_several_threads_does_io(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one of them waits, its share is exact. If they wait in turn, their shares add up."""
    sleeps = ("S", "hrtimer_nanosleep")
    looks = [[sleeps, ("D", "submit_bio_wait")]] * 30 + [[sleeps, RUNS]] * 70
    found = Threads(tmp_path, monkeypatch).watch(looks)
    assert found.percents == {EVENT: pytest.approx(61.0), DISK: pytest.approx(61.0)}
    both = [[("D", "submit_bio_wait"), RUNS]] * 45 + [[RUNS, ("D", "folio_wait_bit")]] * 45
    found = Threads(tmp_path, monkeypatch).watch(both + [[RUNS, RUNS]] * 10)
    assert found.percents == {DISK: pytest.approx(90.0)}


@pytest.mark.parametrize(("place", "began", "may"), [
    ("0", True, True), ("0", False, False), ("submit_bio_wait", True, False),
])  # fmt: skip
def test_whoever_starts_a_program_may_be_in_state_d_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, began: bool, may: bool
) -> None:
    threads = Threads(tmp_path, monkeypatch)
    task = tmp_path / "proc/7/task/7"
    task.mkdir(parents=True)
    (task / "children").write_text("8 ")
    waits = threads.watch([[("D", place)]] * 5)
    assert not waits.may_be_vfork, "its child was there before"
    for name in ("7/task/9", "9/task/9"):
        (tmp_path / "proc" / name).mkdir(parents=True)
    (task / "children").write_text("8 ")
    watched = TaskWaits(7, {}, Roots.under(tmp_path))
    (task / "children").write_text("8 9 " if began else "8 ")
    watched.look()
    assert watched.result().may_be_vfork is may


@pytest.mark.parametrize(("in_io", "wakes", "state", "other"), [
    ("0", False, "D", True), ("1", False, "D", False), ("2", False, "D", True),
    ("0", True, "D", False), ("0", False, "S", False), ("", False, "D", False),
])  # fmt: skip
def test_state_d_while_no_task_waits_for_io_or_another_does_may_be_for_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_io: str, wakes: bool, state: str,
    other: bool,
) -> None:  # fmt: skip
    """``wakes``: it is woken up and waits again before the machine's tasks are read."""
    task = tmp_path / "proc/7/task/7"
    task.mkdir(parents=True)
    (tmp_path / "proc/stat").write_text(f"cpu 1 2\n{in_io and f'procs_blocked {in_io}'}\nirq 1\n")
    for directory in (task, task.parents[1]):
        (directory / "stat").write_text(f"7 (python) {state} 1 " + "0 " * 40)
    (task / "schedstat").write_text("1 2 3")
    count = thread_looks.tasks_in_io

    def late(proc: str) -> int | None:
        if wakes:
            (task / "schedstat").write_text(f"{time.monotonic_ns()} 2 3")
        return count(proc)

    monkeypatch.setattr(thread_looks, "tasks_in_io", late)
    waits = TaskWaits(7, {}, Roots.under(tmp_path))
    assert not waits.result().not_for_io
    for _ in range(3):
        waits.look()
    assert waits.result().not_for_io is other


@pytest.mark.parametrize(("more", "noise", "rounds", "other"), [
    (0, 0, 10, True), (1, 0, 10, False), (0, 6, 10, True), (1, 6, 10, True), (0, 1, 300, True),
    (1, 1, 300, False),
])  # fmt: skip
def test_who_waits_for_io_is_one_task_more_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int, noise: int, rounds: int, other: bool
) -> None:  # fmt: skip
    """``more`` tasks wait for I/O, beside 12 and a ``noise``, while it is in state D."""
    task = tmp_path / "proc/7/task/7"
    task.mkdir(parents=True)
    (task / "schedstat").write_text("1 2 3")
    waits = TaskWaits(7, {}, Roots.under(tmp_path))
    for number in range(rounds):
        for state in "DS":
            beside = 12 + noise * (number % 2) + more * (state == "D")
            (tmp_path / "proc/stat").write_text(f"cpu 1 2\nprocs_blocked {beside}\n")
            for directory in (task, task.parents[1]):
                (directory / "stat").write_text(f"7 (python) {state} 1 " + "0 " * 40)
            waits.look()
    assert waits.result().not_for_io is other


def test_a_function_that_nobody_knows_is_named(tmp_path: Path) -> None:
    task = tmp_path / "proc/7/task/7"
    task.mkdir(parents=True)
    for directory in (task, task.parents[1]):
        (directory / "stat").write_text("7 (python) D 1 " + "0 " * 40)
    for place, odd in (("submit_bio_wait", ""), ("synchronize_rcu", "synchronize_rcu")):
        (task / "wchan").write_text(place)
        assert TaskWaits(7, {}, Roots.under(tmp_path)).result().odd_place == odd


def test_the_function_is_read_before_the_state(tmp_path: Path) -> None:
    """A thread that wakes up between the two readings was asleep, and its function is known."""
    states: dict[str, bool] = {}

    def look(state: str, place: str, kernel: bool = False) -> Look | None:
        (tmp_path / "stat").write_text(f"7 (fio) {state} 1 " + "0 " * 40)
        (tmp_path / "wchan").write_text(place)
        return seen_at(str(tmp_path), kernel, states, wchan(str(tmp_path)))

    assert look("R", "submit_bio_wait") is None, "whether it was blocked is not known yet"
    assert look("D", "submit_bio_wait") == Look("submit_bio_wait", True)
    assert look("R", "submit_bio_wait") == Look("submit_bio_wait", True)
    assert look("R", "0") is None
    assert look("D", "0") == Look("", True)
    (tmp_path / "wchan").write_text("folio_wait_bit")
    (tmp_path / "stat").write_text("7 (fio) D 1 " + "0 " * 40)
    fell_asleep = seen_at(str(tmp_path), False, states, "")
    assert fell_asleep == Look("folio_wait_bit", True), "it is read again"
    assert seen_at(str(tmp_path), False, {}, "") == Look("", True), "not if it cannot be read"
    assert look("S", "io_wq_worker") == Look("io_wq_worker", False)
    (tmp_path / "stat").write_text("7 (fio) D 1 " + "0 " * 40)
    (tmp_path / "wchan").write_text("jbd2_log_wait_commit")
    woken = seen_at(str(tmp_path), False, states, "io_wq_worker")
    assert woken == Look("jbd2_log_wait_commit", True), "it was asleep, and is blocked elsewhere"
    assert look("S", "worker_thread", kernel=True) == Look("worker_thread", False, waits=False)
    assert look("T", "do_signal_stop") == Look("do_signal_stop", False, waits=False)
    (tmp_path / "stat").unlink()
    assert seen_at(str(tmp_path), False, states, "") is None


def test_looks_without_a_function_are_spread_over_those_in_the_same_state() -> None:
    counts = WaitCounts()
    for place, blocked, count in (
        ("submit_bio_wait", True, 4), ("", True, 5), ("read_events", False, 6), ("", False, 3),
    ):  # fmt: skip
        for _ in range(count):
            counts.note([Look(place, blocked), Look(place, blocked)])
    counts.note([Look("worker_thread", False, waits=False)])
    assert counts.kinds() == {DISK: 4.0 + 9.0, UNKNOWN_WAIT: 5.0, "": 1.0}
