"""Free space that several hosts share is counted once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from iopstui.features.fleet.hosts.free_space import (
    SpaceNeed,
    measure_space_needs,
    overcommit_messages,
    parse_space_needs,
    shared_name,
)
from iopstui.linux.devices.target import mount_of
from iopstui.linux.devices.usage.mounts import MountEntry, parse_mountinfo
from iopstui.linux.kernel_files import Roots

GIB = 1 << 30


def need(system: str, gib: float, room: float) -> SpaceNeed:
    return SpaceNeed(system, f"{system} (nfs4)", int(gib * GIB), int(room * GIB))


def test_what_all_lay_out_is_held_against_what_is_free() -> None:
    hosts = {f"n{i}": [need("nas:/a", 3, 10)] for i in range(1, 4)}
    assert not list(overcommit_messages(hosts))
    hosts["n4"] = [need("nas:/a", 3, 12)]
    (words,) = overcommit_messages(hosts)
    assert words == (
        "n1, n2, n3 and 1 more share nas:/a (nfs4): together they would create 12 GiB of "
        "files there, but only 10 GiB may be used (5 % stays free)"
    )


def test_each_host_s_own_file_system_is_its_own() -> None:
    # a file system that is too small for one host was already refused by that host
    hosts = {"a": [need("x", 3, 2), need("x", 3, 2)], "b": [need("y", 3, 10), need("z", 9, 10)]}
    assert not list(overcommit_messages(hosts))
    # also if two targets of one host are on a file system that other hosts fill
    hosts["c"] = [need("z", 1, 10), need("z", 1, 10)]
    (words,) = overcommit_messages(hosts)
    assert words.startswith("b, c share z (nfs4): together they would create 11 GiB")


@pytest.mark.parametrize(("fstype", "source", "size", "found"), [
    ("nfs4", "nas:/scratch", 5, "nfs nas:/scratch"),
    ("nfs", "nas:/scratch", 6, "nfs nas:/scratch"),
    ("ceph", "10.0.0.1:6789:/", 5, "ceph 10.0.0.1:6789:/"),
    ("cifs", "//nas/share", 5, "cifs //nas/share"),
    ("fuse.glusterfs", "g1:/vol", 5, "glusterfs g1:/vol"),
    ("lustre", "10.0.0.1@tcp:/work", 5, "lustre 10.0.0.1@tcp:/work"),
    ("beegfs", "beegfs_nodev", 5, "beegfs beegfs_nodev 5"),
    ("gpfs", "gpfs0", 7, "gpfs gpfs0 7"),
    ("ext4", "/dev/vda1", 5, ""), ("xfs", "/dev/mapper/vg-data", 5, ""), ("tmpfs", "tmpfs", 5, ""),
    ("btrfs", "/dev/sda", 5, ""), ("overlay", "overlay", 5, ""),
])  # fmt: skip
def test_which_file_system_many_hosts_can_have(
    fstype: str, source: str, size: int, found: str
) -> None:
    assert shared_name(MountEntry(0, 1, "/", "/x", fstype, source), size) == found


def test_the_mount_is_the_deepest_and_the_last() -> None:
    mounts = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:40 / /srv rw - nfs nas:/a rw\n"
        "3 1 0:41 / /srv rw - nfs nas:/b rw\n4 1 0:42 / /srv/x rw - nfs nas:/c rw\n"
    )
    places = ("/srv", "/srv/xy", "/srv/x/y", "/srvx", "/")
    found = [mount_of(place, os.makedev(9, 9), mounts) for place in places]
    assert [one.source for one in found if one] == [
        "nas:/b", "nas:/b", "nas:/c", "/dev/sda1", "/dev/sda1"
    ]  # fmt: skip
    assert mount_of("/srv", os.makedev(9, 9), []) is None


def test_two_places_of_this_machine_are_in_the_same_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    layout = {str(tmp_path / "a"): 5, str(tmp_path / "b"): 7, "/nowhere": 0}
    first, second = measure_space_needs(layout, Roots())
    assert first.system == second.system and (first.bytes, second.bytes) == (5, 7)
    assert first.available > 0
    row = {"event": "planned", "needs": [first.as_object()]}
    assert parse_space_needs(row) == [first]


GOOD = SpaceNeed("a", "b", 1, 1, True, 9, 8, ".iopstui-abcd1234")


@pytest.mark.parametrize("needs", [
    None, {}, [1], [{}], [{"system": "a"}], *([{**GOOD.as_object(), **wrong}] for wrong in (
        {"bytes": -1}, {"bytes": 1.5}, {"room": True}, {"system": 1}, {"size": 1 << 90},
        {"shared": 1}, {"mark": None}, {"free": None}, {"name": []},
    )),
])  # fmt: skip
def test_what_no_agent_says(needs: Any) -> None:
    assert parse_space_needs({"needs": [GOOD.as_object()]}) == [GOOD]
    assert parse_space_needs({"needs": needs}) is None


def test_a_mark_that_is_none_is_not_looked_for() -> None:
    for mark in ("../x", ".iopstui-", ".iopstui-abcd123/", ".iopstui-abcd1234\n", "x"):
        row = {"needs": [{**GOOD.as_object(), "mark": mark}]}
        (found,) = parse_space_needs(row) or []
        assert found.mark == ""
