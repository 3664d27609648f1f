from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from evidence_frames import device, disk, fio, fired, frame
from hypothesis import given
from hypothesis import strategies as st

from iopstui.catalog import read_catalog
from iopstui.model.block.target import DeviceLinks
from iopstui.model.findings.conditions import Conditions, DeviceState, IoLimit
from iopstui.model.findings.evidence import Evidence, JobShape, SteadyRun
from iopstui.model.findings.rules.curve import (
    MAX_STEP_SHARE,
    MIN_STEP_DEVIATIONS,
    SECONDS_PER_SIDE,
    end_of_burst,
    step_down_index,
    throughput_limit,
)
from iopstui.model.metrics.aws import LIMITS, VolumeGrowth
from iopstui.model.rates import fmean, pstdev
from iopstui.model.volumes.promised import promised_figures

CATALOG = read_catalog(Path("/nonexistent"))
SHAPE = JobShape(jobs=1, iodepth=32, engine="libaio", direct=True, block_size=4096)
LIMIT = IoLimit("/work", "io.max", "riops", 1_000)
EIGHT = SteadyRun(replace(SHAPE, iodepth=8), 1_000, 8e6, 4_096_000, 0.002)


def flat(
    iops: float = 1_000,
    *,
    depth: int = 32,
    inside: float | None = None,
    wobble: float = 0.0,
    busy: float = 30.0,
    job: float = 30.0,
    earlier: tuple[SteadyRun, ...] = (EIGHT,),
    **shape: object,
) -> Evidence:
    each = [iops * (1 + wobble * (-1) ** n) for n in range(10)]
    frames = [
        frame(1.0 + n, fio(x, lat_ns=(inside or depth) / x * 1e9), jobs=((0, job),),
              busy=dict.fromkeys(range(4), busy))
        for n, x in enumerate(each)
    ]  # fmt: skip
    return Evidence(
        tuple(frames), shape=replace(SHAPE, iodepth=depth, **shape), earlier_runs=earlier,  # type: ignore[arg-type]
        online=(0, 1, 2, 3),
    )  # fmt: skip


# -- a limit


def test_two_depths_with_the_same_iops_show_a_limit() -> None:
    found = fired(throughput_limit(flat()))
    assert "depth 8 → 32: stays at 1.00k IOPS (3.91 MiB/s)" in found.text
    assert "latency 8.00 ms → 32.0 ms, with idle CPUs" in found.text
    assert found.test == (("bs", "8k"),)


@pytest.mark.parametrize(
    "evidence",
    [
        flat(earlier=()),
        flat(4_000),
        flat(1_100),
        flat(wobble=0.09),
        flat(busy=95.0),
        flat(job=99.0),
        flat(inside=16),
        flat(paced=True),
        flat(earlier=(replace(EIGHT, spread=0.2),)),
        flat(earlier=(replace(EIGHT, spread=None),)),
        flat(earlier=(replace(EIGHT, lat_ns=30e6),)),
        flat(depth=8),
    ],
    ids=["one reading", "it scales", "a tenth more", "varies", "CPUs are full", "a job is full",
         "the queue is not", "job's own", "varied", "too short", "latency did not grow",
         "the same depth"],
)  # fmt: skip
def test_what_has_another_reason_is_no_limit(evidence: Evidence) -> None:
    assert throughput_limit(evidence) is None


def test_a_limit_of_the_bought_volume_is_named() -> None:
    bought = promised_figures(CATALOG.volume("google/pd-standard"), 1333)
    told = fired(throughput_limit(replace(flat(), volume=bought))).text
    assert "stays at 1.00k IOPS (3.91 MiB/s), which is what google/pd-standard allows" in told
    assert "(volume IOPS)" in told
    other = promised_figures(CATALOG.volume("aws/gp3"), 100)
    assert "allows" not in fired(throughput_limit(replace(flat(), volume=other))).text


def counting(evidence: Evidence, **exceeded_ms: int) -> Evidence:
    """The same on an EBS volume, which counts for how long in each second a limit was exceeded."""
    us = {**dict.fromkeys(LIMITS, 0), **{name: 1000 * ms for name, ms in exceeded_ms.items()}}
    volume = VolumeGrowth("ebs", 1.0, 9, 9, 9, 9, queue=0, **us)
    return replace(evidence, frames=[replace(f, aws={"vda": volume}) for f in evidence.frames])


