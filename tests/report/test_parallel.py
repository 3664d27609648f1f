"""Several processes give the same report as one that reads in order. If they cannot, one process
reads in order. Reports are compared with that of the same recording in one block."""

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
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
import pytest
import recordings as made
from fio_recordings import NAMES
from nearly import assert_nearly
from session_frames import kernel

from iopstui import events
from iopstui.features.reports import blocks, report_data
from iopstui.features.reports.files import rendered
from iopstui.features.reports.report_data import load_report_data
from iopstui.model.findings.diagnosis import Finding
from iopstui.model.metrics.run_figures import MarkInterval, MarkIntervals
from iopstui.model.metrics.run_history import RunHistory, RunRow
from iopstui.model.samples import RawSample
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording, SampleRecord
from iopstui.recording.replay import replay_events
from iopstui.recording.writer import Recorder, RecordingBuffer
from iopstui.session.run_rows import add_mark_event, add_run_event

HELPER = Path(made.__file__).parent / "report_beside.py"
RUN = "3.33-p-mixed"
BINS = 40
"""Number of histogram bins (of 375): with all bins these tests would take most of their time
here."""


def report_in_processes(
    paths: Sequence[Path], processes: int = 3, keys: int = 1
) -> list[dict[str, Any]]:
    command = [sys.executable, str(HELPER), str(processes), str(keys), *map(str, paths)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return [json.loads(line) for line in process.stdout.splitlines()]


def report_in_one_segment(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The report that this process makes, with nothing to add up."""
    monkeypatch.setattr(blocks, "SEGMENT_KEYS", 1000)
    monkeypatch.setattr(report_data, "fold_in_parallel", lambda *_: None)
    return json.loads(rendered([path], "json"))


def run_samples(count: int, begin: int = 0, step: int = 1, uneven: int = 7) -> list[RawSample]:
    """``count`` seconds of a run of fio that starts at second ``begin``. Times are uneven, so sums
    of rates are not round."""
    first = next(raw for raw in made.raws(RUN) if raw.fio and raw.fio.jobs[0].job_runtime_ms)
    assert first.fio is not None
    samples = []
    for n in range(1, count + 1):
        at = (begin + n) * 1000 + n * uneven % 11
        jobs = []
        for job in first.fio.jobs:
            directions = {
                name: replace(
                    counters,
                    issued=counters.issued * n,
                    completed=counters.completed and counters.completed * n,
                    io_bytes=counters.io_bytes * n,
                    runtime_ms=n * 1000,
                    bins=counters.bins
                    and {key: c * n + n % 3 for key, c in islice(counters.bins.items(), BINS)},
                )
                for name, counters in job.directions.items()
            }
            jobs.append(replace(job, directions=directions, job_runtime_ms=n * 1000, elapsed_s=n))
        fio = replace(first.fio, timestamp_ms=10**12 + at, jobs=tuple(jobs))
        kernel_sample = kernel(begin + n, at * 10**6, 1e12 + at)
        samples.append(
            RawSample(begin + n, at * 10**6, 1e12 + at, kernel_sample, fio, n == count, step)
        )
    return samples


def idle_samples(count: int, begin: int) -> list[RawSample]:
    return [replace(raw, fio=None, step=0, final=False) for raw in run_samples(count, begin)]


def started(t: float, step: int) -> events.StepStarted:
    return events.StepStarted(t, step, "j", "randread 4k", ("fio",), True)


def finished(t: float, step: int) -> events.StepFinished:
    return events.StepFinished(t, step, 0, "", False, {})


def write_recording(path: Path, happenings: Sequence[object]) -> Path:
    recorder = Recorder(path)
    buffer = RecordingBuffer(made.TARGET, lambda: {"vda": made.VDA}, 1.0, True, (), recorder)
    for item in happenings:
        made.tell(buffer, [item])
        while recorder.waiting > 20:
            time.sleep(0.001)
    assert buffer.close(events.SessionEnded(1e6, 0)) == ""
    return path


@pytest.fixture(scope="module")
def several_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of minutes with all kinds of events, and idle time."""
    a, b = run_samples(190), run_samples(130, 280, 2, 5)
    mark = [events.Mark(float(t), f"mark {t}") for t in (100, 213, 360)]
    full = events.FindingReported(70.0, Finding("rule", "CPU 1 is full", "try 2", "a"))
    changed = events.TunableChanged(80.0, "vda", "rq_affinity", "1", "2")
    return write_recording(
        tmp_path_factory.mktemp("runs") / "runs.iops",
        [a[0], started(0.1, 1), *a[1:70], full, *a[70:80], changed, *a[80:100], mark[0],
         *a[100:130], events.FindingReported(130.0, full.finding), *a[130:], finished(191.0, 1),
         *idle_samples(22, 191), mark[1], *idle_samples(60, 214), started(279.0, 2), *b[:80],
         mark[2], *b[80:], finished(411.0, 2), *idle_samples(70, 412)],
    )  # fmt: skip


DAMAGED = (0.3, 0.95)
"""Positions as a part of the recording's length."""


@pytest.fixture(scope="module")
def reports(several_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Reports of complete, damaged and unusual recordings, by name. One process makes them all,
    because starting it takes as long as a report."""
    folder = tmp_path_factory.mktemp("odd")
    content = several_runs.read_bytes()
    (folder / "cut").write_bytes(content[:-200])
    for part in DAMAGED:
        data = bytearray(content)
        data[int(part * len(data))] ^= 0x55
        (folder / f"damaged {part}").write_bytes(data)
    a = run_samples(200)
    write_recording(folder / "impossible", [*a[:150], replace(a[150], wall_ms=1e30), *a[151:]])
    nameless_mark(folder / "mark", a)
    silent = [replace(raw, fio=None) if 100 < raw.seq < 200 else raw for raw in run_samples(260)]
    write_recording(folder / "silent", [silent[0], started(0.1, 1), *silent[1:]])
    paths = {"whole": several_runs, **{path.name: path for path in folder.iterdir()}}
    path_results = zip(paths.items(), report_in_processes([*paths.values()]), strict=True)
    return {name: {**result, "path": path} for (name, path), result in path_results}


def nameless_mark(path: Path, a: list[RawSample]) -> None:
    """Write a recording with an invalid mark. Its checksum is right, so decoding must detect it."""
    write_recording(path, [a[0], started(0.1, 1), *a[1:90], events.Mark(90.0, "here"), *a[90:]])
    content, payload = path.read_bytes(), zlib.compress(json.dumps(["Mark", 5]).encode())
    with Recording(path) as recording:
        place = next(
            at for at, record in recording.index().events if isinstance(record.value, events.Mark)
        )
    kind, t, length, _ = form.HEAD.unpack_from(content, place)
    head = form.HEAD.pack(kind, t, len(payload), form.checksum(kind, t, payload))
    path.write_bytes(content[:place] + head + payload + content[place + form.HEAD.size + length :])


@pytest.fixture(scope="module")
def in_order(reports: dict[str, Any]) -> str:
    """The report of several runs, made by one process."""
    text: str = reports["whole"]["in_order"]
    return text


def test_several_processes_give_the_same_report_as_one(reports: dict[str, Any]) -> None:
    result = reports["whole"]
    assert result["used"] and not result["again"]
    assert result["beside"] == result["in_order"]
    data = json.loads(result["beside"])["recordings"][0]
    assert [run["frames"]["count"] for run in data["runs"]] == [190, 130]
    assert len(data["marks"]) == 3 and len(data["between_marks"]) >= 3


def test_segments_do_not_change_the_report(
    several_runs: Path, in_order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of segments equal sums of all seconds."""
    assert_nearly(json.loads(in_order), report_in_one_segment(several_runs, monkeypatch))


def test_reports_of_fio_recordings_are_the_same_in_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recordings of all kinds of runs and ends, in segments of two samples."""
    monkeypatch.setattr(form, "KEY_EVERY", 2)
    paths = []
    for name in NAMES[::6]:
        made.write(tmp_path / f"{name}.iops", name)
        paths.append(tmp_path / f"{name}.iops")
    results = report_in_processes(paths)
    assert [result["file"] for result in results if result["beside"] != result["in_order"]] == []
    for result, path in zip(results, paths, strict=True):
        assert_nearly(json.loads(result["in_order"]), report_in_one_segment(path, monkeypatch))
    # two samples are often not enough to continue, but in simple runs they are
    in_parallel = [result for result in results if result["used"]]
    assert in_parallel and sum(not result["again"] for result in in_parallel) > len(in_parallel) / 4


def test_a_silence_longer_than_the_lead_is_read_in_order(reports: dict[str, Any]) -> None:
    """fio reports nothing for more than a minute in the middle of the run."""
    result = reports["silent"]
    assert result["used"] and result["again"] == 1
    assert result["beside"] == result["in_order"]


def fold_single_frames(path: Path) -> tuple[list[RunRow], list[MarkInterval]]:
    """Fold each frame by itself, as the live screen does."""
    with Recording(path) as recording:
        history, mark_intervals = RunHistory(), MarkIntervals()
        for event in replay_events(recording):
            add_run_event(history, event)
            add_mark_event(mark_intervals, event)
    return history.rows, mark_intervals.all


def test_rows_and_mark_intervals_equal_those_of_single_frames(
    several_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if fio was silent during a mark: its next report covers time before the mark."""
    monkeypatch.setattr(blocks, "SEGMENT_KEYS", 1)
    silent = [replace(raw, fio=None) if 40 < raw.seq < 70 else raw for raw in run_samples(70)]
    path = write_recording(tmp_path / "r.iops", [silent[0], started(0.1, 1), *silent[1:60],
                                          events.Mark(60.0, "m"), *silent[60:]])  # fmt: skip
    for recording_file, least in ((several_runs, 3), (path, 2)):
        rows, mark_intervals = fold_single_frames(recording_file)
        data = load_report_data(recording_file)
        assert len(mark_intervals) >= least
        assert_nearly([*map(asdict, data.rows)], [*map(asdict, rows)])
        assert_nearly([*map(asdict, data.mark_intervals)], [*map(asdict, mark_intervals)])


def test_reading_stops_at_an_invalid_event(reports: dict[str, Any]) -> None:
    result = reports["mark"]
    assert result["beside"] == result["in_order"] and "not a Mark" in result["beside"]
    data = json.loads(result["beside"])["recordings"][0]
    assert data["runs"][0]["frames"]["count"] == data["samples"] == 90


@pytest.mark.parametrize("part", DAMAGED)
def test_damage_is_reported_as_in_sequential_reading(reports: dict[str, Any], part: float) -> None:
    result = reports[f"damaged {part}"]
    assert result["beside"] == result["in_order"] and "damaged" in result["beside"]
    with Recording(result["path"]) as recording:
        before = [r for r in recording.records() if isinstance(r, SampleRecord) and r.raw.fio]
    runs = json.loads(result["beside"])["recordings"][0]["runs"]
    assert sum(run["frames"]["count"] for run in runs) == len(before) > 0


def test_a_recording_that_was_cut_off_is_read_in_parallel(reports: dict[str, Any]) -> None:
    """A killed recorder leaves such a recording."""
    result = reports["cut"]
    assert result["used"] and not result["again"]
    assert result["beside"] == result["in_order"] and "cut off" in result["beside"]


def test_impossible_figures_are_reported_as_in_sequential_reading(reports: dict[str, Any]) -> None:
    result = reports["impossible"]
    assert result["beside"] == result["in_order"] and "impossible figures" in result["beside"]


def test_a_short_recording_is_read_by_one_process(tmp_path: Path) -> None:
    made.write(tmp_path / "r.iops")
    result = report_in_processes([tmp_path / "r.iops"], 4, 30)[0]
    assert not result["used"] and result["beside"] == result["in_order"]


SLOW = """
import sys, time
from iopstui.features.reports import blocks
from iopstui.features.reports.files import rendered
from pathlib import Path
blocks.SEGMENT_KEYS = 1
import os
os.sched_getaffinity = lambda _: [0, 1, 2]
whole = blocks._segment_result
def part(*arguments):
    if arguments[1].start is not None:
        {odd}
    return whole(*arguments)
blocks._segment_result = part
print(rendered([Path(sys.argv[1])], "json"))
"""


def test_a_killed_process_does_not_change_the_report(several_runs: Path, in_order: str) -> None:
    """The OOM killer kills processes in this way."""
    text = SLOW.format(odd="os.kill(os.getpid(), 9)")
    command = [sys.executable, "-c", text, str(several_runs)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (0, "")
    assert json.loads(process.stdout) == json.loads(in_order)


@pytest.mark.parametrize("most", [8, 10])
def test_with_few_file_descriptors_it_is_read_in_order(
    several_runs: Path, in_order: str, most: int
) -> None:
    """The first process has started already and must end without a message."""
    command = [sys.executable, "-c", SLOW.format(odd="pass"), str(several_runs)]
    limited = ["sh", "-c", f'ulimit -n {most} && exec "$0" "$@"', *command]
    process = subprocess.run(limited, capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (0, "")
    assert json.loads(process.stdout) == json.loads(in_order)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all_processes(several_runs: Path, signal_number: signal.Signals) -> None:
    text = SLOW.format(odd="time.sleep(0.2)")
    command = [sys.executable, "-c", text, str(several_runs)]
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        children: list[psutil.Process] = []
        deadline = time.monotonic() + 60
        while len(children) < 3 and time.monotonic() < deadline:
            children = psutil.Process(process.pid).children()
            time.sleep(0.02)
        assert len(children) == 3
        # Ctrl-C signals all processes
        (os.killpg if signal_number == signal.SIGINT else os.kill)(process.pid, signal_number)
        _, stderr = process.communicate(timeout=60)
    assert "_fold_segment" not in stderr and "Process-" not in stderr
    _, survivors = psutil.wait_procs(children, timeout=60)
    assert survivors == []


def test_segments_cover_the_whole_recording(several_runs: Path) -> None:
    """Reading up to a key and from there on gives all records."""
    with Recording(several_runs) as recording:
        records = list(recording.records())
        for place in list(recording.index().keys)[1::4]:
            parts = [*recording.records(None, place), *recording.records(place)]
            assert [record.t for record in parts] == [record.t for record in records]
