"""`iopstui watch` as a user runs it: how long, how it ends, what is left."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from program import ROOT, all_signals, environment, events, iopstui

from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, UsageError
from iopstui.model.samples import RawSample
from iopstui.recording.reader import EventRecord, Recording, SampleRecord

F_SETPIPE_SZ = 1031
SCRIPT = ROOT / "tests" / "helpers" / "watch_made_up.py"
ALWAYS = "own_cpu>=0% for 0.5s"
"""A figure that every machine has, beyond a value that it always is."""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@contextmanager
def begin(here: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """It runs; at the end of a test that has failed it is killed."""
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), "watch", "--interval", "0.25", *arguments],
        cwd=here, env=environment(here.parent), text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=all_signals,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def watched(here: Path, *arguments: str) -> tuple[int, str, str]:
    with begin(here, *arguments) as process:
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err


def recorded(path: Path) -> int:
    """Samples so far."""
    try:
        with Recording(path) as recording:
            return recording.index().samples
    except UsageError:  # its beginning is not written yet
        return 0


def parts(path: Path) -> tuple[list[RawSample], list[str]]:
    """The shown samples and the marks of a recording, which has to be whole."""
    with Recording(path) as recording:
        records = list(recording.records())
        assert recording.damage == ""
    shown = [one.raw for one in records if isinstance(one, SampleRecord) and one.shown]
    others = [one.value for one in records if isinstance(one, EventRecord)]
    assert type(others[-1]).__name__ == "RecordingEnd"
    return shown, [value.text for value in others if type(value).__name__ == "Mark"]


def test_it_ends_when_the_time_is_over_and_says_what_it_came_to(here: Path) -> None:
    code, out, err = watched(here, "--for", "1s")
    assert code == EXIT_OK
    assert out.splitlines()[0].split()[:4] == ["UTC", "time", "disk", "r/s"]
    assert "\nwatched for 0:01, " in out and max(map(len, out.splitlines())) <= 80
    first, *more = err.splitlines()
    assert first == "iopstui: watching all disks that have done I/O: none"
    # a busy machine gives it something to say
    assert all("] finding " in line for line in more)


def test_without_a_target_that_is_said_and_with_one_it_is_not(here: Path) -> None:
    assert "all disks" not in watched(here, "/dev/none", "--for", "0.5s")[2]


def test_json_lines_have_utc_beside_the_second_and_the_whole_time(here: Path) -> None:
    code, out, err = watched(here, "--for", "1s", "--format", "jsonl")
    frames = [one for one in events(out) if one["event"] == "frame"]
    assert code == EXIT_OK and frames[0]["t"] == 0 and frames[-1]["t"] >= 1
    assert all(one["utc"].endswith("Z") and one["fio"] is None for one in frames)
    assert "watched for 0:01" in err and events(out)[-1]["event"] == "ended"


def test_everything_is_recorded_without_a_trigger(here: Path) -> None:
    code, out, err = watched(here, "--for", "1s", "--record", "a.iops", "--format", "jsonl")
    frames = [one for one in events(out) if one["event"] == "frame"]
    shown, _ = parts(here / "a.iops")
    assert code == EXIT_OK and len(shown) == len(frames)
    assert "recorded to a.iops" in err


def test_with_a_trigger_the_time_around_it_is_recorded(here: Path) -> None:
    code, out, err = watched(
        here, "--for", "2.5s", "--trigger", ALWAYS, "--record", "a.iops", "--before", "0.3s",
        "--after", "0.5s", "--format", "jsonl",
    )  # fmt: skip
    found = events(out)
    marks = [one["text"] for one in found if one["event"] == "mark"]
    shown, recorded = parts(here / "a.iops")
    assert code == EXIT_OK and len(marks) == 1 and recorded == marks
    assert marks[0].startswith(f"trigger {ALWAYS}: ") and f"mark: {marks[0]}" in err
    frames = [one for one in found if one["event"] == "frame"]
    assert 3 <= len(shown) < len(frames) - 2 and shown[0].seq > 0
    assert [path.name for path in here.iterdir()] == ["a.iops"]
    assert "recorded to a.iops:" in err and f"trigger {ALWAYS}: fired once" in err


def test_nothing_fires_nothing_is_left(here: Path) -> None:
    code, _, err = watched(
        here, "--for", "0.6s", "--trigger", "own_cpu>1000000% for 1s",
        "--record", "a.iops",
    )  # fmt: skip
    assert code == EXIT_OK and list(here.iterdir()) == [] and "recorded" not in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_how_a_watch_without_end_ends(here: Path, number: signal.Signals) -> None:
    with begin(here, "--record", "a.iops") as process:
        assert process.stdout is not None
        while "none" not in process.stdout.readline():  # it measures
            continue
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == EXIT_OK and "watched for 0:0" in out
    assert len(parts(here / "a.iops")[0]) >= 2 and "Traceback" not in err


def test_a_signal_before_its_time_is_an_interruption(here: Path) -> None:
    with begin(here, "--for", "1h") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        out, _ = process.communicate(timeout=60)
    assert process.returncode == EXIT_INTERRUPTED and "watched for 0:0" in out


@pytest.mark.parametrize("kind", ["table", "jsonl", "csv"])
def test_a_reader_that_has_seen_enough_is_no_failure(here: Path, kind: str) -> None:
    with begin(here, "/dev/none", "--format", kind) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == EXIT_OK
        assert process.stderr.read() == ""


def test_a_reader_that_has_stopped_reading_keeps_nobody_from_ending_it(here: Path) -> None:
    with begin(here, "--format", "jsonl", "--record", "a.iops") as process:
        assert process.stdout is not None
        fcntl.fcntl(process.stdout.fileno(), F_SETPIPE_SZ, 4096)
        while recorded(here / "a.iops") < 10:  # many more lines than the pipe holds
            continue
        process.terminate()
        assert process.wait(60) == EXIT_OK
    assert len(parts(here / "a.iops")[0]) >= 2


def test_killed_it_leaves_what_it_recorded_and_nothing_else(here: Path) -> None:
    with begin(here, "--trigger", ALWAYS, "--record", "a.iops") as process:
        assert process.stderr is not None
        while "recording to" not in process.stderr.readline():
            continue
        process.kill()
    assert [path.name for path in here.iterdir()] == ["a.iops"]
    # nothing to undo: only the list of recent recordings
    left = [path.name for path in (here.parent / "state").rglob("*") if path.is_file()]
    assert left == ["recordings"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--for", "0s"), "is not a time"),
        (("--for", "5"), "is not a time"),
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
def test_bad_input_is_told_before_anything_is_done(
    here: Path, arguments: tuple[str, ...], words: str
) -> None:
    (here / "there.iops").write_text("mine")
    done = iopstui("watch", *arguments, cwd=here)
    assert done.returncode == EXIT_USAGE and done.stdout == "" and words in done.stderr
    assert [path.name for path in here.iterdir()] == ["there.iops"]
    assert (here / "there.iops").read_text() == "mine"
