"""What NVMe drives report of themselves, and what is no finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from evidence_frames import device, disk, fired, seconds

from iopstui.model.findings.diagnosis import reported_findings
from iopstui.model.findings.evidence import Evidence
from iopstui.model.findings.finding import Finding
from iopstui.model.findings.rules.drive import (
    drive_throttling,
    drive_wear,
    media_errors,
    volume_limit,
    write_amplification,
)
from iopstui.model.metrics.aws import VolumeGrowth
from iopstui.model.metrics.nvme import UNIT_BYTES
from iopstui.model.samples import DriveReading

HEALTHY = {
    "kelvin": 310, "critical_warning": 0, "spare": 100, "spare_threshold": 10, "used": 3,
    "media_errors": 5, "thermal_1": 7, "thermal_2": 1, "thermal_1_s": 90, "thermal_2_s": 4,
    "warning_min": 6, "critical_min": 2, "units_written": 0, "media_bytes_written": 0,
    "capacity": 1 << 40,
}  # fmt: skip
RULES = (
    drive_throttling,
    media_errors,
    drive_wear,
    write_amplification,
)


def drive(w_s: float = 0.0, **now: int) -> Evidence:
    frames = seconds(3, step=0, disks={"nvme0n1": disk(0.0, w_s, size=1 << 20)})
    reading = DriveReading({**HEALTHY, **now}, HEALTHY)
    return Evidence(tuple(frames), devices=[device(name="nvme0n1")], drives={"nvme0": reading})


@pytest.mark.parametrize("rule", RULES)
def test_a_drive_s_past_is_no_finding(rule) -> None:  # type: ignore[no-untyped-def]
    assert rule(drive()) is None
    assert rule(Evidence((), drives={})) is None
    # a drive that reports nothing
    assert rule(Evidence((), drives={"nvme0": DriveReading({}, {})})) is None


def test_throttling_during_the_run() -> None:
    found = fired(drive_throttling(drive(kelvin=350, thermal_1=9, thermal_1_s=121)))
    assert "nvme0 throttled itself lightly (2 times, 31 s) since the run began" in found.text
    assert "at 77 °C now" in found.text and "heavily" not in found.text
    found = fired(drive_throttling(drive(thermal_2_s=5)))
    assert "throttled itself heavily (0 times, 1 s)" in found.text


def test_minutes_above_a_limit() -> None:
    found = fired(drive_throttling(drive(warning_min=8, critical_min=3)))
    assert "above its warning temperature for 2 min and was above its critical" in found.text


def test_throttling_says_more_than_heat() -> None:
    both = [
        fired(drive_throttling(drive(thermal_1=8))),
        Finding("hot", "nvme0n1 is at 90", ""),
    ]
    assert [one.rule for one in reported_findings(both, drive())] == ["thermal"]


def test_new_media_errors() -> None:
    found = fired(media_errors(drive(media_errors=6)))
    assert "nvme0 counted 1 media error since the run began, 6 in its life" in found.text
    assert media_errors(drive(media_errors=4)) is None, "a counter that was reset"


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"critical_warning": 1, "spare": 4}, "spare blocks are below the threshold"),
        ({"spare": 9}, "9 % of its spare blocks are left, its threshold is 10 %"),
        ({"critical_warning": 0b1100}, "reliability is degraded and it is read-only"),
        ({"critical_warning": 0b1101}, "the threshold, its reliability is degraded and it is"),
        ({"used": 104}, "104 % of its rated endurance"),
    ],
)
def test_wear(now: dict[str, int], said: str) -> None:
    found = fired(drive_wear(drive(**now))).text
    assert said in found and found.count("spare") <= 1


def test_a_warning_comes_before_another_drive_s_endurance() -> None:
    old, read_only = drive(used=104), drive(critical_warning=8)
    drives = {"nvme0": old.drives["nvme0"], "nvme1": read_only.drives["nvme0"]}
    assert fired(drive_wear(replace(old, drives=drives))).text.startswith("nvme1: it is read-only")


def test_warnings_that_are_no_wear() -> None:
    # heat has rules of its own; a drive that does not count spare blocks reports 0 of 0
    assert drive_wear(drive(critical_warning=2)) is None
    assert drive_wear(drive(spare=0, spare_threshold=0)) is None


def test_write_amplification_and_what_it_means_for_endurance() -> None:
    units = 10_000
    found = fired(write_amplification(drive(
        100.0, units_written=units, media_bytes_written=4 * units * UNIT_BYTES
    )))  # fmt: skip
    # 100 MiB/s are 8.24 TiB a day
    assert "write amplification 4.0; at this rate hosts write the drive 8.2 times" in found.text
    assert "19.1 GiB to its media for 4.77 GiB from the hosts" in found.text


def test_modest_amplification_and_short_runs() -> None:
    units = 10_000
    assert write_amplification(drive(
        units_written=units, media_bytes_written=int(2.9 * units * UNIT_BYTES)
    )) is None  # fmt: skip
    assert write_amplification(drive(units_written=1, media_bytes_written=1 << 30)) is None


def volume(kind: str = "ebs", **ms: int) -> VolumeGrowth:
    limits = dict.fromkeys(("volume_iops", "volume_bytes", "instance_iops", "instance_bytes"), 0)
    us = {**limits, **{name: 1000 * value for name, value in ms.items()}}
    return VolumeGrowth(kind, 1.0, reads=9, writes=9, read_us=9, write_us=9, queue=0, **us)


def exceeding(volumes: Sequence[VolumeGrowth | None]) -> Evidence:
    frames = seconds(len(volumes), step=0, disks={"nvme1n1": disk(9.0)})
    return Evidence([
        replace(frame, aws=None if growth is None else {"nvme1n1": growth})
        for frame, growth in zip(frames, volumes, strict=True)
    ])  # fmt: skip


def test_the_instance_s_limit_is_told_from_the_volume_s() -> None:
    found = fired(volume_limit(exceeding([volume(instance_bytes=ms) for ms in (700, 312, 900)])))
    assert found.text == (
        "for at least 312 ms of each second the demand exceeded the instance's EBS throughput "
        "limit (nvme1n1, in each of the last 3 s, by its own count), not the volume's own limits"
    )
    assert "an instance type" in found.advice and found.disk == "nvme1n1"
    # the volume's own limit was exceeded once, too: then the text does not rule it out
    seldom = [volume(instance_bytes=500), volume(instance_bytes=500),
              volume(instance_bytes=500, volume_iops=1)]  # fmt: skip
    assert fired(volume_limit(exceeding(seldom))).text.endswith("by its own count)")
    both = [volume(instance_iops=400, volume_iops=250)] * 3
    text = fired(volume_limit(exceeding(both))).text
    assert "250 ms of each second the demand exceeded the volume's IOPS limit and for" in text
    assert "400 ms of each second the demand exceeded the instance's EBS IOPS limit" in text


def test_bursts_and_seconds_without_a_page_are_no_limit() -> None:
    much = volume(volume_iops=900)
    for volumes in ([much, volume(volume_iops=99), much], [much, None, much], [much, much],
                    [None] * 3):  # fmt: skip
        assert volume_limit(exceeding(volumes)) is None
