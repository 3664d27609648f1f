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
from watch_frames import frame

from iopstui.events import (
    Event,
    ExpectationChecked,
    FindingReported,
    FrameReady,
    StepFinished,
    StepStarted,
)
from iopstui.features.exports.metrics import (
    BOUNDS_NS,
    COUNTERS,
    DRIVE_GAUGES,
    FRAME_GAUGES,
    HISTOGRAMS,
    Buckets,
    Metrics,
    openmetrics,
    text_format,
)
from iopstui.model import histogram
from iopstui.model.block.target import Target
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.aws import VolumeGrowth

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


def test_the_time_over_a_limit_of_an_aws_volume_is_a_counter() -> None:
    store = VolumeGrowth("instance-store", 1.0, 9, 9, 9, 9, 250_000, 0, None, None, 0)
    seconds = [FrameReady(t, replace(frame(t, {}), aws={"nvme1n1": store})) for t in range(3)]
    exported = families(metrics_of([*seconds]))
    family = exported["iopstui_aws_limit_exceeded_seconds"]
    # the instance store has no limits of the instance
    assert len(family.samples) == 2
    for limit, value in (("volume_iops", 0.75), ("volume_bytes", 0.0)):
        assert family.value("_total", device="nvme1n1", limit=limit) == value


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


def _version() -> str:
    from iopstui import __version__

    return __version__


def test_the_page_of_metrics_names_every_one(root: Path) -> None:
    text = (root / "docs" / "metrics.md").read_text()
    rows = (*COUNTERS, *FRAME_GAUGES, *DRIVE_GAUGES)
    for name in (*HISTOGRAMS, *(row.name for row in rows)):
        short = name.replace("written", "read").replace("writes", "reads").replace("write", "read")
        assert f"`{name}`" in text or f"`{name}_total`" in text or f"`{short}_total`" in text, name
