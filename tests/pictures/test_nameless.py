"""The copy of a recording keeps everything except this machine's names."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import nameless
import pytest
from nameless import copy

from iopstui.recording.layout import RecordedDevices
from iopstui.recording.reader import EventRecord, Recording, SampleRecord

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"


def test_everything_but_the_names_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nameless, "HOST", "nobody")
    out = tmp_path / "out.iops"
    copy(RECORDINGS / "run.iops", out)
    with Recording(RECORDINGS / "run.iops") as before, Recording(out) as after:
        assert before.header.kernel.startswith("6.18.44-")
        assert after.header == dataclasses.replace(before.header, host="nobody", kernel="6.18.44")
        before_records, after_records = list(before.records()), list(after.records())
        assert not after.damage and len(before_records) == len(after_records) > 10
        for old, new in zip(before_records, after_records, strict=True):
            if not (isinstance(old, EventRecord) and isinstance(old.value, RecordedDevices)):
                assert old == new


def test_the_own_cost_on_an_emulated_cpu_is_left_out(tmp_path: Path) -> None:
    out = tmp_path / "out.iops"
    copy(RECORDINGS / "run.iops", out, emulated=True)
    for path, known in ((RECORDINGS / "run.iops", True), (out, False)):
        with Recording(path) as recording:
            samples = [one.raw for one in recording.records() if isinstance(one, SampleRecord)]
        assert samples and any(raw.own_busy_s is not None for raw in samples) is known


def test_mount_points_are_left_out(tmp_path: Path) -> None:
    out = tmp_path / "out.iops"
    copy(RECORDINGS / "places.iops", out)
    with Recording(out) as after:
        values = [r.value for r in after.records() if isinstance(r, EventRecord)]
    devices = [d for value in values if isinstance(value, RecordedDevices) for d in value.devices]
    mounts = [mount for device in devices for mount in device.mounts]
    assert all(mount.mountpoint == "/" for mount in mounts)
