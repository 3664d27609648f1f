"""Recordings of the real fio: a replay shows the live run, however it ended."""

from __future__ import annotations

import queue
import signal
import subprocess
from pathlib import Path

import pytest
from program import (
    UNHURRIED,
    WITHIN_S,
    command,
    environment,
    events,
    iopstui,
    start,
    survivors,
    wait_for_fio_io,
)

from iopstui import events as kinds
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.target import DIRECTORY, Target
from iopstui.model.experiment.run_request import RunRequest
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording
from iopstui.recording.replay import replay_events
from iopstui.session.live import LiveSession

JOB = ("run", "--job", "mixed-4k", "--size", "16m", *UNHURRIED, "--format", "jsonl")


def test_a_recording_replays_what_the_live_run_printed(workdir: Path) -> None:
    """The replay after the run, while it is recorded, and from a pipe; and its report has the
    verdict."""
    writer = start(
        *JOB, "--set", "runtime=3", "--expect", "iops>=1", "--expect", "iops>=9000M",
        "--record", "../run.iops", cwd=workdir,
    )  # fmt: skip
    assert writer.stdout is not None
    first = writer.stdout.readline()
    follower = start("replay", "../run.iops", "--follow", "--format", "jsonl", cwd=workdir)
    rest, errors = writer.communicate(timeout=WITHIN_S)
    live = first + rest
    assert writer.returncode == 4 and '"event":"judged"' in live, errors
    # a busy machine skips seconds, or splits the last one
    assert sum(line["event"] == "frame" for line in events(live)) >= 2
    followed, errors = follower.communicate(timeout=WITHIN_S)
    assert follower.returncode == 0, errors
    assert list(workdir.iterdir()) == [], "only the recording is left, where it was wanted"
    replayed = iopstui("replay", "../run.iops", "--format", "jsonl", cwd=workdir)
    assert replayed.returncode == 0, replayed.stderr
    # the live run's output ends with its job; after it the session ended
    assert followed.startswith(live) and replayed.stdout.startswith(live)
    assert events(replayed.stdout)[-1]["event"] == "ended"
    page = iopstui("report", "../run.iops", cwd=workdir)
    assert page.returncode == 0, page.stderr
    assert "PASS iops" in page.stdout and "FAIL iops" in page.stdout
    with Recording(workdir.parent / "run.iops") as opened:
        runs = [o.value for _, o in opened.index().events if isinstance(o.value, form.JobRun)]
    assert [(run.job, run.overrides["runtime"]) for run in runs] == [("mixed-4k", "3")]
    assert "rw=randrw" in runs[0].text and runs[0].size == "16m"
    recording = (workdir.parent / "run.iops").read_bytes()
    for content, code, message in (
        (recording, 0, ""),
        (recording[:-40], 0, "no end marker"),
        (b"", 2, "empty"),
        (b"no recording", 2, "not a recording"),
    ):
        piped = subprocess.run(
            command("replay", "-", "--follow", "--format", "jsonl"), input=content, cwd=workdir,
            env=environment(workdir.parent), capture_output=True, timeout=WITHIN_S, check=False,
        )  # fmt: skip
        assert piped.returncode == code, piped.stderr
        assert message in piped.stderr.decode()
        assert code or piped.stdout.decode().startswith(live)


def test_a_replay_prints_the_same_table(workdir: Path) -> None:
    options = ("run", "--job", "randread-4k", "--size", "16m", "--set", "runtime=2", *UNHURRIED)
    live = iopstui(*options, "--format", "table", "--record", "x.iops", cwd=workdir)
    replayed = iopstui("replay", "x.iops", "--format", "table", cwd=workdir)
    assert (live.returncode, replayed.returncode) == (0, 0), live.stderr + replayed.stderr
    assert replayed.stdout == live.stdout and replayed.stdout.count("\n") >= 3


def test_a_killed_run_keeps_its_samples(workdir: Path) -> None:
    process = start(*JOB, "--set", "runtime=60", "--record", "killed.iops", cwd=workdir)
    assert process.stdout is not None
    first_lines = []
    while sum('"event":"frame"' in line for line in first_lines) < 2:
        line = process.stdout.readline()
        assert line, "ended too early"
        first_lines.append(line)
    fio = wait_for_fio_io(process.pid)
    process.send_signal(signal.SIGKILL)
    printed, _ = process.communicate(timeout=WITHIN_S)
    assert survivors(fio) == []
    replayed = iopstui("replay", "killed.iops", "--format", "jsonl", cwd=workdir)
    assert replayed.returncode == 0, replayed.stderr
    assert "iopstui was killed" in replayed.stderr
    # a killed iopstui loses at most the sample it was writing
    lines = ("".join(first_lines) + printed.rpartition("\n")[0]).splitlines()
    frames = [n for n, line in enumerate(lines) if '"event":"frame"' in line]
    assert replayed.stdout.startswith("\n".join(lines[: frames[-1]])) and len(frames) >= 2


def test_an_existing_recording_is_not_overwritten(workdir: Path) -> None:
    (workdir / "mine").write_text("precious")
    result = iopstui(*JOB, "--record", "mine", cwd=workdir)
    assert result.returncode == 2 and " exists" in result.stderr
    assert result.stdout == "" and (workdir / "mine").read_text() == "precious"


