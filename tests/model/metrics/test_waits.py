"""Where I/Os wait: the parts add up, and each layer gets what it holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from disks import disk_of
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.block.target import DeviceLinks
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.waits import (
    DirectionLoad,
    JobLoad,
    MeanWaits,
    RequestTimes,
    Stack,
    Waits,
    place_waits,
    waits_line,
)


def disk(
    r_s: float = 0.0,
    r_await: float | None = None,
    w_s: float = 0.0,
    w_await: float | None = None,
    *,
    size: float = 4096,
    in_flight: int = 0,
) -> DiskRates:
    """Rates per second and awaits in ms of a device whose requests have ``size`` bytes."""
    held = (r_s * (r_await or 0.0) + w_s * (w_await or 0.0)) / 1e3
    return disk_of(
        seconds=1.0, reads=int(r_s), writes=int(w_s), discards=0, r_s=r_s, w_s=w_s, d_s=0.0,
        f_s=0.0, r_bytes_s=r_s * size, w_bytes_s=w_s * size, d_bytes_s=0.0, rrqm_s=0.0, wrqm_s=0.0,
        drqm_s=0.0, r_await=r_await, w_await=w_await, d_await=None, f_await=None, rareq_size=size,
        wareq_size=size, dareq_size=None, aqu_sz=held, util=100.0, in_flight=in_flight,
    )  # fmt: skip


def job(
    ios: float, iops: float, cpu_wait: float | None = 0.0, size: float = 4096, **load: Any
) -> JobLoad:
    """A job that reads, with O_DIRECT if nothing else is said."""
    direction = DirectionLoad("", iops, iops * size, ios=ios, **{"direct": True, **load})
    return JobLoad(ios, iops, cpu_wait, directions=(direction,))


def parts(found: Waits) -> list[float]:
    """All parts, which together are ``found.ios``."""
    return [
        found.cpu or 0.0, found.above or 0.0, *found.layers.values(), found.unknown, found.cache,
        found.unsent,
    ]  # fmt: skip


ALONE = Stack(("vda",), {"vda": ()})
LOOP = Stack(("loop2",), {"loop2": ("loop1",), "loop1": ()})


def test_a_cgroup_limit_holds_them_above_the_device() -> None:
    found = place_waits(ALONE, {"vda": disk(1000, 1.0)}, job(32.0, 1000))
    assert found is not None and found.layers == {"vda": pytest.approx(1.0)}
    assert found.above == pytest.approx(31.0) and found.cpu == 0.0 and found.unknown == 0.0


def test_a_limit_between_two_layers_is_in_the_upper_one() -> None:
    """A loop device whose lower device may do 400 reads a second."""
    disks = {"loop2": disk(400, 19.75), "loop1": disk(400, 0.5)}
    found = place_waits(LOOP, disks, job(8.0, 400))
    assert found is not None
    assert found.layers == {"loop2": pytest.approx(7.7), "loop1": pytest.approx(0.2)}
    assert found.above == pytest.approx(0.1)


def test_a_job_that_gets_no_cpu_waits_for_that() -> None:
    found = place_waits(ALONE, {"vda": disk(1000, 0.5)}, job(4.0, 1000, cpu_wait=0.75))
    assert found is not None and found.cpu == pytest.approx(3.0)
    assert found.above == pytest.approx(0.5)


def test_no_more_waits_for_a_cpu_than_is_outside_the_device() -> None:
    found = place_waits(ALONE, {"vda": disk(1000, 3.5)}, job(4.0, 1000, cpu_wait=0.75))
    assert found is not None and found.cpu == pytest.approx(0.5) and found.above == 0.0


def test_each_worker_without_a_cpu_holds_up_one_io() -> None:
    load = replace(job(16.0, 1000, 0.125), workers_wait=5.0)
    found = place_waits(ALONE, {"vda": disk(1000, 4.0)}, load)
    assert found is not None and found.cpu == pytest.approx(7.0)
    assert found.above == pytest.approx(5.0)


def test_where_the_kernel_does_not_account_waiting_for_a_cpu_it_is_not_known() -> None:
    found = place_waits(ALONE, {"vda": disk(1000, 1.0)}, job(4.0, 1000, cpu_wait=None))
    assert found is not None and found.cpu is None and found.above == pytest.approx(3.0)


def test_merged_requests_hold_all_their_ios() -> None:
    """16 I/Os in each request: 1,000 requests a second of 2 ms hold 2 requests, 32 I/Os."""
    found = place_waits(ALONE, {"vda": disk(1000, 2.0, size=65536)}, job(32.0, 16000))
    assert found is not None and found.layers["vda"] == pytest.approx(32.0)


def test_split_ios_count_once() -> None:
    """Each I/O is four requests at once, all of which take 2 ms."""
    disks = {"vda": disk(4000, 2.0, size=262144)}
    found = place_waits(ALONE, disks, job(2.0, 1000, size=4 * 262144))
    assert found is not None and found.layers["vda"] == pytest.approx(2.0)


def test_a_mirror_writes_two_at_once() -> None:
    stack = Stack(("md0",), {"md0": ("sda", "sdb"), "sda": (), "sdb": ()})
    one = disk(w_s=1000, w_await=3.0)
    found = place_waits(
        stack, {"md0": disk(w_s=1000, w_await=4.0), "sda": one, "sdb": one}, job(4.0, 1000)
    )
    assert found is not None
    assert found.layers == {
        "md0": pytest.approx(1.0), "sda": pytest.approx(1.5), "sdb": pytest.approx(1.5)
    }  # fmt: skip


def test_a_mirrored_write_takes_as_long_as_the_slowest_mirror() -> None:
    stack = Stack(("md0",), {"md0": ("sda", "sdb"), "sda": (), "sdb": ()})
    disks = {"md0": disk(w_s=1000, w_await=5.0), "sda": disk(w_s=1000, w_await=2.0),
             "sdb": disk(w_s=1000, w_await=5.0)}  # fmt: skip
    found = place_waits(stack, disks, job(5.0, 1000))
    assert found is not None and found.layers["md0"] == pytest.approx(0.0)
    assert found.layers["sdb"] == pytest.approx(2.5 * found.layers["sda"])


def test_a_read_is_in_one_mirror_alone() -> None:
    stack = Stack(("md0",), {"md0": ("sda", "sdb"), "sda": (), "sdb": ()})
    disks = {"md0": disk(1000, 4.0), "sda": disk(500, 2.0), "sdb": disk(500, 4.0)}
    found = place_waits(stack, disks, job(4.0, 1000))
    assert found is not None and found.layers["md0"] == pytest.approx(1.0)


def test_each_direction_takes_its_own_time_below() -> None:
    """Reads spend 1 of their 4 ms in the lower device, writes all of their 8."""
    disks = {"loop2": disk(1000, 4.0, 500, 8.0), "loop1": disk(1000, 1.0, 500, 8.0)}
    found = place_waits(LOOP, disks, job(8.0, 1500))
    assert found is not None and found.layers == {
        "loop2": pytest.approx(3.0), "loop1": pytest.approx(5.0)
    }  # fmt: skip


def test_buffered_writes_are_in_the_page_cache_not_in_the_device_that_writes_them_back() -> None:
    parts = (
        DirectionLoad("r", 500, 500 * 4096.0, False, True, 1.0),
        DirectionLoad("w", 4000, 4000 * 4096.0, True, ios=5.0, sent_s=4000 * 4096.0),
    )
    load = JobLoad(6.0, 4500, 0.0, directions=parts)
    found = place_waits(ALONE, {"vda": disk(500, 2.0, 4000, 50.0)}, load)
    assert found is not None and found.layers["vda"] == pytest.approx(1.0)
    assert (found.cache, found.above) == pytest.approx((5.0, 0.0))


@pytest.mark.parametrize("direct", [True, False])
def test_direct_reads_that_no_counter_saw_are_in_an_unknown_place(direct: bool) -> None:
    """iostats=0; buffered reads may come from the page cache."""
    parts = (DirectionLoad("r", 1000, 4096e3, direct=direct),)
    found = place_waits(ALONE, {"vda": disk()}, JobLoad(4.0, 1000, 0.25, directions=parts))
    assert found is not None and found.cpu == pytest.approx(1.0)
    expected = (None, 3.0, 0.0) if direct else (0.0, 0.0, 3.0)
    assert (found.above, found.unknown, found.cache) == expected


def test_a_neighbour_that_only_writes_does_not_slow_our_reads() -> None:
    parts = (DirectionLoad("r", 1000, 1000 * 4096.0, direct=True),)
    found = place_waits(
        ALONE,
        {"vda": disk(1000, 1.0, 100, 500.0)},
        JobLoad(4.0, 1000, 0.0, directions=parts),
    )
    assert found is not None and found.layers["vda"] == pytest.approx(1.0)


@pytest.mark.parametrize(("iops", "aligned"), [(950, True), (700, False), (1400, False)])
def test_a_difference_of_the_intervals_is_no_neighbour(iops: float, aligned: bool) -> None:
    """fio's figures are of other seconds than the kernel's, so only the kernel's tell what the
    device holds."""
    load = replace(job(8.0, iops), aligned=aligned)
    found = place_waits(ALONE, {"vda": disk(1000, 5.0)}, load)
    assert found is not None and found.layers["vda"] == pytest.approx(5.0)


def test_a_parity_array_reads_before_it_writes() -> None:
    """Read-modify-write: two reads of 2 ms, then two writes of 3 ms for each write."""
    links = [DeviceLinks("md0", ("a", "b", "c"), "raid5")]
    links += [DeviceLinks(name) for name in "abc"]
    stack = Stack.from_tops(("md0",), links)
    each = disk(2000 / 3, 2.0, 2000 / 3, 3.0)
    disks = {"md0": disk(w_s=1000, w_await=6.0), "a": each, "b": each, "c": each}
    found = place_waits(stack, disks, job(6.0, 1000))
    assert found is not None and found.layers["md0"] == pytest.approx(1.0)
    assert stack.lowest == ("a", "b", "c")


@pytest.mark.parametrize(
    ("links", "lower"),
    [
        ({"a": ("a",)}, {"a": ()}),
        ({"a": ("b",), "b": ("c", "a"), "c": ("b",)}, {"a": ("b",), "b": ("c",), "c": ()}),
        ({"a": ("b", "c", "b"), "b": ("c",)}, {"a": ("b", "c"), "b": ("c",), "c": ()}),
    ],
)
def test_circles_are_cut(links: dict[str, tuple[str, ...]], lower: object) -> None:
    # from damaged recordings
    stack = Stack.from_tops(("a",), [DeviceLinks(name, below) for name, below in links.items()])
    assert stack.lower == lower and [*stack.lower] == sorted(stack.lower)
    disks = dict.fromkeys("abc", disk(1000, 4.0))
    found = place_waits(stack, disks, job(4.0, 1000))
    assert found is not None and sum(parts(found)) == pytest.approx(4.0)


def test_many_ways_down_to_a_device_are_one_step_each() -> None:
    names = [f"d{number}" for number in range(2000)]
    links = [DeviceLinks(name, tuple(names[at + 1 : at + 3])) for at, name in enumerate(names)]
    stack = Stack.from_tops(("d0",), links)
    found = place_waits(stack, dict.fromkeys(names, disk(1000, 4.0)), job(4.0, 1000))
    assert found is not None and found.in_devices == pytest.approx(4.0)


def test_a_page_cache_between_two_layers_lets_a_share_pass() -> None:
    """Of a loop device's bytes a tenth is read from the disk."""
    disks = {"loop2": disk(10000, 0.4), "loop1": disk(1000, 4.0)}
    found = place_waits(LOOP, disks, job(4.0, 10000))
    assert found is not None and found.layers["loop1"] == pytest.approx(4.0)


