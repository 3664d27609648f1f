"""fleet --split, --rotate and --until-steady: the orders to each host, and when all stop."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import pytest

from iopstui.cli.program import main
from iopstui.features.fleet.hosts.host_disks import disk_conflicts
from iopstui.features.fleet.hosts.nodes import parse_nodes
from iopstui.features.fleet.program.agent_orders import AgentOrders

FAKE = Path(__file__).parents[1] / "helpers" / "fake_agent.py"


def parts(hosts: str, rotate: int = 0, running: int | None = None) -> list[str]:
    """The part (--part) of each of the running hosts."""
    nodes = parse_nodes(hosts)
    said = argparse.Namespace(job="randread-4k", target=["/mnt/x"], destroy_data=[], interval=1.0,
                              set=[], knob=[], size=None, bind=None, no_fence=False, record=None,
                              probe=False, split=True, rotate=rotate,
                              until_steady=None)  # fmt: skip
    orders = AgentOrders(said, nodes)
    words = [orders.order_for(node, running)["arguments"] for node in nodes[:running]]
    return [one[one.index("--part") + 1] for one in words]


def test_each_host_has_its_own_part_and_rotated_that_of_another() -> None:
    assert parts("n[1-3]") == ["1/3", "2/3", "3/3"]
    assert parts("n[1-3]", rotate=1) == ["2/3", "3/3", "1/3"]
    assert parts("n[1-3]", rotate=5) == ["3/3", "1/3", "2/3"]
    # one point of a sweep over the number of hosts
    assert parts("n[1-4]", running=2) == ["1/2", "2/2"]


def test_hosts_may_write_to_their_parts_of_one_disk_alone() -> None:
    def disk(area: list[int] | None, *uses: str) -> dict[str, object]:
        return {"name": "sda", "wwid": "w", "writes": "/dev/sda", "area": area, "uses": [*uses]}

    same = {"a": [disk([0, 99])], "b": [disk([0, 99])]}
    assert not [*disk_conflicts(same, parts=True)]
    assert len([*disk_conflicts(same)]) == 2
    # one of them names a partition, or its order does not say what it names
    assert len([*disk_conflicts({**same, "b": [disk([9, 50])]}, parts=True)]) == 2
    assert len([*disk_conflicts({"a": [disk(None)], "b": [disk(None)]}, parts=True)]) == 2
    used = {**same, "b": [disk([0, 99], "sda is mounted")]}
    assert ["in use" in words for words in disk_conflicts(used, parts=True)] == [True]


@pytest.mark.parametrize("words, says", [
    (["--split"], "--split needs a --job"),
    (["--rotate", "--job", "randread-4k"], "--rotate is for the parts of --split"),
    (["--split", "--rotate", "4", "--job", "randread-4k"], "gives each host its own part"),
    (["--split", "--rotate", "0", "--job", "randread-4k"], "is not a number of hosts"),
    (["--until-steady"], "--until-steady needs a --job"),
    (["--until-steady", "--job", "randread-4k", "--axis", "hosts=1,2"], "work with --axis"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["fleet", "n[1-2]", "/mnt/x", *words, "--format", "table"])
    except SystemExit as error:
        code = int(str(error.code))
    assert code == 2 and says in capsys.readouterr().err


@pytest.mark.parametrize("expect, code", [("iops>=150", 0), ("iops>=300", 4)])
def test_all_stop_when_their_total_is_steady_and_that_is_no_interruption(
    expect: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    got = main(["fleet", "steady[1-2]", "--job", "randread-4k", "--format", "jsonl",
                "--launcher", f"{sys.executable} {FAKE} {{host}}", "--until-steady", "1s",
                "--expect", expect])  # fmt: skip
    said = capsys.readouterr()
    assert got == code, said.err
    # a busy machine may notice the fifth second late
    assert re.search(r"all hosts are stopped: steady after 0:0[5-9]", said.err)
    (whole,) = [row for row in map(json.loads, said.out.splitlines()) if row["event"] == "merged"]
    assert (whole["hosts"]["finished"], whole["count"]["exact"]) == (2, 2)


def test_hosts_that_never_get_steady_end_by_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    got = main(["fleet", "good[1-2]", "--job", "randread-4k", "--format", "jsonl",
                "--launcher", f"{sys.executable} {FAKE} {{host}}", "--until-steady",
                "1s"])  # fmt: skip
    assert got == 4
    assert "never steady by SNIA's rule" in capsys.readouterr().err
