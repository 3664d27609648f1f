"""The ring of files: hours, age, size, a single writer, a full disk, a set clock, a lost
directory."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flight_day import START_S, Flight, Load, SimulatedSession
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import Refused, UsageError
from iopstui.features.flight import recorder
from iopstui.features.flight.directory import Name, Ring, parse_name, stored_files
from iopstui.features.flight.history import read_history
from iopstui.features.flight.model.times import local_text
from iopstui.features.flight.span import read_span
from iopstui.model.answer.use import DiskUse, DiskUser
from iopstui.recording import writer
from iopstui.recording.reader import EventRecord, Recording, SampleRecord
from iopstui.recording.records import Peaks, RecordedUse
from iopstui.recording.replay import ReplayFold

USED = Load(reads=100, ms=1.0, busy=10.0)


def names(place: Path) -> list[str]:
    return [file.path.name for file in stored_files(place)]


def shown_seconds(path: Path) -> list[int]:
    """The wall-clock seconds of the frames with rates, as `replay` would show them."""
    with Recording(path) as recording:
        fold = ReplayFold(recording.header)
        frames = [event.frame for record in recording.records() for event in fold.feed(record)
                  if event.kind == "frame"]  # fmt: skip
    return [round(frame.wall_ms / 1e3) for frame in frames if frame.disks]


def values(path: Path, kind: type) -> list[Any]:
    with Recording(path) as recording:
        return [one.value for one in recording.records()
                if isinstance(one, EventRecord) and isinstance(one.value, kind)]  # fmt: skip


def test_the_last_seconds_before_a_regular_end_are_written_down(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.run(12, USED)
    user = DiskUser(42, "cp", "cp", "root", 0.0, 1e6, frozenset({"vda"}))
    flight.session.disk_use = DiskUse(flight.session.t, 1.0, (user,), as_root=True)
    flight.run(1, Load(reads=10, ms=900.0, busy=100.0))
    flight.end()
    path = tmp_path / names(tmp_path)[0]
    _, last = values(path, Peaks)
    assert last.t == 12.0 and last.seconds == 2.0 and last.disks["vda"].ms == 900.0
    (use,) = values(path, RecordedUse)
    assert use.t == 12.0 and use.use.users == (user,)


@given(st.integers(0, 4_000_000_000), st.integers(1, 9999), st.sampled_from([0, 10, 60]))
def test_a_name_says_when_its_file_begins(began_s: int, number: int, every_s: int) -> None:
    name = Name(began_s, number, every_s)
    assert parse_name(str(name)) == name


def test_other_names_are_left_alone() -> None:
    for text in (
        "a.iops", "2026-13-27T020000Z.iops", "2026-09-27T020000Z.iops.part", "lost+found",
        "9999-12-31T235959Z.iops", "0001-01-01T000000Z.iops",
    ):  # fmt: skip
        assert parse_name(text) is None
    assert str(Name(START_S)) == "2026-09-27T020000Z.iops"


def test_each_hour_has_a_file_and_no_second_is_lost_between_them(tmp_path: Path) -> None:
    flight = Flight(tmp_path, after_s=3590)
    flight.run(21, USED)
    flight.end()
    assert names(tmp_path) == ["2026-09-27T025950Z.iops", "2026-09-27T030000Z.iops"]
    seconds = [second for name in names(tmp_path) for second in shown_seconds(tmp_path / name)]
    assert seconds == [START_S + 3590 + n for n in range(1, 21)]


def test_peaks_keep_the_worst_second(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.run(6, USED)
    flight.run(1, Load(reads=10, ms=900.0, busy=100.0))
    flight.run(5, USED)
    flight.end()
    peaks, _ = values(tmp_path / names(tmp_path)[0], Peaks)
    assert peaks.disks["vda"].ms == 900.0 and peaks.disks["vda"].ms_ago_s == 4.0
    assert peaks.disks["vda"].ios_s == 100.0 and peaks.seconds == 10.0


def test_a_day_is_kept_and_what_is_older_goes(tmp_path: Path) -> None:
    flight = Flight(tmp_path, keep_s=7200)
    foreign = tmp_path / "notes.txt"
    foreign.write_text("mine")
    for _ in range(5):
        flight.run(12, USED)
        flight.drain()
        for name in names(tmp_path):  # the file system does not use the fake clock
            began_s = parse_name(name).began_s  # type: ignore[union-attr]
            os.utime(tmp_path / name, (began_s, began_s))
        flight.clock.go(3600)
    flight.run(11, USED)
    flight.end()
    # it is 07:01, so files written until 05:00 are gone
    assert [name[11:13] for name in names(tmp_path)] == ["06", "07"]
    assert foreign.read_text() == "mine"


def test_the_oldest_goes_where_the_ring_is_too_large(tmp_path: Path) -> None:
    for hour in range(4):
        (tmp_path / str(Name(START_S - 3600 * (4 - hour)))).write_bytes(bytes(100_000))
    flight = Flight(tmp_path, size=300_000)
    flight.run(11)
    flight.end()
    flight.ring.tidy(START_S)
    files = stored_files(tmp_path)
    assert sum(file.size for file in files) <= 300_000
    assert len(files) == 3
    assert files[0].name.began_s > START_S - 4 * 3600


def test_there_is_one_writer(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 60, 1000)
    with pytest.raises(Refused):
        Ring(tmp_path, 60, 1000)
    ring.unlock()
    Ring(tmp_path, 60, 1000).unlock()


def fill_up(monkeypatch: pytest.MonkeyPatch, place: Path, limit: int) -> None:
    """Make ``place`` a file system with room for ``limit`` bytes."""
    real = os.write

    def write(fd: int, data: Any) -> int:
        size = sum(path.stat().st_size for path in place.glob("*.iops"))
        if size + len(data) > limit and os.readlink(f"/proc/self/fd/{fd}").startswith(str(place)):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr(writer.os, "write", write)


def test_on_a_full_disk_the_oldest_hour_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / str(Name(START_S - 7200))
    old.write_bytes(bytes(50_000))
    flight = Flight(tmp_path)
    fill_up(monkeypatch, tmp_path, 55_000)
    flight.run(40, USED)
    flight.end()
    assert not old.exists() and not flight.said and not flight.session.said
    assert len(shown_seconds(tmp_path / names(tmp_path)[0])) == 39


def test_where_nothing_is_left_to_remove_it_pauses_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flight = Flight(tmp_path)
    flight.run(5, USED)
    flight.drain()
    with monkeypatch.context() as full:
        fill_up(full, tmp_path, 0)
        for _ in range(30):
            flight.run(1, USED)
            flight.drain()
    for _ in range(15):
        flight.run(1, USED)
        flight.drain()
    flight.end()
    # reported once, although writing was tried three times
    assert "pauses" in flight.said[0] and "No space left on device" in flight.said[0]
    assert flight.said[1:] == ["The flight recorder records again."]
    # the recorded part of this hour stays until the disk is full in a later hour
    first, last = (shown_seconds(tmp_path / name) for name in names(tmp_path))
    assert first == [START_S + n for n in range(1, 5)] and last[-1] == START_S + 49


def test_a_full_disk_takes_the_hour_before_once_another_one_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flight = Flight(tmp_path, after_s=3580)
    flight.run(10, USED)
    flight.drain()
    fill_up(monkeypatch, tmp_path, 30_000)
    while not flight.said:
        flight.run(1, USED, seconds=0.01)
        flight.drain()
    (paused,) = names(tmp_path)
    for _ in range(20):
        flight.run(1, USED)
        flight.drain()
    flight.end()
    assert paused == "2026-09-27T025940Z.iops"
    (last,) = names(tmp_path)
    assert last.startswith("2026-09-27T0300") and flight.said[1].endswith("records again.")


@pytest.mark.parametrize("behind_sample", [False, True])
@pytest.mark.parametrize("jump_s", [-900, 900])
def test_times_are_right_on_both_sides_of_a_set_clock(
    tmp_path: Path, jump_s: int, behind_sample: bool
) -> None:
    flight = Flight(tmp_path, after_s=3480)
    flight.session.ipi_every = 7  # so that differences need a sample that is several seconds old
    emit, jumps = flight.session.emit, list[int]()

    def set_clock(event: Any) -> None:
        while jumps:
            flight.clock.wall_s += jumps.pop()
        emit(event)

    flight.session.emit = set_clock  # type: ignore[method-assign]
    for seconds, by_s in ((31, jump_s), (30, -jump_s), (30, 0)):
        flight.run(seconds - 1, USED)
        jumps += [by_s] * behind_sample
        flight.run(1, USED)
        flight.clock.wall_s += by_s * (not behind_sample)
    flight.end()
    begins_s = START_S + 3480
    for began_s, seconds in ((begins_s, 30), (begins_s + jump_s + 31, 29), (begins_s + 61, 29)):
        span = read_span(tmp_path, began_s - 100, began_s + 100)
        ends = [at for at, _ in span.frames if began_s <= at <= began_s + seconds]
        assert len(ends) >= seconds - 1 and not any(began_s + 95 < at for at, _ in span.frames)
    assert sorted(file.name.every_s for file in stored_files(tmp_path)) == [0] * 3
    assert 85 <= read_history(tmp_path).seconds <= 95


@pytest.mark.parametrize("jump_s", [-70, 1200])
def test_what_is_recorded_is_not_what_a_set_clock_wrote(tmp_path: Path, jump_s: int) -> None:
    flight, began_s = Flight(tmp_path, after_s=3480), START_S + 3480
    flight.run(100, USED)
    flight.clock.wall_s += jump_s
    flight.run(20, USED)
    flight.end()
    first = next(file for file in stored_files(tmp_path) if file.name.began_s == began_s)
    # the file's last part was written after the clock was set
    os.utime(first.path, (began_s + 100 + jump_s, began_s + 100 + jump_s))
    assert len(read_span(tmp_path, began_s + 80, began_s + 90).frames) >= 9
    with pytest.raises(UsageError) as found:
        read_span(tmp_path, began_s + 200, began_s + 230)
    until = f"It was recorded until {local_text(began_s + 100)}"
    newest_s = stored_files(tmp_path)[-1].name.began_s
    later = f", and from {local_text(newest_s)} on" if jump_s > 0 else ""
    assert found.value.hint == f"{until}{later}."


def test_a_clock_that_is_set_back_thins_nothing(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    for jump_s in (-7200, -30, 0):
        for seconds in (10, 20):
            flight.run(seconds, USED)
            flight.drain()
            for file in stored_files(tmp_path):  # as if the file system used the fake clock
                os.utime(file.path, (file.name.began_s + 30, file.name.began_s + 30))
        flight.clock.wall_s += jump_s
    flight.end()
    assert [file.name.every_s for file in stored_files(tmp_path)] == [0] * 3


@pytest.mark.parametrize("jump_s", [-5000, 100_000])
def test_a_set_clock_begins_another_file_and_makes_nothing_old(tmp_path: Path, jump_s: int) -> None:
    flight = Flight(tmp_path, keep_s=7200)
    flight.run(12, USED)
    flight.drain()
    os.utime(tmp_path / names(tmp_path)[0], (START_S + 11, START_S + 11))
    flight.clock.wall_s += jump_s
    flight.run(12, USED)
    flight.end()
    assert len(names(tmp_path)) == 2
    assert sorted(s for name in names(tmp_path) for s in shown_seconds(tmp_path / name)) == sorted(
        [START_S + n for n in range(1, 12)] + [START_S + jump_s + n for n in range(12, 24)]
    )


def test_a_directory_that_is_removed_is_said_and_used_again(tmp_path: Path) -> None:
    place = tmp_path / "flight"
    place.mkdir()
    flight = Flight(place)
    flight.run(12, USED)
    shutil.rmtree(place)
    flight.run(22, USED)
    assert "was removed" in flight.said[0] and not place.exists()
    place.mkdir()
    for _ in range(15):
        flight.run(1, USED)
        flight.drain()
    flight.end()
    assert flight.said[-1] == "The flight recorder records again."
    assert shown_seconds(place / names(place)[0])[-1] == START_S + 48


def test_what_holds_is_repeated_in_the_next_file(tmp_path: Path) -> None:
    from iopstui.events import AnswerGiven

    flight = Flight(tmp_path, after_s=3580)
    flight.run(30, Load(reads=50, ms=400.0, busy=100.0))
    flight.end()
    last = tmp_path / names(tmp_path)[-1]
    assert len(names(tmp_path)) == 2 and values(last, AnswerGiven)[0].answer.state != "good"
    assert values(last, AnswerGiven)[0].t == 0.0


KILLED = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from flight_day import Flight, Load
flight = Flight(Path({place!r}))
while True:
    flight.run(1, Load(reads=100, ms=1.0, busy=10.0), seconds=50)
    flight.drain()
    print(int(flight.clock.wall_s), flush=True)
"""