NEIGHBOUR = {"vda": disk(4000, 2.0)}
"""A device that holds 8 requests while a job runs, not all of them the job's."""


def test_reads_that_the_page_cache_answers_are_not_in_a_neighbour_s_device() -> None:
    found = place_waits(ALONE, NEIGHBOUR, job(1.0, 100_000, direct=False, sent_s=0.0))
    assert found is not None and found.layers == {"vda": 0.0} and found.cache == 1.0


def test_an_engine_that_sends_nothing_is_in_no_device() -> None:
    for sent_s in (0.0, None):
        load = replace(job(1.0, 100_000, sent_s=sent_s, direct=False), unsent=1.0)
        found = place_waits(ALONE, NEIGHBOUR, load)
        assert found is not None and found.layers == {"vda": 0.0} and found.unsent == 1.0
        assert waits_line(found).endswith("not sent to a disk 1.0, vda 0.0")
    found = place_waits(Stack(), {}, replace(job(1.0, 1000), unsent=1.0))
    assert found is not None and (found.unsent, found.unknown) == (1.0, 0.0)


def test_direct_ios_that_were_not_sent_are_in_an_unknown_place() -> None:
    found = place_waits(ALONE, NEIGHBOUR, job(3.0, 4000, sent_s=0.0))
    assert found is not None and found.layers == {"vda": 0.0} and found.unknown == 3.0


