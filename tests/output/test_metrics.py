"""Exported metrics are valid in both formats and equal what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fio_recordings import KINDS
from hypothesis import given
from hypothesis import strategies as st
from metrics_text import Read, read
from session_frames import session, whole_frames
from watch_frames import frame, rates

from iopstui.events import (
    Event,
    ExpectationChecked,
    FindingReported,
    FrameReady,
    StepFinished,
    StepStarted,
)
from iopstui.features.exports.exposition import openmetrics, text_format
from iopstui.features.exports.metrics import (
    BOUNDS_NS,
    COUNTERS,
    DRIVE_GAUGES,
    FRAME_GAUGES,
    HISTOGRAMS,
    Buckets,
    Metrics,
)
from iopstui.model import histogram
from iopstui.model.block.target import Target
from iopstui.model.findings import rule_names as rules
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.aws import VolumeGrowth
from iopstui.model.samples import DriveReading

NASTY = 'a "b" \\ c\n{d="e"} '


def metrics_of(events: list[Event]) -> Metrics:
    metrics = Metrics("host-1")
    metrics.watches(Target("file", "/data/" + NASTY, "vda", ("vda",)))
    for event in events:
        metrics.handle(event)
    return metrics


def families(metrics: Metrics) -> dict[str, Read]:
    """The metrics as OpenMetrics. The older text format must have the same families."""
    new = read(openmetrics(metrics.families()), modern=True)
    old = read(text_format(metrics.families()), modern=False)
    suffix = {"counter": "_total", "info": "_info"}
    assert set(old) == {name + suffix.get(family.kind, "") for name, family in new.items()}
    return new


@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_counters_of_every_recording_equal_its_frames(name: str, probed: bool) -> None:
    events = session(name, probed=probed)
    exported = families(metrics_of(events))
    intervals = [f.fio for f in whole_frames(name) if f.fio is not None]
    for direction in {name for fio in intervals for name in fio.directions}:
        parts = [fio.directions[direction] for fio in intervals if direction in fio.directions]
        ios = exported["iopstui_fio_ios"].value("_total", direction=direction)
        assert ios == sum(part.ios for part in parts)
        moved = exported["iopstui_fio_bytes"].value("_total", direction=direction)
        assert moved == sum(part.bytes for part in parts)
    assert exported["iopstui_frames"].value("_total") == len(whole_frames(name))
    # a single reading of the probe makes no interval
    several = len(whole_frames(name)) > 1
    assert ("iopstui_device_latency_seconds" in exported) == (probed and several)


def test_disk_counters_grow_as_the_kernel_s() -> None:
    """``session_frames.kernel`` defines by how much each counter grows per frame."""
    exported = families(metrics_of(session("3.42-a-randread-grp")))
    steps = len(whole_frames("3.42-a-randread-grp")) - 1
    for name, step in (
        ("reads", 1000), ("writes", 50), ("read_bytes", 8000 * 512), ("written_bytes", 400 * 512),
        ("read_time_seconds", 0.5), ("write_time_seconds", 0.1), ("io_time_weighted_seconds", 0.6),
    ):  # fmt: skip
        value = exported[f"iopstui_disk_{name}"].value("_total", device="vda")
        assert value == pytest.approx(step * steps), name
    assert exported["iopstui_disk_in_flight"].value(device="vda") == 7


def test_counters_start_at_0() -> None:
    """If a counter does not start at 0, Prometheus's rate() misses its first increase."""
    idle, busy = rates(reads=0, writes=0), rates(reads=3, writes=2, wait_ms=4)
    frames = [
        FrameReady(t, frame(t, {"vda": frame_rates}))
        for t, frame_rates in ((1.0, idle), (2.0, busy))
    ]
    for events, writes, reads in ((frames[:1], 0, 0), (frames, 0.008, 0.012)):
        exported = families(metrics_of([*events]))
        assert exported["iopstui_disk_write_time_seconds"].value("_total", device="vda") == writes
        assert exported["iopstui_disk_read_time_seconds"].value("_total", device="vda") == reads


