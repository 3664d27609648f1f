"""Recordings: everything written is read back, however the file ended."""

from __future__ import annotations

import errno
import os
import stat
import struct
import threading
import tracemalloc
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import recordings as made
from fio_recordings import KINDS
from hypothesis import given
from hypothesis import strategies as st

from iopstui import events
from iopstui.errors import IopstuiError, Missing, UsageError, pop_incomplete_messages
from iopstui.recording import layout as form
from iopstui.recording import writer as recorder_module
from iopstui.recording.reader import Recording
from iopstui.recording.writer import MAX_WAITING, Recorder, RecordingBuffer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.iops"


@pytest.mark.parametrize("name", KINDS)
def test_samples_come_back_and_make_the_same_frames(name: str, path: Path) -> None:
    taken = made.write(path, name)
    samples, _, damage = made.read(path)
    assert [s.raw for s in samples] == taken
    assert all(s.is_shown for s in samples) and damage == ""
    assert repr(made.frames(s.raw for s in samples)) == repr(made.frames(taken))


def test_devices_are_there_again_where_a_setting_changed_and_name_no_serial(path: Path) -> None:
    made.write(path)
    devices = [o.value for o in made.read(path)[1] if isinstance(o.value, form.RecordedDevices)]
    assert devices == [form.RecordedDevices((replace(made.VDA, serial=None),))] * 2
    assert b"SECRET" not in path.read_bytes()


# -- files


def test_it_is_its_owner_s_alone_and_overwrites_nothing(path: Path) -> None:
    old = os.umask(0)
    try:
        Recorder(path).close()
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("precious")
    with pytest.raises(UsageError, match=" exists") as caught:
        Recorder(path)
    assert caught.value.hint
    link = path.with_name("link")
    link.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(UsageError, match=" exists"):
        Recorder(link)
    assert path.read_text() == "precious" and not path.with_name("elsewhere").exists()


def test_a_place_that_can_t_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"):
        Recorder(tmp_path / "none" / "x.iops")
    with pytest.raises(UsageError, match=r"can't be made| exists"):
        Recorder(tmp_path)


def test_nothing_is_left_of_a_job_that_never_began(path: Path) -> None:
    one = made.tape(path, idle_frames=False)
    one.sample(replace(made.raws(made.RUN)[0], fio=None, step=0))
    one.event(events.StepFinished(0.1, 1, 2, "no such job", False))
    one.close(events.SessionEnded(0.2, 2))
    assert not path.exists()


def test_nothing_is_left_where_no_sample_was_taken(path: Path) -> None:
    one = made.tape(path)
    assert one.path == path
    one.close(events.SessionEnded(0.0, 1))
    assert not path.exists()


# -- read from the middle, and ended there


@pytest.mark.parametrize("name", [n for n in KINDS if len(made.raws(n)) > 4])
def test_begun_in_the_middle_it_makes_the_same_frames_from_there_on(name: str, path: Path) -> None:
    taken = made.raws(name)
    live = made.frames(taken)
    # not every sample has everything: the last ones with fio and with IPIs are further back
    odd = [replace(taken[2], fio=None), replace(taken[3], kernel=None)]
    taken[2:4] = odd
    live = made.frames(taken)
    one = made.tape(None)
    before, _ = made.others(name)
    made.tell(one, [taken[0], *before, *taken[1:4]])
    one.start(Recorder(path))
    made.tell(one, [events.Mark(3.5, "here"), *taken[4:]])
    one.close(events.SessionEnded(9.0, 0))
    samples, found, _ = made.read(path)
    shown = [f for f, s in zip(made.frames(s.raw for s in samples), samples, strict=True)
             if s.is_shown]  # fmt: skip
    shift = live[0].t - (samples[0].raw.arrived_ns - taken[0].arrived_ns) / 1e9
    for got, expected in zip(shown, live[4:], strict=True):
        assert got.t == pytest.approx(expected.t + shift, abs=1e-6)
        assert replace(got, t=0.0) == replace(expected, t=0.0)
    assert [o.value for o in found if isinstance(o.value, form.JobRun | events.StepStarted)] == [
        before[0], replace(before[1], t=0.0)
    ]  # type: ignore[type-var] # fmt: skip
    mark = next(o.value for o in found if isinstance(o.value, events.Mark))
    assert mark.t == pytest.approx(max(0.0, 3.5 + shift), abs=1e-6)


# -- cut off, damaged, not a recording


