"""io.stat of cgroups: what each did by itself. Against a real kernel in tests/faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.linux.counters import cgroup_io
from iopstui.linux.counters.cgroup_io import CgroupIo, own, parse_io_stat
from iopstui.linux.roots import Roots

STAT = (
    "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n"
    "254:0 rbytes=1000 wbytes=0 rios=10 wios=0 dbytes=0 dios=0 cost.usage=5\n"
    "7:1 \n"
)


@pytest.mark.parametrize(
    ("numbers", "sums"),
    [
        ({"8:0"}, (1, 2, 4096, 8192)),
        ({"254:0", "8:0"}, (11, 2, 5096, 8192)),
        ({"7:1"}, (0, 0, 0, 0)),
        ({"9:9"}, (0, 0, 0, 0)),
    ],
)
def test_the_disks_that_are_asked_for(numbers: set[str], sums: tuple[int, ...]) -> None:
    assert parse_io_stat(STAT, frozenset(numbers)) == sums
    assert parse_io_stat("254:0 rios=x wios\n nonsense", frozenset(numbers)) == (0, 0, 0, 0)


def test_what_groups_below_did_is_not_counted_twice() -> None:
    counts = {"/": (9, 0), "/a": (5, 0), "/a/b": (3, 0), "/a/c": (2, 0), "/x/y": (1, 0)}
    assert own(counts) == {
        "/": (4, 0),
        "/a": (0, 0),
        "/a/b": (3, 0),
        "/a/c": (2, 0),
        "/x/y": (1, 0),
    }


def test_rates_of_the_groups_on_a_partition_s_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tmp_path / "sys/devices/virtio/block/vda"
    (disk / "vda1").mkdir(parents=True)
    (disk / "dev").write_text("254:0\n")
    (disk / "vda1/partition").write_text("1\n")
    (tmp_path / "sys/class/block").mkdir(parents=True)
    (tmp_path / "sys/class/block/vda").symlink_to(disk)
    (tmp_path / "sys/class/block/vda1").symlink_to(disk / "vda1")
    unified = tmp_path / "sys/fs/cgroup/unified"
    busy = unified / "system.slice/db.service"
    busy.mkdir(parents=True)
    roots = Roots(sys=tmp_path / "sys")
    assert not CgroupIo(("vda1",), roots).available, "no io controller"
    (unified / "cgroup.controllers").write_text("cpu io memory\n")
    (busy.parent / "io.stat").write_text("254:0 rbytes=0 wbytes=0 rios=100 wios=0\n")
    (busy / "io.stat").write_text("254:0 rbytes=0 wbytes=0 rios=40 wios=0\n8:0 rios=7\n")
    source = CgroupIo(("vda1", "vda"), roots, least_s=0.0)
    clock = iter((10.0, 12.0, 14.0, 15.0))
    monkeypatch.setattr(cgroup_io.time, "monotonic", lambda: next(clock))
    assert source.available and source.disks == ("vda",) and source.rates() is None
    (busy.parent / "io.stat").write_text("254:0 rbytes=0 wbytes=0 rios=200 wios=0\n")
    (busy / "io.stat").write_text("254:0 rbytes=8192 wbytes=0 rios=140 wios=0\n")
    [found] = source.rates() or ()
    assert (found.name, found.reads_s, found.read_bytes_s) == ("/system.slice/db.service", 50, 4096)
    (busy / "io.stat").write_text("254:0 rbytes=0 wbytes=0 rios=1 wios=0\n")
    assert source.rates() == [], "it went backwards: unknown"
    (busy / "io.stat").unlink()
    (busy.parent / "io.stat").write_text("254:0 rbytes=0 wbytes=0 rios=205 wios=0\n")
    [found] = source.rates() or ()
    assert (found.name, found.reads_s) == ("/system.slice", 5), "one below is gone, its 140 are not"
