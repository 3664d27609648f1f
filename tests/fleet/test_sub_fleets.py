"""fleet --gateways: real gateways with made-up hosts; all adds up as without them."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from made import START_MS, frame

from iopstui.cli.program import main
from iopstui.fleet.hosts.free_space import SpaceNeed
from iopstui.fleet.hosts.member import Member
from iopstui.fleet.hosts.nodes import parse_nodes
from iopstui.fleet.hosts.orders import is_order
from iopstui.fleet.merging.certificate import certify_merge
from iopstui.fleet.merging.merger import Merger
from iopstui.fleet.sub_fleet import marking_hosts, sub_fleet_disks, total_space_needs
from iopstui.output.fleet.rows import merged_object, second_object, session_object

FAKE = Path(__file__).parents[1] / "helpers" / "fake_agent.py"
ROOT = Path(__file__).parents[2]
Row = dict[str, Any]


@pytest.fixture
def launcher(tmp_path: Path) -> str:
    """A launcher whose gateways are the real agent, and whose hosts are made up."""
    script = tmp_path / "launch"
    script.write_text(f"""#!/bin/sh
case $1 in
    g[0-9]) cd {ROOT}; exec {sys.executable} -m iopstui agent;;
    gone*) echo no route to it >&2; exit 1;;
esac
exec {sys.executable} {FAKE} "$@"
""")
    script.chmod(0o755)
    return f"{script} {{host}}"


def fleet(hosts: str, launcher: str, *words: str) -> list[str]:
    return ["fleet", hosts, "--gateways", "g[1-2]", "--launcher", launcher, "--job", "randread-4k",
            "--format", "jsonl", *words]  # fmt: skip


def whole(rows: list[Row]) -> Row:
    (row,) = [row for row in rows if row["event"] == "merged"]
    return {**row["hosts"], **row["count"], "lost": row["lost"]}


def test_the_totals_of_two_sub_fleets_are_those_of_their_hosts(
    launcher: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(fleet("good[1-5]", launcher, "--expect", "iops>=450")) == 0
    said = capsys.readouterr()
    found = whole([*map(json.loads, said.out.splitlines())])
    assert (found["total"], found["finished"], found["exact"]) == (5, 5, 5)
    assert found["ios"] == found["fio_ios"] == 1500
    assert "on all hosts" in said.err and "PASS  iops>=450" in said.err


def test_hosts_that_are_lost_below_are_named_and_fewer_may_do(
    launcher: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(fleet("good1,gone1,good2,die1", launcher, "--min-hosts", "3")) == 1
    said = capsys.readouterr()
    assert "g1: gone1 is left out: its connection has ended: no route to it" in said.err
    assert "g2: die1: is lost: its connection has ended" in said.err
    found = whole([*map(json.loads, said.out.splitlines())])
    assert (found["finished"], found["exact"]) == (2, 2)
    assert "die1" in found["lost"] and found["ios"] == 700


def test_none_starts_if_one_is_not_ready(launcher: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(fleet("good[1-3],gone1", launcher)) == 1
    said = capsys.readouterr()
    assert "2 of 4 hosts are ready, so none was started" in said.err
    assert "g2: gone1: its connection has ended: no route to it" in said.err and not said.out


@pytest.mark.parametrize("dies", ["gateway", "fleet"])
def test_a_lost_sub_fleet_is_its_hosts_lost_and_nothing_is_left(launcher: str, dies: str) -> None:
    words = [sys.executable, "-m", "iopstui", *fleet("endless[1-4]", launcher)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=ROOT) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        rows = map(json.loads, process.stdout)
        assert any(row.get("hosts", {}).get("counted") == 4 for row in rows)
        below = psutil.Process(process.pid).children(recursive=True)
        gateways = [one for one in below if one.cmdline()[-1] == "agent"]
        assert len(gateways) == 2 and len(below) == 6
        if dies == "fleet":
            process.kill()
        else:
            gateways[0].kill()
            assert any("is lost with its 2 hosts" in line for line in process.stderr)
            process.send_signal(signal.SIGINT)
        _, left = psutil.wait_procs(below, timeout=6)
        assert not left
        rest = [*rows]
        assert process.wait(10) == (-9 if dies == "fleet" else 1)
    if dies == "gateway":
        found = whole(rest)
        assert found["total"] == 4 and len(found["lost"]) == len(found["unchecked"]) == 2
        assert found["interrupted"] == sorted({f"endless{n}" for n in range(1, 5)}
                                              - {*found["lost"]})  # fmt: skip


@pytest.mark.parametrize("words, says", [
    (["--record", "x"], "does not work with --record"),
    (["--axis", "hosts=1,2"], "does not work with --axis"),
    (["--expect", "each.iops>=1"], "does not work with --expect each."),
    (["--gateways", "g[1-9]"], "9 gateways for 4 hosts"),
])  # fmt: skip
def test_what_gateways_cannot_do(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(fleet("h[1-4]", "x", *words)) == 2
    assert says in capsys.readouterr().err


def rows_below(ios: int) -> list[Row]:
    """The rows of a sub-fleet of a1 and a2 in three seconds, through JSON."""
    merger = Merger()
    for name in ("a1", "a2"):
        for n in range(3):
            merger.feed(name, frame(name, random.Random(n), n + 1.0,
                                    START_MS + 1000 * (n + 1), ios=ios))  # fmt: skip
    seconds = [second_object(one, "g1") for one in merger.finish()]
    found: list[Row] = json.loads(
        json.dumps([session_object("g1"), *seconds, merged_object(merger, "g1")])
    )
    return found


def test_what_a_lost_sub_fleet_had_sent_is_counted_once() -> None:
    *rows, last = rows_below(50)
    for ends in (False, True):
        merger = Merger()
        merger.add_sub_merger("g1", ["a1", "a2"])
        merger.add_sub_merger("g2", ["b1"])
        merger.feed_all([("g1", row) for row in rows], START_MS / 1000, lambda *told: None)
        merger.mark_lost("g2")
        if ends:
            merger.feed("g1", last)
        seconds = [*merger.close_seconds(), *merger.finish()]
        assert [(one.expected, one.counted) for one in seconds] == [(2, 2)] * 3
        found = certify_merge(merger)
        assert (found.hosts, found.ios) == (3, 300)
        assert {*found.lost} == {"a1", "a2", "b1"}
        total = merger.run_sums().total
        assert total is not None and (total.ios, total.iops) == (300, 100.0)


def test_a_sub_fleet_that_stops_sending_is_missing_with_all_its_hosts() -> None:
    first, *_ = [row for row in rows_below(50) if row["event"] == "total"]
    merger = Merger()
    merger.add_sub_merger("g1", ["a1", "a2"])
    merger.feed("g1", first)
    for n in range(3):
        merger.feed("c", frame("c", random.Random(1), n + 1.0,
                               START_MS + 1000 * (n + 1), ios=7))  # fmt: skip
    merger.mark_lost("g1")
    seconds = [*merger.close_seconds(), *merger.finish()]
    assert [(one.expected, one.counted, one.missing) for one in seconds] == [
        (3, 3, ()), (3, 1, ("a1", "a2")), (3, 1, ("a1", "a2"))
    ]  # fmt: skip


def need(system: str, wanted: int, room: int, shared: bool = True) -> SpaceNeed:
    return SpaceNeed(system, system, wanted, room, shared, 100, room, f".iopstui-{wanted:08d}")


def test_what_is_needed_of_each_file_system_is_added_up() -> None:
    needs = {"a": [need("nfs", 1, 50), need("own", 9, 9, False)], "b": [need("nfs", 2, 40)]}
    found = {one.system: one for one in total_space_needs(needs)}
    assert (found["nfs"].bytes, found["nfs"].available) == (3, 40)
    assert found["nfs"].mark == needs["a"][0].mark and found["own"].bytes == 9
    assert marking_hosts(needs) == ["a"]


def test_disks_of_hosts_below_are_named_with_their_host() -> None:
    (node,) = parse_nodes("a1")
    one = Member(node, ["true"], {})
    one.disks = [{"wwid": "w", "writes": "/dev/sda", "uses": ["sda is mounted"]},
                 {"wwid": "v", "writes": None, "uses": 7}]  # fmt: skip
    first, second = sub_fleet_disks([one])
    assert (first["writes"], first["uses"]) == ("/dev/sda of a1", ["sda is mounted (host a1)"])
    assert (second["wwid"], second["writes"], second["uses"]) == ("v", None, [])
    one.link.close()


FLEET = {
    "hosts": ["a"], "arguments": [["x"]], "launcher": "", "least": 1, "bring": False, "sudo": False,
    "stop_on_loss": False, "assume_apart": False, "parts": False, "interval": 1.0,
    "connect_timeout": 60,
}  # fmt: skip


@pytest.mark.parametrize("wrong", [
    {"hosts": []}, {"hosts": ["a", "b"]}, {"hosts": "a"}, {"hosts": [1]}, {"arguments": [[1]]},
    {"arguments": ["x"]}, {"arguments": None}, {"launcher": None}, {"least": "1"}, {"bring": 1},
    {"interval": 0}, {"interval": "1"}, {"connect_timeout": float("nan")}, {"interval": True},
])  # fmt: skip
def test_an_order_for_a_fleet_is_checked(wrong: Row) -> None:
    order = {"op": "begin", "host": "g1", "job": "randread-4k"}
    assert is_order({**order, "fleet": FLEET})
    assert not is_order({**order, "fleet": {**FLEET, **wrong}})
    assert not is_order({**order, "fleet": []})


def test_names_can_be_read_again() -> None:
    for text in ("a", "root@a:22", "u@[fe80::1]:22", "[fe80::1]"):
        (node,) = parse_nodes(text)
        assert parse_nodes(node.text) == [node]