@pytest.mark.parametrize(("iops", "unknown"), [(4000, 0.0), (100_000, 8.0), (1000, 2.0)])
def test_old_recordings_place_buffered_reads_only_if_fio_and_the_device_agree(
    iops: float, unknown: float
) -> None:
    found = place_waits(ALONE, NEIGHBOUR, job(20.0, iops, direct=False))
    assert found is not None and found.unknown == pytest.approx(unknown)
    assert found.layers["vda"] == pytest.approx(0.0 if unknown else 8.0)


def test_half_of_the_reads_come_from_the_page_cache_while_a_neighbour_reads() -> None:
    """1,000 of the device's 4,000 requests a second are the job's, so a quarter of the 8 in
    flight."""
    found = place_waits(ALONE, NEIGHBOUR, job(3.0, 2000, direct=False, sent_s=1000 * 4096.0))
    assert found is not None and found.layers["vda"] == pytest.approx(2.0)
    assert found.above == pytest.approx(1.0)


def test_reading_ahead_makes_no_more_ios_of_a_request() -> None:
    """Each read of 4 KiB makes the kernel read 128 KiB."""
    found = place_waits(
        ALONE, {"vda": disk(100, 5.0, size=131072)},
        job(1.0, 100, direct=False, sent_s=100 * 131072.0),
    )  # fmt: skip
    assert found is not None and found.layers["vda"] == pytest.approx(0.5)


