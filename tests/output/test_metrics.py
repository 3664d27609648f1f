"""What a monitoring system is given: valid in both formats, and exactly what was measured."""

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
from iopstui.model import histogram
from iopstui.model.block.target import Target
from iopstui.model.findings import rule_names as rules
from iopstui.model.findings.finding import Finding
from iopstui.model.samples import DriveReading
from iopstui.output.export.buckets import BOUNDS_NS, Buckets
from iopstui.output.export.exposition import openmetrics, text_format
from iopstui.output.export.metrics import COUNTERS, GAUGES, HISTOGRAMS, Metrics

NASTY = 'a "b" \\ c\n{d="e"} '


def folded(events: list[Event]) -> Metrics:
    metrics = Metrics("host-1")
    metrics.watches(Target("file", "/data/" + NASTY, "vda", ("vda",)))
    for event in events:
        metrics.handle(event)
    return metrics


def families(metrics: Metrics) -> dict[str, Read]:
    """As OpenMetrics; the older format is read, too, and has the same."""
    new = read(openmetrics(metrics.families()), modern=True)
    old = read(text_format(metrics.families()), modern=False)
    suffix = {"counter": "_total", "info": "_info"}
    assert set(old) == {name + suffix.get(one.kind, "") for name, one in new.items()}
    return new


@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_every_recording_is_valid_and_its_counts_are_the_frames(name: str, probed: bool) -> None:
    events = session(name, probed=probed)
    found = families(folded(events))
    intervals = [f.fio for f in whole_frames(name) if f.fio is not None]
    for direction in {name for fio in intervals for name in fio.directions}:
        parts = [fio.directions[direction] for fio in intervals if direction in fio.directions]
        ios = found["iopstui_fio_ios"].value("_total", direction=direction)
        assert ios == sum(part.ios for part in parts)
        moved = found["iopstui_fio_bytes"].value("_total", direction=direction)
        assert moved == sum(part.bytes for part in parts)
    assert found["iopstui_frames"].value("_total") == len(whole_frames(name))
    # the probe's first reading is no interval yet
    several = len(whole_frames(name)) > 1
    assert ("iopstui_device_latency_seconds" in found) == (probed and several)


def test_the_counters_of_a_disk_are_the_kernel_s_growth() -> None:
    """``session_frames.kernel`` says by how much each grows with a frame."""
    found = families(folded(session("3.42-a-randread-grp")))
    grown = len(whole_frames("3.42-a-randread-grp")) - 1
    for name, each in (
        ("reads", 1000), ("writes", 50), ("read_bytes", 8000 * 512), ("written_bytes", 400 * 512),
        ("read_time_seconds", 0.5), ("write_time_seconds", 0.1), ("io_time_weighted_seconds", 0.6),
    ):  # fmt: skip
        value = found[f"iopstui_disk_{name}"].value("_total", device="vda")
        assert value == pytest.approx(each * grown), name
    assert found["iopstui_disk_in_flight"].value(device="vda") == 7


def test_counters_begin_at_0_and_not_with_what_they_first_count() -> None:
    """Prometheus takes a new one for one that has not grown: its rate lacks the first step."""
    idle, busy = rates(reads=0, writes=0), rates(reads=3, writes=2, wait_ms=4)
    frames = [FrameReady(t, frame(t, {"vda": one})) for t, one in ((1.0, idle), (2.0, busy))]
    for events, writes, reads in ((frames[:1], 0, 0), (frames, 0.008, 0.012)):
        found = families(folded([*events]))
        assert found["iopstui_disk_write_time_seconds"].value("_total", device="vda") == writes
        assert found["iopstui_disk_read_time_seconds"].value("_total", device="vda") == reads


def test_findings_begin_at_0_and_count_what_is_said() -> None:
    never = families(folded([]))["iopstui_findings"]
    assert {value for value in never.samples.values()} == {0} and len(never.samples) == len(
        rules.RULE_NAMES
    )
    once = families(folded([FindingReported(1.0, Finding("cap", "x"))]))["iopstui_findings"]
    assert len(once.samples) == len(rules.RULE_NAMES) and once.value("_total", rule="cap") == 1


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
def test_a_run_begins_with_0_ios_of_what_it_may_do(
    read_only: bool, options: dict[str, str], directions: list[str]
) -> None:
    begun = StepStarted(0.0, 1, "a", "b", ("fio",), read_only, options=options)
    found = families(folded([begun]))
    for name in ("iopstui_fio_ios", "iopstui_fio_bytes"):
        for direction in directions:
            assert found[name].value("_total", direction=direction) == 0
        assert len(found[name].samples) == len(directions)


