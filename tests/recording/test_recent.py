"""The most recent recordings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iopstui.recording.recent import NAME, recent_paths, recent_recordings, remember_recording
from iopstui.safety.journal import state_directory

RUN = Path(__file__).parent.parent / "fixtures" / "recordings" / "run.iops"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def made(path: Path, age_s: float, content: bytes = b"") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (1e9 - age_s, 1e9 - age_s))
    return path


def test_the_newest_that_are_there_wherever_they_are(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    old = made(there / "old\nname.iops", 30)
    new = made(here / "new.iops", 10)
    middle = made(there / "middle", 20)
    gone = made(there / "gone.iops", 0)
    for path in (old, new, middle, gone, old):
        remember_recording(path)
    gone.unlink()
    assert recent_paths(here, 5) == [new, middle, old]
    assert recent_paths(here, 2) == [new, middle]
    assert (state_directory() / NAME).stat().st_mode & 0o777 == 0o600


def test_what_each_is_of_and_what_can_not_be_read(tmp_path: Path) -> None:
    made(tmp_path / "broken.iops", 5, b"no recording")
    made(tmp_path / "fleet.iops", 3, b'{"event":"fleet","host":"fleet"}\n')
    good = made(tmp_path / "run.iops", 1, RUN.read_bytes())
    first, second = recent_recordings(tmp_path, 5)
    assert first.path == good and first.target and first.began_ms and first.size > 1000
    assert (second.target, second.began_ms) == ("", None)


def test_without_a_state_directory_nothing_is_kept_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    remember_recording(tmp_path / "x.iops")
    here = made(tmp_path / "here.iops", 1)
    assert recent_paths(tmp_path, 5) == [here]