def test_a_job_that_cannot_start_creates_no_recording(workdir: Path) -> None:
    result = iopstui("run", "--job", "no-such-job", "--record", "x.iops", cwd=workdir)
    assert result.returncode == 2
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"iopstui recording 99\n", "newer iopstui"),
        (b"# a shell script\n", "is not a recording"),
        (form.MAGIC, "cut off before its first sample"),
    ],
)
def test_bad_recordings_cannot_be_replayed(content: bytes, message: str, workdir: Path) -> None:
    (workdir / "x").write_bytes(content)
    result = iopstui("replay", "x", "--format", "table", cwd=workdir)
    assert result.returncode == 2 and message in result.stderr and "Traceback" not in result.stderr


def test_a_screen_replay_without_a_terminal_is_refused(workdir: Path) -> None:
    result = iopstui("replay", "demo", cwd=workdir)
    assert result.returncode == 2 and "replay FILE --format" in result.stderr


def test_a_part_of_a_session_is_recorded(workdir: Path) -> None:
    devices = read_devices(Roots())
    target = resolve_target(str(workdir), workdir, Roots(), devices)
    session = LiveSession(target, devices, target, RunRequest(interval_s=0.25))
    assert isinstance(target, Target) and target.kind == DIRECTORY
    happened: queue.SimpleQueue[kinds.Event] = queue.SimpleQueue()

    def frames(count: int) -> list[kinds.Event]:
        received = []
        while sum(isinstance(event, kinds.FrameReady) for event in received) < count:
            received.append(happened.get(timeout=60))
        return received

    session.start(happened.put)
    frames(2)
    session.record(workdir / "part.iops")
    session.mark("first")
    live_events = frames(3)
    assert session.recording == workdir / "part.iops"
    session.stop_recording()
    while "recorded" not in getattr(notice := happened.get(timeout=60), "text", ""):
        live_events.append(notice)
    assert "recorded to" in notice.text
    session.mark("second")
    session.close()
    with Recording(workdir / "part.iops") as recording:
        replayed_events = list(replay_events(recording))
    replayed_frames = [e.frame for e in replayed_events if isinstance(e, kinds.FrameReady)]
    live = [e.frame for e in live_events if isinstance(e, kinds.FrameReady)]
    assert [frame.seq for frame in replayed_frames] == [frame.seq for frame in live][
        -len(replayed_frames) :
    ]
    assert len(replayed_frames) >= 2
    assert [frame.disks for frame in replayed_frames] == [frame.disks for frame in live][
        -len(replayed_frames) :
    ]
    assert [e.text for e in replayed_events if isinstance(e, kinds.Mark)] == ["first"]


def test_the_demo_needs_no_fio_and_leaves_nothing(workdir: Path) -> None:
    result = iopstui("replay", "demo", "--format", "jsonl", cwd=workdir, PATH="/nonexistent")
    assert result.returncode == 0, result.stderr
    lines = events(result.stdout)
    assert sum(line["event"] == "frame" for line in lines) >= 20
    assert {"mark", "tunable_changed", "step_finished"} <= {line["event"] for line in lines}
    assert list(workdir.iterdir()) == []


def test_a_sweep_s_points_and_frames_are_replayed(workdir: Path) -> None:
    live = iopstui(
        "sweep", "--job", "randread-4k", "--size", "16m", "--axis", "iodepth=1,4", "--settle", "0",
        "--measure", "1", *UNHURRIED, "--expect", "iops>=1", "--format", "jsonl",
        "--record", "x.iops", cwd=workdir,
    )  # fmt: skip
    assert live.returncode == 0, live.stderr
    replayed = iopstui("replay", "x.iops", "--format", "jsonl", cwd=workdir)
    sweep_events = {"point_finished", "judged", "sweep", "curve", "sweep_finished", "session"}
    lines = [
        line for line in replayed.stdout.splitlines() if events(line)[0]["event"] in sweep_events
    ]
    assert lines == live.stdout.splitlines(), "its lines are those of the sweep itself"
    assert sum(line["event"] == "frame" for line in events(replayed.stdout)) >= 2
    table = iopstui("replay", "x.iops", "--format", "table", cwd=workdir)
    assert "N=X*R" in table.stdout and "PASS  iops >= 1" in table.stdout
    rows = iopstui("replay", "x.iops", "--format", "csv", cwd=workdir).stdout.splitlines()
    assert len(rows) == 3 and rows[0].startswith("index,job,iodepth")
    page = iopstui("report", "x.iops", cwd=workdir)
    assert page.returncode == 0 and "Little's law" in page.stdout, page.stderr


def test_follow_needs_a_terminal_or_an_existing_file(workdir: Path) -> None:
    for arguments, message in (
        (("replay", "missing.iops", "--follow", "--format", "csv"), "does not exist"),
        (("replay", "demo", "--follow"), "needs a terminal"),
    ):
        result = iopstui(*arguments, cwd=workdir)
        assert result.returncode == 2 and message in result.stderr