def test_the_volume_s_own_count_is_believed_before_what_was_bought() -> None:
    bought = promised_figures(CATALOG.volume("google/pd-standard"), 1333)
    evidence = replace(flat(), volume=bought)
    told = fired(throughput_limit(counting(evidence, volume_iops=900))).text
    assert "allows (volume IOPS)" in told
    assert told.endswith("the demand exceeds the volume's IOPS limit, as the volume itself counts")
    told = fired(throughput_limit(counting(evidence, instance_bytes=900, volume_iops=20))).text
    assert "allows" not in told
    assert "the demand exceeds the instance's EBS throughput limit, as" in told
    told = fired(throughput_limit(counting(evidence))).text
    assert "allows" not in told
    assert told.endswith("a limit is reached, none of those that the volume itself counts")
    once = replace(flat(earlier=(), iops=605, wobble=0.02), volume=promised_figures(
        CATALOG.volume("aws/gp2"), 200))  # fmt: skip
    assert throughput_limit(counting(once)) is None
    assert "allows" in fired(throughput_limit(counting(once, volume_iops=900))).text


def test_two_volumes_that_are_flat_together_stand_at_the_instance_s_limit() -> None:
    both = [device(), device("vdb")]
    small = promised_figures(
        CATALOG.volume("azure/p60"), instance=CATALOG.instance("Standard_D8ds_v4")
    )
    evidence = flat(12_800, earlier=(replace(EIGHT, iops=12_800, lat_ns=8 / 12_800 * 1e9),))
    told = fired(throughput_limit(replace(evidence, volume=small, devices=both))).text
    assert (
        "which is what azure/Standard_D8ds_v4 allows to all volumes together (instance IOPS)"
        in told
    )
    two = promised_figures(CATALOG.volume("azure/p4"))
    evidence = flat(240, earlier=(replace(EIGHT, iops=240, lat_ns=8 / 240 * 1e9),))
    told = fired(throughput_limit(replace(evidence, volume=two, devices=both))).text
    assert "which is what 2 volumes of azure/p4 allow (volume IOPS)" in told


def test_one_reading_at_the_bought_limit_is_enough() -> None:
    bought = promised_figures(CATALOG.volume("aws/gp2"), 200)
    once = {"earlier": (), "iops": 605, "wobble": 0.02}
    found = fired(throughput_limit(replace(flat(**once), volume=bought)))  # type: ignore[arg-type]
    assert found.text.startswith("IOPS stay at 603 (2.35 MiB/s), which is what aws/gp2 allows")
    for other in (flat(earlier=(), iops=500), flat(earlier=(), iops=605, depth=3),
                  flat(earlier=(), iops=605, busy=95.0), flat(earlier=(), iops=605, wobble=0.1),
                  flat(earlier=(), iops=605, inside=16)):  # fmt: skip
        assert throughput_limit(replace(other, volume=bought)) is None
    assert throughput_limit(flat(**once)) is None  # type: ignore[arg-type]


def test_another_block_size_tells_bandwidth_from_iops() -> None:
    small = SteadyRun(SHAPE, 1_000, 32e6, 4_096_000, 0.002)
    wide = flat(500, earlier=(small,), block_size=8192)
    large = [replace(f, fio=fio(500, size=8192, lat_ns=32 / 500 * 1e9)) for f in wide.frames]
    found = fired(throughput_limit(replace(wide, frames=tuple(large))))
    assert "bs 4k → 8k" in found.text and "the limit is in bandwidth" in found.text
    assert found.test == ()
    same = flat(1_000, earlier=(small,), block_size=8192)
    large = [replace(f, fio=fio(1_000, size=8192, lat_ns=32e6)) for f in same.frames]
    assert (
        "the limit is in IOPS" in fired(throughput_limit(replace(same, frames=tuple(large)))).text
    )