def chunk_ends(data: bytes) -> list[tuple[int, bytes]]:
    place, found = len(form.MAGIC), []
    while place < len(data):
        kind, _, length, _ = form.HEAD.unpack_from(data, place)
        place += form.HEAD.size + length
        found.append((place, kind))
    return found


def test_cut_off_anywhere_it_gives_all_whole_samples_before(path: Path) -> None:
    made.write(path, taken=made.raws(made.RUN)[:3])
    data = path.read_bytes()
    ends = chunk_ends(data)
    whole = made.read(path)[0]
    cuts = {0, *range(0, len(data), 61), *(end + by for end, _ in ends for by in (-1, 0, 1))}
    for cut in sorted(c for c in cuts if c <= len(data)):
        path.write_bytes(data[:cut])
        there = [kind for end, kind in ends if end <= cut]
        if not there:
            with pytest.raises(UsageError, match=r"cut off before its first sample|is empty"):
                made.read(path)
            continue
        samples, others, damage = made.read(path)
        assert samples == whole[: sum(kind in (form.KEY, form.SAMPLE) for kind in there)]
        assert len(others) == there.count(form.EVENT)
        assert bool(damage) == (cut not in {end for end, _ in ends})
        with Recording(path) as recording:
            assert recording.index().samples == len(samples)
            assert recording.index().has_end_marker == (cut == len(data))


@given(place=st.floats(0, 1, exclude_max=True), flipped=st.integers(1, 255))
def test_a_damaged_byte_costs_what_follows_and_no_more(place: float, flipped: int) -> None:
    data = bytearray(WHOLE_FILE)
    position = int(place * len(data))
    data[position] ^= flipped
    file = SCRATCH / "damaged.iops"
    file.write_bytes(data)
    try:
        samples, _, damage = made.read(file)
    except IopstuiError as error:
        assert position < chunk_ends(WHOLE_FILE)[0][0], "only the beginning is needed"
        assert error.message
        return
    assert damage
    assert samples == WHOLE_SAMPLES[: len(samples)]


@pytest.mark.parametrize("another_behind", [False, True])
def test_behind_damage_it_is_read_from_the_next_key_on(path: Path, another_behind: bool) -> None:
    made.write(path, taken=made.long_run(200, made.RUN))
    whole, (data, ends) = made.read(path)[0], (path.read_bytes(), chunk_ends(path.read_bytes()))
    keys = [begin for (begin, _), (_, kind) in pairwise(ends)
            if kind == form.KEY]  # fmt: skip
    assert len(whole) == 200 and len(keys) == 4
    for place in (keys[1] + 5, keys[1] + 1000):
        made_bad = data[:place] + bytes(8) + data[place + 8 :]
        if another_behind:  # the keys belong to other times
            made_bad = made_bad[: keys[2]] + data
        path.write_bytes(made_bad)
        samples, _, damage = made.read(path)
        before = samples[: len([one for one in samples if one.t < whole[120].t])]
        assert before == whole[: len(before)] and 60 <= len(before) < 100 and damage
        assert samples[len(before) :] == ([] if another_behind else whole[120:])
        with Recording(path) as recording:
            assert another_behind or recording.index().end == whole[-1].t
            list(recording.records())
            lost = len(path.read_bytes()) if another_behind else keys[2]
            assert 0 < lost - place <= recording.unread_bytes < lost - keys[1] + 1
        with Recording(path) as recording:  # the data being written may not be in the file yet
            followed = [one for one in recording.follow() if hasattr(one, "raw")]
            assert followed == before


def test_a_damaged_kind_of_chunk_is_noticed() -> None:
    position = next(end for end, kind in chunk_ends(WHOLE_FILE) if kind == form.HEADER)
    data = bytearray(WHOLE_FILE)
    assert data[position : position + 1] == form.EVENT
    data[position] ^= 1
    file = SCRATCH / "kind.iops"
    file.write_bytes(data)
    assert made.read(file)[2], "not passed over as something a newer iopstui knows"


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    file = SCRATCH / "any.iops"
    for content in (data, form.MAGIC + data, form.MAGIC + _chunk(form.HEADER, data)):
        file.write_bytes(content)
        with pytest.raises(UsageError) as caught:
            made.read(file)
        assert caught.value.message.endswith(".")


