"""The command lines of the flight recorder, on a recording made with a fake clock."""

from __future__ import annotations

import csv
import json
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from flight_day import START_S, Flight, Load

from iopstui import events
from iopstui.cli.program import main
from iopstui.cli.runs import watch_disks
from iopstui.errors import UsageError
from iopstui.features.flight.directory import stored_files
from iopstui.features.flight.flight_replay import FlightReplay
from iopstui.features.flight.span import extract
from iopstui.features.flight.thinning import thin
from iopstui.model.answer.use import DiskUse, DiskUser
from iopstui.recording.reader import Recording, SampleRecord, recording_path
from iopstui.recording.replay import ReplayFold

QUIET = Load(reads=100, ms=1.0, busy=10.0)
SLOW = Load(reads=40, ms=400.0, busy=100.0)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes before 03:00 UTC, then two slow minutes, and one more minute."""
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
    assert "  slowest second of vda: 400 ms on average, at 03:00:00" in lines
    assert "I/Os take 400 ms on average" in lines[1]
    then = lines[lines.index("  then:") + 1 :]
    assert [line.split(": ")[1][0] for line in then] == ["●", lines[1][0], "●"]


def test_why_answers_for_a_quiet_time(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = why(recorded, capsys, "--at", "2026-09-27T02:58:10Z")
    assert code == 0 and out.splitlines()[1].startswith("● vda")


def test_why_judges_samples_that_are_closer_than_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flight = Flight(tmp_path)
    flight.run(240, Load(reads=10, ms=400.0, busy=25.0), seconds=0.25)
    flight.end()
    code, out, _ = why(tmp_path, capsys, "--at", "2026-09-27 02:00:10", "--for", "30s")
    assert code == 4 and "I/Os take 400 ms on average" in out and "too short" not in out


def test_a_flight_recording_has_no_parts_of_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "flight"
    assert main(["watch", "--record", f"{place}/", "--interval", "0.5"]) == 2
    assert "samples of a second or more" in capsys.readouterr().err and not place.exists()


def test_why_finds_its_place_in_a_long_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flight = Flight(tmp_path)
    for load, seconds in ((QUIET, 704), (SLOW, 60), (QUIET, 140)):
        flight.run(seconds, load)
        flight.drain()
    flight.end()
    code, out, _ = why(tmp_path, capsys, "--at", "2026-09-27 02:11:30")
    assert code == 4 and "vda is busy: I/Os take 400 ms" in out.splitlines()[1]
    assert out.splitlines()[0] == "2026-09-27 02:11:30 to 2026-09-27 02:12:30"
    code, out, _ = why(tmp_path, capsys, "--at", "2026-09-27 02:13:30")
    assert code == 0 and "answers in 1.00 ms" in out.splitlines()[1]
    # a second just before the requested time is not its slowest second
    for at in ("02:12:46", "02:12:48"):
        _, out, _ = why(tmp_path, capsys, "--at", f"2026-09-27 {at}")
        assert "slowest second of vda: " in out and "slowest second of vda: 400 ms" not in out


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
    assert "It was recorded from 2026-09-27 02:58:00 on." in err
    code, _, err = why(recorded, capsys, "--at", "2026-09-29 03:00")
    assert code == 2 and "It was recorded until 2026-09-27 " in err and " on." not in err


@pytest.mark.parametrize(("seconds", "text"), [(18, "17 s"), (100, "1 min")])
def test_how_long_nothing_waited_from_the_first_sample_on(
    seconds: int, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flight = Flight(tmp_path)
    flight.run(seconds, QUIET)
    flight.end()
    assert main(["watch", str(tmp_path), "--worst", "3"]) == 0
    assert capsys.readouterr().out == f"Nothing waited for a disk in {text} recorded.\n"


@pytest.mark.parametrize("at", ["02:59:38", "02:59:53", "03:00:00", "03:00:04"])
def test_who_did_it_is_known_of_the_first_seconds_and_in_each_hour(
    at: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flight = Flight(tmp_path, after_s=3580)
    users = (DiskUser(42, "cp", "cp", "root", 409_600.0, 0.0, frozenset({"vda"})),)
    for _ in range(40):
        flight.session.disk_use = DiskUse(flight.session.t, 1.0, users, as_root=True,
                                          disks={"vda": (409_600.0, 0.0, 0.1)})  # fmt: skip
        flight.run(1, QUIET)
    flight.end()
    main(["why", str(tmp_path), "--at", f"2026-09-27 {at}", "--for", "5s"])
    assert "cp (42) does all of its bytes" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_not_called_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "2026-09-27T020000Z.iops").write_bytes(b"something else" * 300)
    code, _, err = why(tmp_path, capsys, "--at", "2026-09-27 02:00:10", "--for", "10s")
    assert code == 2 and "Nothing was recorded" not in err
    assert "2026-09-27T020000Z.iops" in err


@pytest.mark.parametrize("is_there", [True, False])
def test_a_recording_that_was_removed_is_not_named_in_the_end(
    is_there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(watch_disks, "watch_summary", lambda totals: "")
    session = SimpleNamespace(recorded=tmp_path / "hour.iops")
    if is_there:
        session.recorded.touch()
    watch_disks._print_summary(session, SimpleNamespace(totals=None), "csv")  # type: ignore[arg-type]
    assert ("recorded to" in capsys.readouterr().err) == is_there


@pytest.mark.parametrize("ipi_every", [1, 100])
def test_samples_from_before_a_file_are_none_of_its_time(
    ipi_every: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flight = Flight(tmp_path, after_s=3580)
    flight.session.ipi_every = ipi_every
    flight.run(60, QUIET)
    flight.end()
    assert main(["watch", str(tmp_path), "--worst", "3"]) == 0
    assert capsys.readouterr().out == "Nothing waited for a disk in 59 s recorded.\n"
    main(["why", str(tmp_path), "--at", "2026-09-27 02:59:45", "--for", "30s"])
    printed = capsys.readouterr()
    assert "set back" not in printed.err and "then:" not in printed.out


@pytest.mark.parametrize("step", [1, 10])
def test_the_slowest_second_is_one_of_the_span(
    step: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flight = Flight(tmp_path)
    for ms in (2.0, 3.0, 4.0, 9.0):  # one second in 15 is slower than the others
        flight.run(14, QUIET)
        flight.run(1, replace(QUIET, ms=ms))
    flight.run(5, QUIET)
    flight.end()
    if step > 1:
        thin(stored_files(tmp_path)[0], step)

    def slowest(begin: int, end: int) -> str:
        main(["why", str(tmp_path), "--at", f"2026-09-27 02:00:{begin:02}", "--for",
              f"{end - begin}s"])  # fmt: skip
        lines = capsys.readouterr().out.splitlines()
        return next((line for line in lines if "slowest second" in line), "")

    # 44 is in the 15 seconds that end at 50; their slowest second until 42 is not recorded
    assert "4.00 ms on average, at 02:00:44" in slowest(10, 45)
    text = slowest(10, 42)
    assert ("3.00 ms on average, at 02:00:29" in text) if step == 1 else not text


def test_a_directory_without_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = why(tmp_path, capsys, "--at", "-2h")
    assert code == 2 and "has no flight recording" in err
    code, _, err = why(tmp_path / "nodir", capsys, "--at", "-2h")
    assert code == 2 and f"There is no directory {tmp_path}/nodir." in err
    assert main(["watch", str(tmp_path), "--worst", "3", "--format", "csv"]) == 2
    assert "--worst has no format csv" in capsys.readouterr().err


def test_a_file_is_no_directory_of_a_flight_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.iops").write_bytes(recording_path("demo").read_bytes())
    code, _, err = why(tmp_path / "a.iops", capsys, "--at", "-2h")
    assert code == 2 and "is a file, not the directory" in err
    assert f"iopstui replay {tmp_path}/a.iops" in err and "watch --record DIR/" in err


def test_a_directory_with_other_files_is_not_recorded_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["watch", "--record", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "has other files" in error and f"--record {tmp_path}/flight/" in error
    assert main(["watch", "--keep", "1d"]) == 2
    assert "are for a directory" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_report_of_a_span_over_the_end_of_an_hour(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    span = ["--from", "2026-09-27 02:59", "--to", "2026-09-27T03:01Z"]
    out = tmp_path / "rows.csv"
    assert main(["report", str(recorded), *span, "-o", str(out)]) == 0
    rows = list(csv.DictReader(out.open()))
    walls = [round(float(row["wall_ms"]) / 1e3) for row in rows]
    assert walls == sorted(set(walls)) and len(walls) >= 119
    assert 0.0 < float(rows[0]["t"]) <= 2.0, "seconds of the span"
    assert START_S + 3540 <= walls[0] <= START_S + 3542 and walls[-1] == START_S + 3660
    reads = [float(row["kernel.disks.vda.r/s"]) for row in rows if row["kernel.disks.vda.r/s"]]
    assert set(reads[1:55]) == {100.0} and set(reads[-55:]) == {40.0}
    page = tmp_path / "page.md"
    assert main(["report", str(recorded), *span, "-o", str(page)]) == 0
    assert "vda is busy" in page.read_text()
    assert main(["report", str(recorded), "--from", "03:01Z", "--to", "2026-09-27"]) == 2
    assert "--from is not before --to" in capsys.readouterr().err


def test_a_span_over_a_restart_of_the_machine(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.run(20, QUIET)
    flight.end()
    flight = Flight(tmp_path, after_s=600)
    flight.clock.ns = 5_000_000_000  # CLOCK_MONOTONIC starts again
    flight.session._counts = [3] * 17
    flight.run(20, QUIET)
    flight.end()
    out = tmp_path / "span.iops"
    extract(tmp_path, START_S, START_S + 700.0, out)
    with Recording(out) as recording:
        fold = ReplayFold(recording.header)
        frames = [event.frame for record in recording.records() for event in fold.feed(record)
                  if event.kind == "frame" and event.frame.disks]  # fmt: skip
        assert recording.index().has_end_marker and not recording.damage
    assert {frame.disks["vda"].r_s for frame in frames} == {100.0}
    assert [round(frame.t) for frame in frames] == [*range(1, 20), *range(601, 620)]


def test_damage_in_the_middle_is_told_by_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flight = Flight(tmp_path)
    flight.run(900, QUIET)
    flight.end()
    [file] = tmp_path.glob("*.iops")
    data = bytearray(file.read_bytes())
    middle = len(data) // 3
    data[middle : middle + 4096] = bytes(4096)
    file.write_bytes(data)
    # another file with only zeros does not stop the commands
    (tmp_path / "2026-09-27T010000Z.iops").write_bytes(bytes(3000))
    commands = (
        ["why", str(tmp_path), "--at", "2026-09-27 02:00:10", "--for", "14m"],
        ["watch", str(tmp_path), "--worst", "3"],
        ["report", str(tmp_path), "--from", "2026-09-27 02:00", "--to", "2026-09-27 02:14",
         "-o", str(tmp_path.parent / "page.md")],
    )  # fmt: skip
    for command in commands:
        assert main(command) == 0
        assert f"{file.name}: the recording is damaged: " in capsys.readouterr().err
    with Recording(file) as recording:
        times = [one.t for one in recording.records() if isinstance(one, SampleRecord)]
    lost_s = next(t for t, after in pairwise(times) if after > t + 30) + 4
    lost = f"02:{int(lost_s) // 60:02}:{int(lost_s) % 60:02}"
    # the first time is lost, the second is after the damage
    for at, code in ((lost, 2), ("02:13", 0)):
        assert main(["why", str(tmp_path), "--at", f"2026-09-27 {at}", "--for", "5s"]) == code
        printed = capsys.readouterr()
        assert f"{file.name}: the recording is damaged" in printed.err
        assert ("No sample" in printed.err) == bool(code) and ("● vda" in printed.out) != bool(code)
    said = list[events.Event]()
    replay = FlightReplay(tmp_path, START_S + 800.0)
    replay.start(said.append)
    while not any(isinstance(event, events.Notice) for event in said):
        time.sleep(0.01)
    replay.close()
    assert any("is damaged" in event.text for event in said if isinstance(event, events.Notice))
    with pytest.raises(UsageError, match="is damaged"):
        thin(next(one for one in stored_files(tmp_path) if one.path == file), 10)
    assert not list(tmp_path.glob("*s.iops*")) and file.read_bytes() == data


def test_what_held_before_damage_is_not_said_of_the_time_behind_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flight = Flight(tmp_path)
    for load, seconds in ((QUIET, 122), (SLOW, 40), (QUIET, 200)):
        flight.run(seconds, load)
    flight.end()
    [file] = tmp_path.glob("*.iops")
    data, place = bytearray(file.read_bytes()), 0
    with Recording(file) as recording:  # the file loses the end of the slow time
        index = recording.index()
        ended = [at for at, one in index.events if index.key_times[2] + 40 < one.t < 170]
        place, behind = ended[0], index.keys[3]
    data[place : place + 30] = bytes(30)
    file.write_bytes(data)
    assert place < behind
    assert main(["watch", str(tmp_path), "--worst", "3"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("2026-09-27 02:02:04 for 38 s: ▲ vda is busy")
    code, out, _ = why(tmp_path, capsys, "--at", "2026-09-27 02:03:10", "--for", "2m")
    assert code == 0 and "■" not in out and "▲" not in out
    with Recording(file) as recording:
        fold = ReplayFold(recording.header)
        rules = [event.answer.rule for record in recording.records() for event in fold.feed(record)
                 if isinstance(event, events.AnswerGiven)]  # fmt: skip
    assert rules[-1] == events.UNREADABLE or rules[-2] == events.UNREADABLE


@pytest.mark.parametrize("at", ["9999-12-31T23:59Z", "0001-01-01T00:00Z", "1969-12-31"])
def test_a_time_of_another_age(at: str, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = why(recorded, capsys, "--at", at)
    assert code == 2 and f"'{at}' is not a time" in err