@given(st.floats(100, 1e6), st.floats(100, 1e6), st.floats(1e4, 1e9), st.integers(1, 256))
def test_a_limit_is_in_both_readings(now: float, then: float, lat: float, depth: int) -> None:
    earlier = SteadyRun(replace(SHAPE, iodepth=8), then, lat, then * 4096, 0.01)
    found = throughput_limit(flat(now, depth=depth, earlier=(earlier,)))
    if found is not None:
        assert depth >= 12 and abs(now / then - 1) <= 0.0501


# -- a step down


def stepped(
    *parts: tuple[int, float], shape: JobShape = SHAPE, others: float = 0.0, job: float = 30.0,
    aqu: float = 31.0, **same: object,
) -> Evidence:  # fmt: skip
    each = [iops for count, iops in parts for _ in range(count)]
    frames = [
        frame(1.0 + n, fio(x, lat_ns=32 / x * 1e9), jobs=((0, job),),
              disks={"vda": disk(x + (others if x < each[0] else 0.0), aqu=aqu)}, **same)
        for n, x in enumerate(each)
    ]  # fmt: skip
    return Evidence(tuple(frames), devices=[device()], shape=shape, online=(0, 1, 2, 3))


def test_a_step_down_at_constant_load() -> None:
    found = fired(end_of_burst(stepped((8, 3_000), (6, 1_000))))
    assert "fell from 3.00k to 1.00k at 0:09" in found.text and "there for 6 s" in found.text
    assert "may be" in found.text and found.since == 0.0


def test_used_up_credits_of_the_bought_volume_are_named() -> None:
    bought = promised_figures(CATALOG.volume("aws/gp2"), 100)
    fallen = stepped((8, 3_000), (6, 300))
    found = fired(end_of_burst(replace(fallen, volume=bought)))
    assert "the I/O credits of aws/gp2 are used up, and only its baseline is left" in found.text
    assert "may be full after 5 h" in found.advice
    higher = stepped((8, 3_000), (6, 1_000))
    assert "may be" in fired(end_of_burst(replace(higher, volume=bought))).text


def test_a_step_stands_out_of_what_the_seconds_vary() -> None:
    wavy = [(1, iops) for iops in (1_400, 1_300, 1_450, 1_250, 1_400, 1_350, 300, 220, 360, 280)]
    assert end_of_burst(stepped(*wavy)) is not None
    wild = [(1, iops) for iops in (1_400, 900, 1_450, 850, 1_400, 950, 600, 220, 560, 280)]
    assert end_of_burst(stepped(*wild)) is None


def later(evidence: Evidence, place: int, **now: object) -> Evidence:
    """The same, but from second ``place`` on the job or the machine differs."""
    size, direction = now.pop("size", 4096), now.pop("direction", "read")
    frames = list(evidence.frames)
    for n in range(place, len(frames)):
        one = frames[n]
        assert one.fio is not None and one.fio.total.lat_ns is not None
        interval = fio(one.fio.total.ios, lat_ns=one.fio.total.lat_ns, size=int(str(size)))
        interval = replace(interval, directions={str(direction): interval.total})
        frames[n] = frame(one.t, interval, jobs=((0, 30.0),), disks=one.disks, **now)  # type: ignore[arg-type]
    return replace(evidence, frames=tuple(frames))


def lower_disk(evidence: Evidence, ios: float) -> Evidence:
    """The same on a partition of vdz; the whole of vdz does ``ios`` all the time."""
    frames = [
        replace(f, disks={**f.disks, "vdz1": f.disks["vda"], "vdz": disk(ios)})
        for f in evidence.frames
    ]
    part = replace(evidence.devices[0], name="vdz1", kind="partition", disk="vdz")
    tree = (part, device(name="vdz"))
    return replace(evidence, frames=tuple(frames), devices=[part], tree=tree)


