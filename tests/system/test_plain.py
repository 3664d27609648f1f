"""`--plain` as a user of a screen reader runs it, with a real fio."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest
from program import UNHURRIED, all_signals, command, environment, iopstui

from iopstui.errors import EXIT_OK, EXIT_USAGE, EXIT_VERDICT

SHORT = (*UNHURRIED, "--set", "runtime=2", "--set", "size=1m", "--interval", "0.25")
LINE = re.compile(r"\d+:\d\d \S")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def test_a_run_is_a_line_for_each_change_and_nothing_that_moves(here: Path) -> None:
    done = iopstui("live", "--plain", "--plain-every", "1", "--job", "randread-4k", *SHORT,
                   cwd=here)  # fmt: skip
    assert done.returncode == EXIT_OK, done.stderr
    lines = [line for line in done.stdout.splitlines() if LINE.match(line)]
    begins = [n for n, line in enumerate(lines) if " Run 1 starts: randread-4k" in line]
    figures = [n for n, line in enumerate(lines) if " fio " in line and " IOPS" in line]
    ends = [n for n, line in enumerate(lines) if " Run 1 ended after " in line]
    assert len(begins) == len(ends) == 1 and figures
    assert begins[0] < figures[0] <= figures[-1] < ends[0]
    assert any("add up to fio's own totals" in line for line in lines)
    assert not set("\x1b\r\t") & set(done.stdout + done.stderr) and done.stdout.isascii()


def test_an_expectation_decides_the_exit_code(here: Path) -> None:
    done = iopstui("live", "--plain", "--job", "randread-4k", *SHORT, "--expect", "iops>=1000M",
                   cwd=here)  # fmt: skip
    assert done.returncode == EXIT_VERDICT and "FAIL  iops >=" in done.stdout


def test_without_a_job_it_watches_until_it_is_ended(here: Path) -> None:
    with subprocess.Popen(
        command("live", "--plain", "--plain-every", "1", "--interval", "0.25"),
        cwd=here, env=environment(here.parent), text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=all_signals,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == EXIT_OK, err
    assert LINE.match(first) and " reads/s, " in first
    assert "\nWatched for " in f"\n{rest}"


def test_a_recording_is_told_from_beginning_to_end(here: Path) -> None:
    ran = iopstui("run", "--job", "randread-4k", *SHORT, "--record", "a.iops", cwd=here)
    assert ran.returncode == EXIT_OK, ran.stderr
    done = iopstui("replay", "a.iops", "--plain", cwd=here)
    assert done.returncode == EXIT_OK and " Run 1 ended after " in done.stdout


def test_it_is_told_what_does_not_go_with_it(here: Path) -> None:
    for arguments, fragment in (
        (("watch", "--plain", "--format", "csv"), "--format"),
        (("replay", "demo", "--plain", "--format", "csv"), "--format"),
        (("live", "--plain", "--theme", "light"), "--theme light"),
        (("live", "--plain", "--set", "bs=8k"), "--job"),
        (("live", "--plain-every", "0"), "1 to 3600"),
    ):
        done = iopstui(*arguments, cwd=here)
        assert done.returncode == EXIT_USAGE and fragment in done.stderr, arguments


def test_the_configuration_chooses_it_and_a_format_wins(here: Path) -> None:
    (here.parent / "config" / "iopstui").mkdir(parents=True)
    (here.parent / "config" / "iopstui" / "config.toml").write_text("plain = true\n")
    where = {"XDG_CONFIG_HOME": str(here.parent / "config")}
    assert " Run 1 starts: " in iopstui("replay", "demo", cwd=here, **where).stdout
    table = iopstui("replay", "demo", "--format", "csv", cwd=here, **where).stdout
    assert table.startswith("t,") or "," in table.splitlines()[0]
    # the screen, which needs a terminal
    screen = iopstui("replay", "demo", "--no-plain", cwd=here, **where)
    assert screen.returncode == EXIT_USAGE and "needs a terminal" in screen.stderr
