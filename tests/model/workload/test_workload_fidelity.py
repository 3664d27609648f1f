"""Distances between two workloads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.capture.model.phases import distances, kolmogorov
from iopstui.features.capture.model.workload import CLOSED, Arrivals, Stream, Workload

SIZES = st.dictionaries(st.integers(1, 50), st.integers(1, 100), min_size=1, max_size=20)
ONE = Stream("", "read", 10.0, 1000, 4_096_000, 100, sizes={4096: 1000},
             depths={4: 1000}, regions=dict.fromkeys(range(10), 1),
             arrivals=Arrivals(100, 20_000))  # fmt: skip


@given(SIZES, SIZES)
def test_kolmogorov_is_the_largest_difference(one: dict[int, int], other: dict[int, int]) -> None:
    def share(sizes: dict[int, int], upto: int) -> float:
        return sum(n for size, n in sizes.items() if size <= upto) / sum(sizes.values())

    by_hand = max(abs(share(one, upto) - share(other, upto)) for upto in range(52))
    assert kolmogorov(one, other) == pytest.approx(by_hand, abs=1e-9)
    assert kolmogorov(one, one) == 0 and kolmogorov(one, {}) is None


def workload(*streams: Stream) -> Workload:
    return Workload("vda", 10.0, (), {one.kind: one for one in streams}, 4.0)


def test_what_differs_is_named() -> None:
    other = replace(ONE, ios=700, sequential=300, sizes={4096: 630, 65536: 70},
                    depths={8: 700}, regions=dict.fromkeys(range(12), 1),
                    arrivals=Arrivals(100, 49 * 700))  # fmt: skip
    writes = replace(ONE, kind="write", ios=300)
    found = {one.name: one for one in distances(workload(ONE), workload(other, writes))}
    assert found["reads"].distance == pytest.approx(0.3)
    assert found["read sizes"].distance == pytest.approx(0.1)
    assert found["reads/s"].distance == pytest.approx(1000 / 700)
    assert found["read working set"].distance == pytest.approx(1.2)
    assert found["read depth"].distance == 2 and found["read depth"].ratio
    assert [one.is_close for one in found.values()].count(True) == 0
    # without writes there is no distribution of their sizes
    assert found["write sizes"].is_close is None and found["write sizes"].captured == "–"


def test_what_is_not_known_is_neither_close_nor_apart() -> None:
    short = replace(ONE, arrivals=Arrivals(5))
    other = replace(ONE, depths={})
    found = {one.name: one for one in distances(workload(short), workload(other))}
    assert found["read burstiness"].is_close is None and found["read depth"].is_close is None
    assert (found["read burstiness"].captured, found["read burstiness"].replayed) == ("–", "10.0")


def test_the_rate_of_a_closed_loop_is_its_result() -> None:
    faster = replace(ONE, ios=3 * ONE.ios)
    found = {one.name: one for one in distances(workload(ONE), workload(faster), CLOSED)}
    rate = f"{ONE.kind}s/s"
    assert found[rate].distance is not None and found[rate].is_close is None
    assert found[f"{ONE.kind} sizes"].is_close
    assert not distances(workload(ONE), workload(faster))[1].is_close
