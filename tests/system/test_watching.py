"""`iopstui watch` as a user runs it: duration, end, files."""

from __future__ import annotations

import fcntl
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from program import ROOT, events, iopstui, start

from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, UsageError
from iopstui.model.samples import RawSample
from iopstui.recording.reader import EventRecord, Recording, SampleRecord

F_SETPIPE_SZ = 1031
SCRIPT = ROOT / "tests" / "helpers" / "watch_made_up.py"
ALWAYS = "own_cpu>=0% for 0.5s"
"""A condition that holds on every machine."""


@contextmanager
def running_watch(workdir: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a watch; kill it if the test fails."""
    process = start("watch", "--interval", "0.25", *arguments, cwd=workdir, script=str(SCRIPT))
    try:
        yield process
    finally:
        process.kill()


def run_watch(workdir: Path, *arguments: str) -> tuple[int, str, str]:
    with running_watch(workdir, *arguments) as process:
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err


def count_samples(path: Path) -> int:
    """Number of samples recorded so far."""
    try:
        with Recording(path) as recording:
            return recording.index().samples
    except UsageError:  # its header is not written yet
        return 0


def read_samples_and_marks(path: Path) -> tuple[list[RawSample], list[str]]:
    """Shown samples and marks of a recording, which must be undamaged."""
    with Recording(path) as recording:
        records = list(recording.records())
        assert recording.damage == ""
    samples = [
        record.raw for record in records if isinstance(record, SampleRecord) and record.is_shown
    ]
    others = [record.value for record in records if isinstance(record, EventRecord)]
    assert type(others[-1]).__name__ == "RecordingEnd"
    return samples, [value.text for value in others if type(value).__name__ == "Mark"]


def test_for_ends_the_watch_with_a_summary(workdir: Path) -> None:
    code, out, err = run_watch(workdir, "--for", "1s")
    assert code == EXIT_OK
    assert out.splitlines()[0].split()[:4] == ["UTC", "time", "disk", "r/s"]
    assert re.search("^watched for 0:0[1-9], ", out, re.M) and max(map(len, out.splitlines())) <= 80
    first, *more = err.splitlines()
    assert first == "iopstui: watching all disks that have done I/O: none"
    # on a busy machine there may be findings
    assert all("] finding " in line for line in more)


def test_a_missing_target_is_reported_as_all_disks(workdir: Path) -> None:
    assert "all disks" not in run_watch(workdir, "/dev/none", "--for", "0.5s")[2]


def test_json_lines_have_utc_and_seconds(workdir: Path) -> None:
    code, out, err = run_watch(workdir, "--for", "1s", "--format", "jsonl")
    frames = [event for event in events(out) if event["event"] == "frame"]
    assert code == EXIT_OK and frames[0]["t"] == 0 and frames[-1]["t"] >= 1
    assert all(frame["utc"].endswith("Z") and frame["fio"] is None for frame in frames)
    assert re.search("watched for 0:0[1-9]", err) and events(out)[-1]["event"] == "ended"


def test_everything_is_recorded_without_a_trigger(workdir: Path) -> None:
    code, out, err = run_watch(workdir, "--for", "1s", "--record", "a.iops", "--format", "jsonl")
    frames = [event for event in events(out) if event["event"] == "frame"]
    samples, _ = read_samples_and_marks(workdir / "a.iops")
    assert code == EXIT_OK and len(samples) == len(frames)
    assert "recorded to a.iops" in err


def test_a_trigger_records_the_time_around_it(workdir: Path) -> None:
    condition = "own_cpu>=0% for 2s"
    code, out, err = run_watch(
        workdir, "--for", "5s", "--trigger", condition, "--record", "a.iops", "--before", "0.3s",
        "--after", "0.5s", "--format", "jsonl",
    )  # fmt: skip
    rows = events(out)
    (mark,) = [row for row in rows if row["event"] == "mark"]
    samples, recorded_marks = read_samples_and_marks(workdir / "a.iops")
    assert code == EXIT_OK and recorded_marks == [mark["text"]]
    assert mark["text"].startswith(f"trigger {condition}: ") and f"mark: {mark['text']}" in err
    times = [row["t"] for row in rows if row["event"] == "frame"]
    # on a busy machine samples, the mark, and the ends of the file are late; besides that time the
    # file has one sample before it and one after it
    late_s = 1.0
    first, *between, last = (sample.seq for sample in samples)
    assert between == list(range(first + 1, last)) and times[first] < mark["t"] < times[last]
    assert times[first + 1] > mark["t"] - 0.35 - late_s
    assert times[last - 1] < mark["t"] + 0.55 + late_s
    assert [path.name for path in workdir.iterdir()] == ["a.iops"]
    assert "recorded to a.iops:" in err and f"trigger {condition}: fired once" in err


def test_no_file_is_left_if_no_trigger_fires(workdir: Path) -> None:
    code, _, err = run_watch(
        workdir, "--for", "0.6s", "--trigger", "own_cpu>1000000% for 1s",
        "--record", "a.iops",
    )  # fmt: skip
    assert code == EXIT_OK and list(workdir.iterdir()) == [] and "recorded" not in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_an_endless_watch_with_success(workdir: Path, number: signal.Signals) -> None:
    with running_watch(workdir, "--record", "a.iops") as process:
        assert process.stdout is not None
        while "none" not in process.stdout.readline():  # it measures as soon as it prints this
            continue
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == EXIT_OK and "watched for 0:0" in out
    assert len(read_samples_and_marks(workdir / "a.iops")[0]) >= 2 and "Traceback" not in err


def test_a_signal_before_the_end_is_an_interruption(workdir: Path) -> None:
    with running_watch(workdir, "--for", "1h") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        out, _ = process.communicate(timeout=60)
    assert process.returncode == EXIT_INTERRUPTED and "watched for 0:0" in out


@pytest.mark.parametrize("kind", ["table", "jsonl", "csv"])
def test_a_reader_that_stops_early_is_no_failure(workdir: Path, kind: str) -> None:
    with running_watch(workdir, "/dev/none", "--format", kind) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == EXIT_OK
        assert process.stderr.read() == ""


def test_a_blocked_reader_does_not_keep_a_signal_from_ending_the_watch(workdir: Path) -> None:
    with running_watch(workdir, "--format", "jsonl", "--record", "a.iops") as process:
        assert process.stdout is not None
        fcntl.fcntl(process.stdout.fileno(), F_SETPIPE_SZ, 4096)
        while count_samples(workdir / "a.iops") < 10:  # many more lines than the pipe holds
            time.sleep(0.1)
        process.terminate()
        assert process.wait(60) == EXIT_OK
    assert len(read_samples_and_marks(workdir / "a.iops")[0]) >= 2


def test_a_killed_watch_leaves_only_its_recording(workdir: Path) -> None:
    with running_watch(workdir, "--trigger", ALWAYS, "--record", "a.iops") as process:
        assert process.stderr is not None
        while "recording to" not in process.stderr.readline():
            continue
        process.kill()
    assert [path.name for path in workdir.iterdir()] == ["a.iops"]
    # there is nothing to restore, so only the list of recent recordings is there
    state_files = [path.name for path in (workdir.parent / "state").rglob("*") if path.is_file()]
    assert state_files == ["recordings"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--for", "0s"), "is not a time"),
        (("--for", "five"), "is not a time"),
        (("--for=-1s",), "is not a time"),
        (("--after", "5s"), "They need --trigger and --record"),
        (("--before", "11m"), "the most that is kept in memory"),
        (("--trigger", "r_await>20"), "is not of the form"),
        (("--trigger", "r_await>20 for 3s"), "needs a unit"),
        (
            ("--trigger", "sdz.r_await>20ms for 3s"),
            "cannot be measured: no figure of a whole run is called",
        ),
        (("--record", "there.iops"), " exists"),
        (("--record", "there.iops", "--trigger", ALWAYS), " exists"),
        (("--record", "no/where.iops", "--trigger", ALWAYS), "cannot create"),
    ],
)
def test_bad_input_is_refused_before_the_start(
    workdir: Path, arguments: tuple[str, ...], message: str
) -> None:
    (workdir / "there.iops").write_text("mine")
    result = iopstui("watch", *arguments, cwd=workdir)
    assert result.returncode == EXIT_USAGE and result.stdout == "" and message in result.stderr
    assert [path.name for path in workdir.iterdir()] == ["there.iops"]
    assert (workdir / "there.iops").read_text() == "mine"
