"""Findings about cgroups: who does most of a disk's I/O, and whom its limit slows down."""

from __future__ import annotations

from dataclasses import replace

import pytest
from disks import disk_of
from watch_frames import frame

from iopstui.model.block.device import BlockDevice
from iopstui.model.cgroups import DiskUse, GroupRates
from iopstui.model.findings.conditions import Conditions
from iopstui.model.findings.evidence import Evidence
from iopstui.model.findings.rules.cgroups import (
    cgroup_limit_reached,
    dominant_cgroup,
    needs_cgroup_readings,
)
from iopstui.model.metrics.frame import Frame

VDA = BlockDevice("vda", "/dev/vda", 254, 0, "virtio-blk", 1 << 30)
POD = "/kubepods.slice/kubepods-pod0123abcd_4567_89ab_cdef_0123456789ab.slice/crio-{}.scope"
ONE, OTHER = (POD.format(c * 64) for c in "ab")


def group(path: str, read: float = 0.0, written: float = 0.0, **more: object) -> GroupRates:
    use = DiskUse(read / 4096, written / 4096, read, written)
    return replace(GroupRates(path, {"vda": use}), **more)  # type: ignore[arg-type]


def seconds(*groups: GroupRates, util: float = 90.0, count: int = 4) -> list[Frame]:
    empty = frame(1.0, {}, 1.0)
    disk = disk_of(util=util)
    return [
        replace(empty, seq=n, step=0, t=float(n), disks={"vda": disk}, groups=groups)
        for n in range(count)
    ]


def test_a_pod_s_containers_are_one() -> None:
    each = (group(ONE, written=5e6), group(OTHER, written=3e6), group("/a.service", written=2e6))
    found = dominant_cgroup(Evidence(seconds(*each), devices=[VDA]))
    assert found is not None
    assert found.text.startswith(
        "pod 0123abcd-4567-89ab-cdef-0123456789ab does 80 % of the writes on vda (7.63 of 9.54"
    )
    assert found.rule == "cgroup" and found.key == "u"


def test_the_direction_with_more_bytes_counts() -> None:
    each = (group("/db.service", read=9e6, written=1e5), group("/log.service", written=1e6))
    found = dominant_cgroup(Evidence(seconds(*each), devices=[VDA]))
    assert found is not None and found.text.startswith("db.service does 100 % of the reads on vda")


@pytest.mark.parametrize(
    "frames",
    [
        seconds(group("/a.service", written=5e6), util=20.0),
        seconds(group("/a.service", written=5e6), group("/b.service", written=5e6)),
        seconds(group("/", written=9e6), group("/b.service", written=1e6)),
        seconds(group("/a.service", written=5e6), count=2),
        [replace(one, step=1) for one in seconds(group("/a.service", written=5e6))],
        [replace(one, groups=None) for one in seconds()],
        seconds(),
        [*seconds(group("/a.service", written=9.0), count=2),
         *seconds(group("/b.service", written=9.0), count=2)],
    ],
)  # fmt: skip
def test_silence(frames: list[Frame]) -> None:
    """No finding if the disk is quiet, two groups do the same, the kernel does the I/O, there are
    too few seconds, a job runs, the groups were not read, there are none, or two groups take
    turns."""
    assert dominant_cgroup(Evidence(frames, devices=[VDA])) is None
    assert cgroup_limit_reached(Evidence(frames, devices=[VDA])) is None


def test_what_was_read_beside_the_samples_is_enough_for_a_while() -> None:
    frames = [replace(one, groups=None, t=one.t + 20) for one in seconds()]
    groups = (group("/a.service", written=5e6),)
    for t, told in ((15.0, True), (2.0, False)):
        evidence = Evidence(frames, devices=[VDA], conditions=Conditions(t, groups=groups))
        assert (dominant_cgroup(evidence) is not None) is told
        assert needs_cgroup_readings(evidence)
    assert not needs_cgroup_readings(Evidence(seconds(util=20.0), devices=[VDA]))


def test_a_group_at_its_limit_in_all_seconds() -> None:
    limited = {"io_limits": {("vda", "wbps"): 1 << 20, ("vda", "riops"): 500}}
    full = group("/a.service", written=0.97 * (1 << 20), pressure={"io.some": 88.0}, **limited)
    idle = group("/a.service", written=0.5 * (1 << 20), **limited)
    found = cgroup_limit_reached(Evidence(seconds(idle, full, util=1.0), devices=[VDA]))
    assert found is None, "the first of one path is meant"
    found = cgroup_limit_reached(Evidence(seconds(full, util=1.0), devices=[VDA]))
    assert found is not None
    assert found.text == (
        "a.service does all that io.max lets it: wbps=1048576 (1.00 MiB/s); its tasks wait for "
        "I/O 88 % of the time"
    )
    another = replace(idle, path="/b.service")
    beside = cgroup_limit_reached(Evidence(seconds(another, full, util=1.0), devices=[VDA]))
    assert beside == found, "one below its limit does not hide another"
    frames = [*seconds(full, count=3), *seconds(idle, count=1)]
    assert cgroup_limit_reached(Evidence(frames, devices=[VDA])) is None
