"""However it ends, no fio goes on and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from program import (
    UNHURRIED,
    WITHIN_S,
    command,
    environment,
    events,
    family,
    fio_at_work,
    gone,
    start,
)

JOB = ("run", "--job", "mixed-4k", "--set", "runtime=60", "--size", "16m", *UNHURRIED)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


SIGNALS = [
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGALRM, signal.SIGVTALRM, signal.SIGRTMIN + 2,
]  # fmt: skip


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_run_with_its_summary(number: int, here: Path) -> None:
    process = start(*JOB, cwd=here)
    fio_at_work(process.pid)
    below = family(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert gone(below) == []
    assert list(here.iterdir()) == []
    assert "fio's final figures" in out and "up to fio's own total" in out


def test_after_sigkill_nothing_goes_on(here: Path) -> None:
    process = start(*JOB, cwd=here)
    fio_at_work(process.pid)
    below = family(process.pid)
    process.kill()
    process.communicate(timeout=WITHIN_S)
    assert gone(below) == []
    assert list(here.iterdir()) == []


def test_fio_s_main_process_killed_is_a_failed_run(here: Path) -> None:
    process = start(*JOB, "--format", "jsonl", cwd=here)
    fio = fio_at_work(process.pid)
    main = min(fio, key=lambda p: p.create_time())
    assert process.stdout is not None
    while not json.loads(process.stdout.readline()).get("fio"):
        pass
    main.kill()
    out, err = process.communicate(timeout=WITHIN_S)
    assert gone(fio) == []
    assert process.returncode == 1
    assert "killed" in err
    rows = events(out)
    assert rows[-1]["event"] in ("step_finished", "ended")
    finished = next(row for row in rows if row["event"] == "step_finished")
    assert finished["summary"]["final"] is False, "it is fio's last report, and not its final one"
    assert "fio's last report before it was killed" in err and "Not verified: fio was" in err
    assert list(here.iterdir()) == []


def test_a_killed_job_is_not_taken_for_a_success(here: Path) -> None:
    process = start(*JOB, cwd=here)
    fio = fio_at_work(process.pid)
    # before its jobs have begun fio itself is the youngest
    assert process.stdout is not None
    process.stdout.readline()
    max(fio, key=lambda p: p.create_time()).kill()
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 1
    assert "killed" in err


@pytest.mark.parametrize("which", [min, max], ids=["main", "job"])
def test_a_run_cut_short_from_outside_is_a_failed_run(which: Any, here: Path) -> None:
    process = start(*JOB, cwd=here)
    fio = fio_at_work(process.pid)
    # fio's jobs don't take a signal to heart before they have begun
    assert process.stdout is not None
    process.stdout.readline()
    which(fio, key=lambda p: p.create_time()).terminate()
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 1
    assert "cut short: one of fio's processes received SIGTERM" in err
    assert "fio's final figures" in out and "up to fio's own total" in out
    assert gone(fio) == []


def guard_of(pid: int) -> psutil.Process:
    found = [p for p in family(pid) if any(w.endswith("fio/guard.py") for w in p.cmdline())]
    return found[0]


def test_a_stopped_guard_ends_fio_when_iopstui_is_killed(here: Path) -> None:
    process = start(*JOB, cwd=here)
    fio_at_work(process.pid)
    below = family(process.pid)
    guard_of(process.pid).suspend()
    process.kill()
    process.communicate(timeout=WITHIN_S)
    assert gone(below) == []
    assert list(here.iterdir()) == []


def test_a_stopped_fio_ends_when_its_guard_is_killed(here: Path) -> None:
    process = start(*JOB, cwd=here)
    fio = fio_at_work(process.pid)
    min(fio, key=lambda p: p.create_time()).suspend()
    guard_of(process.pid).kill()
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 1, err
    assert gone(fio) == []


def test_a_stopped_iopstui_does_not_disturb_fio(here: Path) -> None:
    process = start(
        "run", "--job", "mixed-4k", "--set", "runtime=5", "--size", "16m", *UNHURRIED,
        "--format", "jsonl", cwd=here,
    )  # fmt: skip
    fio_at_work(process.pid)
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=3)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, err
    lines = events(out)
    final = next(line for line in lines if line["event"] == "step_finished")["summary"]
    directions = final["rows"][0]["directions"]
    # had fio waited for it, the three seconds would be on top
    assert all(4900 <= part["runtime_ms"] < 7900 for part in directions.values())
    counted = sum(line["fio"]["total"]["ios"] for line in lines
                  if line["event"] == "frame" and line["fio"])  # fmt: skip
    assert counted == sum(part["total_ios"] for part in directions.values())


def test_a_closed_standard_output_ends_the_run(here: Path) -> None:
    read, write = os.pipe()
    process = subprocess.Popen(
        command(*JOB), cwd=here, env=environment(here.parent), stdin=subprocess.DEVNULL,
        stdout=write, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as stdout:
        fio = fio_at_work(process.pid)
        stdout.readline()
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0
    assert gone(fio) == []
    assert "Traceback" not in err and "iopstui:" not in err
    assert list(here.iterdir()) == []


def test_what_nohup_ignores_stays_ignored(here: Path) -> None:
    process = subprocess.Popen(
        ["nohup", *command("run", "--job", "randread-4k", "--set", "runtime=2", "--size", "16m",
                           *UNHURRIED)],
        cwd=here, env=environment(here.parent), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    fio_at_work(process.pid)
    process.send_signal(signal.SIGHUP)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out


SWEEP = ("sweep", ".", "--job", "randread-4k", "--axis", "iodepth=1,2", "--size", "16m",
         *UNHURRIED)  # fmt: skip
COMPARE = ("compare", ".", "--job", "randread-4k", "--variant", "iodepth=1", "--variant",
           "iodepth=2", "--size", "16m", *UNHURRIED)  # fmt: skip
LESSON = ("lesson", "--plain", "1", ".")


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (SWEEP, signal.SIGTERM), (SWEEP, signal.SIGUSR2), (SWEEP, signal.SIGVTALRM),
        (COMPARE, signal.SIGHUP), (COMPARE, signal.SIGALRM), (COMPARE, signal.SIGRTMIN + 2),
        (LESSON, signal.SIGQUIT), (LESSON, signal.SIGUSR1),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(int(value)),
)  # fmt: skip
def test_a_signal_ends_what_makes_several_runs(
    words: tuple[str, ...], number: int, here: Path
) -> None:
    process = start(*words, cwd=here)
    fio_at_work(process.pid)
    below = family(process.pid)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert gone(below, 5.0) == []
    assert list(here.iterdir()) == []
