"""A recording keeps all but this machine's names."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import nameless
import pytest
from nameless import copy

from iopstui.recording.layout import RecordedDevices
from iopstui.recording.reader import EventRecord, Recording

KEPT = Path(__file__).parents[1] / "fixtures" / "recordings"


def test_all_but_the_names_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nameless, "HOST", "nobody")
    out = tmp_path / "out.iops"
    copy(KEPT / "run.iops", out)
    with Recording(KEPT / "run.iops") as before, Recording(out) as after:
        assert before.header.kernel.startswith("6.18.44-")
        assert after.header == dataclasses.replace(before.header, host="nobody", kernel="6.18.44")
        there, here = list(before.records()), list(after.records())
        assert not after.damage and len(there) == len(here) > 10
        for one, other in zip(there, here, strict=True):
            if not (isinstance(one, EventRecord) and isinstance(one.value, RecordedDevices)):
                assert one == other


def test_mount_points_are_left_out(tmp_path: Path) -> None:
    out = tmp_path / "out.iops"
    copy(KEPT / "places.iops", out)
    with Recording(out) as after:
        found = [r.value for r in after.records() if isinstance(r, EventRecord)]
    devices = [d for one in found if isinstance(one, RecordedDevices) for d in one.devices]
    mounts = [mount for device in devices for mount in device.mounts]
    assert all(mount.mountpoint == "/" for mount in mounts)
