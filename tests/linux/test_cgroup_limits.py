"""Limits that a cgroup has reached, in cgroup v1 and v2."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.linux.counters import io_limits
from iopstui.linux.counters.io_limits import ReachedLimits
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice

DEVICES = {"vda": BlockDevice("vda", "/dev/vda", 254, 0, "virtio-blk", 1 << 30)}


def reached(tmp_path: Path, files: dict[str, str], later: dict[str, str],
            monkeypatch: pytest.MonkeyPatch) -> list[str]:  # fmt: skip
    clock = [10.0]
    monkeypatch.setattr(io_limits.time, "monotonic", lambda: clock[0])
    top = tmp_path / "sys/fs/cgroup"
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    limits = ReachedLimits(Roots.under(tmp_path))
    assert not limits.read(DEVICES)
    clock[0] = 12.0
    for name, text in later.items():
        (top / name).write_text(text)
    return [f"{one.disk} {one.group} {one.text} {one.file}" for one in limits.read(DEVICES)]


@pytest.mark.parametrize(("reads", "expected"), [
    (1195, ["vda /work 100 reads/s io.max"]), (1150, []),
])  # fmt: skip
def test_version_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: int, expected: list[str]
) -> None:
    files = {"cgroup.controllers": "io",
             "work/io.max": "254:0 rbps=max wbps=max riops=100 wiops=max",
             "work/io.stat": "254:0 rbytes=0 wbytes=0 rios=1000 wios=0"}  # fmt: skip
    later = {"work/io.stat": f"254:0 rbytes=0 wbytes=0 rios={reads} wios=0"}
    assert reached(tmp_path, files, later, monkeypatch) == expected


def test_limits_of_groups_outside_a_container_cannot_be_seen(tmp_path: Path) -> None:
    top = tmp_path / "sys/fs/cgroup"
    top.mkdir(parents=True)
    (top / "cgroup.controllers").write_text("io")
    limits = ReachedLimits(Roots.under(tmp_path))
    assert not limits.outer_groups
    (top / "cgroup.type").write_text("domain")
    assert limits.outer_groups


@pytest.mark.parametrize(("files", "readable"), [
    ({"cgroup.controllers": "cpu io pids"}, True), ({"cgroup.controllers": "cpu pids"}, False),
    ({"unified/cgroup.controllers": "", "blkio/tasks": ""}, True), ({}, False),
])  # fmt: skip
def test_limits_are_readable_where_a_hierarchy_with_io_is_mounted(
    tmp_path: Path, files: dict[str, str], readable: bool
) -> None:
    for name, text in files.items():
        place = tmp_path / "sys/fs/cgroup" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    assert ReachedLimits(Roots.under(tmp_path)).readable is readable


def test_version_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "blkio/work/blkio.throttle.write_bps_device": f"254:0 {4 << 20}",
        "blkio/work/blkio.throttle.io_service_bytes": "254:0 Read 0\n254:0 Write 0\nTotal 0",
    }
    later = {"blkio/work/blkio.throttle.io_service_bytes":
             f"254:0 Read 0\n254:0 Write {8 << 20}\nTotal {8 << 20}"}  # fmt: skip
    assert reached(tmp_path, files, later, monkeypatch) == [
        "vda /work 4 MiB/s written blkio.throttle.write_bps_device"
    ]


def test_the_limit_of_the_top_group_that_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"cgroup.controllers": "io", "io.max": "254:0 riops=100",
             "io.stat": "254:0 rios=1000"}  # fmt: skip
    later = {"io.stat": "254:0 rios=1195"}
    assert reached(tmp_path, files, later, monkeypatch) == ["vda the top cgroup 100 reads/s io.max"]
