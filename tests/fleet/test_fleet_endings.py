"""Fleets that end badly: they do not wait for a host that never comes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_schema import check_line

from iopstui.cli.program import main
from iopstui.errors import EXIT_MISSING
from iopstui.features.fleet import fleet as fleets
from iopstui.features.fleet.fleet import Fleet, FleetCallbacks, FleetOptions
from iopstui.features.fleet.hosts.nodes import parse_nodes
from iopstui.features.fleet.merging.merger import Merger, certify_merge
from iopstui.features.fleet.program import run_planner
from iopstui.features.fleet.program.run_planner import RecordFile

FAKE = Path(__file__).parents[1] / "helpers" / "fake_agent.py"


class Ran:
    """A fleet of fake agents, run to its end."""

    def __init__(self, hosts: str, least: int = 0, stop_on_loss: bool = False,
                 greet_within_s: float = fleets.CONNECT_TIMEOUT_S) -> None:  # fmt: skip
        self.said: list[str] = []
        self.rows: list[tuple[str, dict[str, Any]]] = []
        self.merger = Merger()
        nodes = parse_nodes(hosts)
        self.fleet = Fleet(
            nodes,
            lambda node: [sys.executable, str(FAKE), node.host, ""],
            lambda node: {"job": "x", "arguments": []},
            self.merger,
            FleetOptions(least or len(nodes), stop_on_loss, connect_timeout_s=greet_within_s),
            FleetCallbacks(
                self.said.append, lambda second: None, lambda *row: self.rows.append(row),
                lambda second: "",
            ),
        )  # fmt: skip
        self.fleet.run()

    @property
    def lost(self) -> list[str]:
        return [name for name, one in self.fleet.members.items() if one.is_lost]


def test_all_lost_at_once_is_an_end_and_what_they_had_is_counted() -> None:
    ran = Ran("die[1-3]")
    assert ran.lost == ["die1", "die2", "die3"]
    assert sum("its connection has ended" in words for words in ran.said) == 3
    found = certify_merge(ran.merger)
    assert (found.hosts, found.finished, found.lost) == (3, 0, ("die1", "die2", "die3"))
    assert found.ios == 300 and found.fio_ios is None


def test_all_stop_when_all_are_lost() -> None:
    ran = Ran("die[1-2]", stop_on_loss=True)
    assert ran.lost == ["die1", "die2"]
    assert ran.fleet.stop_reason in ("die1 is lost", "die2 is lost")


def test_one_that_is_ready_and_never_starts_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleets, "START_TIMEOUT_S", 4)
    ran = Ran("good[1-2],deaf")
    assert ran.lost == ["deaf"]
    assert ran.fleet.members["deaf"].error == "it did not start within 4 s of the start signal"
    assert any(words.startswith("deaf: lost: it did not start") for words in ran.said)
    found = certify_merge(ran.merger)
    # the stopped host's last line, that it did nothing, may or may not arrive
    assert found.finished == 2 and not found.differs and found.ios == found.fio_ios == 600


def test_a_launcher_that_waits_in_a_queue_is_waited_for_and_then_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleets, "LAUNCH_NOTICE_S", 0.0)
    ran = Ran("queued,good", least=1, greet_within_s=5.0)
    assert ran.lost == ["queued"]
    said = next(words for words in ran.said if "waiting for the launcher" in words)
    assert "5 s at most (--connect-timeout)" in said
    queued = ran.fleet.members["queued"]
    assert queued.error == (
        "no connection within 5 s: srun: job 7 queued and waiting for resources"
    )
    assert "queue" in queued.hint and "--connect-timeout 1h" in queued.hint
    assert certify_merge(ran.merger).finished == 1


def test_a_host_that_says_no_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleets, "CLOCK_TIMEOUT_S", 4.0)
    ran = Ran("timeless,good", least=1)
    assert ran.lost == ["timeless"]
    assert ran.fleet.members["timeless"].error == "its clock could not be compared within 4 s"
    assert certify_merge(ran.merger).finished == 1


def test_an_abort_in_the_middle_of_a_curve_ends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "curve.jsonl"
    # one host has 100 I/Os a second, two have 200; the third point does not start
    code = main(["fleet", "good1,endless[1-2]", "--job", "randread-4k", "--axis", "hosts=1,2,3",
                 "--launcher", f"{sys.executable} {FAKE} {{host}}", "--format", "jsonl", "--abort",
                 "iops>150 for 2s", "--record", str(record), "--expect", "iops>=50"])  # fmt: skip
    said = capsys.readouterr()
    assert code == 1, said.err
    rows = [json.loads(line) for line in said.out.splitlines()]
    for row in rows:
        check_line(row)
    assert [row["event"] for row in rows] == [
        "session", "sweep", "point_finished", "point_failed", "scaling", "sweep_finished",
    ]  # fmt: skip
    point = rows[2]["point"]
    assert point["hosts"] == 1 and point["iops"] == 100 and point["met"] is True
    assert "all hosts are stopped: --abort iops>150 for 2s" in said.err
    assert "hosts=2 failed: not counted: the job finished on 1 of 2" in said.err
    assert "hosts=3" not in said.err
    kept = [json.loads(line) for line in record.read_text().splitlines()]
    assert [(row["code"], row["how"]) for row in kept if row["event"] == "fleet_over"] == [
        (0, "done"), (1, "failed")
    ]  # fmt: skip
    assert sum(row["event"] == "frame" for row in kept) == 3 + 6


class _OnFullDisk(RecordFile):
    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        super().__init__(path, report)
        assert self._file is not None
        self._file.reconfigure(line_buffering=True)
        with open("/dev/full", "w", encoding="ascii") as full:
            os.dup2(full.fileno(), self._file.fileno())


def test_a_curve_says_once_that_its_recording_has_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_planner, "RecordFile", _OnFullDisk)
    code = main(["fleet", "good[1-2]", "--job", "randread-4k", "--axis", "hosts=1,2",
                 "--launcher", f"{sys.executable} {FAKE} {{host}}", "--format", "jsonl",
                 "--record", str(tmp_path / "curve.jsonl")])  # fmt: skip
    told = capsys.readouterr()
    assert code == EXIT_MISSING and told.out.count('"point_finished"') == 2
    assert told.err.count("has stopped: No space left on device") == 1
    assert told.err.count("the recording is incomplete: ") == 1
