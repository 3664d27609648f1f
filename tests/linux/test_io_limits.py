from __future__ import annotations

import pytest
from trees import Tree

from iopstui.linux.counters.io_limits import (
    IoLimits,
    parse_cost_qos,
    parse_cost_wait,
    parse_io_max,
    parse_throttle,
)
from iopstui.model.findings.conditions import IoLimit

# as Linux 6.12 writes it; the paths of a multipath head have no number
ROOT_STAT = """\
7:7 
8:0 rbytes=12288 wbytes=0 rios=3 wios=0 dbytes=0 dios=0
(unknown) 
259:2 rbytes=8204288 wbytes=0 rios=2003 wios=0 dbytes=0 dios=0 cost.vrate=100.00 \
cost.usage=223908 cost.wait=17 cost.indebt=0 cost.indelay=0
(unknown) rbytes=12288 wbytes=0 rios=3 wios=0 dbytes=0 dios=0 cost.wait=5
"""


def group(tree: Tree, path: str, **files: str) -> None:
    """A group of cgroup v2 that is not the root; in the keys, "_" stands for "."."""
    tree.sys(f"fs/cgroup/{path}/cgroup.type", "domain\n")
    for name, text in files.items():
        tree.sys(f"fs/cgroup/{path}/{name.replace('_', '.')}", text)


def unified(tree: Tree, membership: str) -> None:
    tree.proc("self/cgroup", membership)
    tree.sys("fs/cgroup/cgroup.controllers", "cpu io memory\n")


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        (
            "254:0 rbps=max wbps=1000000 riops=100 wiops=max\n259:2 rbps=9 wbps=max riops=max\n",
            [("254:0", "wbps", 1000000), ("254:0", "riops", 100), ("259:2", "rbps", 9)],
        ),
        ("254:0 rbps=max wbps=max riops=max wiops=max\n", []),
        ("254:0 rbps=0 wbps=-5 riops= wiops=0x10 other=7 riops\n", []),
        ("(unknown) rbps=7\nrbps=7\n254 rbps=7\n", []),
        (f"254:0 rbps={'9' * 5000}\n", []),
        ("", []),
    ],
)
def test_limits_of_version_2(text: str, limits: list[tuple[str, str, int]]) -> None:
    assert list(parse_io_max(text)) == limits


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("7:1 50\n254:0 1048576\n", [("7:1", 50), ("254:0", 1048576)]),
        ("7:1 0\n7:1\n7:1 x\nDefault 5\n\n7:1 -4\n", []),
    ],
)
def test_limits_of_version_1(text: str, limits: list[tuple[str, int]]) -> None:
    assert list(parse_throttle(text)) == limits


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        (ROOT_STAT, {"259:2": 17}),
        # Linux 5.x writes no line end after a device without counts
        ("8:16 8:0 rios=1 cost.wait=4\n", {"8:0": 4}),
        ("cost.wait=4\n8:0 cost.wait=x cost.wait=-1\n", {}),
        ("", {}),
    ],
)
def test_how_long_iocost_made_a_group_wait(text: str, waits: dict[str, int]) -> None:
    assert parse_cost_wait(text) == waits


def test_limits_of_the_own_group_and_of_all_above_the_tightest_first(tree: Tree) -> None:
    unified(tree, "0::/a.slice/b\n")
    group(tree, "a.slice", io_max="254:0 riops=100 wbps=9\n8:0 riops=7\n")
    group(tree, "a.slice/b", io_max="254:0 riops=200 wbps=max\n")
    # below this process's group: another group's
    group(tree, "a.slice/b/c", io_max="254:0 riops=1\n")
    assert IoLimits(tree.roots).read().limits == {
        "254:0": (
            IoLimit("/a.slice", "io.max", "riops", 100),
            IoLimit("/a.slice/b", "io.max", "riops", 200),
            IoLimit("/a.slice", "io.max", "wbps", 9),
        ),
        "8:0": (IoLimit("/a.slice", "io.max", "riops", 7),),
    }


def test_a_container_s_own_group_is_the_top_of_what_it_sees(tree: Tree) -> None:
    unified(tree, "0::/\n")
    group(tree, "", io_max="254:0 wiops=50\n", io_stat="254:0 cost.wait=8\n")
    found = IoLimits(tree.roots).read()
    assert found.limits == {"254:0": (IoLimit("/", "io.max", "wiops", 50),)}
    assert found.cost_wait_us == {"254:0": 8}


def test_a_path_of_the_host_that_the_container_can_not_see(tree: Tree) -> None:
    unified(tree, "0::/system.slice/docker-1.scope\n")
    group(tree, "", io_max="254:0 wiops=50\n")
    assert list(IoLimits(tree.roots).read().limits) == ["254:0"]


@pytest.mark.parametrize("path", ["/../..", "/../other", "/.."])
def test_the_limits_that_are_seen_from_a_namespace_that_was_left_are_others(
    tree: Tree, path: str
) -> None:
    unified(tree, f"4:blkio:{path}\n0::{path}\n")
    group(tree, "", io_max="254:0 wiops=50\n", io_stat="254:0 cost.wait=8\n")
    tree.sys("fs/cgroup/blkio/blkio.throttle.read_iops_device", "254:0 5\n")
    tree.sys("other/io.max", "254:0 wiops=50\n")
    found = IoLimits(tree.roots).read()
    assert (found.limits, found.cost_wait_us) == ({}, {})


def test_waits_of_the_nearest_group_that_io_is_accounted_to(tree: Tree) -> None:
    unified(tree, "0::/a/b/c\n")
    group(tree, "a", io_stat="254:0 cost.wait=900\n")
    group(tree, "a/b", io_stat="254:0 cost.wait=30\n")
    group(tree, "a/b/c")
    assert IoLimits(tree.roots).read().cost_wait_us == {"254:0": 30}


