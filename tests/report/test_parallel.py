"""A recording read by several processes gives the report that reading it in order gives, and where
it can't, it is read in order. The oracle is the same recording in one block."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import recordings as made
from fio_recordings import NAMES
from nearly import assert_nearly
from session_frames import kernel

from iopstui import events
from iopstui.model.findings.diagnosis import Finding
from iopstui.model.metrics.mark_intervals import MarkInterval, MarkIntervals
from iopstui.model.metrics.run_history import RunHistory, RunRow
from iopstui.model.samples import RawSample
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording, SampleRecord
from iopstui.recording.replay import replay_events
from iopstui.recording.writer import Recorder, RecordingBuffer
from iopstui.report.folding import block_builder
from iopstui.report.story import gather
from iopstui.session.run_rows import add_mark_event, add_run_event

HELPER = Path(made.__file__).parent / "report_beside.py"
RUN = "3.33-p-mixed"


def found(paths: Sequence[Path], processes: int = 3, keys: int = 1) -> list[dict[str, Any]]:
    asked = [sys.executable, str(HELPER), str(processes), str(keys), *map(str, paths)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def busy(count: int, begin: int = 0, step: int = 1, uneven: int = 7) -> list[RawSample]:
    """So many seconds of a run of fio, whose counters go on from second to second; its first one
    is second ``begin`` of the recording. Times are uneven, so sums of rates are no round ones."""
    first = next(raw for raw in made.raws(RUN) if raw.fio and raw.fio.jobs[0].job_runtime_ms)
    assert first.fio is not None
    taken = []
    for n in range(1, count + 1):
        at = (begin + n) * 1000 + n * uneven % 11
        jobs = []
        for job in first.fio.jobs:
            directions = {
                name: replace(
                    one,
                    issued=one.issued * n,
                    completed=one.completed and one.completed * n,
                    io_bytes=one.io_bytes * n,
                    runtime_ms=n * 1000,
                    bins=one.bins and {key: c * n + n % 3 for key, c in one.bins.items()},
                )
                for name, one in job.directions.items()
            }
            jobs.append(replace(job, directions=directions, job_runtime_ms=n * 1000, elapsed_s=n))
        fio = replace(first.fio, timestamp_ms=10**12 + at, jobs=tuple(jobs))
        then = kernel(begin + n, at * 10**6, 1e12 + at)
        taken.append(RawSample(begin + n, at * 10**6, 1e12 + at, then, fio, n == count, step))
    return taken


def idle(count: int, begin: int) -> list[RawSample]:
    return [replace(raw, fio=None, step=0, final=False) for raw in busy(count, begin)]


def started(t: float, step: int) -> events.StepStarted:
    return events.StepStarted(t, step, "j", "randread 4k", ("fio",), True)


def finished(t: float, step: int) -> events.StepFinished:
    return events.StepFinished(t, step, 0, "", False, {})


def recorded(path: Path, happenings: Sequence[object]) -> Path:
    recorder = Recorder(path)
    one = RecordingBuffer(made.TARGET, lambda: {"vda": made.VDA}, 1.0, True, (), recorder)
    for what in happenings:
        made.tell(one, [what])
        while recorder.waiting > 20:
            time.sleep(0.001)
    assert one.close(events.SessionEnded(1e6, 0)) == ""
    return path


@pytest.fixture(scope="module")
def several_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of minutes with all that can happen between their seconds, and quiet ones."""
    a, b = busy(190), busy(130, 280, 2, 5)
    mark = [events.Mark(float(t), f"mark {t}") for t in (100, 213, 360)]
    full = events.FindingReported(70.0, Finding("rule", "CPU 1 is full", "try 2", "a"))
    changed = events.TunableChanged(80.0, "vda", "rq_affinity", "1", "2")
    return recorded(
        tmp_path_factory.mktemp("runs") / "runs.iops",
        [a[0], started(0.1, 1), *a[1:70], full, *a[70:80], changed, *a[80:100], mark[0],
         *a[100:130], events.FindingReported(130.0, full.finding), *a[130:], finished(191.0, 1),
         *idle(22, 191), mark[1], *idle(60, 214), started(279.0, 2), *b[:80], mark[2],
         *b[80:], finished(411.0, 2), *idle(70, 412)],
    )  # fmt: skip


DAMAGED = (0.3, 0.95)
"""At which part of a recording."""


