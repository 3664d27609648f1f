from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hardware import array, multipath_head, nvme_disk, nvme_sensor, scsi_disk
from hypothesis import given
from hypothesis import strategies as st
from trees import Tree

from iopstui.linux.devices.sysfs import read_devices, read_kernel
from iopstui.linux.kernel_files import Roots, parse_cpu_list, read_text
from iopstui.linux.machine.conditions import ConditionsFiles
from iopstui.linux.nvme.health import counter_reader
from iopstui.model.findings.conditions import (
    Array,
    Conditions,
    DeviceState,
    FileSystemErrors,
    IoLimit,
    Link,
    Temperature,
)

CPU = "devices/system/cpu"
LIMITS = "8:0 riops=50 wbps=max\n9:0 wbps=1000\n259:0 rbps=77\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return machine(Tree(tmp_path))


def machine(tree: Tree) -> Tree:
    """Four CPUs on two nodes; disks of all sorts; a group with limits."""
    tree.sys(f"{CPU}/online", "0-3\n")
    for cpu in range(4):
        tree.sys(f"{CPU}/cpu{cpu}/cpufreq/scaling_governor", "powersave\n")
        tree.sys(f"{CPU}/cpu{cpu}/cpufreq/scaling_cur_freq", f"{cpu + 1}00000\n")
        tree.sys(f"{CPU}/cpu{cpu}/cpuidle/state0/latency", "133\n")
    for node in range(2):
        tree.sys(f"devices/system/node/node{node}/cpulist", f"{2 * node}-{2 * node + 1}\n")
    tree.proc("self/cgroup", "0::/a\n")
    tree.sys("fs/cgroup/cgroup.controllers", "io\n")
    tree.sys("fs/cgroup/a/io.max", LIMITS)
    tree.sys("fs/cgroup/a/cgroup.type", "domain\n")
    tree.sys("fs/cgroup/a/io.stat", "259:0 rios=1 cost.wait=12\n")
    nvme_sensor(tree, nvme_disk(tree).parent / "hwmon0")
    multipath_head(tree)
    disk = scsi_disk(tree)
    tree.attributes(tree.partition(disk, 1, "8:1"), alignment_offset="3584")
    tree.stacked(disk, array(tree, degraded="1"))
    return tree


def read(tree: Tree, *names: str, t: float = 1.0) -> Conditions:
    return ConditionsFiles(tree.roots).read(read_devices(tree.roots), names, t)


def limit(what: str, value: int) -> IoLimit:
    return IoLimit("/a", "io.max", what, value)


def test_every_device_has_what_its_kind_tells(tree: Tree) -> None:
    found = read(tree, "md0", "sda", "nvme0n1", t=7.0)
    assert found.t == 7.0
    assert found.devices == {
        "md0": DeviceState(
            limits=(limit("wbps", 1000),), array=Array("idle", 1, 3), alignment_offset=0
        ),
        "sda": DeviceState(
            queue_depth=32, limits=(limit("riops", 50),), errors=31, timeouts=2, alignment_offset=0
        ),
        "nvme0n1": DeviceState(
            limits=(limit("rbps", 77),),
            iocost_wait_us=12,
            temperature=Temperature(45.85, 81.85),
            link=Link(8.0, 16.0, 2, 4),
            alignment_offset=0,
        ),
    }


def test_the_newest_error_that_ext4_noted_on_a_partition(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000_012.5)
    for name, count, at in (("sda", "0", "0"), ("sda1", "2", "1000000")):
        tree.sys(f"fs/ext4/{name}/errors_count", f"{count}\n")
        tree.sys(f"fs/ext4/{name}/last_error_time", f"{at}\n")
    found = read(tree, "sda", "md0").devices
    assert found["sda"].file_system == FileSystemErrors("sda1", 2, 12.5)
    assert found["md0"].file_system is None


def test_a_path_that_is_lost_is_told_and_the_other_one_asked(tree: Tree) -> None:
    controller = (tree.roots.sys / "class/block/nvme1c1n1/device").resolve()
    tree.attributes(controller, state="connecting")
    state = read(tree, "nvme1n1").devices["nvme1n1"]
    assert (state.lost_paths, state.paths) == ((("nvme1c1n1", "connecting"),), 2)
    assert state.temperature == Temperature(42.0, 81.85)


def test_a_loop_device_without_its_file_is_detached(tree: Tree) -> None:
    loop = tree.disk("loop0", "devices/virtual/block", "7:0", loop__backing_file="/srv/disk.img\n")
    files, devices = ConditionsFiles(tree.roots), read_devices(tree.roots)
    assert not files.read(devices, ("loop0",), 0.0).devices["loop0"].detached
    (loop / "loop/backing_file").unlink()
    assert files.read(devices, ("loop0",), 1.0).devices["loop0"].detached
    never_attached = read_devices(tree.roots)
    assert not files.read(never_attached, ("loop0",), 2.0).devices["loop0"].detached


def test_cpus_where_no_list_is_kept(tree: Tree) -> None:
    (tree.roots.sys / CPU / "online").unlink()
    assert list(ConditionsFiles(tree.roots).read({}, (), 0.0, cpus=(3, 2)).cpus) == [3, 2]
    assert ConditionsFiles(tree.roots).read({}, (), 0.0).cpus == {}


