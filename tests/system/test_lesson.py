"""`iopstui lesson` as a user calls it, with the real fio."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from program import WITHIN_S, iopstui, start, survivors, wait_for_fio_io

OWN = """
[lesson]
title = Mine
teaches = x
source = y
settle = 0
seconds = 1
size = 4m
fio =
    ioengine=psync
    bs=4k
    thinktime=100ms
    thinktime_blocks=50

[ask: more]
text = Is writing faster than reading?
a = yes
right a = writes.iops > reads.iops
b = no
right b = writes.iops <= reads.iops

[run: reads]
set = rw=read

[run: writes]
set = rw=write

[see: both]
runs = reads, writes
figures = iops, latency

[explain: more]
answers = more
text =
    {reads.iops} against {writes.iops}; fio did {writes.fio.write.total_ios :0} writes.

    In the report there are {reads.fio.write.total_ios :0} writes of the reading run.
"""


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    (tmp_path / "own.ini").write_text(OWN)
    return tmp_path / "here"


def test_a_user_s_lesson_plays_to_its_end(workdir: Path) -> None:
    result = iopstui("lesson", "../own.ini", "--answers", "b", cwd=workdir)
    assert result.returncode == 0, result.stderr
    output = " ".join(result.stdout.split())
    assert "Answer given: b)" in output
    # in the order of the lesson: first page with its question, figures, last page
    places = [output.index(text) for text in ("1 of 5", "writing faster", "measured: ", "5 of 5")]
    assert places == sorted(places)
    # nothing is graded where other programs disturbed the runs
    assert [
        "You said b) no. The measurement confirms it." in output,
        "You said b) no. Measured: a) yes." in output,
        "Not graded" in output,
    ].count(True) == 1
    if "Not graded" in output:
        assert " was disturbed (" in output and "0 of 1 answer confirmed" in output
        assert output.endswith("1 could not be checked here.")
    else:
        assert re.search(r"; fio did [1-9]\S* writes", output), output
        assert "there are 0 writes of the reading run" in output
    assert "–" not in output
    assert list(workdir.iterdir()) == []


def test_a_lesson_goes_on_after_a_failed_run(workdir: Path) -> None:
    bad = OWN.replace("set = rw=write", "set = rw=write\n    ioengine=nonesuch")
    (workdir.parent / "own.ini").write_text(bad)
    result = iopstui("lesson", "../own.ini", "--plain", cwd=workdir)
    assert result.returncode == 1
    output = " ".join(result.stdout.split())
    assert "This run failed: " in output and "nonesuch" in output
    assert "This cannot be decided here" in output or "Not graded" in output
    assert "the end" in output
    assert list(workdir.iterdir()) == []


def test_ctrl_c_leaves_the_lesson_without_scratch_files(workdir: Path) -> None:
    (workdir.parent / "own.ini").write_text(OWN.replace("seconds = 1", "seconds = 60"))
    process = start("lesson", "../own.ini", "--plain", cwd=workdir)
    running = wait_for_fio_io(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert "Left on page 2 of 5." in out and "Traceback" not in err
    assert not survivors(running) and list(workdir.iterdir()) == []


def test_lessons_are_listed_and_checked(workdir: Path) -> None:
    listed = iopstui("lesson", cwd=workdir)
    assert listed.returncode == 0 and listed.stdout.count("minutes, ") == 9
    checked = iopstui("lesson", "../own.ini", "--check", cwd=workdir)
    assert checked.returncode == 0 and "own.ini: no mistakes found" in checked.stdout
    assert "a) is right if writes.iops > reads.iops" in checked.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonesuch",), "No lesson or file is called"),
        (("../own.ini", "--answers", "b,a"), "has 2 answers, the lesson 1 question."),
        (("../own.ini", "--answers", "x"), "'x' is not an answer"),
        (("../bad.ini", "--check"), "[run: one]: a run needs a job"),
        (("../odd.ini", "--check"), "Bad option <bz=64k> ([run: one])"),
    ],
)
def test_mistakes_in_a_lesson_are_refused(
    arguments: tuple[str, ...], message: str, workdir: Path
) -> None:
    (workdir.parent / "bad.ini").write_text(
        "[lesson]\ntitle=a\nteaches=b\nsource=c\n[run: one]\nlook = iops: x\n"
    )
    (workdir.parent / "odd.ini").write_text(
        "[lesson]\ntitle=a\nteaches=b\nsource=c\njob=randread-4k\n"
        "[run: one]\nset = bz=64k\nlook = iops: x\n"
    )
    result = iopstui("lesson", *arguments, cwd=workdir)
    assert result.returncode == 2 and message in result.stderr
    assert list(workdir.iterdir()) == []
