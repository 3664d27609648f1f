"""Cgroups by their numbers, in a tree of files: a number opens a directory, as in the kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trees import Tree

from iopstui.linux.counters.cgroup import CgroupPaths
from iopstui.linux.kernel_files import Roots


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CgroupPaths:
    tree = Tree(tmp_path)
    tree.sys("fs/cgroup/system.slice/a.service/io.stat", "")
    (tmp_path / "other").mkdir()
    top = tree.roots.sys / "fs/cgroup"
    places = {1: top, 7: top / "system.slice/a.service", 8: tmp_path / "other"}
    asked: list[int] = []

    def opened(self: CgroupPaths, mount: int, number: int) -> int:
        asked.append(number)
        return os.open(places[number], os.O_PATH) if number in places else -1

    monkeypatch.setattr(CgroupPaths, "_open", opened)
    found = CgroupPaths(tree.roots)
    found.asked = asked  # type: ignore[attr-defined]
    return found


def test_a_number_is_a_path_below_the_mount_point(paths: CgroupPaths) -> None:
    assert [paths.path(number) for number in (7, 1)] == ["/system.slice/a.service", "/"]
    assert paths.path(7) == "/system.slice/a.service"
    assert paths.asked == [7, 1], "each is looked up once"  # type: ignore[attr-defined]


def test_one_that_is_gone_or_elsewhere_has_no_path(paths: CgroupPaths) -> None:
    assert [paths.path(number) for number in (8, 9)] == ["", ""]


def test_nothing_stays_open(paths: CgroupPaths) -> None:
    before = os.listdir("/proc/self/fd")
    for number in (1, 7, 8, 9):
        paths.path(number)
    paths.close()
    paths.close()
    assert os.listdir("/proc/self/fd") == before


def test_without_cgroups_there_is_none(tmp_path: Path) -> None:
    assert CgroupPaths(Roots(sys=tmp_path)).path(1) == ""