def test_a_device_that_vanished_tells_nothing_and_one_that_is_not_known_is_left_out(
    tree: Tree,
) -> None:
    files, devices = ConditionsFiles(tree.roots), read_devices(tree.roots)
    files.read(devices, tuple(devices), 0.0)
    shutil.rmtree(tree.roots.sys / "class")
    shutil.rmtree(tree.roots.sys / "devices")
    found = files.read(devices, (*devices, "ghost"), 100.0)
    assert set(found.devices) == set(devices)
    assert found.devices["nvme0n1"] == DeviceState(limits=(limit("rbps", 77),), iocost_wait_us=12)
    assert found.devices["sda"] == DeviceState(limits=(limit("riops", 50),))
    gone = (("nvme1c1n1", "gone"), ("nvme1c2n1", "gone"))
    assert found.devices["nvme1n1"] == DeviceState(lost_paths=gone, paths=2)
    assert (found.cpus, found.nodes) == ({}, {})


def test_nothing_at_all(tmp_path: Path) -> None:
    found = ConditionsFiles(Roots.under(tmp_path / "none")).read({}, ("sda",), 3.0)
    assert found == Conditions(3.0)


junk = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        (b"9" * 5000, b"0x" + b"f" * 40, b"-1\n", b"\x00", b"0::/..\n", b"0::/" + b"x/" * 300,
         b"7:blkio:/\xff\n", b"8:0 riops=1\xb2\n", b"0-99999999\n", b"\xd9\xa3\n", b"1e999 GT/s"),
    ),
)  # fmt: skip


def test_any_bytes_in_any_file_are_no_failure(tree: Tree) -> None:
    devices, originals = read_devices(tree.roots), _files(tree)
    files = sorted(originals)

    @given(st.lists(st.tuples(st.integers(0, len(files) - 1), junk), max_size=8))
    def with_bytes(changes: list[tuple[int, bytes]]) -> None:
        for place, data in changes:
            files[place].write_bytes(data)
        source = ConditionsFiles(tree.roots)
        for _ in range(2):
            assert _printable(source.read(devices, tuple(devices), 0.0, cpus=(0, 1, 5)))
        read_kernel(tree.roots)
        for place, _ in changes:
            files[place].write_bytes(originals[files[place]])

    with_bytes()


def _files(tree: Tree) -> dict[Path, bytes]:
    for name in ("sys/kernel/osrelease", "cmdline", "version"):
        tree.proc(name, "")
    tops = (tree.roots.sys, tree.roots.proc)
    found = (path for top in tops for path in top.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in found}


def _printable(found: Conditions) -> bool:
    words = [one.governor or "" for one in found.cpus.values()]
    for state in found.devices.values():
        words += [word for pair in state.lost_paths for word in pair]
        words += [one.group for one in state.limits]
        words.append(state.array.action if state.array else "")
    return all(word.isprintable() for word in words)


def test_this_machine() -> None:
    roots = Roots()
    devices = read_devices(roots)
    found = ConditionsFiles(roots).read(devices, tuple(devices), 1.0)
    assert set(found.devices) == set(devices)
    online = parse_cpu_list(read_text(Path("/sys/devices/system/cpu/online")) or "")
    assert tuple(found.cpus) == online[:64]


def test_nvme_counters_of_a_head_its_paths_and_their_controllers(tree: Tree) -> None:
    block, nvme = tree.roots.sys / "class/block", tree.roots.sys / "class/nvme"
    nvme.mkdir(exist_ok=True)
    for number in (1, 2):
        controller = Path(os.path.realpath(block / f"nvme1c{number}n1/device"))
        (nvme / controller.name).symlink_to(controller)
    tree.attributes(block / "nvme1n1/diag", command_error_count="4", unknown_count="5")
    tree.attributes(block / "nvme1c1n1/diag", multipath_failover_count="2",
                    command_retry_count="many")  # fmt: skip
    tree.attributes(nvme / "nvme2/diag", reset_count="1", reconnect_count="0")
    devices = read_devices(tree.roots)
    states = ConditionsFiles(tree.roots).read(devices, list(devices), 1.0).devices
    assert states["nvme1n1"].nvme == {
        "nvme1n1": {"command_error_count": 4},
        "nvme1c1n1": {"multipath_failover_count": 2},
        "nvme2": {"reset_count": 1, "reconnect_count": 0},
    }
    assert states["nvme0n1"].nvme == {} == states["sda"].nvme, "older kernels have no such files"
    assert counter_reader(tree.roots, devices.values())() == {
        "command_error_count nvme1n1": 4, "multipath_failover_count nvme1c1n1": 2,
        "reset_count nvme2": 1, "reconnect_count nvme2": 0,
    }  # fmt: skip
    assert counter_reader(tree.roots, [devices["nvme0n1"], devices["sda"]])() is None


def test_the_cpu_limit_that_has_stopped_this_process_since_the_last_reading(tree: Tree) -> None:
    files = ConditionsFiles(tree.roots)

    def limit(outer_us: int, inner_us: int) -> str:
        tree.proc("self/cgroup", "0::/a/b\n")
        for place, stopped_us in (("a", outer_us), ("a/b", inner_us)):
            tree.sys(f"fs/cgroup/{place}/cpu.max", "50000 100000\n")
            tree.sys(f"fs/cgroup/{place}/cpu.stat", f"throttled_usec {stopped_us}\n")
        return files.read({}, (), 1.0).cpu_limit

    assert limit(90_000, 100) == "", "it may have been before this run"
    assert limit(90_010, 900).endswith("/fs/cgroup/a/b/cpu.max")
    assert limit(90_010, 900) == ""
