"""Recording with the real fio: what was seen live is seen again, however it ended."""

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
    fio_at_work,
    gone,
    iopstui,
    start,
)

from iopstui import events as kinds
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.roots import Roots
from iopstui.model.block.target import DIRECTORY, Target
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording
from iopstui.recording.replay import replay_events
from iopstui.session.live import LiveSession
from iopstui.session.session_options import SamplingOptions

JOB = ("run", "--job", "mixed-4k", "--size", "16m", *UNHURRIED, "--format", "jsonl")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def test_replayed_it_says_bit_for_bit_what_the_live_run_said(here: Path) -> None:
    live = iopstui(*JOB, "--set", "runtime=3", "--record", "../run.iops", cwd=here)
    assert live.returncode == 0, live.stderr
    assert list(here.iterdir()) == [], "only the recording is left, where it was wanted"
    again = iopstui("replay", "../run.iops", "--format", "jsonl", cwd=here)
    assert again.returncode == 0, again.stderr
    # a busy machine cuts the end in two
    assert sum(line["event"] == "frame" for line in events(live.stdout)) >= 4
    lines = again.stdout.splitlines(keepends=True)
    # the live run's output ends with its job; after it the session ended
    assert "".join(lines[: live.stdout.count("\n")]) == live.stdout
    assert events(again.stdout)[-1]["event"] == "ended"
    with Recording(here.parent / "run.iops") as recording:
        runs = [o.value for _, o in recording.index().others if isinstance(o.value, form.JobRun)]
    assert [(run.job, run.overrides["runtime"]) for run in runs] == [("mixed-4k", "3")]
    assert "rw=randrw" in runs[0].text and runs[0].size == "16m"


def test_a_verdict_is_kept_with_what_it_judges(here: Path) -> None:
    live = iopstui(
        *JOB, "--set", "runtime=2", "--expect", "iops>=1", "--expect", "iops>=9000M",
        "--record", "x.iops", cwd=here,
    )  # fmt: skip
    assert live.returncode == 4, live.stderr
    again = iopstui("replay", "x.iops", "--format", "jsonl", cwd=here)
    assert again.stdout.startswith(live.stdout) and '"event":"judged"' in live.stdout
    page = iopstui("report", "x.iops", cwd=here)
    assert page.returncode == 0, page.stderr
    assert "PASS iops" in page.stdout and "FAIL iops" in page.stdout


@pytest.mark.parametrize("kind", ["table", "csv"])
def test_as_table_and_csv_too(kind: str, here: Path) -> None:
    options = ("run", "--job", "randread-4k", "--size", "16m", "--set", "runtime=2", *UNHURRIED)
    live = iopstui(*options, "--format", kind, "--record", "x.iops", cwd=here)
    again = iopstui("replay", "x.iops", "--format", kind, cwd=here)
    assert (live.returncode, again.returncode) == (0, 0), live.stderr + again.stderr
    assert again.stdout == live.stdout and again.stdout.count("\n") >= 3


def test_killed_what_was_measured_is_kept(here: Path) -> None:
    process = start(*JOB, "--set", "runtime=60", "--record", "killed.iops", cwd=here)
    assert process.stdout is not None
    seen = []
    while sum('"event":"frame"' in line for line in seen) < 2:
        line = process.stdout.readline()
        assert line, "ended too early"
        seen.append(line)
    fio = fio_at_work(process.pid)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate(timeout=WITHIN_S)
    assert gone(fio) == []
    again = iopstui("replay", "killed.iops", "--format", "jsonl", cwd=here)
    assert again.returncode == 0, again.stderr
    assert "was killed or is still recording" in again.stderr
    # a killed iopstui loses at most the sample it was writing
    whole = ("".join(seen) + rest.rpartition("\n")[0]).splitlines()
    frames = [n for n, line in enumerate(whole) if '"event":"frame"' in line]
    assert again.stdout.startswith("\n".join(whole[: frames[-1]])) and len(frames) >= 2


def test_an_existing_file_is_not_overwritten_and_nothing_is_run(here: Path) -> None:
    (here / "mine").write_text("precious")
    done = iopstui(*JOB, "--record", "mine", cwd=here)
    assert done.returncode == 2 and " exists" in done.stderr
    assert done.stdout == "" and (here / "mine").read_text() == "precious"


def test_a_job_that_can_t_begin_leaves_its_name_free(here: Path) -> None:
    done = iopstui("run", "--job", "no-such-job", "--record", "x.iops", cwd=here)
    assert done.returncode == 2
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"iopstui recording 99\n", "newer iopstui"),
        (b"# a shell script\n", "is not a recording"),
        (form.MAGIC, "cut off before its first sample"),
    ],
)
def test_what_can_t_be_replayed(content: bytes, words: str, here: Path) -> None:
    (here / "x").write_bytes(content)
    done = iopstui("replay", "x", "--format", "table", cwd=here)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_without_a_terminal_the_screen_is_refused(here: Path) -> None:
    done = iopstui("replay", "demo", cwd=here)
    assert done.returncode == 2 and "replay FILE --format" in done.stderr