def test_what_the_root_of_all_counts_is_what_others_waited(tree: Tree) -> None:
    unified(tree, "0::/a\n")
    tree.sys("fs/cgroup/io.stat", ROOT_STAT)
    group(tree, "a")
    assert IoLimits(tree.roots).read().cost_wait_us == {}


QOS = "254:0 enable=1 ctrl=auto rpct=0.00\n8:0 enable=0 ctrl=user\njunk enable=1\n259:0\n"


def test_which_disks_iocost_is_at_work_on(tree: Tree) -> None:
    assert parse_cost_qos(QOS) == {"254:0"}
    unified(tree, "0::/a\n")
    tree.sys("fs/cgroup/io.cost.qos", QOS)
    group(tree, "a")
    limits = IoLimits(tree.roots).read()
    assert (limits.iocost_disks, limits.in_top) == ({"254:0"}, False)


def test_the_root_of_all_passes_iocost(tree: Tree) -> None:
    unified(tree, "0::/\n")
    tree.sys("fs/cgroup/io.cost.qos", QOS)
    limits = IoLimits(tree.roots).read()
    assert (limits.iocost_disks, limits.in_top) == ({"254:0"}, True), "others may wait there"


def test_version_1_has_the_limits_of_the_own_group_alone(tree: Tree) -> None:
    tree.proc("self/cgroup", "7:blkio:/up/own\n1:cpu:/other\n")
    for place, value in (("", 1), ("up/", 2), ("up/own/", 3)):
        for file in ("read_iops", "write_iops", "read_bps", "write_bps"):
            name = f"fs/cgroup/blkio/{place}blkio.throttle.{file}_device"
            tree.sys(name, f"254:0 {value}{len(file)}\n")
    own = "/up/own"
    assert IoLimits(tree.roots).read().limits == {
        "254:0": (
            IoLimit(own, "blkio.throttle.read_iops_device", "riops", 39),
            IoLimit(own, "blkio.throttle.write_iops_device", "wiops", 310),
            IoLimit(own, "blkio.throttle.read_bps_device", "rbps", 38),
            IoLimit(own, "blkio.throttle.write_bps_device", "wbps", 39),
        )
    }


def test_version_1_in_a_container_that_sees_its_own_group_alone(tree: Tree) -> None:
    tree.proc("self/cgroup", "7:blkio:/docker/4711\n")
    tree.sys("fs/cgroup/blkio/blkio.throttle.read_iops_device", "254:0 5\n")
    assert IoLimits(tree.roots).read().limits == {
        "254:0": (IoLimit("/", "blkio.throttle.read_iops_device", "riops", 5),)
    }


def test_version_1_with_controllers_that_share_a_hierarchy(tree: Tree) -> None:
    tree.proc("self/cgroup", "7:blkio,memory:/a\n")
    tree.sys("fs/cgroup/blkio,memory/a/blkio.throttle.read_iops_device", "254:0 5\n")
    both = tree.roots.sys / "fs/cgroup"
    (both / "blkio").symlink_to(both / "blkio,memory")
    assert len(IoLimits(tree.roots).read().limits["254:0"]) == 1
    (both / "blkio,memory").rename(both / "elsewhere")
    (both / "blkio").unlink()
    (both / "blkio").symlink_to(both / "elsewhere")
    assert len(IoLimits(tree.roots).read().limits["254:0"]) == 1


def test_hybrid_with_io_in_version_2(tree: Tree) -> None:
    tree.proc("self/cgroup", "5:memory:/a\n0::/a\n")
    tree.sys("fs/cgroup/unified/cgroup.controllers", "io\n")
    tree.sys("fs/cgroup/unified/a/io.max", "254:0 riops=5\n")
    assert IoLimits(tree.roots).read().limits == {"254:0": (IoLimit("/a", "io.max", "riops", 5),)}


def test_a_group_called_unified_is_none_of_ours(tree: Tree) -> None:
    unified(tree, "0::/\n")
    group(tree, "unified", io_max="254:0 riops=5\n", cgroup_controllers="io\n")
    assert IoLimits(tree.roots).read().limits == {}


def test_moved_to_another_group_limited_anew_and_freed(tree: Tree) -> None:
    unified(tree, "0::/a\n")
    group(tree, "a")
    group(tree, "b", io_max="254:0 riops=5\n")
    limits = IoLimits(tree.roots)
    assert limits.read().limits == {}
    group(tree, "a", io_max="254:0 riops=6\n")
    assert limits.read().limits["254:0"][0].value == 6
    tree.proc("self/cgroup", "0::/b\n")
    assert limits.read().limits["254:0"][0].value == 5
    group(tree, "b", io_max="")
    assert limits.read().limits == {}


@pytest.mark.parametrize(
    "text", [None, "", "nonsense", "0::", "7:blkio", "0::/\0/x", "0::/" + "a" * 5000]
)
def test_no_group_no_limit(tree: Tree, text: str | None) -> None:
    if text is not None:
        tree.proc("self/cgroup", text)
    found = IoLimits(tree.roots).read()
    assert (found.limits, found.cost_wait_us) == ({}, {})


def test_names_of_groups_are_fit_for_a_terminal(tree: Tree) -> None:
    unified(tree, "0::/a\x1b[2J\n")
    group(tree, "a\x1b[2J", io_max="254:0 riops=5\n")
    assert IoLimits(tree.roots).read().limits["254:0"][0].group == "/a?[2J"
