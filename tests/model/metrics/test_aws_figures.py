"""The counters of AWS volumes as figures of an interval: increases, gaps, and no invented
number."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_frames import kernel

from iopstui.model.metrics.aws import GROWING, LIMITS, bound_ms, volume_growths
from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.samples import RawSample
from iopstui.output.jsonl import frame_object

COUNTS = st.integers(0, (1 << 64) - 1)
PAGES = st.fixed_dictionaries({name: COUNTS for name in (*GROWING, "queue")})


def counters(at_ns: int, kind: str = "ebs", disk: str = "nvme1n1", **page: int) -> dict[str, int]:
    values = {**dict.fromkeys((*GROWING, "queue"), 0), **page, "at_ns": at_ns}
    return {f"{name} {kind} {disk}": value for name, value in values.items()}


@given(PAGES, PAGES, st.integers(1, 10**10))
def test_figures_are_growths_and_a_step_back_is_a_gap(
    then: dict[str, int], now: dict[str, int], took_ns: int
) -> None:
    made = volume_growths(counters(took_ns, **now), counters(0, **then))
    if any(now[name] < then[name] for name in GROWING):
        assert made is None
        return
    assert made is not None
    volume = made["nvme1n1"]
    for name in LIMITS:
        ms_of_a_second = (now[name] - then[name]) * 1e6 / took_ns
        figure = getattr(volume, f"{name}_exceeded")
        assert figure == pytest.approx(min(ms_of_a_second, 1000.0), rel=1e-9)
    reads = now["reads"] - then["reads"]
    ms = (now["read_us"] - then["read_us"]) / 1e3
    assert volume.r_await == (pytest.approx(ms / reads) if reads else None)
    assert volume.queue == now["queue"]


@given(PAGES, st.dictionaries(st.sampled_from(GROWING), st.integers(0, 1 << 40)))
def test_a_page_that_only_grows_is_no_gap(then: dict[str, int], more: dict[str, int]) -> None:
    now = {**then, **{name: then[name] + growth for name, growth in more.items()}}
    made = volume_growths(counters(10**9, **now), counters(0, **then))
    assert made is not None
    assert made["nvme1n1"].reads == more.get("reads", 0)
    assert made["nvme1n1"].seconds == 1.0


def test_another_volume_under_the_same_name_has_no_growth() -> None:
    assert volume_growths(counters(9, "ebs"), counters(1, "instance-store")) is None
    assert volume_growths(counters(9), None) is None and volume_growths(None, counters(9)) is None
    both = counters(9) | counters(9, disk="nvme2n1")
    assert set(volume_growths(both, counters(1)) or ()) == {"nvme1n1"}
    assert volume_growths(counters(9), counters(9)) is None, "no time passed"


def test_a_frame_has_them_by_disk() -> None:
    builder = FrameBuilder()
    for n in (0, 1):
        page = counters(n * 10**9, instance_bytes=n * 312_000, reads=8 * n, read_us=4000 * n,
                        queue=5)  # fmt: skip
        sample = replace(kernel(n, n * 10**9, 1000.0 * n), more={"aws": page})
        frame = builder.feed(
            RawSample(n, n * 10**9, 1000.0 * n, sample, fio=None, final=False, step=0)
        )
    assert frame_object(frame)["kernel"]["aws"] == {"nvme1n1": {
        "kind": "ebs", "volume_iops_exceeded": 0.0, "volume_bytes_exceeded": 0.0,
        "instance_iops_exceeded": 0.0, "instance_bytes_exceeded": 312.0, "device_queue": 5,
        "r_await": 0.5, "w_await": None, "r_p50": None, "w_p50": None,
        "r_p99": None, "w_p99": None,
    }}  # fmt: skip


BINS = st.dictionaries(st.sampled_from([1, 2, 4, 8, 1000]), st.integers(0, (1 << 32) - 1))


@given(BINS, BINS)
def test_bins_grow_or_are_a_gap(then: dict[int, int], now: dict[int, int]) -> None:
    pages = [counters(at_ns, read_bins=5, **{f"read_bins:{upper}": n for upper, n in bins.items()})
             for at_ns, bins in ((0, then), (10**9, now))]  # fmt: skip
    made = (volume_growths(pages[1], pages[0]) or {})["nvme1n1"]
    growth = {upper: now.get(upper, 0) - then.get(upper, 0) for upper in {**then, **now}}
    assert made.read_bins == (None if min(growth.values(), default=0) < 0 else growth)
    assert made.write_bins is None, "no such histogram was read"


@given(st.dictionaries(st.integers(1, 10**6), st.integers(0, 50), min_size=1))
def test_the_bound_is_that_of_99_of_100_single_requests(bins: dict[int, int]) -> None:
    single = sorted(upper for upper, count in bins.items() for _ in range(count))
    rank = -(-99 * len(single) // 100)
    assert bound_ms(bins, 99) == (single[rank - 1] / 1e3 if single else None)


def test_another_number_of_bins_is_another_histogram() -> None:
    now, then = counters(9, read_bins=5, **{"read_bins:4": 9}), counters(1, read_bins=4)
    assert (volume_growths(now, then) or {})["nvme1n1"].read_bins is None