def test_a_neighbour_on_the_device_does_not_make_ours_more() -> None:
    """Of the 5,000 requests a second 4,000 are another program's."""
    found = place_waits(ALONE, {"vda": disk(5000, 2.0)}, job(2.5, 1000))
    assert found is not None and found.layers["vda"] == pytest.approx(2.0)
    assert found.above == pytest.approx(0.5)


def test_without_a_job_the_layers_divide_what_the_top_holds() -> None:
    disks = {"loop2": disk(400, 19.75), "loop1": disk(400, 0.5)}
    found = place_waits(LOOP, disks)
    assert found is not None and found.ios == pytest.approx(7.9)
    assert found.cpu is None and found.above is None
    assert found.layers["loop2"] == pytest.approx(7.7)


def test_the_probe_divides_what_the_lowest_device_holds() -> None:
    times = RequestTimes(queue_ns=3e6, device_ns=1e6)
    found = place_waits(ALONE, {"vda": disk(1000, 4.0)}, job(4.0, 1000), times)
    assert found is not None
    assert (found.queue, found.device) == (pytest.approx(3.0), pytest.approx(1.0))


def test_without_its_part_way_the_probe_takes_the_rest_from_diskstats() -> None:
    """A request takes 4 ms in vda, 1 ms of that after its issue."""
    found = place_waits(ALONE, {"vda": disk(1000, 4.0)}, job(8.0, 1000), RequestTimes(1e6))
    assert found is not None
    assert (found.queue, found.device) == (pytest.approx(3.0), pytest.approx(1.0))


