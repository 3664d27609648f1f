"""Latencies by process and cgroup: counted by programs that are executed here instruction by
instruction, and read as the probe reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from bpf_machine import Machine
from hypothesis import given, settings
from hypothesis import strategies as st
from test_probe_counting import KERNEL, NVME, READ, VDA, WRITE
from test_probe_slowest import CPUS, GROUPS, ORIGIN, Keeping

from iopstui.linux.probe import counting, tasks
from iopstui.linux.probe.counting import COMPLETE, Details
from iopstui.linux.probe.regions import Region
from iopstui.linux.probe.slowest import SlowestMap
from iopstui.linux.probe.tasks import TaskMap, TaskReader
from iopstui.model.samples import TaskCounts

TASKS_AT = 0x4_0000_0000


class Counting(Keeping):
    """Two disks, with a program that also counts by process."""

    def __init__(self, *regions: Region, rows: int = 256) -> None:
        super().__init__(*regions)
        self.task_map = TaskMap(11, rows, 2)
        self.table = bytearray(self.task_map.size)
        self.memory[TASKS_AT] = self.table
        before = self.machine
        self.machine = Machine(
            self.memory, {**before._maps, 11: TASKS_AT}, before._helpers, before._writers
        )
        self.code[COMPLETE] = counting.completion_program(
            replace(KERNEL, origin=ORIGIN), self.slots, self.bins, self.regions,
            Details(SlowestMap(10, CPUS), tasks=self.task_map),
        )  # fmt: skip
        self.tasks = TaskReader(
            self.table, self.task_map, self.regions, "/group-{}".format, "process-{}".format
        )

    def does(self, pid: int, latency: int, group: int = 77, **more: int) -> None:
        """One request of this process, from its issue to its end."""
        self._put(GROUPS + 64 * 4 + ORIGIN.group[4], group)
        self.runs(pid, pid, b"p%d" % pid)
        self.lasts(self.begun(**more), latency)


def ios(rows: tuple[TaskCounts, ...]) -> dict[tuple[int, str, str, str], int]:
    return {
        (row.pid, row.group, row.disk, kind): sum(bins.values())
        for row in rows for kind, bins in row.bins.items()
    }  # fmt: skip


requests = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from((0, 77, 78)), st.sampled_from((VDA, NVME)),
              st.sampled_from((READ, WRITE)), st.integers(0, CPUS - 1), st.integers(0, 1 << 37)),
    min_size=1, max_size=40,
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(requests, requests)
def test_each_request_counts_for_its_process_and_cgroup(
    first: list[tuple[int, ...]], second: list[tuple[int, ...]]
) -> None:
    disks = Counting()
    kinds = {READ: "read", WRITE: "write"}
    expected: Counter[tuple[int, str, str, str]] = Counter()
    before: dict[tuple[int, str, str, str], int] = {}
    for made in (first, second):
        for pid, group, disk, operation, disks.cpu, latency in made:
            disks.does(pid, latency, group, disk=int(disk == NVME), operation=operation)
            key = (pid, f"/group-{group}" if group else "", "nvme0n1" if disk == NVME else "vda",
                   kinds[operation])  # fmt: skip
            expected[key] += 1
        found = disks.tasks.read()
        now = ios(found)
        grown = {key for key in expected if expected[key] > before.get(key, 0)}
        active = {key[:3] for key in grown}
        # processes that paused start again from zero
        for key in list(expected):
            if key[:3] not in active:
                del expected[key]
        assert now == dict(expected)
        assert sum(row.sectors for row in found) == 8 * sum(expected.values())
        before = dict(expected)
    assert disks.tasks.left_out == 0


@given(st.integers(16, 1 << 36))
def test_a_latency_is_counted_within_6_percent(latency: int) -> None:
    disks = Counting()
    disks.does(5, latency)
    ((row,),) = (disks.tasks.read(),)
    ((middle, count),) = row.bins["read"].items()
    assert count == 1 and abs(middle - latency) <= max(4, 0.0635 * latency)


def test_a_process_has_its_first_thread_s_name() -> None:
    disks = Counting()
    disks.does(41, 100)
    # the second thread of the process has a name of its own
    disks.runs(43, 44, b"worker")
    disks.lasts(disks.begun(), 100)
    assert [(row.pid, row.comm) for row in disks.tasks.read()] == [(41, "p41"), (43, "process-43")]


def test_rows_of_processes_that_pause_are_given_to_others() -> None:
    disks = Counting(rows=8)
    for pid in range(100):
        disks.does(pid, 100)
    found = disks.tasks.read()
    assert len(found) <= 8 and disks.tasks.left_out == 100 - len(found) > 0
    lost = disks.tasks.left_out
    assert disks.tasks.read() == ()
    disks.does(1000, 100)
    assert [row.pid for row in disks.tasks.read()] == [1000] and disks.tasks.left_out == lost


def test_the_busiest_are_told_and_the_others_counted() -> None:
    disks = Counting(rows=1 << 12)
    for pid in range(tasks.MAX_TASKS + 3):
        for _ in range(1 if pid < 3 else 2):
            disks.does(pid, 100)
    found = disks.tasks.read()
    assert {row.pid for row in found} == set(range(3, tasks.MAX_TASKS + 3))
    assert disks.tasks.left_out == 3
    disks.does(0, 100)
    assert ios(disks.tasks.read()) == {(0, "/group-77", "vda", "read"): 1}