def readings(kelvin: int, units: int, began: int, **more: int) -> dict[str, DriveReading]:
    counts = {"kelvin": kelvin, "units_written": units, "thermal_1": 1, "thermal_2": 2, **more}
    return {"nvme0": DriveReading(counts, {**counts, "units_written": began})}


def test_the_counters_of_a_drive_grow_over_all_runs() -> None:
    """A run compares with its own beginning, the metrics with the reading before."""
    seconds = (
        readings(300, 10, 10),
        readings(310, 12, 10),
        {},
        readings(305, 15, 14, spare=90),
    )
    frames = [FrameReady(t, replace(frame(t, {}), nvme=one)) for t, one in enumerate(seconds)]
    found = families(folded([*frames]))
    assert found["iopstui_nvme_written_bytes"].value("_total", drive="nvme0") == 5 * 512_000
    assert found["iopstui_nvme_throttled"].value("_total", drive="nvme0") == 0
    assert found["iopstui_nvme_temperature_celsius"].value(drive="nvme0") == 305 - 273
    assert found["iopstui_nvme_spare_ratio"].value(drive="nvme0") == 0.9
    # not told, so not 0
    assert "iopstui_nvme_media_errors" not in found
    assert "iopstui_nvme_critical_warning" not in found


def test_a_histogram_s_sum_is_the_mean_times_the_count() -> None:
    found = families(folded(session("3.42-a-randread-grp")))["iopstui_fio_latency_seconds"]
    parts = [f.fio.directions["read"] for f in whole_frames("3.42-a-randread-grp") if f.fio]
    waited = sum((part.clat_ns or 0) * sum(part.bins.values()) for part in parts) / 1e9
    assert found.value("_sum", direction="read", latency="clat") == pytest.approx(waited)
    assert len([key for key in found.samples if key[0] == "_bucket"]) <= 40


@given(st.lists(st.integers(0, 1 << 36), min_size=1, max_size=50))
def test_no_bin_of_fio_lies_across_a_bound(latencies: list[int]) -> None:
    buckets = Buckets()
    bins = histogram.merge({histogram.bucket_key(latency): 1} for latency in latencies)
    buckets.add(bins, None)
    counts = [one for one in buckets.samples(()) if one.suffix == "_bucket"]
    for bound, one in zip(BOUNDS_NS, counts, strict=False):
        assert one.value == sum(latency < bound for latency in latencies)
    assert counts[-1].value == len(latencies)


def test_what_is_of_a_moment_is_gone_in_the_end() -> None:
    metrics = folded(session("3.42-a-randread-grp"))
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
    assert all(after[n].samples == one.samples for n, one in before.items()
               if one.kind in ("counter", "histogram"))  # fmt: skip


def test_runs_findings_and_expectations_are_counted() -> None:
    failed = StepFinished(1.0, 1, 1, "fio failed", False)
    judged = ExpectationChecked(
        1.0, 1, "iops>=5", "fio.total.iops", "1/s", ">=", 5, 5, 4.0, False, 0.0
    )
    said = FindingReported(1.0, Finding("deep", NASTY))
    found = families(folded([failed, judged, said, said]))
    assert found["iopstui_runs_failed"].value("_total") == 1
    assert found["iopstui_findings"].value("_total", rule="deep") == 2
    assert found["iopstui_expectation_met"].value(expectation="iops>=5") == 0


def test_another_target_takes_the_place_of_the_gauges_and_adds_to_the_counters() -> None:
    metrics = folded([FrameReady(1.0, frame(1.0, {"vda": rates(reads=5)}))])
    metrics.watches(Target("device", "/dev/vdb", "vdb", ("vdb",)))
    assert "iopstui_disk_in_flight" not in families(metrics)
    metrics.handle(FrameReady(1.0, frame(1.0, {"vdb": rates(reads=7)})))
    found = families(metrics)
    assert found["iopstui_disk_reads"].value("_total", device="vda") == 5
    assert found["iopstui_disk_reads"].value("_total", device="vdb") == 7
    assert found["iopstui"].value("_info", version=_version(), host="host-1", target="/dev/vdb")


def _version() -> str:
    from iopstui import __version__

    return __version__


def test_the_guide_names_every_metric(root: Path) -> None:
    text = (root / "docs" / "guide" / "monitoring.md").read_text()
    for name in (*COUNTERS, *HISTOGRAMS, *GAUGES):
        short = name.replace("written", "read").replace("writes", "reads").replace("write", "read")
        assert f"`{name}`" in text or f"`{name}_total`" in text or f"`{short}_total`" in text, name
