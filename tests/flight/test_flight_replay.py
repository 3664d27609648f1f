"""A flight recording as one replay: frames across the ends of files, jumps, pauses, marks."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from flight_day import START_S, Flight, Load

from iopstui import events
from iopstui.cli.program import main
from iopstui.errors import UsageError
from iopstui.features.flight.flight_replay import FlightReplay
from iopstui.model.answer.use import DiskUse, DiskUser
from iopstui.recording.recent import recent_recordings, remember_recording
from iopstui.ui.parts.target import playable

QUIET = Load(reads=100, ms=1.0, busy=10.0)
SLOW = Load(reads=40, ms=400.0, busy=100.0)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes before 03:00, then slow ones; a pause of nine hours; another recorder."""
    place = tmp_path_factory.mktemp("flight")
    flight = Flight(place, after_s=3480)
    for load, seconds in ((QUIET, 120), (SLOW, 120), (QUIET, 60)):
        flight.run(seconds, load)
    flight.end()
    flight = Flight(place, after_s=10 * 3600)
    flight.run(60, QUIET)
    flight.end()
    return place


def played(session: FlightReplay, until: int) -> list[Any]:
    """The events shown until ``until`` frames have come."""
    shown: list[Any] = []
    enough = threading.Event()

    def sink(event: Any) -> None:
        shown.append(event)
        if sum(isinstance(one, events.FrameReady) for one in shown) >= until:
            enough.set()

    session.lookback_s = 10.0
    session.start(sink)
    enough.wait()
    session.close()
    return shown


def frames(shown: list[Any]) -> list[Any]:
    return [event.frame for event in shown if isinstance(event, events.FrameReady)]


def test_seconds_go_on_over_the_end_of_an_hour(recorded: Path) -> None:
    session = FlightReplay(recorded, START_S + 3600.0, 1000.0)
    shown = played(session, 120)
    walls = [round(frame.wall_ms / 1e3) for frame in frames(shown) if frame.disks]
    assert walls[0] >= START_S + 3480 and walls == list(range(walls[0], walls[0] + len(walls)))
    assert walls[0] < START_S + 3600 < walls[-1]
    for frame in frames(shown):
        assert frame.t == pytest.approx(frame.wall_ms / 1e3 - (START_S + 3480), abs=0.01)
        if frame.wall_ms / 1e3 < START_S + 3599 and frame.disks:
            assert frame.disks["vda"].r_s == 100
    assert any(isinstance(event, events.AnswerGiven) and event.answer.state != "good"
               for event in shown)  # fmt: skip


def test_a_replay_knows_who_used_the_disk(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.run(30, QUIET)
    user = DiskUser(42, "postgres", read_s=4e5, devices=frozenset({"vda"}))
    flight.session.disk_use = DiskUse(flight.session.t, 1.0, (user,), as_root=True)
    flight.run(30, QUIET)
    flight.session.disk_use = None
    flight.run(60, QUIET)
    flight.end()
    session = FlightReplay(tmp_path, START_S, 1000.0)
    known: dict[int, tuple[str, ...]] = {}
    ended = threading.Event()

    def sink(event: Any) -> None:
        if isinstance(event, events.FrameReady):
            use = session.disk_use
            known[round(event.t)] = tuple(one.comm for one in use.users) if use else ()
        if isinstance(event, events.Notice):
            ended.set()

    session.start(sink)
    assert ended.wait(30)
    session.close()
    assert known[20] == known[90] == () and known[35] == ("postgres",)


def test_nothing_is_subtracted_over_a_pause_of_the_recorder(recorded: Path) -> None:
    session = FlightReplay(recorded, START_S + 10 * 3600.0 + 5, 1000.0)
    shown = played(session, 20)
    later = [frame for frame in frames(shown) if frame.wall_ms / 1e3 > START_S + 9 * 3600]
    assert later and all(frame.disks["vda"].r_s == 100 for frame in later if frame.disks)


@pytest.fixture(scope="module")
def set_back(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 s from 02:58:00 on, then the clock is set back to 02:58:30 for another 100 s."""
    place = tmp_path_factory.mktemp("set back")
    flight = Flight(place, after_s=3480)
    flight.run(100, QUIET)
    flight.clock.wall_s -= 70
    flight.run(100, SLOW)
    flight.end()
    return place


def seconds_of(shown: list[Any]) -> list[int]:
    """The second since 02:58:00 at which each frame with rates ends."""
    return [round(one.wall_ms / 1e3 - START_S - 3480) for one in frames(shown) if one.disks]


def notices(shown: list[Any]) -> list[str]:
    return [event.text for event in shown if isinstance(event, events.Notice)]


@pytest.mark.parametrize("at", [20, 90])
def test_where_the_clock_was_set_back_both_times_are_played(set_back: Path, at: int) -> None:
    jumps: list[float] = []
    session = FlightReplay(set_back, START_S + 3480.0 + at, 1000.0)
    session.on_jump = lambda: jumps.append(session._t)
    shown = played(session, 120)
    seconds = seconds_of(shown)
    last = next(n for n, one in enumerate(seconds) if seconds[n + 1] < one)
    assert seconds[0] <= at and seconds[: last + 1] == [*range(seconds[0], 100)]
    assert seconds[last + 1 :] == [*range(30, 30 + len(seconds) - last - 1)]
    # the charts start again, and the position goes back
    assert len(jumps) == 2 and notices(shown)[0].startswith("the clock was set back: from ")
    assert session.end == pytest.approx(129, abs=1)


def test_a_time_after_both_is_not_left_for_an_earlier_one(set_back: Path) -> None:
    session = FlightReplay(set_back, START_S + 3480.0 + 105, 1000.0)
    seconds = seconds_of(shown := played(session, 70))
    assert 99 in seconds and seconds[-1] > 100
    # a notice that the replay has reached its end may be there
    assert not any("set back" in text for text in notices(shown))


def test_the_worst_times_are_the_marks(recorded: Path) -> None:
    session = FlightReplay(recorded)
    session._find_marks()
    ((t, text),) = session.marks
    assert t == pytest.approx(122, abs=3) and "vda is busy" in text
    assert session.end == pytest.approx(10 * 3600 - 3480 + 59, abs=2)
    session.close()


def test_the_position_is_a_time_of_the_day(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    session = FlightReplay(recorded)
    assert session.time_text(120) == "27 Sep 03:00:00"
    # the last recorded 03:00, on whatever day
    assert session.time_of("03:00") == session.time_of("2026-09-27 03:00") == 120
    with pytest.raises(UsageError, match="Nothing was recorded at 2026-09-26 03:00"):
        session.time_of("2026-09-26 03:00")
    session.close()


def test_a_file_has_no_time_to_begin_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "demo", "--at", "-2h"]) == 2
    assert "needs the directory of a flight recording" in capsys.readouterr().err


def test_home_lists_the_directory_and_opens_it(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    remember_recording(recorded)
    remember_recording(tmp_path / "gone")
    first = recent_recordings(tmp_path, 5)[0]
    assert (first.path, first.target) == (recorded, "flight recorder")
    assert first.began_ms == 1e3 * (START_S + 3480) and first.size > 10_000
    playable(str(recorded))
    with pytest.raises(UsageError, match="has no flight recording"):
        playable(str(tmp_path))