def _chunk(kind: bytes, content: bytes) -> bytes:
    payload = zlib.compress(content)
    return form.head(kind, 0.0, payload) + payload


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"iopstui reco", "cut off before its first sample"),
        (b"iopstui recording 1\n", "cut off before its first sample"),
        (b"iopstui recording 2\n\x00", "by a newer iopstui (format 2"),
        (b"iopstui recording 10\n\x00", "by a newer iopstui (format 10"),
        (b"iopstui recording 0\n", "is not a recording"),
        (b"iopstui recording x\n", "is not a recording"),
        (b'{"event":"session","schema":1}\n', "contains JSON lines"),
        (b"\x7fELF" + bytes(5000), "is not a recording"),
        (form.MAGIC + _chunk(b"H", b"[" * 100_000), "is damaged at its beginning"),
        (form.MAGIC + _chunk(b"H", b'{"layouts":{"Header":5},"header":[]}'), "damaged"),
        (form.MAGIC + _chunk(b"H", b'{"layouts":{},"header":[]}'), "damaged"),
        (form.MAGIC + _chunk(b"H", b"{}")[:-1] + b"?", "is damaged before its first sample"),
    ],
)
def test_what_is_no_recording(content: bytes, words: str, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        Recording(path)
    assert words in caught.value.message


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, words in (("fifo", "not a file"), (".", "not a file"), ("none", "does not exist")):
        with pytest.raises((UsageError, Missing), match=words):
            Recording(tmp_path / name)


def test_a_name_can_t_act_on_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[2Jx"
    path.write_bytes(b"x")
    with pytest.raises(UsageError) as caught:
        Recording(path)
    assert "\x1b" not in caught.value.message + caught.value.hint


def test_chunks_and_events_of_a_newer_iopstui_are_passed_over(path: Path) -> None:
    made.write(path)
    data = path.read_bytes()
    end = chunk_ends(data)[0][0]
    new = _chunk(b"X", b"anything") + _chunk(b"E", b'["Later",[1,2]]')
    path.write_bytes(data[:end] + new + data[end:])
    samples, _, damage = made.read(path)
    assert len(samples) == len(made.raws(made.RUN)) and not damage


@pytest.mark.parametrize("length", [1 << 31, form.MAX_CHUNK_BYTES + 1])
def test_a_length_beyond_all_reason_is_not_believed(length: int, path: Path) -> None:
    made.write(path)
    good = path.read_bytes()
    path.write_bytes(good + struct.pack(">cdII", b"S", 1.0, length, 0) + b"x" * 100)
    samples, _, damage = made.read(path)
    assert len(samples) == len(made.raws(made.RUN)) and damage


def test_a_bomb_is_not_inflated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.write(path)
    monkeypatch.setattr(form, "MAX_CHUNK_BYTES", 1 << 20)
    with open(path, "ab") as file:
        file.write(_chunk(b"E", bytes(8 << 20)))
    _, _, damage = made.read(path)
    assert "too large" in damage


def test_events_that_are_small_in_the_file_and_large_together_are_not_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.write(path)
    monkeypatch.setattr(form, "MAX_CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(form, "MAX_EVENTS", 10 << 20)
    notice = b'["Notice",[0.1,"info","%s",false]]' % (b"a" * (900 << 10))
    with open(path, "ab") as file:
        file.write(_chunk(b"E", notice) * 10)
    samples, others, damage = made.read(path)
    assert len(samples) == len(made.raws(made.RUN))
    assert sum(isinstance(one.value, events.Notice) for one in others) == 2
    assert "its events take more than 10 MiB" in damage
    with Recording(path) as recording:
        assert sum(isinstance(o.value, events.Notice) for _, o in recording.index().events) == 2


# -- a disk that is full or slow


def test_a_full_disk_stops_the_recording_and_not_the_session(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = made.long_run(40, made.RUN)
    made.write(path.with_name("whole.iops"), taken=taken)
    room = [path.with_name("whole.iops").stat().st_size // 2]

    def write(fd: int, data: memoryview) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        took = min(room[0], len(data))
        room[0] -= took
        return real(fd, bytes(data[:took]))

    real = os.write
    monkeypatch.setattr(recorder_module.os, "write", write)
    recorder = Recorder(path)
    one = RecordingBuffer(made.TARGET, dict, 1.0, True, (), recorder)
    made.tell(one, taken)
    assert recorder.finished(10.0)
    said = list(one.problems())
    assert said == [
        f"the recording has stopped: {path}: No space left on device; measuring continues"
    ]
    made.tell(one, taken)
    assert list(one.problems()) == [] and one.path is None
    assert pop_incomplete_messages() == [
        f"the recording is incomplete: {path}: No space left on device"
    ]
    monkeypatch.undo()
    samples, _, damage = made.read(path)
    assert 0 < len(samples) < 40 and damage == "", "what was written is whole"


def test_a_disk_that_hangs_holds_nobody_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    real = os.write
    monkeypatch.setattr(
        recorder_module.os, "write", lambda fd, data: go_on.wait(60) and real(fd, data)
    )
    recorder = Recorder(path)
    one = RecordingBuffer(made.TARGET, dict, 1.0, True, (), recorder)
    made.tell(one, made.long_run(MAX_WAITING + 10, made.RUN))
    go_on.set()
    assert any("cannot be written fast enough" in said for said in one.problems())
    recorder.close()


def test_a_recording_that_is_given_up_is_not_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    real = os.write
    monkeypatch.setattr(
        recorder_module.os, "write", lambda fd, data: go_on.wait(60) and real(fd, data)
    )
    recorder = Recorder(path)
    one = RecordingBuffer(made.TARGET, dict, 1.0, True, (), recorder)
    made.tell(one, made.long_run(MAX_WAITING + 10, made.RUN))
    waited: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "join", lambda self, timeout=None: waited.append(self.name))
        assert list(one.problems())
    assert waited == [], "the session's thread samples on"
    go_on.set()
    assert recorder.finished(10.0), "what was queued is written, then the file is closed"


# -- a day


def test_reading_takes_no_more_memory_for_a_longer_recording(path: Path) -> None:
    peaks = []
    for count in (200, 1000):
        file = path.with_name(f"{count}.iops")
        # like a live session, which is slower than the writer
        recorder = Recorder(file)
        one = RecordingBuffer(made.TARGET, dict, 1.0, True, (), recorder)
        for raw in made.long_run(count, made.RUN):
            one.sample(raw)
            while recorder.waiting > 50:
                recorder.finished(0.001)
        one.close(events.SessionEnded(0.0, 0))
        tracemalloc.start()
        with Recording(file) as recording:
            assert sum(1 for _ in recording.records()) > count
            index = recording.index()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert index.samples == count and index.end == pytest.approx(count - 1)
        assert len(index.keys) == -(-count // form.KEY_EVERY)
    # all samples at once would take many megabytes
    assert peaks[1] < peaks[0] + 1_000_000


SCRATCH: Path
WHOLE_FILE: bytes
WHOLE_SAMPLES: list[object]


@pytest.fixture(scope="module", autouse=True)
def whole_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    global SCRATCH, WHOLE_FILE, WHOLE_SAMPLES
    SCRATCH = tmp_path_factory.mktemp("recordings")
    file = SCRATCH / "whole.iops"
    made.write(file, taken=made.raws(made.RUN)[:3])
    WHOLE_FILE = file.read_bytes()
    WHOLE_SAMPLES = list(made.read(file)[0])


def test_samples_that_grow_out_of_all_proportion_are_not_read(path: Path) -> None:
    made.write(path)
    sample = b"[true,[%s0]]" % (b"0," * (3 << 20))
    with open(path, "ab") as file:
        file.write(_chunk(b"K", sample) * 40)
    tracemalloc.start()
    try:
        _, _, damage = made.read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "damaged" in damage and peak < 300 << 20


def test_a_file_that_cannot_be_read_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.write(path)
    with Recording(path) as recording:
        # reading the descriptor of a directory fails, like reading a disk with bad sectors
        os.dup2(os.open(path.parent, os.O_RDONLY), recording._file.fileno())
        with pytest.raises(UsageError, match="Cannot read"):
            list(recording.records())


def test_a_control_character_in_a_sample_is_replaced(path: Path) -> None:
    first = made.raws(made.RUN)[0]
    assert first.fio is not None
    version = "fio\x1b]0;x\x07\u202e\ud800"
    raw = replace(first, fio=replace(first.fio, version=version))
    made.write(path, taken=[raw, *made.raws(made.RUN)[1:]])
    fio = made.read(path)[0][0].raw.fio
    assert fio is not None and fio.version == "fio?]0;x???"


def test_without_a_thread_the_recording_says_which_limit_is_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    recorder = Recorder(tmp_path / "r.iops")
    monkeypatch.setattr(threading.Thread, "start", start)
    recorder.put(b"X", 0.0, {})
    assert "ulimit -u" in recorder.problem
    recorder.close()
    assert recorder.finished(0.0)