def test_a_recorder_that_is_killed_loses_next_to_nothing(tmp_path: Path) -> None:
    paths = [path for path in sys.path if path]
    chance = random.Random(4)
    for number in range(5):
        place = tmp_path / str(number)
        place.mkdir()
        code = KILLED.format(paths=paths, place=str(place))
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(chance.randint(3, 150)):
                last = int(process.stdout.readline())
            process.kill()
        flight = Flight(place)  # another recorder can start at once
        flight.end()
        recorded = [s for name in names(place) for s in shown_seconds(place / name)]
        assert recorded[-1] >= last
        assert recorded == sorted(recorded) and recorded[0] == START_S + 50
        assert len(recorded) == (recorded[-1] - START_S) / 50


LOADED = """
import sys
from iopstui.cli.program import main
from iopstui.session.tick.sampling import Sampling
real, loaded = Sampling.read, []
def read(self, *arguments, **more):
    loaded.append({name for name in sys.modules if name.startswith("iopstui.linux.")})
    return real(self, *arguments, **more)
Sampling.read = read
main(["watch", "--record", sys.argv[1], "--for", "2", "--no-plain"])
print(*loaded[1] - loaded[0], file=sys.stderr)
"""


def test_the_second_sample_waits_for_nothing_to_be_loaded(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, f"{tmp_path}/"], capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert "recorded to" in done.stderr and done.stderr.splitlines()[-1] == ""


def test_samples_are_whole_in_each_file(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.run(12, USED)
    flight.end()
    with Recording(tmp_path / names(tmp_path)[0]) as recording:
        records = list(recording.records())
    assert sum(isinstance(one, SampleRecord) for one in records) == 12 and not recording.damage


def test_a_disk_that_appears_later_begins_another_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flight, calls = Flight(tmp_path), list[str]()
    proc = tmp_path / "nothing"
    proc.mkdir()
    row = "8 0 {} 5 0 40 1 0 0 0 0 0 1 1\n"
    monkeypatch.setattr(recorder, "read_devices", lambda roots: {})
    monkeypatch.setattr(
        recorder, "active_disks", lambda *_: SimpleNamespace(devices_below=("vda", "sdz"))
    )
    again = SimulatedSession(flight.clock)
    flight.recorder.attach(again, lambda: calls.append("again"))  # type: ignore[arg-type]
    flight.session = again
    flight.run(12)
    assert not calls, "no other disk has done I/O"
    (proc / "diskstats").write_text(row.format("sdz"))
    flight.run(40)
    assert calls == ["again"], "once"
    assert flight.said[-1] == "sdz: recorded from now on, in another file."
    flight.end()
