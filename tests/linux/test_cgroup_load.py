"""Counters and rates of cgroups from a tree of files. tests/faults compares with a real kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.linux.counters import cgroup
from iopstui.linux.counters.cgroup import CgroupLoad, CgroupReader
from iopstui.linux.counters.sampler import KernelSampler
from iopstui.linux.kernel_files import Roots
from iopstui.model.cgroups import ROOT_FLAG, SOURCE, counter_name

ID = "ab" * 32


class Machine:
    """A disk vda with a partition, and cgroups."""

    def __init__(self, base: Path, groups: str = "sys/fs/cgroup") -> None:
        disk = base / "sys/devices/virtio/block/vda"
        (disk / "vda1").mkdir(parents=True)
        (disk / "dev").write_text("254:0\n")
        (disk / "vda1/partition").write_text("1\n")
        (base / "sys/class/block").mkdir(parents=True)
        (base / "sys/class/block/vda").symlink_to(disk)
        (base / "sys/class/block/vda1").symlink_to(disk / "vda1")
        self.top = base / groups
        self.top.mkdir(parents=True)
        (base / "proc").mkdir()
        self.roots = Roots.under(base)

    def group(self, path: str, count: int, **files: str) -> None:
        """A cgroup with ``count`` in each counter of vda, and counters of two other disks."""
        place = self.top / path
        place.mkdir(parents=True, exist_ok=True)
        each = " ".join(f"{what}={count}" for what in ("rbytes", "wbytes", "rios", "wios"))
        (place / "io.stat").write_text(f"8:0 rios=7\n254:0 {each} dbytes=0 cost.usage=5\n7:1 \n")
        for name, text in files.items():
            (place / name.replace("_", ".")).write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    (made.top / "cgroup.controllers").write_text("cpu io memory\n")
    return made


def test_rates_of_the_groups_on_a_partition_s_disk(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((10.0, 12.0, 12.5, 14.0))
    monkeypatch.setattr(cgroup.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(cgroup.time, "monotonic_ns", lambda: 0)
    machine.group("", 1000)
    machine.group("system.slice", 100)
    machine.group("system.slice/db.service", 40)
    source = CgroupLoad(("vda1", "vda"), machine.roots)
    assert source.why_not == "" and source.disks == ("vda",) and source.rates() is None
    machine.group("", 1300)
    machine.group("system.slice", 200)
    machine.group("system.slice/db.service", 140)
    found = source.rates() or ()
    assert [(one.path, one.total.reads_s) for one in found] == [
        ("/", 100), ("/system.slice/db.service", 50),
    ]  # fmt: skip
    assert source.rates() is found, "too early for another reading"
    (machine.top / "system.slice/db.service/io.stat").unlink()
    machine.group("system.slice", 205)
    machine.group("", 1305)
    assert [(one.path, one.total.reads_s) for one in source.rates() or ()] == [
        ("/system.slice", 2.5)
    ], "one below is gone, its 140 are not"


def test_why_there_is_nothing(machine: Machine, tmp_path: Path) -> None:
    assert "no disk" in CgroupLoad(("sdz",), machine.roots).why_not
    (machine.top / "cgroup.controllers").write_text("cpu memory\n")
    load = CgroupLoad(("vda",), machine.roots)
    assert "io controller is not mounted" in load.why_not and load.rates() is None
    assert "version 1" not in load.why_not
    (machine.roots.sys / "fs/cgroup/blkio").mkdir()
    assert "limits of version 1 are read" in CgroupLoad(("vda",), machine.roots).why_not
    (tmp_path / "hybrid").mkdir()
    hybrid = Machine(tmp_path / "hybrid", "sys/fs/cgroup/unified")
    (hybrid.top / "cgroup.controllers").write_text("io\n")
    assert CgroupLoad(("vda",), hybrid.roots).why_not == ""


def test_what_is_inside_a_container_or_unit_is_part_of_it(machine: Machine) -> None:
    for path in (f"docker/{ID}/system.slice/x.service", "a.service/worker", "plain/below"):
        machine.group(path, 5)
    for path in (f"docker/{ID}", "docker", "a.service", "plain", ""):
        machine.group(path, 9)
    found = CgroupReader(("vda",), machine.roots).read() or {}
    paths = {name.split(" ", 2)[2] for name in found}
    assert paths == {"/", "/docker", f"/docker/{ID}", "/a.service", "/plain", "/plain/below"}


def test_waiting_and_limits_are_read_of_those_that_did_something(machine: Machine) -> None:
    pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 total=7\n"
    files = {
        "io_pressure": pressure.format(11), "memory_pressure": pressure.format(12),
        "cpu_pressure": pressure.format(13), "cpu_stat": "usage_usec 14\nuser_usec 1\n",
        "memory_current": "15\n", "memory_max": "max\n", "cpu_max": "150000 100000\n",
        "io_max": "8:0 rbps=1\n254:0 rbps=max wbps=16 riops=17 wiops=max\n",
    }  # fmt: skip
    machine.group("a.service", 5, **files)
    machine.group("b.service", 0, **files)
    reader = CgroupReader(("vda",), machine.roots)
    found = reader.read() or {}
    at = "/a.service"
    io = {counter_name(what, at, "vda"): 5 for what in ("rbytes", "wbytes", "rios", "wios")}
    assert {name: n for name, n in found.items() if name.endswith(at)} == io | {
        counter_name("io.some", at): 11, counter_name("io.full", at): 7,
        counter_name("memory.some", at): 12,
        counter_name("memory.full", at): 7, counter_name("cpu.some", at): 13,
        counter_name("cpu.full", at): 7,
        counter_name("cpu.usage", at): 14, counter_name("memory.current", at): 15,
        counter_name("cpu.max", at): 1500,
        counter_name("wbps", at, "vda"): 16, counter_name("riops", at, "vda"): 17,
    }  # fmt: skip
    assert counter_name("io.some", "/b.service") not in found
    for _ in range(cgroup.QUIET_READINGS):
        assert counter_name("io.some", at) in (reader.read() or {})
    assert counter_name("io.some", at) not in (reader.read() or {}), "it has been quiet for long"


def test_damaged_files_and_too_many_groups(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        machine.group(f"{number}.service", 1, io_pressure="Operation not supported\n",
                      cpu_max="max 100000\n", io_max="254:0 riops=\n\n")  # fmt: skip
    machine.group("", 9)
    (machine.top / "0.service/io.stat").write_text("254:0 rios=x wios\n nonsense\n\xff")
    found = CgroupReader(("vda",), machine.roots).read() or {}
    assert not any(name.startswith(("io.some", "cpu.max", "riops")) for name in found)
    monkeypatch.setattr(cgroup, "MAX_CGROUPS", 4)
    found = CgroupReader(("vda",), machine.roots).read() or {}
    rios = {name for name in found if name.startswith("rios")}
    assert len(rios) <= 4 and counter_name("rios", "/", "vda") in found, (
        "the top has what the others did"
    )


def test_only_the_root_of_all_has_no_type(machine: Machine) -> None:
    machine.group("", 1)
    assert counter_name(ROOT_FLAG, "/") in (CgroupReader(("vda",), machine.roots).read() or {})
    (machine.top / "cgroup.type").write_text("domain\n")
    assert counter_name(ROOT_FLAG, "/") not in (CgroupReader(("vda",), machine.roots).read() or {})


def test_a_sample_has_them_if_somebody_asks(machine: Machine) -> None:
    machine.group("", 3)
    for others in ({}, {SOURCE: CgroupReader(("vda",), machine.roots).read}):
        sampler = KernelSampler(machine.roots, [], [], more_sources=others)
        more = sampler.sample().more
        sampler.close()
        assert ("cgroups" in more) == bool(others)