def test_a_job_that_reaches_a_slower_disk_of_a_linear_volume_spends_no_credit() -> None:
    links = (DeviceLinks("dm-0", ("vda", "vdb")), DeviceLinks("vda"), DeviceLinks("vdb"))

    def crossing(second: str) -> Evidence:
        fast = {"dm-0": disk(3_000, aqu=31.0), "vda": disk(3_000, aqu=31.0), "vdb": disk(0)}
        slow = {"dm-0": disk(1_000, aqu=31.0), "vda": disk(0), "vdb": disk(0),
                second: disk(1_000, aqu=31.0)}  # fmt: skip
        frames = [
            frame(1.0 + n, fio(x, lat_ns=32 / x * 1e9), jobs=((0, 30.0),), links=links,
                  disks=fast if x == 3_000 else slow)
            for n, x in enumerate([3_000] * 8 + [1_000] * 6)
        ]  # fmt: skip
        tree = [device(name=name) for name in ("dm-0", "vda", "vdb")]
        return Evidence(tuple(frames), devices=tree[:1], tree=tree, links=links, shape=SHAPE,
                        online=(0, 1, 2, 3))  # fmt: skip

    assert end_of_burst(crossing("vda")) is not None
    assert end_of_burst(crossing("vdb")) is None


def _step_by_trying_all(each: list[float]) -> int | None:
    fits = []
    for place in range(SECONDS_PER_SIDE, len(each) - SECONDS_PER_SIDE + 1):
        parts = each[:place], each[place:]
        fits.append((sum(pstdev(part) ** 2 * len(part) for part in parts), place))
    place = min(fits)[1]
    left, right = each[:place], each[place:]
    high, low = fmean(left), fmean(right)
    clear = high - low >= MIN_STEP_DEVIATIONS * max(pstdev(left), pstdev(right))
    return place if clear and low <= MAX_STEP_SHARE * high and max(right) < min(left) else None


@given(
    st.lists(st.integers(1, 12), min_size=4, max_size=15),
    st.lists(st.integers(1, 12), min_size=4, max_size=15),
    st.integers(0, 40),
)
def test_a_step_is_where_trying_all_places_finds_it(
    left: list[int], right: list[int], higher: int
) -> None:
    each = [100.0 * x for x in (*(x + higher for x in left), *right)]
    frames = [frame(1.0 + n, fio(x)) for n, x in enumerate(each)]
    assert step_down_index(frames) == _step_by_trying_all(each)


@pytest.mark.parametrize(
    "evidence",
    [
        stepped((14, 3_000)),
        stepped((8, 3_000), (2, 1_000)),
        stepped((8, 3_000), (6, 2_600)),
        stepped((8, 1_000), (6, 3_000)),
        stepped((5, 3_000), (4, 1_000), (5, 3_000)),
        stepped((5, 3_000), (5, 2_000), (5, 1_000)),
        stepped((8, 3_000), (6, 1_000), others=2_000),
        replace(
            stepped((8, 3_000), (6, 1_000)),
            conditions=Conditions(devices={"vda": DeviceState(limits=(LIMIT,))}),
        ),
        stepped((8, 3_000), (6, 1_000), job=99.0),
        stepped((8, 3_000), (6, 1_000), shape=replace(SHAPE, paced=True)),
        stepped((8, 3_000), (6, 1_000), shape=replace(SHAPE, direct=False)),
        stepped((8, 3_000), (6, 1_000), aqu=1.0),
        later(stepped((8, 3_000), (6, 1_000)), 8, cpu_wait=40.0),
        stepped((8, 3_000), (6, 1_000), cpu_wait=12.0),
        later(stepped((8, 3_000), (6, 1_000)), 8, memory=30.0),
        later(stepped((8, 3_000), (6, 1_000)), 8, pids=(7,)),
        later(stepped((8, 3_000), (6, 1_000)), 8, size=65536),
        later(stepped((8, 3_000), (6, 1_000)), 8, direction="write"),
        lower_disk(stepped((8, 3_000), (6, 1_000)), 3_500.0),
    ],
    ids=["flat", "a dip", "little", "a step up", "comes back", "slides", "another program's",
         "a cgroup's limit",
         "CPU", "paced", "buffered", "above the device", "waits for a CPU",
         "waits for one throughout", "short of memory",
         "another process of the job", "larger I/Os", "writes now", "another partition's"],
)  # fmt: skip
def test_what_is_no_burst(evidence: Evidence) -> None:
    assert end_of_burst(evidence) is None