def test_findings_start_at_0_and_count_reports() -> None:
    never = families(metrics_of([]))["iopstui_findings"]
    assert {value for value in never.samples.values()} == {0} and len(never.samples) == len(
        rules.RULE_NAMES
    )
    findings = families(metrics_of([FindingReported(1.0, Finding("cap", "x"))]))["iopstui_findings"]
    assert (
        len(findings.samples) == len(rules.RULE_NAMES) and findings.value("_total", rule="cap") == 1
    )


@pytest.mark.parametrize(
    ("read_only", "options", "directions"),
    [
        (True, {}, ["read"]),
        (False, {}, ["read", "write"]),
        (False, {"rw": "randrw", "unified_rw_reporting": "1"}, ["mixed"]),
        (True, {"rw": "randread", "unified_rw_reporting": "both"}, ["mixed", "read"]),
        (False, {"rw": "randtrim"}, ["trim"]),
        (False, {"readwrite": "trimwrite"}, ["trim", "write"]),
        (False, {"rw": "rw", "unified_rw_reporting": "0"}, ["read", "write"]),
    ],
)
def test_a_run_starts_with_0_ios_for_each_of_its_directions(
    read_only: bool, options: dict[str, str], directions: list[str]
) -> None:
    started = StepStarted(0.0, 1, "a", "b", ("fio",), read_only, options=options)
    exported = families(metrics_of([started]))
    for name in ("iopstui_fio_ios", "iopstui_fio_bytes"):
        for direction in directions:
            assert exported[name].value("_total", direction=direction) == 0
        assert len(exported[name].samples) == len(directions)


def drive_readings(kelvin: int, units: int, began: int, **more: int) -> dict[str, DriveReading]:
    counts = {"kelvin": kelvin, "units_written": units, "thermal_1": 1, "thermal_2": 2, **more}
    return {"nvme0": DriveReading(counts, {**counts, "units_written": began})}


def test_the_time_over_a_limit_of_an_aws_volume_is_a_counter() -> None:
    store = VolumeGrowth("instance-store", 1.0, 9, 9, 9, 9, 250_000, 0, None, None, 0)
    seconds = [FrameReady(t, replace(frame(t, {}), aws={"nvme1n1": store})) for t in range(3)]
    exported = families(metrics_of([*seconds]))
    family = exported["iopstui_aws_limit_exceeded_seconds"]
    # the instance store has no limits of the instance
    assert len(family.samples) == 2
    for limit, value in (("volume_iops", 0.75), ("volume_bytes", 0.0)):
        assert family.value("_total", device="nvme1n1", limit=limit) == value


def test_the_counters_of_a_drive_grow_over_all_runs() -> None:
    """A run's figures are since its start, counters of metrics since the previous reading."""
    seconds = (
        drive_readings(300, 10, 10),
        drive_readings(310, 12, 10),
        {},
        drive_readings(305, 15, 14, spare=90),
    )
    frames = [FrameReady(t, replace(frame(t, {}), nvme=drives)) for t, drives in enumerate(seconds)]
    exported = families(metrics_of([*frames]))
    assert exported["iopstui_nvme_written_bytes"].value("_total", drive="nvme0") == 5 * 512_000
    assert exported["iopstui_nvme_throttled"].value("_total", drive="nvme0") == 0
    assert exported["iopstui_nvme_temperature_celsius"].value(drive="nvme0") == 305 - 273
    assert exported["iopstui_nvme_spare_ratio"].value(drive="nvme0") == 0.9
    # not reported, so not 0
    assert "iopstui_nvme_media_errors" not in exported
    assert "iopstui_nvme_critical_warning" not in exported