def test_a_session_is_recorded_from_one_moment_to_another(here: Path) -> None:
    found = read_devices(Roots())
    target = resolve_target(str(here), here, Roots(), found)
    session = LiveSession(target, found, target, SamplingOptions(0.25))
    assert isinstance(target, Target) and target.kind == DIRECTORY
    happened: queue.SimpleQueue[kinds.Event] = queue.SimpleQueue()

    def frames(count: int) -> list[kinds.Event]:
        seen = []
        while sum(isinstance(event, kinds.FrameReady) for event in seen) < count:
            seen.append(happened.get(timeout=60))
        return seen

    session.start(happened.put)
    frames(2)
    session.record(here / "part.iops")
    session.mark("first")
    seen = frames(3)
    assert session.recording == here / "part.iops"
    session.stop_recording()
    while "recorded" not in getattr(notice := happened.get(timeout=60), "text", ""):
        seen.append(notice)
    assert "recorded to" in notice.text
    session.mark("second")
    session.close()
    with Recording(here / "part.iops") as recording:
        again = list(replay_events(recording))
    shown = [e.frame for e in again if isinstance(e, kinds.FrameReady)]
    live = [e.frame for e in seen if isinstance(e, kinds.FrameReady)]
    assert [frame.seq for frame in shown] == [frame.seq for frame in live][-len(shown) :]
    assert len(shown) >= 2
    assert [frame.disks for frame in shown] == [frame.disks for frame in live][-len(shown) :]
    assert [e.text for e in again if isinstance(e, kinds.Mark)] == ["first"]


def test_the_demo_needs_no_fio_and_leaves_nothing(here: Path) -> None:
    done = iopstui("replay", "demo", "--format", "jsonl", cwd=here, PATH="/nonexistent")
    assert done.returncode == 0, done.stderr
    lines = events(done.stdout)
    assert sum(line["event"] == "frame" for line in lines) >= 20
    assert {"mark", "tunable_changed", "step_finished"} <= {line["event"] for line in lines}
    assert list(here.iterdir()) == []


def test_a_sweep_s_points_and_seconds_come_back(here: Path) -> None:
    live = iopstui(
        "sweep", "--job", "randread-4k", "--size", "16m", "--axis", "iodepth=1,4", "--settle", "0",
        "--measure", "1", *UNHURRIED, "--expect", "iops>=1", "--format", "jsonl",
        "--record", "x.iops", cwd=here,
    )  # fmt: skip
    assert live.returncode == 0, live.stderr
    again = iopstui("replay", "x.iops", "--format", "jsonl", cwd=here)
    own = {"point_finished", "judged", "sweep", "curve", "sweep_finished", "session"}
    lines = [line for line in again.stdout.splitlines() if events(line)[0]["event"] in own]
    assert lines == live.stdout.splitlines(), "its lines are those of the sweep itself"
    assert sum(line["event"] == "frame" for line in events(again.stdout)) >= 2
    table = iopstui("replay", "x.iops", "--format", "table", cwd=here)
    assert "N=X*R" in table.stdout and "PASS  iops >= 1" in table.stdout
    rows = iopstui("replay", "x.iops", "--format", "csv", cwd=here).stdout.splitlines()
    assert len(rows) == 3 and rows[0].startswith("index,job,iodepth")
    page = iopstui("report", "x.iops", cwd=here)
    assert page.returncode == 0 and "Little's law" in page.stdout, page.stderr


def test_followed_it_says_what_the_live_run_says(here: Path) -> None:
    writer = start(*JOB, "--set", "runtime=3", "--record", "../run.iops", cwd=here)
    assert writer.stdout is not None
    first = writer.stdout.readline()
    follower = start("replay", "../run.iops", "--follow", "--format", "jsonl", cwd=here)
    live = first + writer.communicate(timeout=WITHIN_S)[0]
    followed, words = follower.communicate(timeout=WITHIN_S)
    assert (writer.returncode, follower.returncode) == (0, 0), words
    assert followed.startswith(live) and sum(e["event"] == "frame" for e in events(live)) >= 3


def test_a_piped_recording_is_followed_to_the_end_of_the_pipe(here: Path) -> None:
    live = iopstui(*JOB, "--set", "runtime=1", "--record", "../run.iops", cwd=here)
    assert live.returncode == 0, live.stderr
    whole = (here.parent / "run.iops").read_bytes()
    for content, code, words in (
        (whole, 0, ""),
        (whole[:-40], 0, "no end marker"),
        (b"", 2, "empty"),
        (b"no recording", 2, "not a recording"),
    ):
        done = subprocess.run(
            command("replay", "-", "--follow", "--format", "jsonl"), input=content, cwd=here,
            env=environment(here.parent), capture_output=True, timeout=WITHIN_S, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert words in done.stderr.decode()
        assert code or done.stdout.decode().startswith(live.stdout)


def test_without_a_screen_or_a_file_following_is_refused(here: Path) -> None:
    for arguments, words in (
        (("replay", "missing.iops", "--follow", "--format", "csv"), "does not exist"),
        (("replay", "demo", "--follow"), "needs a terminal"),
    ):
        done = iopstui(*arguments, cwd=here)
        assert done.returncode == 2 and words in done.stderr
