"""Names of hosts: ranges, users, ports, files, groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import Missing, UsageError
from iopstui.fleet.nodes import Node, expand, nodes_of


def names(text: str) -> list[str]:
    return [node.name for node in nodes_of(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", ["a"]),
        ("a,b c", ["a", "b", "c"]),
        ("node[01-03,10]", ["node01", "node02", "node03", "node10"]),
        ("n[8-10]", ["n8", "n9", "n10"]),
        ("n[0-8/4].x", ["n0.x", "n4.x", "n8.x"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("root@a:2222,b", ["a:2222", "b"]),
        ("10.0.0.[1-2]", ["10.0.0.1", "10.0.0.2"]),
    ],
)
def test_ranges(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_a_user_and_a_port() -> None:
    assert nodes_of("root@a:2222") == [Node("a:2222", "a", "root", 2222)]
    assert nodes_of("[fe80::1]:22") == [Node("fe80::1:22", "fe80::1", None, 22)]


@pytest.mark.parametrize("text", [
    "", ",", "-oProxyCommand=x", "a[1-", "a[3-1]", "a[x]", "a,a", "n[1-2],n2", "a b;c", "a$(x)",
    "a[1-99999999]", "user@", "@", "a:b", "a\x1b", "a[1-2/0]",
    # a million; numbers that are none; names that take all memory; ports that are none
    ",".join(f"a{n}[1-9999]" for n in range(100)), "a[1-9999]b[1-9999]", "a" + "[1]" * 3000,
    f"a[{'1' * 5000}]", f"a[1-9/{'9' * 5000}]", f"a[{'0' * 4000}1-9999]", "a" * 5000,
    "a:0", "a:65536", "a:\u0662\u0662", "\uff41", "a@-oProxyCommand=x", "a\0b", "," * 100_000,
])  # fmt: skip
def test_what_is_no_host(text: str) -> None:
    with pytest.raises((UsageError, Missing)):
        nodes_of(text)


@given(st.integers(0, 500), st.integers(0, 60), st.integers(1, 4))
def test_a_range_counts_as_numbers_do(first: int, more: int, width: int) -> None:
    last = first + more
    found = expand(f"n[{first:0{width}d}-{last}]")
    assert [int(name[1:]) for name in found] == list(range(first, last + 1))
    assert {len(name) >= width + 1 for name in found} == {True}


def test_a_file_names_hosts_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# ours\nroot@a:22\n\nn[1-2]  # two\n")
    assert names(f"^{file}") == ["a:22", "n1", "n2"]
    with pytest.raises(UsageError, match="can't be read"):
        nodes_of(f"^{tmp_path / 'none'}")
    file.write_text(f"^{file}")
    with pytest.raises(UsageError, match="names another file"):
        nodes_of(f"^{file}")


def test_a_group_is_asked_of_clustershell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing, match="nodeset"):
        nodes_of("@db")
    nodeset = tmp_path / "nodeset"
    nodeset.write_text('#!/bin/sh\n[ "$3" = @db ] && echo db1 db2\n')
    os.chmod(nodeset, 0o755)
    assert names("@db,x") == ["db1", "db2", "x"]
    with pytest.raises(UsageError, match="no group"):
        nodes_of("@other")