def test_a_histogram_s_sum_is_the_mean_times_the_count() -> None:
    latencies = families(metrics_of(session("3.42-a-randread-grp")))["iopstui_fio_latency_seconds"]
    parts = [f.fio.directions["read"] for f in whole_frames("3.42-a-randread-grp") if f.fio]
    waited = sum((part.clat_ns or 0) * sum(part.bins.values()) for part in parts) / 1e9
    assert latencies.value("_sum", direction="read", latency="clat") == pytest.approx(waited)
    assert len([key for key in latencies.samples if key[0] == "_bucket"]) <= 40


@given(st.lists(st.integers(0, 1 << 36), min_size=1, max_size=50))
def test_no_fio_bin_crosses_a_bucket_bound(latencies: list[int]) -> None:
    buckets = Buckets()
    bins = histogram.merge({histogram.bucket_key(latency): 1} for latency in latencies)
    buckets.add(bins, None)
    counts = [sample for sample in buckets.samples(()) if sample.suffix == "_bucket"]
    for bound, count in zip(BOUNDS_NS, counts, strict=False):
        assert count.value == sum(latency < bound for latency in latencies)
    assert counts[-1].value == len(latencies)


def test_gauges_are_removed_at_the_end() -> None:
    metrics = metrics_of(session("3.42-a-randread-grp"))
    before = families(metrics)
    metrics.end()
    after = families(metrics)
    assert before["iopstui_up"].value() == 1 and after["iopstui_up"].value() == 0
    assert {name for name in before if name not in after} == {
        "iopstui_disk_in_flight", "iopstui_fio_percentile_seconds", "iopstui_fio_failed_rows",
        "iopstui_fio_progress_ratio", "iopstui_pressure_some_ratio", "iopstui_pressure_full_ratio",
        "iopstui_throttled_ratio", "iopstui_memory_some_ratio", "iopstui_memory_full_ratio",
        "iopstui_power_package_watts", "iopstui_power_dram_watts", "iopstui_power_platform_watts",
    }  # fmt: skip
    assert all(after[n].samples == family.samples for n, family in before.items()
               if family.kind in ("counter", "histogram"))  # fmt: skip


def test_runs_findings_and_expectations_are_counted() -> None:
    failed = StepFinished(1.0, 1, 1, "fio failed", False)
    judged = ExpectationChecked(
        1.0, 1, "iops>=5", "fio.total.iops", "1/s", ">=", 5, 5, 4.0, False, 0.0
    )
    reported = FindingReported(1.0, Finding("deep", NASTY))
    exported = families(metrics_of([failed, judged, reported, reported]))
    assert exported["iopstui_runs_failed"].value("_total") == 1
    assert exported["iopstui_findings"].value("_total", rule="deep") == 2
    assert exported["iopstui_expectation_met"].value(expectation="iops>=5") == 0


def test_a_new_target_replaces_gauges_and_adds_to_counters() -> None:
    metrics = metrics_of([FrameReady(1.0, frame(1.0, {"vda": rates(reads=5)}))])
    metrics.watches(Target("device", "/dev/vdb", "vdb", ("vdb",)))
    assert "iopstui_disk_in_flight" not in families(metrics)
    metrics.handle(FrameReady(1.0, frame(1.0, {"vdb": rates(reads=7)})))
    exported = families(metrics)
    assert exported["iopstui_disk_reads"].value("_total", device="vda") == 5
    assert exported["iopstui_disk_reads"].value("_total", device="vdb") == 7
    assert exported["iopstui"].value("_info", version=_version(), host="host-1", target="/dev/vdb")


def _version() -> str:
    from iopstui import __version__

    return __version__


def test_the_page_of_metrics_names_every_one(root: Path) -> None:
    text = (root / "docs" / "metrics.md").read_text()
    rows = (*COUNTERS, *FRAME_GAUGES, *DRIVE_GAUGES)
    for name in (*HISTOGRAMS, *(row.name for row in rows)):
        short = name.replace("written", "read").replace("writes", "reads").replace("write", "read")
        assert f"`{name}`" in text or f"`{name}_total`" in text or f"`{short}_total`" in text, name
