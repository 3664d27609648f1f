"""`iopstui lesson` as a user calls it, with the real fio."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from program import WITHIN_S, fio_at_work, gone, iopstui, start

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
def where(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    (tmp_path / "own.ini").write_text(OWN)
    return tmp_path / "here"


def test_one_s_own_is_played_to_its_end(where: Path) -> None:
    done = iopstui("lesson", "../own.ini", "--answers", "b", cwd=where)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "Answer given: b)" in said
    # in the order of the file: asked, run, seen, explained
    places = [said.index(words) for words in ("writing faster", "1 of 5", "measured: ", "5 of 5")]
    assert places == sorted(places) or places[0] > places[1]
    assert ("You said b) no. The measurement confirms it." in said) != (
        "You said b) no. Measured: a) yes." in said
    )
    assert "there are 0 writes of the reading run" in said
    assert "–" not in said
    assert list(where.iterdir()) == []


def test_a_run_that_fails_is_told_and_the_lesson_goes_on(where: Path) -> None:
    bad = OWN.replace("set = rw=write", "set = rw=write\n    ioengine=nonesuch")
    (where.parent / "own.ini").write_text(bad)
    done = iopstui("lesson", "../own.ini", "--plain", cwd=where)
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "This run failed: " in said and "nonesuch" in said
    assert "This cannot be decided here" in said and "the end" in said
    assert list(where.iterdir()) == []


def test_ctrl_c_leaves_it_in_order(where: Path) -> None:
    (where.parent / "own.ini").write_text(OWN.replace("seconds = 1", "seconds = 60"))
    process = start("lesson", "../own.ini", "--plain", cwd=where)
    running = fio_at_work(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert "Left on page 2 of 5." in out and "Traceback" not in err
    assert not gone(running) and list(where.iterdir()) == []


def test_the_list_and_a_lesson_looked_at(where: Path) -> None:
    listed = iopstui("lesson", cwd=where)
    assert listed.returncode == 0 and listed.stdout.count("minutes, ") == 9
    checked = iopstui("lesson", "../own.ini", "--check", cwd=where)
    assert checked.returncode == 0 and "own.ini: no mistakes found" in checked.stdout
    assert "a) is right if writes.iops > reads.iops" in checked.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nonesuch",), "No lesson or file is called"),
        (("../own.ini", "--answers", "b,a"), "has 2 answers, the lesson 1 question."),
        (("../own.ini", "--answers", "x"), "'x' is not an answer"),
        (("../bad.ini", "--check"), "[run: one]: a run needs a job"),
        (("../odd.ini", "--check"), "Bad option <bz=64k> ([run: one])"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], words: str, where: Path) -> None:
    (where.parent / "bad.ini").write_text(
        "[lesson]\ntitle=a\nteaches=b\nsource=c\n[run: one]\nlook = iops: x\n"
    )
    (where.parent / "odd.ini").write_text(
        "[lesson]\ntitle=a\nteaches=b\nsource=c\njob=randread-4k\n"
        "[run: one]\nset = bz=64k\nlook = iops: x\n"
    )
    done = iopstui("lesson", *arguments, cwd=where)
    assert done.returncode == 2 and words in done.stderr
    assert list(where.iterdir()) == []
