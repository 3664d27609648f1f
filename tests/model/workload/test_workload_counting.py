"""Captured requests are counted into streams, whatever batches they come in."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.capture.model import workload
from iopstui.features.capture.model.phases import join
from iopstui.features.capture.model.workload import (
    OTHER_PROCESSES,
    Stream,
    Workload,
    WorkloadCounter,
    binned,
)
from tests.helpers.packed_requests import pack_shape, pack_value

MS = 1_000_000
NAMES = {1: "db", 2: "db", 3: "log"}
# (milliseconds since the one before, process, kind, sectors, sequential, region, depth)
REQUEST = st.tuples(
    st.integers(0, 300), st.sampled_from([1, 2, 3]), st.integers(0, 2), st.integers(1, 100),
    st.booleans(), st.integers(0, 50), st.integers(1, 40),
)  # fmt: skip
Request = tuple[int, int, int, int, bool, int, int]


def fed(
    requests: list[Request], cuts: list[int], counter: WorkloadCounter | None = None
) -> Workload:
    found = counter or WorkloadCounter(lambda pid: NAMES.get(pid, f"p{pid}"))
    found.begin(0)
    now, rows = 0, []
    for after, pid, kind, sectors, follows, region, depth in requests:
        now += after * MS
        rows.append((
            now, pack_shape(pid, kind, sectors, workload.SEQUENTIAL * follows),
            pack_value(pid, kind, depth), pack_value(pid, kind, region), 9, depth,
        ))  # fmt: skip
    edges = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    for begin, end in pairwise(edges):
        columns = list(zip(*rows[begin:end], strict=True))
        found.add(*(list(column) for column in columns))
    return found.result("vda", now + 100 * MS)


@given(st.lists(REQUEST, min_size=1, max_size=60), st.lists(st.integers(1, 60), max_size=5))
def test_batches_make_no_difference(requests: list[Request], cuts: list[int]) -> None:
    assert fed(requests, cuts) == fed(requests, [])


@given(st.lists(REQUEST, min_size=1, max_size=40), st.lists(REQUEST, min_size=1, max_size=40))
def test_spans_joined_are_the_whole(one: list[Request], other: list[Request]) -> None:
    """All counts are the same; in the window at the cut only the arrivals differ."""
    counters = [WorkloadCounter(NAMES.__getitem__) for _ in range(3)]
    joined = join([fed(one, [], counters[0]), fed(other, [], counters[1])])
    whole = fed([*one, *other], [], counters[2])
    assert {kind: _counts(found) for kind, found in joined.totals.items()} == {
        kind: _counts(found) for kind, found in whole.totals.items()
    }
    assert {(one.process, one.kind): _counts(one) for one in joined.streams} == {
        (one.process, one.kind): _counts(one) for one in whole.streams
    }
    assert joined.depth is not None and whole.depth is not None
    assert abs(joined.depth - whole.depth) < 1e-9 and joined.cgroups == whole.cgroups
    assert [one.ios for one in joined.streams] == sorted(
        (one.ios for one in joined.streams), reverse=True
    )


def _counts(stream: Stream) -> tuple[object, ...]:
    return (stream.ios, stream.bytes, stream.sequential, stream.sizes, stream.depths,
            stream.regions)  # fmt: skip


@given(st.lists(REQUEST, min_size=1, max_size=60))
def test_everything_is_counted_once(requests: list[Request]) -> None:
    found = fed(requests, [])
    for kind in range(3):
        name = workload.KINDS[kind]
        ours = [one for one in requests if one[2] == kind]
        total = found.total(name)
        assert total.ios == len(ours) == sum(total.sizes.values())
        assert total.bytes == 512 * sum(one[3] for one in ours)
        assert total.sequential == sum(one[4] for one in ours)
        assert total.sizes == Counter(512 * one[3] for one in ours)
        assert len(total.regions) == len({one[5] for one in ours})
        of = [one for one in found.streams if one.kind == name]
        assert sum(one.ios for one in of) == total.ios
    assert found.ios == len(requests) and found.cgroups == {9: len(requests)}
    assert found.depth == sum(one[6] for one in requests) / len(requests)


@given(st.lists(REQUEST, min_size=1, max_size=60))
def test_arrivals_are_those_of_their_windows(requests: list[Request]) -> None:
    found = fed(requests, [7, 20])
    now, times = 0, []
    for one in requests:
        now += one[0]
        if one[2] == workload.WRITE:
            times.append(now)
    arrivals = found.total("write").arrivals
    by_window = Counter(time // 100 for time in times)
    active = sorted({time // 10 for time in times})
    assert arrivals.squares == sum(count**2 for count in by_window.values())
    assert arrivals.busiest == max(by_window.values(), default=0)
    assert arrivals.active == len(active)
    assert arrivals.bursts == sum(one - 1 not in active for one in active)


def test_a_flush_has_no_place_and_no_depth() -> None:
    counter = WorkloadCounter(lambda pid: "db")
    counter.begin(0)
    counter.add([5], [pack_shape(1, workload.FLUSH, 0)], [0], [0], [3], [0])
    found = counter.result("vda", 10**9)
    assert found.total("flush").ios == 1 and found.ios == 0 and found.depth is None
    assert [one.kind for one in found.streams] == ["flush"]
    assert found.total("flush").regions == found.total("flush").depths == {}


def test_memory_is_bounded_whatever_comes() -> None:
    counter = WorkloadCounter(lambda pid: f"p{pid}")
    counter.begin(0)
    count = 20_000
    for step in range(2):
        times = [MS * n for n in range(count)]
        pids = [n % 200 for n in range(count)]
        counter.add(
            times, [pack_shape(pid, n % 3, n * 7 + step) for n, pid in enumerate(pids)],
            [pack_value(pid, n % 3, n) for n, pid in enumerate(pids)],
            [pack_value(pid, n % 3, n * 391 + step) for n, pid in enumerate(pids)],
            [n for n in range(count)], [1] * count,
        )  # fmt: skip
    assert counter.cells < 150 * (workload.MAX_REGIONS + 600)
    found = counter.result("vda", count * MS)
    assert found.ios == 2 * count and OTHER_PROCESSES in found.processes
    assert len(found.processes) == workload.MAX_PROCESSES + 1
    assert len(found.cgroups) == workload.MAX_CGROUPS
    for one in found.streams:
        assert len(one.regions) <= workload.MAX_REGIONS and sum(one.sizes.values()) == one.ios
        # an octave has eight bins
        assert len(one.sizes) <= workload.MAX_SIZES + 8 * 28


@given(st.integers(1, 1 << 40))
def test_a_bin_is_an_eighth_of_an_octave(value: int) -> None:
    assert binned(value) <= value < binned(value) * 9 / 8 + 1