@pytest.fixture(scope="module")
def reports(several_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Reports of several runs, whole and damaged, and of odd recordings, by name: made by one
    program, as each start of it takes as long as a report."""
    folder = tmp_path_factory.mktemp("odd")
    whole = several_runs.read_bytes()
    (folder / "cut").write_bytes(whole[:-200])
    for part in DAMAGED:
        data = bytearray(whole)
        data[int(part * len(data))] ^= 0x55
        (folder / f"damaged {part}").write_bytes(data)
    a = busy(200)
    recorded(folder / "impossible", [*a[:150], replace(a[150], wall_ms=1e30), *a[151:]])
    nameless_mark(folder / "mark", a)
    silent = [replace(raw, fio=None) if 100 < raw.seq < 200 else raw for raw in busy(260)]
    recorded(folder / "silent", [silent[0], started(0.1, 1), *silent[1:]])
    paths = {"whole": several_runs, **{path.name: path for path in folder.iterdir()}}
    told = zip(paths.items(), found([*paths.values()]), strict=True)
    return {name: {**one, "path": path} for (name, path), one in told}


def nameless_mark(path: Path, a: list[RawSample]) -> None:
    """Its checksum is right, so it is found when it is decoded."""
    recorded(path, [a[0], started(0.1, 1), *a[1:90], events.Mark(90.0, "here"), *a[90:]])
    whole, other = path.read_bytes(), zlib.compress(json.dumps(["Mark", 5]).encode())
    with Recording(path) as recording:
        place = next(
            at for at, one in recording.index().others if isinstance(one.value, events.Mark)
        )
    kind, t, length, _ = form.HEAD.unpack_from(whole, place)
    head = form.HEAD.pack(kind, t, len(other), form.checksum(kind, t, other))
    path.write_bytes(whole[:place] + head + other + whole[place + form.HEAD.size + length :])


@pytest.fixture(scope="module")
def in_order(reports: dict[str, Any]) -> str:
    """The report of several runs, by one process."""
    text: str = reports["whole"]["in_order"]
    return text


def test_several_processes_report_what_one_does(several_runs: Path) -> None:
    one = found([several_runs], 4, 2)[0]
    assert one["used"] and not one["again"]
    assert one["beside"] == one["in_order"]
    told = json.loads(one["beside"])["recordings"][0]
    assert [run["frames"]["count"] for run in told["runs"]] == [190, 130]
    assert len(told["marks"]) == 3 and len(told["between_marks"]) >= 3


def test_segments_change_nothing(several_runs: Path, in_order: str) -> None:
    """Sums of segments are those of all seconds."""
    assert_nearly(json.loads(in_order), json.loads(found([several_runs], 1, 1000)[0]["in_order"]))


def test_what_fio_really_printed_is_the_same_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of all recordings, cut every two samples: ramps, stages, several jobs, ends of all
    kinds."""
    monkeypatch.setattr(form, "KEY_EVERY", 2)
    paths = []
    for name in NAMES[::6]:
        made.write(tmp_path / f"{name}.iops", name)
        paths.append(tmp_path / f"{name}.iops")
    told = found(paths)
    assert [one["file"] for one in told if one["beside"] != one["in_order"]] == []
    for one, whole in zip(told, found(paths, 1, 1000), strict=True):
        assert_nearly(json.loads(one["in_order"]), json.loads(whole["in_order"]))
    # of two samples most do not tell all that a third depends on, but where nothing is odd
    used = [one for one in told if one["used"]]
    assert used and sum(not one["again"] for one in used) > len(used) / 4


def test_what_began_before_a_segment_s_lead_is_read_in_order(reports: dict[str, Any]) -> None:
    """fio says nothing for more than a minute, in the middle of its run."""
    one = reports["silent"]
    assert one["used"] and one["again"] == 1
    assert one["beside"] == one["in_order"]


def by_frames(path: Path) -> tuple[list[RunRow], list[MarkInterval]]:
    """Each frame by itself, as a live screen takes them."""
    with Recording(path) as recording:
        opened = recording.header.target.opened
        history, stretches = RunHistory(opened), MarkIntervals(opened)
        for event in replay_events(recording):
            add_run_event(history, event)
            add_mark_event(stretches, event)
    return history.rows, stretches.all


def test_rows_and_stretches_are_those_of_single_frames(
    several_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where fio was silent over a mark: its next document reaches back before that."""
    monkeypatch.setattr(block_builder, "SEGMENT_KEYS", 1)
    silent = [replace(raw, fio=None) if 40 < raw.seq < 70 else raw for raw in busy(70)]
    path = recorded(tmp_path / "r.iops", [silent[0], started(0.1, 1), *silent[1:60],
                                          events.Mark(60.0, "m"), *silent[60:]])  # fmt: skip
    for one, least in ((several_runs, 3), (path, 2)):
        rows, stretches = by_frames(one)
        found = gather(one)
        assert len(stretches) >= least
        assert_nearly([*map(asdict, found.rows)], [*map(asdict, rows)])
        assert_nearly([*map(asdict, found.stretches)], [*map(asdict, stretches)])


def test_what_follows_an_event_that_says_nothing_is_not_read(reports: dict[str, Any]) -> None:
    one = reports["mark"]
    assert one["beside"] == one["in_order"] and "not a Mark" in one["beside"]
    told = json.loads(one["beside"])["recordings"][0]
    assert told["runs"][0]["frames"]["count"] == told["samples"] == 90


@pytest.mark.parametrize("part", DAMAGED)
def test_a_damaged_place_is_told_as_ever(reports: dict[str, Any], part: float) -> None:
    one = reports[f"damaged {part}"]
    assert one["beside"] == one["in_order"] and "damaged" in one["beside"]
    with Recording(one["path"]) as recording:
        before = [r for r in recording.records() if isinstance(r, SampleRecord) and r.raw.fio]
    runs = json.loads(one["beside"])["recordings"][0]["runs"]
    assert sum(run["frames"]["count"] for run in runs) == len(before) > 0


def test_one_that_was_cut_off_is_read_beside_each_other(reports: dict[str, Any]) -> None:
    """As a recording is whose recorder was killed."""
    one = reports["cut"]
    assert one["used"] and not one["again"]
    assert one["beside"] == one["in_order"] and "cut off" in one["beside"]


def test_impossible_figures_are_told_as_ever(reports: dict[str, Any]) -> None:
    one = reports["impossible"]
    assert one["beside"] == one["in_order"] and "impossible figures" in one["beside"]


def test_a_short_recording_is_read_by_one(tmp_path: Path) -> None:
    made.write(tmp_path / "r.iops")
    one = found([tmp_path / "r.iops"], 4, 30)[0]
    assert not one["used"] and one["beside"] == one["in_order"]


SLOW = """
import sys, time
from iopstui.report.folding import block_builder, parallel
from iopstui.report.files import rendered
from pathlib import Path
block_builder.SEGMENT_KEYS = 1
import os
os.sched_getaffinity = lambda _: [0, 1, 2]
whole = parallel._segment_result
def part(*arguments):
    if arguments[1].start is not None:
        {odd}
    return whole(*arguments)
parallel._segment_result = part
print(rendered([Path(sys.argv[1])], "json"))
"""


def test_a_process_that_dies_is_none(several_runs: Path, in_order: str) -> None:
    """Killed, as by a kernel that is out of memory."""
    text = SLOW.format(odd="os.kill(os.getpid(), 9)")
    asked = [sys.executable, "-c", text, str(several_runs)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(in_order)


@pytest.mark.parametrize("most", [8, 10])
def test_where_few_files_can_be_open_it_is_read_in_order(
    several_runs: Path, in_order: str, most: int
) -> None:
    """The first process was started already and has to go again, without a word."""
    asked = [sys.executable, "-c", SLOW.format(odd="pass"), str(several_runs)]
    limited = ["sh", "-c", f'ulimit -n {most} && exec "$0" "$@"', *asked]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(in_order)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left(several_runs: Path, how: signal.Signals) -> None:
    text = SLOW.format(odd="time.sleep(0.2)")
    asked = [sys.executable, "-c", text, str(several_runs)]
    with subprocess.Popen(
        asked, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        children: list[psutil.Process] = []
        until = time.monotonic() + 30
        while len(children) < 3 and time.monotonic() < until:
            children = psutil.Process(process.pid).children()
            time.sleep(0.02)
        assert len(children) == 3
        # Ctrl-C goes to all of them
        (os.killpg if how == signal.SIGINT else os.kill)(process.pid, how)
        _, said = process.communicate(timeout=30)
    assert "_fold_segment" not in said and "Process-" not in said
    _, left = psutil.wait_procs(children, timeout=30)
    assert left == []


def test_a_segment_s_places_are_those_of_the_recording(several_runs: Path) -> None:
    """Reading up to a place and from there on is reading everything."""
    with Recording(several_runs) as recording:
        whole = list(recording.records())
        for place in list(recording.index().keys)[1::4]:
            parts = [*recording.records(None, place), *recording.records(place)]
            assert [record.t for record in parts] == [record.t for record in whole]
