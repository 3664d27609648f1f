"""A recording followed while it grows: the same as the whole one read at the end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import recordings as made
from hypothesis import given, settings
from hypothesis import strategies as st

from iopstui import events
from iopstui.errors import UsageError
from iopstui.recording import follow
from iopstui.recording.follow import FollowSession, InputCopy, wait_for_first_sample
from iopstui.recording.reader import Record, Recording
from iopstui.recording.replay import replay_events

WAIT_S = 30.0
DEMO = made.EARLIER_DEMO
WHOLE = DEMO.read_bytes()[: DEMO.stat().st_size * 2 // 3]


@pytest.fixture
def growing(tmp_path: Path) -> Path:
    return tmp_path / "growing.iops"


def first_sample_end() -> int:
    """A size of the demo at which it has its first samples."""
    with Recording(DEMO) as recording:
        return recording.index().keys[0] + 20_000


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def whole_records(path: Path) -> list[Record]:
    with Recording(path) as recording:
        return list(recording.records())


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, len(WHOLE)), max_size=6))
def test_records_are_the_same_however_the_file_grew(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    path = tmp_path_factory.mktemp("growing") / "growing.iops"
    first = first_sample_end()
    path.write_bytes(WHOLE[:first])
    ends = iter([*sorted(size for size in sizes if size > first), len(WHOLE)])
    found: list[Record] = []
    with Recording(path) as recording, Recording(path) as indexed:
        for record in recording.follow():
            if record is not None:
                found.append(record)
                continue
            end = next(ends, None)
            if end is None:
                break
            append(path, WHOLE[path.stat().st_size : end])
            index = indexed.extend_index()
        with Recording(path) as afterwards:
            assert index == afterwards.index()
    assert found == whole_records(path)


def test_followed_events_end_when_the_wait_says_so(growing: Path) -> None:
    growing.write_bytes(WHOLE)
    waits = iter([True, True, False])
    with Recording(growing) as recording:
        *followed, notice = replay_events(recording, wait=lambda: next(waits))
    assert next(waits, None) is None
    assert isinstance(notice, events.Notice) and "no end marker" in notice.text
    with Recording(growing) as recording:
        assert followed == list(replay_events(recording))[:-1]


class Viewer:
    """Follows a file and waits for what a test waits for."""

    def __init__(self, session: FollowSession) -> None:
        self.session = session
        self.events: list[events.Event] = []
        self._news = threading.Condition()
        session.start(self.put)

    def put(self, event: events.Event) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def until(self, done: Callable[[], bool]) -> None:
        with self._news:
            assert self._news.wait_for(done, WAIT_S), self.events[-3:]

    def said(self, words: str) -> bool:
        return any(isinstance(one, events.Notice) and words in one.text for one in self.events)

    @property
    def last_frame(self) -> float:
        frames = [one.t for one in self.events if isinstance(one, events.FrameReady)]
        return frames[-1] if frames else -1.0


@pytest.fixture
def view(growing: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Viewer]]:
    monkeypatch.setattr(follow, "POLL_S", 0.001)
    opened: list[FollowSession] = []

    def opens(ended: Callable[[], bool] = lambda: False) -> Viewer:
        opened.append(FollowSession(growing, speed=1000.0, has_ended=ended))
        return Viewer(opened[-1])

    yield opens
    for session in opened:
        session.close()


def length_of(path: Path) -> float:
    with Recording(path) as recording:
        return recording.index().end


def test_it_begins_at_the_newest_second_and_goes_on(
    growing: Path, view: Callable[..., Viewer]
) -> None:
    growing.write_bytes(WHOLE[: len(WHOLE) // 2])
    viewer = view()
    viewer.until(lambda: viewer.last_frame == length_of(growing))
    assert viewer.session.growing
    append(growing, DEMO.read_bytes()[len(WHOLE) // 2 :])
    viewer.until(lambda: viewer.said("the recording has ended"))
    assert not viewer.session.growing
    assert viewer.session.at == viewer.session.end == length_of(DEMO)
    viewer.events.clear()
    viewer.session.pause(False)
    viewer.until(lambda: viewer.said("the recording has ended"))
    assert any(isinstance(one, events.FrameReady) and one.t < 2.0 for one in viewer.events)


def test_one_can_go_back_and_return(growing: Path, view: Callable[..., Viewer]) -> None:
    growing.write_bytes(WHOLE)
    viewer = view()
    viewer.until(lambda: viewer.last_frame == length_of(growing))
    viewer.session.pause(True)
    viewer.session.seek(2.0)
    viewer.until(lambda: 1.0 <= viewer.last_frame <= 3.0)
    viewer.session.pause(False)
    viewer.session.seek(viewer.session.end)
    viewer.until(lambda: viewer.last_frame == length_of(growing))


def test_a_writer_that_was_killed_is_reported(
    growing: Path, view: Callable[..., Viewer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "STALL_TIMEOUT_S", 0.0)
    monkeypatch.setattr(follow, "STALL_INTERVALS", 0)
    growing.write_bytes(WHOLE[: len(WHOLE) // 2])
    viewer = view()
    viewer.until(lambda: viewer.said("no new data for"))
    append(growing, WHOLE[len(WHOLE) // 2 :])
    viewer.until(lambda: viewer.said("new data again"))


def test_an_input_that_ended_is_reported(growing: Path, view: Callable[..., Viewer]) -> None:
    growing.write_bytes(WHOLE)
    viewer = view(lambda: True)
    viewer.until(lambda: viewer.said("the input has ended"))


def test_standard_input_is_kept_to_seek_in(tmp_path: Path) -> None:
    source, sink = os.pipe()
    copy = InputCopy(source, tmp_path / "copy.iops")
    with os.fdopen(sink, "wb") as file:
        file.write(WHOLE)
    wait_for_first_sample(copy.path, lambda words: None, lambda: copy.ended)
    with Recording(copy.path) as recording:
        patience = iter([True] * 1000)
        for record in recording.follow():
            if record is None and recording.path.stat().st_size == len(WHOLE):
                break
            assert record is not None or next(patience)
    assert copy.path.read_bytes() == WHOLE
    assert copy.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("size", [0, 5, 60], ids=["empty", "in the name", "in the header"])
def test_a_file_without_a_sample_is_waited_for(
    growing: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing.write_bytes(WHOLE[:size])
    said: list[str] = []
    monkeypatch.setattr(follow.time, "sleep", lambda seconds: growing.write_bytes(WHOLE))
    wait_for_first_sample(growing, said.append, lambda: False)
    assert len(said) == 1 and "first sample" in said[0]


@pytest.mark.parametrize("content", [WHOLE[:0], WHOLE[:60], b"no recording\n"])
def test_an_input_without_a_recording_is_an_error(growing: Path, content: bytes) -> None:
    growing.write_bytes(content)
    with pytest.raises(UsageError):
        wait_for_first_sample(growing, lambda words: None, lambda: True)
