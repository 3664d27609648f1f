"""Names of hosts: ranges, users, ports, files, groups."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ClusterShell.NodeSet import NodeSet, NodeSetParseError
from hypothesis import given, settings
from hypothesis import strategies as st

from iopstui.errors import Missing, UsageError
from iopstui.features.fleet.hosts.nodes import Node, parse_nodes


def names(text: str) -> list[str]:
    return [node.name for node in parse_nodes(text)]


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
    assert parse_nodes("root@a:2222") == [Node("a:2222", "a", "root", 2222)]
    assert parse_nodes("[fe80::1]:22") == [Node("fe80::1:22", "fe80::1", None, 22)]


@pytest.mark.parametrize("text", [
    "", ",", "-oProxyCommand=x", "a[1-", "a[3-1]", "a[x]", "a,a", "n[1-2],n2", "a b;c", "a$(x)",
    "a[1-99999999]", "user@", "@", "a:b", "a\x1b", "a[1-2/0]", "a[01-100]", "a[1-02]",
    # a million names; invalid numbers; names that need all memory; invalid ports
    ",".join(f"a{n}[1-9999]" for n in range(100)), "a[1-9999]b[1-9999]", "a" + "[1]" * 3000,
    f"a[{'1' * 5000}]", f"a[1-9/{'9' * 5000}]", f"a[{'0' * 4000}1-9999]", "a" * 5000,
    "a:0", "a:65536", "a:\u0662\u0662", "\uff41", "a@-oProxyCommand=x", "a\0b", "," * 100_000,
])  # fmt: skip
def test_what_is_no_host(text: str) -> None:
    with pytest.raises((UsageError, Missing)):
        parse_nodes(text)


def test_a_file_names_hosts_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# ours\nroot@a:22\n\nn[1-2]  # two\n")
    assert names(f"^{file}") == ["a:22", "n1", "n2"]
    with pytest.raises(UsageError, match=r"The file .* does not exist"):
        parse_nodes(f"^{tmp_path / 'none'}")
    file.write_text(f"^{file}")
    with pytest.raises(UsageError, match="refers to another hosts file, which is not supported"):
        parse_nodes(f"^{file}")


# right and wrong texts: numbers with and without zeros, steps, several ranges
NUMBER = st.builds(lambda n, width: f"{n:0{width}d}", st.integers(0, 25), st.integers(0, 3))
RANGE = st.one_of(
    NUMBER,
    st.builds("{}-{}".format, NUMBER, NUMBER),
    st.builds("{}-{}/{}".format, NUMBER, NUMBER, st.integers(0, 9)),
    st.sampled_from(["", "-", "1-", "x", "1,"]),
)
RANGES = st.lists(RANGE, min_size=1, max_size=3).map(lambda found: f"[{','.join(found)}]")
BEFORE = st.sampled_from(["n", "node", "a-", "r1c", "x.", "10.0."])
AFTER = st.sampled_from(["", "n", "-", ".x", "-ib"])


@settings(max_examples=300)
@given(BEFORE, RANGES, AFTER, st.one_of(st.just(""), RANGES))
def test_a_set_is_what_clustershell_takes_it_for(
    before: str, first: str, between: str, second: str
) -> None:
    text = before + first + between + (second if between else "")
    try:
        theirs = {*NodeSet(text)}
    except NodeSetParseError:
        with pytest.raises(UsageError):
            parse_nodes(text)
        return
    assert {*names(text)} == theirs


GROUPS = """[Main]
default: roles
[roles]
map: sed -n 's/^$GROUP: //p' $CFGDIR/groups
all: sed 's/.*: //' $CFGDIR/groups
list: sed 's/:.*//' $CFGDIR/groups
"""
ASKED = (
    "import sys; from iopstui.features.fleet.hosts.nodes import parse_nodes\n"
    "for text in sys.argv[1:]:\n"
    "    try: print(*(node.name for node in parse_nodes(text)))\n"
    "    except Exception as error: print(type(error).__name__)"
)


@pytest.mark.parametrize("way", ["package", "program"])
def test_groups_and_sets_less_others_are_clustershell_s(way: str, tmp_path: Path) -> None:
    (tmp_path / "groups.conf").write_text(GROUPS)
    (tmp_path / "groups").write_text("db: db[1-3]\nweb: web[1-2],db3\n")
    mark = tmp_path / "mark"
    asked = {
        "@db": "db1 db2 db3", "x,@roles:web": "x db3 web1 web2", "@db!db2": "db1 db3",
        "@db&@web": "db3", "web*": "web1 web2", "n[1-9]!n[2-8],x": "n1 n9 x",
        # never fewer hosts than the user meant: ClusterShell treats an unknown group as empty
        "@typo": "UsageError", "@typo,x": "UsageError", "@db!@typo": "UsageError",
        "db1!db1": "UsageError", "@no:db": "UsageError", "n[1-9]!": "UsageError",
        "^/etc/hosts!x": "UsageError", "n[1-99999999]!n1": "UsageError",
        "@db,db1": "UsageError", "a^-oProxyCommand=x": "UsageError",
        f"@$(touch${{IFS}}{mark})": "UsageError",
    }  # fmt: skip
    if way == "program":  # one process for each text
        asked = {text: asked[text] for text in ("@db", "@db!db2", "@typo,x", "n[1-9]!")}
    script = "import sys; sys.modules['ClusterShell.NodeSet'] = None\n" if way == "program" else ""
    done = subprocess.run(
        [sys.executable, "-c", script + ASKED, *asked], capture_output=True, text=True, check=True,
        env={**os.environ, "CLUSTERSHELL_CFGDIR": str(tmp_path), "HOME": str(tmp_path),
             "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert dict(zip(asked, done.stdout.splitlines(), strict=True)) == asked
    assert not mark.exists()


def test_without_clustershell_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ClusterShell.NodeSet", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    for text in ("@db", "n[1-3]!n2"):
        with pytest.raises(Missing, match="not installed here"):
            parse_nodes(text)
    # single hosts need no ClusterShell, and Slurm can expand its own sets
    assert names("root@b,a:22 c") == ["b", "a:22", "c"]
    with pytest.raises(Missing, match="needs ClusterShell"):
        parse_nodes("n[1-3]")
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\n[ "$*" = "show hostnames n[1-3]" ] && echo "n1\nn2\nn3"\n')
    scontrol.chmod(0o755)
    assert names("n[1-3]") == ["n1", "n2", "n3"]


def test_a_hosts_file_without_an_end_is_refused() -> None:
    with pytest.raises(UsageError, match="is longer than 8 MiB"):
        parse_nodes("^/dev/zero")
