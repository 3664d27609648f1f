from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.linux.kernel_files import Roots
from iopstui.linux.machine.load import DiskLoads

LINE = "   8 {minor} {name} {reads} 0 {sectors} 0 0 0 0 0 0 {io_ms} 0 0 0 0 0 0 0\n"


def write(proc: Path, *disks: tuple[str, int, int, int, int]) -> None:
    names = ("name", "minor", "reads", "sectors", "io_ms")
    lines = (LINE.format(**dict(zip(names, disk, strict=True))) for disk in disks)
    (proc / "diskstats").write_text("".join(lines))


def test_rates_are_those_since_the_time_before(tmp_path: Path) -> None:
    times = iter((10.0, 12.0, 13.0))
    loads = DiskLoads(Roots(proc=tmp_path), lambda: next(times))
    write(tmp_path, ("sda", 0, 100, 800, 50))
    assert loads() == {}
    write(tmp_path, ("sda", 0, 300, 8800, 550), ("sdb", 16, 7, 7, 7))
    found = loads()
    assert set(found) == {"sda"}
    sda = found["sda"]
    # 200 reads, 8000 sectors of 512 bytes and 500 ms in 2 s
    assert (sda.ios_s, sda.bytes_s, sda.util) == (100.0, 2_048_000.0, pytest.approx(25.0))
    # another device has the name now, so there is no rate
    write(tmp_path, ("sda", 32, 400, 9000, 600), ("sdb", 16, 8, 15, 9))
    assert {name: rates.reads for name, rates in loads().items()} == {"sdb": 1}


def test_only_the_asked_disks_are_read(tmp_path: Path) -> None:
    times = iter((1.0, 2.0, 3.0))
    loads = DiskLoads(Roots(proc=tmp_path), lambda: next(times))
    write(tmp_path, *((f"sd{letter}", minor, 1, 1, 1) for minor, letter in enumerate("abcde")))
    assert loads() == {} and loads(["sdb"]).keys() == {"sdb"}
    assert loads(["sdb", "sdc"]).keys() == {"sdb"}, "of the other one nothing was known"


def test_without_the_file_nothing_is_said(tmp_path: Path) -> None:
    loads = DiskLoads(Roots(proc=tmp_path))
    assert loads() == {} == loads()
