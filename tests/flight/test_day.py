"""A day with ten events of known causes: they are listed and answered, also after thinning."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import recordings as made
from disks import disk_of
from evidence_frames import frame
from flight_day import START_S, Flight, Load
from hypothesis import given, settings
from hypothesis import strategies as st

from iopstui.features.flight import hour_baseline
from iopstui.features.flight.directory import stored_files
from iopstui.features.flight.history import read_history, usual_at
from iopstui.features.flight.model.bad_times import Stretch, bad_times, join, stretches
from iopstui.features.flight.past_answer import _of_same_seconds, _with_recorded, why_then
from iopstui.features.flight.span import read_span
from iopstui.features.flight.thinning import thin
from iopstui.model.answer.answer import NOTHING, UNKNOWN, WAITS, Answer
from iopstui.model.answer.situation import Situation
from iopstui.model.answer.use import DiskUse, DiskUser
from iopstui.recording.reader import Recording, SampleRecord
from iopstui.recording.records import DiskPeak, Peaks


@dataclass(frozen=True)
class Directory:
    path: Path


QUIET = Load(reads=100, ms=1.0, busy=10.0)


def use(t: float, name: str, write_s: float) -> DiskUse:
    user = DiskUser(42, name, name, "root", 0.0, write_s, frozenset({"vda"}))
    return DiskUse(t, 1.0, (user,), as_root=True, disks={"vda": (0.0, write_s, 0.0)})


@dataclass(frozen=True)
class Event:
    """An event that the test causes: its load and length, the text in the list, the program to be
    named."""

    load: Load
    seconds: int
    expected: str
    who: str = ""


EVENTS = (
    Event(Load(reads=40, ms=400.0, busy=100.0), 90, "▲ vda is busy: I/Os take 400 ms"),
    Event(
        Load(writes=40, ms=500.0, busy=100.0), 40, "▲ vda is busy: I/Os take 500 ms", "backup (42)"
    ),
    Event(Load(reads=4, ms=240.0, busy=96.0), 60, "▲ vda answers slowly"),
    Event(Load(in_flight=5, busy=100.0), 45, "■ vda has answered nothing for"),
    Event(Load(reads=3, ms=900.0, busy=100.0), 1, "vda: a second in which I/Os took 900 ms"),
    Event(Load(writes=2, ms=2000.0, busy=100.0), 1, "vda: a second in which I/Os took 2.00 s"),
    Event(Load(reads=200, writes=200, ms=100.0, busy=100.0), 50, "▲ vda is busy: I/Os take 100 ms"),
    Event(
        Load(writes=20, ms=900.0, busy=100.0), 30, "▲ vda is busy: I/Os take 900 ms", "logs (42)"
    ),
    Event(Load(in_flight=1, busy=100.0), 20, "■ vda has answered nothing for"),
    Event(Load(reads=2, ms=450.0, busy=90.0), 35, "▲ vda answers slowly"),
)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """The recording, and when each event began. Between events two hours pass at once."""
    place = tmp_path_factory.mktemp("day")
    flight = Flight(place)
    began = []
    for event in EVENTS:
        flight.run(40, QUIET)
        began.append(int(flight.clock.wall_s))
        for _ in range(event.seconds):
            if event.who:
                comm = event.who.split()[0]
                flight.session.disk_use = use(flight.session.t, comm, 4096.0 * event.load.writes)
            flight.run(1, event.load)
        flight.session.disk_use = None
        flight.run(40, QUIET)
        flight.drain()
        flight.clock.go(7200)
    flight.end()
    for file in stored_files(place):  # as if the file system used the fake clock
        ended_s = file.name.began_s + 300
        os.utime(file.path, (ended_s, ended_s))
    return place, began


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def thinned(place: Path, to: Path, *steps: int) -> Path:
    shutil.copytree(place, to)
    for every_s in steps:
        for file in stored_files(to):
            thin(file, every_s)
    return to


@pytest.mark.parametrize("steps", [(), (10,), (10, 60)])
def test_all_ten_are_listed_and_none_is_wrong(
    day: tuple[Path, list[int]], tmp_path: Path, steps: tuple[int, ...]
) -> None:
    place, began = day
    times = read_history(thinned(place, tmp_path / "copy", *steps)).worst(20)
    assert len(times) == len(EVENTS)
    for event, at in zip(EVENTS, began, strict=True):
        (one,) = [one for one in times if at - 1 <= one.began_s <= at + 15]
        assert event.expected in one.text
        assert abs(one.seconds - event.seconds) <= 10


@pytest.mark.parametrize("steps", [(), (10,), (10, 60)])
def test_why_names_the_cause_of_each(
    day: tuple[Path, list[int]], tmp_path: Path, steps: tuple[int, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    place, began = day
    copy = thinned(place, tmp_path / "copy", *steps)
    for event, at in zip(EVENTS, began, strict=True):
        code = why_then(copy, at - 10, 120, as_json=False)
        out = capsys.readouterr().out
        # answers cover more than a second, but a second's own figure must not be averaged away
        if event.seconds == 1:
            assert code == 0 and f"slowest second of vda: {event.expected.split('took ')[1]}" in out
        else:
            assert code == 4 and event.expected.split(":")[0] in out.splitlines()[1]
            assert event.who in out


def test_a_thinned_file_has_the_same_growths(day: tuple[Path, list[int]], tmp_path: Path) -> None:
    place, _ = day
    copy = thinned(place, tmp_path / "copy", 10)
    for whole, thin_one in zip(stored_files(place), stored_files(copy), strict=True):
        assert thin_one.name == whole.name._replace(every_s=10)
        assert thin_one.written_s == whole.written_s and thin_one.size < whole.size
        counts = []
        for path in (whole.path, thin_one.path):
            with Recording(path) as recording:
                raws = [one.raw for one in recording.records() if isinstance(one, SampleRecord)]
                assert recording.index().has_end_marker and not recording.damage
            counts.append((raws[0], raws[-1]))
        assert counts[0] == counts[1]
    assert not list(copy.glob("*.part"))


def test_the_recorder_thins_by_age(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    for _ in range(5):
        flight.run(5, QUIET)
        flight.drain()
        for file in stored_files(tmp_path):
            os.utime(file.path, (file.name.began_s + 15, file.name.began_s + 15))
        flight.clock.go(9 * 3600 if len(stored_files(tmp_path)) < 5 else 1)
    flight.run(65, QUIET)
    flight.end()
    assert [file.name.every_s for file in stored_files(tmp_path)] == [60, 60, 10, 10, 0]


PEAKS = st.lists(
    st.dictionaries(
        st.sampled_from(["vda", "vdb"]),
        st.builds(DiskPeak, *[st.floats(0, 1e6)] * 4, st.none() | st.floats(0, 1e4),
                  st.floats(0, 10)),
    ),
    min_size=1, max_size=8,
)  # fmt: skip


@given(PEAKS)
@settings(max_examples=200)
def test_joining_peaks_keeps_each_highest_one(several: list[dict[str, DiskPeak]]) -> None:
    parts = [Peaks(10.0 * n, 10.0, disks) for n, disks in enumerate(several, 1)]
    whole = join(parts)
    assert whole.seconds == 10.0 * len(parts) and whole.t == parts[-1].t
    for name, peak in whole.disks.items():
        ones = [(part.t, part.disks[name]) for part in parts if name in part.disks]
        assert peak.ios_s == max(one.ios_s for _, one in ones)
        assert peak.busy == max(one.busy or 0.0 for _, one in ones)
        longest = max(((one.ms or 0.0), -n) for n, (_, one) in enumerate(ones))
        at, first = ones[-int(longest[1])]
        assert (peak.ms or 0.0) == longest[0]
        if peak.ms:
            assert whole.t - peak.ms_ago_s == pytest.approx(at - first.ms_ago_s)


def test_what_holds_at_the_beginning_is_known(day: tuple[Path, list[int]]) -> None:
    place, began = day
    span = read_span(place, began[0] + 30, began[0] + 40)
    (at, first), *_ = span.answers
    assert began[0] < at <= began[0] + 30 and first is not None and first.state == "warning"
    (held,) = stretches(span.answers, span.began_s)
    assert held.began_s == began[0] + 30 and began[0] > START_S


def test_the_same_hour_of_other_days_is_the_measure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flight = Flight(tmp_path)
    for ms in (1.0, 3.0, 2.0, 40.0):  # at the same time on four days
        for _ in range(72):
            flight.run(1, Load(reads=20, ms=ms, busy=10.0), seconds=10)
        flight.drain()
        flight.clock.go(86400 - 720)
    flight.end()
    for file in stored_files(tmp_path):
        os.utime(file.path, (file.name.began_s + 730, file.name.began_s + 730))
    assert usual_at(tmp_path, START_S + 2 * 86400 + 300)["vda"].ms == 2.0
    why_then(tmp_path, START_S + 3 * 86400 + 300, 60, as_json=False)
    expected = (
        "(20.0× the usual slowest second of a minute at this hour, by the median of 3 other days)"
    )
    assert expected in capsys.readouterr().out

    now_s, other = START_S + 2 * 86400 + 300, replace(made.VDA, size=1 << 40)
    monkeypatch.setattr(hour_baseline, "recorded_directories", lambda: [Directory(tmp_path)])
    assert hour_baseline.hour_medians({"vda": made.VDA}, now_s) == {"vda": (2.0, 2)}
    assert not hour_baseline.hour_medians({"vda": other}, now_s), "that was another disk"
    alike = {"vda": made.VDA, "vdb": replace(made.VDA, name="vdb")}
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 86400.0)
    assert not hour_baseline.hour_medians(alike, now_s), "before the boot it may have been vdb"
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 1e9)
    assert hour_baseline.hour_medians(alike, now_s)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="another"))
    assert not hour_baseline.hour_medians({"vda": made.VDA}, now_s), "that was another machine"


@pytest.mark.parametrize(("moved", "named"), [(80.0, True), (30.0, False), (200.0, False)])
def test_readings_of_other_seconds_accuse_nobody(moved: float, named: bool) -> None:
    seconds = [
        frame(float(n), disks={"vda": disk_of(r_s=8, r_bytes_s=80.0, w_s=0, w_bytes_s=0.0)})
        for n in range(5)
    ]
    use = DiskUse(5.0, 9.0, (DiskUser(42, "cp", devices=frozenset({"vda", "vdb"})),),
                  disks={"vda": (0.0, moved, 1.0), "vdb": (0.0, 5.0, 0.0)})  # fmt: skip
    found = _of_same_seconds(use, seconds)
    assert found is not None and ("vda" in found.users[0].devices) == named
    assert "vdb" in found.users[0].devices


CP = "cp (42) does 97 % of its bytes"


@pytest.mark.parametrize(
    ("recorded", "judged", "sentence"),
    [
        (("busy", "good", NOTHING, CP), ("busy", "good", NOTHING, ""), "● of all"),
        (("busy", "good", UNKNOWN, CP), ("busy", "good", NOTHING, ""), f"● then · {CP} (at 3:04)"),
        (("busy", "good", UNKNOWN, ""), ("busy", "good", NOTHING, ""), "● then (at 3:04)"),
        (("slow", "warning", WAITS, CP), ("slow", "warning", WAITS, "you"), "▲ of all · you"),
        (
            ("slow", "warning", WAITS, CP), ("slow", "warning", WAITS, ""),
            f"▲ of all · {CP} (at 3:04)",
        ),
        (("slow", "warning", WAITS, ""), ("slow", "warning", WAITS, ""), "▲ of all"),
        (("limit", "warning", WAITS, ""), ("busy", "good", NOTHING, ""), "▲ then (at 3:04)"),
    ],
)  # fmt: skip
def test_what_is_of_a_moment_names_it(
    recorded: tuple[str, ...], judged: tuple[str, ...], sentence: str
) -> None:
    def answer(text: str, rule: str, state: str, verdict: str, who: str) -> Answer:
        return Answer("vda", rule, state, text, verdict, who)

    main = Stretch(0.0, 60.0, answer("then", *recorded), 20.0)
    pair = Situation("vda", [], ["vda"]), answer("of all", *judged)
    [(_, said)] = _with_recorded([pair], main, "3:04")
    assert said.sentence == sentence and said.verdict == recorded[2]


def test_a_spike_is_not_left_out_for_a_lower_one_before_it() -> None:
    def peaks(at: float, ms: float) -> tuple[float, Peaks]:
        return at, Peaks(at, 10.0, {"vda": DiskPeak(100.0, 1e6, 1.0, 10.0, ms)}, ())

    usual = [peaks(10.0 * n, 1.0) for n in range(1, 50)]
    [found] = bad_times([], [*usual, peaks(500.0, 40.0), peaks(530.0, 320.0)], 10)
    assert found.times == 320.0 and found.ended_s == 530.0


def test_a_time_that_was_recorded_twice_has_both_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flight, busy = Flight(tmp_path), Load(reads=40, ms=400.0, busy=100.0)
    flight.run(120, QUIET)
    flight.run(60, busy)  # 02:02:00 and the following minute
    flight.run(120, QUIET)
    flight.drain()
    flight.clock.wall_s -= 240  # the clock is set back to 02:01:00
    flight.run(180, QUIET)
    flight.end()
    why_then(tmp_path, START_S + 90, 120, as_json=False)
    printed = capsys.readouterr()
    assert "recorded twice" in printed.err and "figures include both" in printed.err
    then = printed.out.split("then:\n")[1].split("\n")
    assert [line.split(": ")[0].strip() + line.split(": ")[1][:2] for line in then if line] == [
        "02:01:30 for 32 s● ", "02:02:02 for 1 min▲ ", "02:03:02 for 28 s● ",
        "02:01:30 for 2 min● ",
    ]  # fmt: skip


def test_the_same_answer_after_a_short_pause_is_one_time() -> None:
    slow = Answer("vda", "slow", "warning", "vda answers slowly")
    longer = replace(slow, text="vda answers very slowly")
    held = [Stretch(0.0, 10.0, slow, 5.0), Stretch(60.0, 90.0, longer, 65.0)]
    [found] = bad_times(held, [], 10)
    assert (found.began_s, found.ended_s, found.text) == (0.0, 90.0, longer.sentence)


@pytest.mark.parametrize(("pause_s", "count"), [(0.0, 1), (1.1, 1), (30.0, 2)])
def test_an_answer_goes_on_over_the_end_of_a_file(pause_s: float, count: int) -> None:
    slow = Answer("vda", "slow", "warning", "vda answers slowly")
    answers = [(0.0, slow), (50.0, None), (50.0 + pause_s, slow), (90.0, None), (90.0, None)]
    found = stretches(answers)
    assert len(found) == count and (found[0].began_s, found[-1].ended_s) == (0.0, 90.0)
