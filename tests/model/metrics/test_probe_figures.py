"""The probe's counters as figures of an interval."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import fio, seconds
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model import histogram
from iopstui.model.block.topology import Topology
from iopstui.model.histogram import bucket_key
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.probe import (
    LATENCY,
    MATRIX,
    PROCESSES,
    WAY,
    LatencyStats,
    ProbeInterval,
    ProbeIntervals,
)
from iopstui.model.metrics.request_path import completion_matrix, crossing_share, request_path
from iopstui.model.samples import ProbeSample, TaskCounts

S = 1_000_000_000
EMPTY = ProbeSample(0, 0, (LATENCY,), 1, {}, {}, {}, {}, (), {})


def sample(t: float, reads: dict[int, int], **changes: object) -> ProbeSample:
    at = int(t * S)
    made = replace(EMPTY, time_ns=at, arrived_ns=at, device={"vda": {"read": reads, "write": {}}})
    return replace(made, **changes)  # type: ignore[arg-type]


def interval(first: ProbeSample, second: ProbeSample, late_s: float = 0.0) -> ProbeInterval:
    fold = ProbeIntervals()
    assert fold.feed(first, first.arrived_ns) is None
    found = fold.feed(second, second.arrived_ns + int(late_s * S))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "second",
    [
        sample(2, {100: 9}, begun=2),
        sample(2, {100: 9}, parts=(LATENCY, WAY)),
        sample(2, {100: 1}),
        sample(1, {100: 9}),
    ],
)
def test_what_does_not_go_on_from_the_reading_before_is_a_gap(second: ProbeSample) -> None:
    fold = ProbeIntervals()
    fold.feed(sample(1, {100: 5}), S)
    assert fold.feed(second, 2 * S) is None
    assert fold.feed(None, 3 * S) is None


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=80))
def test_the_mean_of_the_bins_is_that_of_the_latencies(latencies: list[int]) -> None:
    bins: dict[int, int] = {}
    for one in latencies:
        key = bucket_key(one)
        bins[key] = bins.get(key, 0) + 1
    found = LatencyStats.from_bins(bins)
    mean = sum(latencies) / len(latencies)
    # half a bucket is up to 1/128 of its lowest latency, in floating point a little more
    assert found.mean_ns == pytest.approx(mean, rel=1 / 127, abs=1)
    assert (
        found.ios == len(latencies) and found.percentiles["p50"] == histogram.percentiles(bins)[50]
    )


def test_processes_by_what_they_did_in_this_second() -> None:
    def task(pid: int, ios: int, sectors: int) -> TaskCounts:
        return TaskCounts(pid, "dd", "/user", "vda", sectors, {"read": {1000: ios}})

    parts = (LATENCY, PROCESSES)
    first = sample(1, {}, parts=parts, tasks=(task(7, 10, 80), task(8, 5, 40)))
    second = sample(2, {}, parts=parts,
                    tasks=(task(7, 14, 112), task(8, 5, 40), task(9, 30, 240)))  # fmt: skip
    found = interval(first, second).tasks
    assert [(t.pid, t.iops, t.read_iops, t.bw) for t in found] == [
        (9, 30.0, 30.0, 240 * 512.0), (7, 4.0, 4.0, 32 * 512.0),
    ]  # fmt: skip
    assert found[0].p99_ns == 1000


def test_a_cgroup_s_latencies_are_those_of_all_its_requests() -> None:
    def task(pid: int, group: str, disk: str, bins: dict[int, int]) -> TaskCounts:
        return TaskCounts(pid, "kworker", group, disk, 8, {"read": bins, "write": {10: 1}})

    rows = (task(7, "/a", "vda", {1000: 98}), task(8, "/a", "vda", {9000: 100}),
            task(7, "/b", "vda", {5: 3}), task(7, "/a", "sda", {7: 1}))  # fmt: skip
    found = interval(sample(1, {}), sample(3, {}, tasks=rows))
    assert [(g.group, g.disk, g.iops, g.p50_ns, g.p99_ns) for g in found.groups] == [
        ("/a", "vda", 100.0, 1000, 9000), ("/b", "vda", 2.0, 5, 10), ("/a", "sda", 1.0, 7, 10),
    ]  # fmt: skip
    # a task that works for several cgroups is counted in none
    assert [(t.pid, t.group, t.disk, t.iops) for t in found.tasks] == [
        (7, "", "vda", 51.5), (8, "/a", "vda", 50.5), (7, "/a", "sda", 1.0),
    ]  # fmt: skip


# -- the way of a request


def frame(iops: float, lat_ns: float, waiting: int, device: int, ios: int) -> Frame:
    first = sample(1, {}, parts=(LATENCY, WAY))
    second = sample(
        2, {device: ios}, parts=(LATENCY, WAY), waiting={"vda": {"read": {waiting: ios}}}
    )
    made = seconds(1, interval=fio(iops, lat_ns=lat_ns))[0]
    return replace(made, opened=("vda",), probe=interval(first, second))


def test_the_parts_add_up_to_fio_s_latency() -> None:
    way = request_path(frame(100, 1000, 127, 500 * 2 - 128, 100))
    assert way is not None and way.rest_ns is not None and way.lat_ns is not None
    assert way.waiting_ns + way.device_ns + way.rest_ns == way.lat_ns and not way.missing_reason


@pytest.mark.parametrize(
    ("ios", "lat", "words"), [(200, 10_000, "more requests"), (50, 10_000, "fewer requests"),
                              (100, 200, "differ too much")]
)  # fmt: skip
def test_no_rest_is_made_of_other_i_os(ios: int, lat: float, words: str) -> None:
    way = request_path(frame(100, lat, 100, 500, ios))
    assert way is not None and way.rest_ns is None and words in way.missing_reason


# -- who completes for whom

TWO_NODES = Topology(
    tuple(range(8)), nodes={cpu: cpu // 4 for cpu in range(8)},
    caches={cpu: cpu // 2 * 2 for cpu in range(8)},
)  # fmt: skip


def test_few_cpus_stand_for_themselves() -> None:
    found = completion_matrix({0: {1: 30.0}, 1: {1: 10.0}}, TWO_NODES)
    assert (found.group_kind, found.names) == ("CPU", ("0", "1"))
    assert found.rates == ((0.0, 30.0), (0.0, 10.0)) and found.diagonal == 0.25


def test_many_cpus_are_summed_by_what_they_share() -> None:
    matrix = {cpu: {(cpu + 4) % 8: 10.0, cpu: 10.0} for cpu in range(8)}
    by_cache = completion_matrix(matrix, TWO_NODES, max_groups=4)
    assert by_cache.group_kind == "CPUs of a cache" and by_cache.names[0] == "0-1"
    by_node = completion_matrix(matrix, TWO_NODES, max_groups=2)
    assert by_node.group_kind == "NUMA node" and by_node.rates == ((40.0, 40.0), (40.0, 40.0))
    assert by_cache.total == by_node.total == 160
    assert completion_matrix({}, TWO_NODES).diagonal is None


def test_what_crosses_a_node_is_a_share() -> None:
    nodes = {0: 0, 1: 0, 2: 1}
    assert crossing_share({0: {1: 10.0, 2: 30.0}, 9: {0: 99.0}}, nodes) == 0.75
    assert crossing_share({}, nodes) is None


def test_the_matrix_is_per_second_and_grows_only() -> None:
    first = sample(1, {}, parts=(LATENCY, MATRIX), matrix={0: {1: 4}})
    second = sample(3, {}, parts=(LATENCY, MATRIX), matrix={0: {1: 10, 0: 2}, 1: {1: 0}})
    assert interval(first, second).matrix == {0: {1: 3.0, 0: 1.0}}
