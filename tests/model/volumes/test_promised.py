"""Figures of volumes: the providers' own worked examples, and what holds for every class."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iopstui.catalog import read_catalog
from iopstui.errors import UsageError
from iopstui.model.volumes.promised import (
    INSTANCE_IOPS,
    VOLUME_BW,
    VOLUME_IOPS,
    Bucket,
    promised_figures,
)
from iopstui.model.volumes.volume import IOPS, READ, THROUGHPUT, WRITE, VolumeClass

CATALOG = read_catalog(Path("/nonexistent"))
MIB = 1 << 20
each_class = pytest.mark.parametrize("volume", CATALOG.classes.values(), ids=lambda one: one.id)


# the table of "General Purpose SSD volumes": size, baseline, burst at 3,000 IOPS, refill (s)
@pytest.mark.parametrize(
    ("size", "iops", "burst_s", "refill_s"),
    [(1, 100, 1862, 54000), (33, 100, 1862, 54000), (100, 300, 2000, 18000),
     (334, 1002, 2703, 5389), (750, 2250, 7200, 2400)],
)  # fmt: skip
def test_gp2_as_in_its_table(size: float, iops: float, burst_s: int, refill_s: int) -> None:
    found = promised_figures(CATALOG.volume("aws/gp2"), size)
    assert found.iops[READ] == iops
    assert found.io_bucket is not None
    lasts, refills = found.io_bucket.lasts_s(), found.io_bucket.refills_s()
    assert lasts is not None and refills is not None
    assert (round(lasts), round(refills)) == (burst_s, refill_s)


@pytest.mark.parametrize("size", [1000, 5334, 16384])
def test_a_large_gp2_has_no_burst(size: float) -> None:
    found = promised_figures(CATALOG.volume("aws/gp2"), size)
    assert found.burst(IOPS, READ) is None and found.io_bucket is None
    assert found.iops[READ] == min(3 * size, 16000)


# "Throughput Optimized HDD and Cold HDD volumes": TiB, base, burst (MiB/s), full scan (hours)
@pytest.mark.parametrize(
    ("name", "tib", "base", "burst", "scan_h"),
    [("st1", 0.125, 5, 31, None), ("st1", 0.5, 20, 125, None), ("st1", 1, 40, 250, 1.17),
     ("st1", 5, 200, 500, 2.91), ("st1", 12.5, 500, None, None), ("sc1", 0.125, 1.5, 10, None),
     ("sc1", 1, 12, 80, 3.64), ("sc1", 3.125, 37.5, 250, None), ("sc1", 5, 60, 250, 5.83),
     ("sc1", 16, 192, 250, None)],
)  # fmt: skip
def test_hdd_as_in_its_tables(
    name: str, tib: float, base: float, burst: float | None, scan_h: float | None
) -> None:
    found = promised_figures(CATALOG.volume(f"aws/{name}"), tib * 1024)
    flow = found.throughput[READ]
    assert flow is not None and flow / MIB == pytest.approx(base)
    peak = found.burst(THROUGHPUT, READ)
    assert (peak is None) if burst is None else (peak and peak / MIB == pytest.approx(burst, 0.01))
    if scan_h is not None and peak is not None:
        # "a full bucket contains enough tokens for a full volume scan"
        assert tib * 1024 * 1024 * MIB / peak / 3600 == pytest.approx(scan_h, abs=0.01)
        assert found.byte_bucket is not None and found.byte_bucket.size == tib * 1024 * 1024 * MIB


# "Provisioned IOPS SSD volumes": 48,000 IOPS yield 750 MiB/s, 64,000 yield 1,000
@pytest.mark.parametrize(("iops", "mib"), [(2000, 500), (32000, 500), (48000, 750), (64000, 1000)])
def test_io1_throughput_follows_its_iops(iops: float, mib: float) -> None:
    found = promised_figures(CATALOG.volume("aws/io1"), 1280, iops)
    assert found.throughput[WRITE] == mib * MIB
    # 256 KiB I/Os: peak throughput is reached at 2,000 IOPS, so 1,000 IOPS give half of it
    half = promised_figures(CATALOG.volume("aws/io1"), 1280, 1000)
    assert half.limits(READ, 256 << 10)[0].rate * (256 << 10) == 250 * MIB


@pytest.mark.parametrize(
    ("name", "size", "most"),
    [("aws/gp3", 32, 16000), ("aws/io1", 100, 5000), ("aws/io2", 256, 256000),
     ("azure/premium-v2", 160, 80000), ("azure/ultra", 4, 4000), ("azure/ultra", 512, 400000)],
)  # fmt: skip
def test_what_can_be_bought_at_a_size(name: str, size: float, most: float) -> None:
    volume = CATALOG.volume(name)
    assert promised_figures(volume, size, most).iops[READ] == most
    with pytest.raises(UsageError, match=f"At most {most:,.0f} IOPS"):
        promised_figures(volume, size, most + 1)


# "Ultra Disk size": GiB, IOPS cap, throughput cap (MB/s)
@pytest.mark.parametrize(
    ("size", "iops", "mb_s"), [(4, 4000, 1000), (16, 16000, 4000), (64, 64000, 10000),
                               (1024, 400000, 10000)],
)  # fmt: skip
def test_ultra_disks_as_in_their_table(size: float, iops: float, mb_s: float) -> None:
    found = promised_figures(CATALOG.volume("azure/ultra"), size, iops, mb_s * 1e6)
    assert (found.iops[READ], found.throughput[READ]) == (iops, mb_s * 1e6)
    with pytest.raises(UsageError, match="can be bought"):
        promised_figures(CATALOG.volume("azure/ultra"), size, iops, mb_s * 1.01e6)


# "Premium SSD v2 throughput": 3,000 IOPS allow 750 MB/s, 4,000 allow 1,000, 8,000 allow 2,000
@pytest.mark.parametrize(("iops", "mb_s"), [(3000, 750), (4000, 1000), (8000, 2000)])
def test_premium_v2_throughput_needs_its_iops(iops: float, mb_s: float) -> None:
    volume = CATALOG.volume("azure/premium-v2")
    assert promised_figures(volume, 100, iops, mb_s * 1e6).throughput[WRITE] == mb_s * 1e6
    with pytest.raises(UsageError, match="can be bought"):
        promised_figures(volume, 100, iops, mb_s * 1.01e6)


def test_gp3_throughput_needs_its_iops() -> None:
    volume = CATALOG.volume("gp3")
    found = promised_figures(volume, 8, 4000, 1000 * MIB)
    assert found.throughput[READ] == 1000 * MIB
    with pytest.raises(UsageError, match="MB/s can be bought"):
        promised_figures(volume, 8, 3000, 1000 * MIB)


# "ESSDs": the smallest sizes with the largest figures
@pytest.mark.parametrize(
    ("name", "size", "iops", "mb"),
    [("essd-pl0", 684, 10000, 180), ("essd-pl1", 964, 50000, 350), ("essd-pl1", 460, 24800, 350),
     ("essd-pl2", 1964, 100000, 750), ("essd-pl3", 19964, 1000000, 4000),
     ("essd-pl1", 20, 2800, 130)],
)  # fmt: skip
def test_essd(name: str, size: float, iops: float, mb: float) -> None:
    found = promised_figures(CATALOG.volume(f"aliyun/{name}"), size)
    assert found.iops[READ] == iops
    assert found.throughput[READ] == pytest.approx(mb * 1e6)


def test_autopl_adds_what_was_bought() -> None:
    volume = CATALOG.volume("essd-autopl")
    assert promised_figures(volume, 40).iops[READ] == 3800
    more = promised_figures(volume, 40, 10000)
    assert more.iops[READ] == 13800
    assert more.throughput[READ] == pytest.approx((140 + 160) * 1e6)
    assert more.burst(IOPS, READ) == 40000


# "Managed disk bursting": 30 minutes; an idle P20 accrues 2,300 I/Os a second
def test_premium_bursts_for_half_an_hour() -> None:
    found = promised_figures(CATALOG.volume("azure/p20"))
    assert found.size_gib == 512 and found.io_bucket is not None
    assert found.io_bucket.lasts_s() == 1800 and found.io_bucket.refill == 2300
    assert promised_figures(CATALOG.volume("azure/p30")).burst(IOPS, READ) is None


def test_the_instance_binds_before_a_large_disk() -> None:
    instance = CATALOG.instance("Standard_D8ds_v4")
    found = promised_figures(CATALOG.volume("azure/p60"), instance=instance)
    assert found.limits(WRITE, 4096)[0].name == INSTANCE_IOPS
    assert found.limits(WRITE, 4096)[0].rate == 12800
    cached = promised_figures(CATALOG.volume("azure/p60"), instance=instance, cached=True)
    assert cached.limits(READ, 4096)[0].name == VOLUME_IOPS
    assert cached.instance_limit() == instance.cached


def test_large_ios_are_bound_by_throughput() -> None:
    found = promised_figures(CATALOG.volume("aliyun/essd-pl1"), 500)
    assert found.limits(READ, 4096)[0].name == VOLUME_IOPS
    large = found.limits(READ, MIB)[0]
    assert large.name == VOLUME_BW and large.rate * MIB == pytest.approx(350e6)


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [("aliyun/essd-pl1", None, "depend on the size"), ("aliyun/essd-pl2", 100, "smaller than 461"),
     ("aws/gp2", 100 / (1 << 30), "this one has 100 B"),
     ("aws/gp2", 20000, "larger than 16,384"), ("aws/io2", 100, "only the IOPS that you buy")],
)  # fmt: skip
def test_what_a_class_does_not_offer(name: str, size: float | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        promised_figures(CATALOG.volume(name), size)


@pytest.mark.parametrize("instance", [None, "m5.large"])
def test_cached_limits_are_those_of_an_instance_that_has_some(instance: str | None) -> None:
    on = CATALOG.instance(instance) if instance else None
    with pytest.raises(UsageError, match="ached limits"):
        promised_figures(CATALOG.volume("gp2"), 100, instance=on, cached=True)


def test_an_instance_of_another_provider() -> None:
    with pytest.raises(UsageError, match="another provider"):
        promised_figures(CATALOG.volume("gp2"), 100, instance=CATALOG.instance("Standard_D2s_v3"))


@pytest.mark.parametrize("name", ["aliyun/essd-pl1", "azure/p30"])
def test_what_is_not_sold_cannot_be_bought(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be bought"):
        promised_figures(CATALOG.volume(name), None if "azure" in name else 500, 5000)


@each_class
@settings(max_examples=8)
@given(data=st.data())
def test_figures_rise_with_the_size_up_to_their_cap(
    volume: VolumeClass, data: st.DataObject
) -> None:
    low, high = volume.sizes or (1.0, 65536.0)
    sizes = st.floats(max(low, 1.0), high)
    small, large = sorted((data.draw(sizes), data.draw(sizes)))
    for formula in volume.formulas.values():
        assert formula.value_at(small, 5000) <= formula.value_at(large, 5000) * (1 + 1e-12)
        if formula.high is not None and not formula.per_provisioned:
            most = max(formula.high, formula.low or 0.0)
            unit = {"IOPS": 1.0, "MB/s": 1e6, "MiB/s": float(MIB)}[formula.unit]
            assert formula.value_at(large, 1e9) <= most * unit


@given(st.floats(1, 1e9), st.floats(1, 1e5), st.floats(1, 1e5), st.floats(0, 1), st.floats(0, 1e4))
def test_a_bucket_is_never_below_empty_or_above_full(
    size: float, refill: float, peak: float, part: float, seconds: float
) -> None:
    bucket = Bucket(size, refill, peak)
    level = bucket.after(size * part, peak, seconds)
    assert 0 <= level <= size
    lasts = bucket.lasts_s(level=size)
    if lasts is None:
        assert peak <= refill and bucket.after(size, peak, seconds) == size
    else:
        assert bucket.after(size, peak, lasts) == pytest.approx(0, abs=size * 1e-6)
    refills = bucket.refills_s()
    assert refills is not None and bucket.after(0, 0, refills) == pytest.approx(size)
