from __future__ import annotations

import pytest
from trees import Tree

from iopstui.linux.counters.cgroup import cpu_stat_files, parse_throttled_us, read_cpu_limits


def found(tree: Tree) -> list[str]:
    top = tree.roots.sys / "fs/cgroup"
    return [str(path.relative_to(top)) for path in cpu_stat_files(tree.roots)]


@pytest.mark.parametrize(
    ("data", "throttled"),
    [
        (b"usage_usec 5\nnr_throttled 3\nthrottled_usec 1234\n", 1234),
        (b"nr_periods 9\nnr_throttled 3\nthrottled_time 1234567\n", 1234),
        (b"usage_usec 5\nuser_usec 5\n", None),  # cpu controller not enabled
        (b"throttled_usec x\n", None),
        (b"", None),
    ],
)
def test_throttled_time_of_both_versions(data: bytes, throttled: int | None) -> None:
    assert parse_throttled_us(data) == throttled


def test_version_2_with_every_group_above(tree: Tree) -> None:
    tree.proc("self/cgroup", "0::/user.slice/session.scope\n")
    for place in ("", "user.slice/", "user.slice/session.scope/"):
        tree.sys(f"fs/cgroup/{place}cpu.stat", "usage_usec 1\n")
    assert found(tree) == ["user.slice/session.scope/cpu.stat", "user.slice/cpu.stat", "cpu.stat"]


def test_version_1_beside_an_empty_version_2(tree: Tree) -> None:
    tree.proc("self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/docker/x\n0::/\n")
    tree.sys("fs/cgroup/cpu,cpuacct/docker/x/cpu.stat", "throttled_time 0\n")
    assert found(tree) == ["cpu,cpuacct/docker/x/cpu.stat"]


def test_a_group_outside_of_the_own_namespace_is_not_followed_there(tree: Tree) -> None:
    tree.proc("self/cgroup", "0::/../../other\n")
    tree.sys("cpu.stat", "throttled_usec 1\n")
    tree.sys("other/cpu.stat", "throttled_usec 1\n")
    tree.sys("fs/cgroup/cpu.stat", "usage_usec 1\n")
    assert found(tree) == ["cpu.stat"]


@pytest.mark.parametrize("text", [None, "", "nonsense", "0::", "1:cpu"])
def test_no_cgroup_no_file(tree: Tree, text: str | None) -> None:
    if text is not None:
        tree.proc("self/cgroup", text)
    assert found(tree) == []


def test_without_a_membership_no_group_is_ours(tree: Tree) -> None:
    tree.sys("fs/cgroup/cpu.stat", "throttled_usec 5\n")
    assert cpu_stat_files(tree.roots) == ()


def test_only_groups_with_a_limit_of_the_cpu_have_one(tree: Tree) -> None:
    tree.proc("self/cgroup", "0::/a/b\n")
    for place, limit in (("a", "20000 100000"), ("a/b", "max 100000")):
        tree.sys(f"fs/cgroup/{place}/cpu.stat", "throttled_usec 77\n")
        tree.sys(f"fs/cgroup/{place}/cpu.max", f"{limit}\n")
    assert read_cpu_limits(tree.roots) == {str(tree.roots.sys / "fs/cgroup/a/cpu.max"): 77}


def test_limits_of_the_cpu_in_version_1(tree: Tree) -> None:
    tree.proc("self/cgroup", "4:cpu,cpuacct:/docker/x\n")
    for place, quota in (("docker/", -1), ("docker/x/", 30_000)):
        tree.sys(f"fs/cgroup/cpu,cpuacct/{place}cpu.stat", "throttled_time 5000\n")
        tree.sys(f"fs/cgroup/cpu,cpuacct/{place}cpu.cfs_quota_us", f"{quota}\n")
    ((file, stopped_us),) = read_cpu_limits(tree.roots).items()
    assert file.endswith("/docker/x/cpu.cfs_quota_us") and stopped_us == 5
