"""Lay out a job's files, and notice when that makes no progress."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from iopstui.fio.write_bound import IDLE_S, LayoutWork, StallDetector, layout_text
from iopstui.model.fio import jobfile


def only(text: str) -> dict[str, str]:
    """The options of the only section, without the clock, which is always the one that needs no
    calibration."""
    sections = jobfile.effective_sections(layout_text(text))
    assert len(sections) == 1
    options = dict(sections[0].options)
    assert options.pop("clocksource") == "clock_gettime"
    assert options.pop("disk_util") == "0"
    return options


def test_what_only_says_how_it_is_run_is_left_out() -> None:
    given = (
        "[global]\nstartdelay=60\nsize=8m\nclocksource=cpu\n"
        "[a]\nio_submit_mode=offload\nrw=read\nbs=8k\n"
    )
    assert only(given) == {"size": "8m", "rw": "read", "bs": "8k"}


@pytest.mark.parametrize("lines", ["io_submit_mode=offload\nioengine=libaio", "startdelay=1000",
                                   "zonemode=zbd\nzonesize=1m",
                                   "bs=3"])  # fmt: skip
def test_fio_itself_makes_the_files_and_ends(lines: str, tmp_path: Path, fio: str) -> None:
    job = tmp_path / "job.fio"
    job.write_text(layout_text(f"[a]\nfilename=data\nsize=1m\nrw=read\n{lines}\n"))
    done = subprocess.run(
        [fio, "--create_only=1", "--output-format=json", str(job)], cwd=tmp_path,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["jobs"][0]["error"] == 0
    assert (tmp_path / "data").stat().st_size >= (1 << 20) - 4096


STILL = LayoutWork(0, 0, 0.0, False)


def test_a_standstill_is_one_after_a_while() -> None:
    stall = StallDetector()
    assert not stall.feed(0.0, STILL)
    assert not stall.feed(IDLE_S, STILL)
    # fio's main process always uses a little CPU time
    assert stall.feed(IDLE_S + 1, replace(STILL, busy_s=0.3))
    assert stall.feed(IDLE_S + 2, replace(STILL, busy_s=0.31))


@pytest.mark.parametrize(
    "work",
    [
        replace(STILL, file_bytes=1),
        replace(STILL, written=1),
        replace(STILL, written=None),
        replace(STILL, waits=True),
        replace(STILL, busy_s=5.0),
    ],
)
def test_what_goes_on_is_no_standstill(work: LayoutWork) -> None:
    stall = StallDetector()
    stall.feed(0.0, STILL)
    assert not stall.feed(IDLE_S + 1, work)
    assert not stall.feed(IDLE_S + 2, work)


def test_the_smallest_block_and_the_smallest_file() -> None:
    for lines in ("bs=4095\nsize=8m", "bs=4095\nfilesize=4096", "bs=1k\nsize=8k\nnrfiles=2",
                  "bs=1k\nfilesize=4k-8k", "bs=1k", "bs=1k-8k,4k/4k:1k\nsize=8m"):  # fmt: skip
        assert only(f"[a]\n{lines}\n")["bs"] == "4096"
    for lines in ("bs=1k\nfilesize=4095", "bs=1k\nfilesize=8k-4095", "bs=1k\nsize=12k\nnrfiles=4",
                  "bs=4096\nsize=8m"):  # fmt: skip
        assert only(f"[a]\n{lines}\n")["bs"] == lines.partition("\n")[0].removeprefix("bs=")
    for option in ("create_on_open", "unlink", "unlink_each_loop", "startdelay", "io_submit_mode",
                   "zonemode", "zonesize", "zonerange", "zoneskip"):  # fmt: skip
        assert only(f"[a]\nrw=read\n{option}=1\n") == {"rw": "read"}


def test_how_much_is_hardly_anything() -> None:
    """fio's main process checks its jobs every 10 ms: this may use up to a twentieth of a CPU."""
    for seconds, busy, stalled in ((31.0, 1.55, True), (31.0, 1.56, False)):
        stall = StallDetector()
        stall.feed(0.0, STILL)
        assert stall.feed(seconds, replace(STILL, busy_s=busy)) is stalled
    stall = StallDetector()
    stall.feed(10.0, STILL)
    assert not stall.feed(10.5, replace(STILL, busy_s=0.05))
    assert not stall.feed(40.0, STILL) and stall.feed(40.1, STILL)
    stall.feed(0.0, replace(STILL, busy_s=9.0))
    grown = StallDetector()
    grown.feed(0.0, replace(STILL, busy_s=5.0))
    assert grown.feed(31.0, replace(STILL, busy_s=5.1)), "what was done before is no progress"