def test_no_less_than_nothing_waits_in_the_queue() -> None:
    """The probe's bins are up to 0.8 % off, so its mean may be above diskstats'."""
    found = place_waits(ALONE, {"vda": disk(1000, 4.0)}, job(8.0, 1000), RequestTimes(4.03e6))
    assert found is not None
    assert (found.queue, found.device) == (pytest.approx(0.0), pytest.approx(4.0))


def test_a_stalled_device_shows_what_is_in_flight_now() -> None:
    disks = {"loop2": disk(in_flight=16), "loop1": disk(in_flight=14)}
    found = place_waits(LOOP, disks)
    assert found is not None and found.stalled and found.ios == 16
    assert found.layers == {"loop2": 2.0, "loop1": 14.0}


def test_a_file_system_without_a_disk_is_unknown() -> None:
    found = place_waits(Stack(), {}, job(4.0, 1000, cpu_wait=0.25))
    assert found is not None and found.cpu == pytest.approx(1.0)
    assert found.unknown == pytest.approx(3.0) and found.above is None


def test_nothing_is_known_without_job_and_device() -> None:
    assert place_waits(Stack(), {}) is None
    assert place_waits(ALONE, {}) is None


RATES = st.floats(0, 1e6)
AWAITS = st.floats(0.001, 1e4)


@given(
    st.lists(st.tuples(RATES, AWAITS, RATES, AWAITS), min_size=4, max_size=4),
    st.floats(0, 1e5),
    st.floats(0, 1e7),
    st.one_of(st.none(), st.floats(0, 1)),
    st.sampled_from(["", "raid5"]),
    st.one_of(st.none(), st.floats(0, 1e11)),
    st.booleans(),
    st.floats(0, 1),
)
def test_the_parts_add_up_and_none_is_below_zero(
    each: list[tuple[float, float, float, float]],
    ios: float,
    iops: float,
    cpu_wait: float | None,
    level: str,
    sent_s: float | None,
    direct: bool,
    unsent: float,
) -> None:
    names = ("dm", "md", "a", "b")
    stack = Stack(
        ("dm",), {"dm": ("md",), "md": ("a", "b"), "a": (), "b": ()}, {"md": level} if level else {}
    )
    disks = {name: disk(*one) for name, one in zip(names, each, strict=True)}
    one = job(ios, iops, cpu_wait, direct=direct, sent_s=sent_s)
    for load in (None, replace(one, unsent=ios * unsent)):
        found = place_waits(stack, disks, load)
        assert found is not None
        assert sum(parts(found)) == pytest.approx(found.ios, rel=1e-6, abs=1e-6)
        assert min(parts(found)) >= -1e-6 * max(1.0, found.ios)


def test_means_are_weighted_by_time_and_their_parts_add_up() -> None:
    """Also where the first second of a stage does not know who waited for a CPU."""
    mean = MeanWaits()
    assert mean.value is None
    mean.add(Waits(4.0, 1.0, 1.0, {"vda": 2.0}, None, None, 0.0), 1.0)
    mean.add(Waits(8.0, None, 2.0, {"vda": 6.0}, None, None, 0.0), 3.0)
    mean.add(Waits(99.0, None, None, {"vda": 99.0}, None, None, 0.0, stalled=True), 1.0)
    assert mean.value == Waits(7.0, 0.25, 1.75, {"vda": 5.0}, None, None, 0.0)
    assert sum(parts(mean.value)) == 7.0
    line = "In flight 7.0: waiting for a CPU 0.2, above the device 1.8, vda 5.0"
    assert waits_line(mean.value) == line
    never = MeanWaits()
    never.add(Waits(8.0, None, 2.0, {"vda": 6.0}, None, None, 0.0), 3.0)
    assert never.value is not None and never.value.cpu is None
