"""`--plain` as a user of a screen reader runs it, with a real fio."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from program import UNHURRIED, iopstui, start

from iopstui.errors import EXIT_OK, EXIT_USAGE, EXIT_VERDICT

SHORT = (*UNHURRIED, "--set", "runtime=2", "--set", "size=1m", "--interval", "0.25")
LINE = re.compile(r"\d+:\d\d \S")


def test_a_plain_run_prints_a_line_for_each_change(workdir: Path) -> None:
    result = iopstui("live", "--plain", "--plain-every", "1", "--job", "randread-4k", *SHORT,
                     "--expect", "iops>=1000M", "--record", "a.iops", cwd=workdir)  # fmt: skip
    assert result.returncode == EXIT_VERDICT and "FAIL  iops >=" in result.stdout, result.stderr
    lines = [line for line in result.stdout.splitlines() if LINE.match(line)]
    begins = [n for n, line in enumerate(lines) if " Run 1 starts: randread-4k" in line]
    ends = [n for n, line in enumerate(lines) if " Run 1 ended after " in line]
    # the last line may name a program "fio" that disturbed the run
    figures = [n for n, line in enumerate(lines)
               if " fio " in line and " IOPS" in line and n not in ends]  # fmt: skip
    assert len(begins) == len(ends) == 1 and figures
    assert begins[0] < figures[0] <= figures[-1] < ends[0]
    assert any("add up to fio's own totals" in line for line in lines)
    assert not set("\x1b\r\t") & set(result.stdout + result.stderr) and result.stdout.isascii()
    replayed = iopstui("replay", "a.iops", "--plain", cwd=workdir)
    assert replayed.returncode == EXIT_OK and " Run 1 ended after " in replayed.stdout


def test_a_plain_watch_runs_until_a_signal(workdir: Path) -> None:
    process = start("live", "--plain", "--plain-every", "1", "--interval", "0.25", cwd=workdir)
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


def test_options_that_conflict_with_plain_are_refused(workdir: Path) -> None:
    for arguments, fragment in (
        (("watch", "--plain", "--format", "csv"), "--format"),
        (("replay", "demo", "--plain", "--format", "csv"), "--format"),
        (("live", "--plain", "--theme", "light"), "--theme light"),
        (("live", "--plain", "--set", "bs=8k"), "--job"),
        (("live", "--plain-every", "0"), "1 to 3600"),
    ):
        result = iopstui(*arguments, cwd=workdir)
        assert result.returncode == EXIT_USAGE and fragment in result.stderr, arguments


def test_the_configuration_turns_plain_on_and_a_format_wins(workdir: Path) -> None:
    (workdir.parent / "config" / "iopstui").mkdir(parents=True)
    (workdir.parent / "config" / "iopstui" / "config.toml").write_text("plain = true\n")
    home_env = {"XDG_CONFIG_HOME": str(workdir.parent / "config")}
    assert " Run 1 starts: " in iopstui("replay", "demo", cwd=workdir, **home_env).stdout
    table = iopstui("replay", "demo", "--format", "csv", cwd=workdir, **home_env).stdout
    assert table.startswith("t,") or "," in table.splitlines()[0]
    # the screen, which needs a terminal
    screen = iopstui("replay", "demo", "--no-plain", cwd=workdir, **home_env)
    assert screen.returncode == EXIT_USAGE and "needs a terminal" in screen.stderr
