"""A recording played again: the same events, from any position."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import recordings as made
from fio_recordings import KINDS

from iopstui import events
from iopstui.errors import UsageError
from iopstui.output.jsonl import dumps, frame_object
from iopstui.output.replay import replay_headless
from iopstui.recording import layout as form
from iopstui.recording import player, replay
from iopstui.recording.reader import Recording
from iopstui.recording.replay import ReplaySession, replay_events
from iopstui.recording.writer import Recorder

WAIT_S = 30.0


class Watcher:
    """Receives a session's events, and waits for those that a test needs."""

    def __init__(self, session: ReplaySession) -> None:
        self.events: list[events.Event] = []
        self.jumps = 0
        self._news = threading.Condition()
        session.on_jump = self.jumped
        session.start(self.put)

    def put(self, event: events.Event) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def jumped(self) -> None:
        with self._news:
            self.jumps += 1
            self.events.clear()

    def until(self, done: Callable[[], bool]) -> None:
        with self._news:
            assert self._news.wait_for(done, WAIT_S), self.events[-3:]

    def ended(self) -> bool:
        last = self.events[-1] if self.events else None
        return (
            isinstance(last, events.Notice)
            and "end of the recording; space: play again" in last.text
        )

    @property
    def frames(self) -> list[events.FrameReady]:
        return [event for event in self.events if isinstance(event, events.FrameReady)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.iops"


@pytest.fixture
def opened(path: Path) -> Iterator[Callable[..., tuple[ReplaySession, Watcher]]]:
    sessions: list[ReplaySession] = []

    def open_it(speed: float = 1000.0, paused: bool = False) -> tuple[ReplaySession, Watcher]:
        sessions.append(ReplaySession(path, speed))
        sessions[-1].paused = paused
        return sessions[-1], Watcher(sessions[-1])

    yield open_it
    for session in sessions:
        session.close()
        session.close()


def shown(event: events.FrameReady) -> str:
    return dumps(frame_object(event.frame))


@pytest.mark.parametrize("name", KINDS)
def test_all_events_are_those_of_the_live_session(name: str, path: Path) -> None:
    taken = made.write(path, name)
    with Recording(path) as recording:
        found = list(replay_events(recording))
    frames = [event for event in found if isinstance(event, events.FrameReady)]
    assert [e.frame for e in frames] == made.frames(taken)
    before, after = made.others(name)
    rest = [event for event in found if not isinstance(event, events.FrameReady)]
    assert rest == [*before[1:], *after, events.SessionEnded(2.5, 0)]


@pytest.mark.parametrize("kind", ["table", "jsonl", "csv"])
def test_each_run_of_the_demo_is_held_against_its_own_figures(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The I/Os of the first run must not be added to those of the second."""
    replay_headless(str(made.EARLIER_DEMO), kind)
    out, err = capsys.readouterr()
    words = out if kind == "table" else err
    assert "up to fio's own total (439,591 I/Os)" in words
    assert "up to fio's own total (1,890,327 I/Os)" in words


@pytest.mark.parametrize("kind", ["table", "jsonl", "csv"])
def test_as_a_table_several_runs_end_side_by_side(
    kind: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay_headless(str(made.EARLIER_DEMO), kind)
    out = capsys.readouterr().out
    assert ("iodepth 2 → 32" in out) == (kind == "table")
    if kind == "table":
        runs, _, marks = out.partition("\nmarks:\n")
        assert marks.startswith(" time ") and "iodepth 32" in marks
        *_, head, first, second = runs.rstrip().splitlines()
        assert head.startswith(" run what was changed") and "+123.6 %" in second
        assert first.startswith("   1 ") and max(map(len, (head, first, second))) == 80
    made.write(path)
    replay_headless(str(path), kind)
    assert "what was changed" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["table", "jsonl", "csv"])
def test_the_verdict_is_replayed_too(
    kind: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tape = made.tape(path)
    before, after = made.others(made.RUN)
    judged = events.ExpectationChecked(
        9.0, 1, "iops>=1M", "fio.total.iops", "1/s", ">=", 1e6, 1e6, 5e4, False, 0.0
    )
    steady = events.SteadyState(9.0, 1, True, 0.01, 0.01, 1.0, "Steady state: yes")
    made.tell(tape, [*before, *made.raws(made.RUN), *after, judged, steady])
    tape.close(events.SessionEnded(9.0, 0))
    replay_headless(str(path), kind)
    out, err = capsys.readouterr()
    assert "FAIL  iops >= 1000000: measured 50000" in (out if kind == "table" else err)
    assert "Steady state: yes" in (out if kind == "table" else err)


def test_of_two_recordings_in_one_file_the_second_is_named(path: Path) -> None:
    made.write(path)
    data = path.read_bytes()
    path.write_bytes(data * 2)
    with Recording(path) as recording:
        played = list(replay_events(recording))
    last = played[-1]
    assert isinstance(last, events.Notice) and last.level == "warning"
    assert f"another recording begins at byte {len(data)};" in last.text
    assert f"tail -c +{len(data) + 1} {path} > OTHER.iops" in last.text
    path.write_bytes(data)
    with Recording(path) as recording:
        once = list(replay_events(recording))
    assert played[: len(once)] == once


def test_a_cut_off_recording_says_so_at_its_end(path: Path) -> None:
    made.write(path)
    data = path.read_bytes()
    path.write_bytes(data[:-200])
    with Recording(path) as recording:
        last = list(replay_events(recording))[-1]
    assert isinstance(last, events.Notice) and last.level == "warning"
    assert "damaged or cut off" in last.text
    # cut off between two chunks: no chunk is damaged, but the end is missing
    with Recording(path) as recording:
        ends = [at for at, _ in recording.index().events]
    path.write_bytes(data[: ends[-1]])
    with Recording(path) as recording:
        assert "has no end" in list(replay_events(recording))[-1].text  # type: ignore[union-attr]


def test_one_begun_in_the_middle_of_a_run_says_so_once(path: Path) -> None:
    one = made.tape(None)
    taken = made.raws(made.RUN)
    made.tell(one, taken[:3])
    one.start(Recorder(path))
    made.tell(one, taken[3:])
    one.close(events.SessionEnded(9.0, 0))
    with Recording(path) as recording:
        said = [e.text for e in replay_events(recording) if isinstance(e, events.Notice)]
    assert said == [replay.STARTS_DURING_RUN]


def test_the_screen_gets_everything_but_the_session_s_end(path: Path, opened) -> None:  # type: ignore[no-untyped-def]
    taken = made.write(path)
    session, watcher = opened()
    watcher.until(watcher.ended)
    assert [e.frame for e in watcher.frames] == made.frames(taken)
    assert not any(isinstance(e, events.SessionEnded) for e in watcher.events)
    assert session.at == session.end == pytest.approx(watcher.frames[-1].frame.t)
    assert (session.job, session.overrides) == ("randread-4k", {"iodepth": "8"})
    assert session.target == made.TARGET and session.devices["vda"].hctxs == made.VDA.hctxs


def test_nothing_can_be_run_or_marked_in_a_recording(path: Path, opened) -> None:  # type: ignore[no-untyped-def]
    made.write(path)
    session, watcher = opened()
    watcher.until(watcher.ended)
    session.run_job("randread-4k", {})
    session.mark("x")
    session.set_tunable("rq_affinity", "2")
    session.stop_job()
    said = [e.text for e in watcher.events[-3:] if isinstance(e, events.Notice)]
    assert len(said) == 3 and all("in a recording" in text for text in said)
    assert session.running is False
    assert session.knobs() == [], "this device's queue was not recorded"


def test_paused_it_waits_steps_and_goes_on(path: Path, opened) -> None:  # type: ignore[no-untyped-def]
    made.write(path, taken=made.long_run(30, made.RUN))
    session, watcher = opened(paused=True)
    watcher.until(lambda: len(watcher.frames) == 1)
    for count in (2, 3):
        session.step()
        watcher.until(lambda count=count: len(watcher.frames) == count)
        assert session.at == pytest.approx(count - 1)
    session.seek_by(10)
    watcher.until(lambda: len(watcher.frames) == 13)
    assert session.at == pytest.approx(12) and session.paused and watcher.jumps == 0
    session.pause(False)
    watcher.until(watcher.ended)
    assert len(watcher.frames) == 30


def test_back_and_forth_it_shows_what_was_there(path: Path, opened) -> None:  # type: ignore[no-untyped-def]
    taken = made.write(path, taken=made.long_run(200, made.RUN))
    expected = [dumps(frame_object(frame)) for frame in made.frames(taken)]
    session, watcher = opened(paused=True)
    for goal in (150, 20, 199, 0, 63, 62):
        session.seek(goal)
        watcher.until(
            lambda goal=goal: bool(watcher.frames) and watcher.frames[-1].frame.seq == goal
        )
        assert [shown(e) for e in watcher.frames] == expected[: goal + 1]
        assert session.at == goal
    session.seek(-5)
    session.seek_by(-10)
    watcher.until(lambda: len(watcher.frames) == 1)
    assert session.at == 0
    session.seek(1e9)
    watcher.until(watcher.ended)
    assert session.at == session.end == 199


def test_a_long_way_it_plays_only_what_is_close_and_what_must_be_known(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "LOOKBACK", 20)
    monkeypatch.setattr(form, "KEY_EVERY", 5)
    taken = made.write(path, taken=made.long_run(200, made.RUN))
    expected = [dumps(frame_object(frame)) for frame in made.frames(taken)]
    session = ReplaySession(path, 1000.0)
    session.paused = True
    watcher = Watcher(session)
    try:
        for goal in (150, 100, 199):
            session.seek(goal)
            watcher.until(
                lambda goal=goal: bool(watcher.frames) and watcher.frames[-1].frame.seq == goal
            )
            first = watcher.frames[0].frame.seq
            assert 20 <= goal - first < 20 + 2 * 5
            assert [shown(e) for e in watcher.frames] == expected[first : goal + 1]
            kinds = {type(e) for e in watcher.events}
            assert {events.StepStarted, events.Mark} <= kinds
            assert session.job == "randread-4k"
    finally:
        session.close()


def test_speed_is_turned_in_steps(path: Path, opened) -> None:  # type: ignore[no-untyped-def]
    made.write(path)
    session, _ = opened(speed=1.0, paused=True)
    ups = [session.change_speed(True) for _ in range(7)]
    assert ups == [2, 5, 10, 30, 60, 60, 60]
    session.set_speed(3)
    assert (session.change_speed(False), session.change_speed(False)) == (2, 1)
    session.set_speed(1e9)
    assert session.speed == player.FASTEST


def test_at_its_end_it_can_begin_again(path: Path, opened) -> None:  # type: ignore[no-untyped-def]
    made.write(path)
    session, watcher = opened()
    watcher.until(watcher.ended)
    session.pause(True)
    session.pause(False)
    watcher.until(lambda: watcher.jumps == 1 and watcher.ended())
    assert len(watcher.frames) == len(made.raws(made.RUN))


def test_closed_in_the_middle_of_waiting(path: Path, opened) -> None:  # type: ignore[no-untyped-def]
    made.write(path, taken=made.long_run(50, made.RUN))
    session, watcher = opened(speed=0.1)
    watcher.until(lambda: len(watcher.frames) == 1)
    session.close()
    assert len(watcher.frames) == 1


def test_without_a_sample_there_is_nothing_to_replay(path: Path) -> None:
    made.write(path)
    with Recording(path) as recording:
        first_key = recording.index().keys[0]
    path.write_bytes(path.read_bytes()[:first_key])
    with pytest.raises(UsageError, match="is empty"):
        ReplaySession(path)
