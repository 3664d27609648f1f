"""The command lines of the flight recorder, on a recording made with a fake clock."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from flight_day import Flight, Load

from iopstui.cli.program import main

QUIET = Load(reads=100, ms=1.0, busy=10.0)
SLOW = Load(reads=40, ms=400.0, busy=100.0)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes until 03:00 UTC, the next two of which are slow, and a minute behind them."""
    place = tmp_path_factory.mktemp("flight")
    flight = Flight(place, after_s=3480)
    for load, seconds in ((QUIET, 120), (SLOW, 120), (QUIET, 60)):
        flight.run(seconds, load)
    flight.end()
    return place


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def why(recorded: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["why", str(recorded), *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_why_answers_for_a_slow_time_over_the_end_of_an_hour(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = why(recorded, capsys, "--at", "2026-09-27 02:58", "--for", "6m")
    lines = out.splitlines()
    assert (
        code == 4
        and lines[0] == "2026-09-27 02:58:00 to 2026-09-27 03:04:00 (4 min 59 s of it recorded)"
    )
    assert lines[1].startswith("■ vda") or lines[1].startswith("▲ vda")
    assert "  longest second of vda: 400 ms on average, at 03:00:00" in lines
    assert "I/Os take 400 ms on average" in lines[1]
    then = lines[lines.index("  then:") + 1 :]
    assert [line.split(": ")[1][0] for line in then] == ["●", lines[1][0], "●"]


def test_why_answers_for_a_quiet_time(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = why(recorded, capsys, "--at", "2026-09-27T02:58:10Z")
    assert code == 0 and out.splitlines()[1].startswith("● vda")


def test_why_as_json(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = why(recorded, capsys, "--at", "2026-09-27 03:00", "--for", "2m", "--json")
    answer = json.loads(out)
    assert answer["exit_code"] == code == 4 and answer["verdict"] == "waits"
    assert answer["began"] == "2026-09-27T03:00Z" and answer["then"][-1]["disk"] == "vda"


def test_why_says_what_is_recorded_where_the_time_is_not(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = why(recorded, capsys, "--at", "2026-09-26 03:00")
    assert code == 2 and "Nothing was recorded from 2026-09-26 03:00:00" in err
    assert "from 2026-09-27 02:58:00 to" in err


def test_a_directory_without_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = why(tmp_path, capsys, "--at", "-2h")
    assert code == 2 and "has no flight recording" in err


def test_a_directory_with_other_files_is_not_recorded_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["watch", "--record", str(tmp_path)]) == 2
    assert "has other files" in capsys.readouterr().err
    assert main(["watch", "--keep", "1d"]) == 2
    assert "are for a directory" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
