"""Two names of one network file system: the same if a file shows it, maybe the same if they are
alike and it matters."""

from __future__ import annotations

from pathlib import Path

from iopstui.features.fleet.hosts.free_space import (
    MAX_SEARCHED_MARKS,
    SpaceNeed,
    find_marks,
    join_shared,
    join_similar,
    marks_to_find,
    overcommit_messages,
)

GIB = 1 << 30


def need(system: str, gib: float, free: float = 10, size: float = 100, mark: str = "") -> SpaceNeed:
    return SpaceNeed(
        system, f"{system} (nfs4)", int(gib * GIB), int(free * GIB), True, int(size * GIB),
        int(free * GIB), mark or f".iopstui-{system:_>8}",
    )  # fmt: skip


def full(hosts: dict[str, list[SpaceNeed]]) -> bool:
    return bool(list(overcommit_messages(hosts)))


def test_nobody_looks_where_all_would_fit_into_one() -> None:
    hosts = {"a": [need("x", 4)], "b": [need("y", 4)]}
    assert marks_to_find(hosts) == {}
    hosts["c"] = [need("y", 4)]
    # one host of each name is enough, because hosts with the same name share the file system
    assert marks_to_find(hosts) == {"a": [".iopstui-_______y"], "b": [".iopstui-_______x"]}
    # a single name was already compared with its free space, and a host's own disk is not shared
    assert marks_to_find({"a": [need("x", 8)], "b": [need("x", 8)]}) == {}
    own = SpaceNeed("boot 1", "/dev/vda", 9 * GIB, 10 * GIB)
    assert marks_to_find({"a": [own], "b": [need("x", 8)]}) == {}


def test_what_is_seen_is_one() -> None:
    hosts = {"a": [need("x", 6)], "b": [need("y", 6)], "c": [need("z", 6)]}
    assert not full(hosts) and not full(join_shared(hosts, {"a": [], "b": []}))
    one = join_shared(hosts, {"b": [".iopstui-_______x"]})
    (words,) = overcommit_messages(one)
    assert words.startswith(
        "a, b share one file system (x (nfs4), y (nfs4)): together they would create 12 GiB"
    )
    # also through a third name; a file that no host has made shows nothing
    three = join_shared(hosts, {"b": [".iopstui-_______x"], "c": [".iopstui-_______y"]})
    assert {needs[0].system for needs in three.values()} == {three["a"][0].system}
    assert (
        join_shared(hosts, {"a": [".iopstui-99999999", "../x"], "n": [".iopstui-_______x"]})
        == hosts
    )


def test_file_systems_of_equal_size_may_be_the_same() -> None:
    hosts = {"a": [need("x", 6)], "b": [need("y", 6, free=10.4, size=100.05)]}
    assert not full(hosts)
    (words,) = overcommit_messages(join_similar(hosts), is_certain=False)
    assert words.startswith("a, b may share one file system")
    for other in (need("y", 6, free=12), need("y", 6, size=101)):
        assert not full(join_similar({"a": [need("x", 6)], "b": [other]}))
    # x and z differ too much to be a pair, but both are like y
    chain = {n: [need(n, 4, free=10 + 0.9 * place)] for place, n in enumerate("xyz")}
    assert full(join_similar(chain))
    disks = {n: [SpaceNeed(n, n, 6 * GIB, 10 * GIB, False, GIB, GIB)] for n in "ab"}
    assert not full(join_similar(disks))


def test_only_scratch_directories_are_looked_for(tmp_path: Path) -> None:
    own, other = tmp_path / ".iopstui-abcdefgh", tmp_path / ".iopstui-_0000000"
    own.mkdir()
    other.symlink_to("/nowhere")
    (tmp_path / "x").mkdir()
    names = [other.name, "x", f"../{tmp_path.name}/x", ".iopstui-", own.name, ".iopstui-zzzzzzzz"]
    assert find_marks([str(own)], names) == [other.name, own.name]
    assert find_marks([], names) == []
    assert find_marks([str(own)], [".iopstui-zzzzzzzz"] * MAX_SEARCHED_MARKS + [own.name]) == []
