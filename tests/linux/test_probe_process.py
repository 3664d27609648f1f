"""bpftrace as a process, played by scripts: good ones, dead ones, hanging ones, liars."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iopstui.linux.probe import process as module
from iopstui.linux.probe.process import ProbeProcess, map_keys_for
from iopstui.linux.probe.script import Region
from iopstui.linux.process.clock import Clock
from iopstui.linux.process.processes import start_time
from iopstui.model.metrics.probe import LATENCY
from iopstui.model.samples import ProbeSample

# a signal that comes while the last one is answered waits: a handler's output can't be interrupted
ANSWERS = """
import json, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
print("Unknown error -1: couldn't set RLIMIT_MEMLOCK", file=sys.stderr)
print(json.dumps({"type": "value", "data": 5}), flush=True)
count = 0
while True:
    signal.sigwait([signal.SIGWINCH])
    count += 10
    print(json.dumps({"type": "map", "data": {"@d": {"100": count}, "@m": 1}}))
    print(json.dumps({"type": "value", "data": time.monotonic_ns()}), flush=True)
"""
Begin = Callable[[str], ProbeProcess]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Begins a probe with this Python script in the place of bpftrace."""
    made: list[ProbeProcess] = []
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(text: str) -> ProbeProcess:
        program = tmp_path / "bpftrace"
        program.write_text(f"#!{sys.executable} -IS\n{text}\n")
        program.chmod(0o755)
        made.append(ProbeProcess("BEGIN", (Region("vda", 254, 0),), (LATENCY,), 1, 8192, Clock()))
        return made[-1]

    yield make
    for one in made:
        one.close()


def until(what: Callable[[], object], within: float = 20.0) -> None:
    deadline = time.monotonic() + within
    while not what():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.01)


def readings(probe: ProbeProcess, count: int) -> list[ProbeSample]:
    found: list[ProbeSample] = []

    def enough() -> bool:
        one = probe.take()
        if one is not None:
            found.append(one)
        return len(found) >= count

    until(enough)
    return found


def test_a_reading_is_given_for_the_asking(begin: Begin) -> None:
    probe = begin(ANSWERS)
    rest = readings(probe, 4)[1:]
    counts = [one.device["vda"]["read"][100] for one in rest]
    assert counts == sorted(counts) and counts[0] >= 10
    assert [one.time_ns for one in rest] == sorted(one.time_ns for one in rest)
    assert rest[-1].busy_s is not None and rest[-1].busy_s > 0
    assert probe.problem() == ""


def test_nothing_is_left_when_it_is_closed(begin: Begin) -> None:
    before = len(os.listdir("/proc/self/fd"))
    probe = begin(ANSWERS)
    readings(probe, 1)
    pid = probe.pid
    assert pid is not None and start_time(pid) is not None
    probe.close()
    probe.close()
    assert start_time(pid) is None and probe.take() is None and probe.problem() == ""
    assert len(os.listdir("/proc/self/fd")) <= before + 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys; print('no BTF found', file=sys.stderr); sys.exit(3)",
         "bpftrace has ended (exit code 3): no BTF found"),
        ("import os; os.kill(os.getpid(), 9)", "(signal 9)"),
        ("while True: print('hello, I am another program', flush=True)", "not understood: hello"),
        ("while True: print('{\"type\": 7}', flush=True)", "not understood"),
        ("print('x' * 9_000_000, flush=True)\nimport time; time.sleep(1); raise SystemExit(1)",
         "bpftrace has ended"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(begin: Begin, text: str, words: str) -> None:
    probe = begin(text)
    until(lambda: words in probe.problem())
    assert probe.take() is None


def test_one_that_says_nothing_is_given_up(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_WITHIN_S", 0.2)
    probe = begin("import time; time.sleep(60)")
    assert probe.problem() == ""
    until(lambda: "printed nothing for" in probe.problem())


def test_one_that_hangs_later_is_given_up_and_killed(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SILENCE_TIMEOUT_S", 0.3)
    probe = begin(ANSWERS)
    readings(probe, 2)
    pid = probe.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    until(lambda: "printed nothing" in ((probe.take() and "") or probe.problem()))
    probe.close()
    assert start_time(pid) is None


def test_it_dies_with_us_however_we_die(tmp_path: Path) -> None:
    program = tmp_path / "bpftrace"
    program.write_text(f"#!{sys.executable} -IS\nimport time; time.sleep(60)\n")
    program.chmod(0o755)
    text = """
import time
from iopstui.linux.probe.process import ProbeProcess
from iopstui.linux.process.clock import Clock
print(ProbeProcess("", (), (), 1, 8192, Clock()).pid, flush=True)
time.sleep(60)
"""
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    us = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, env=environment)
    assert us.stdout is not None
    pid = int(us.stdout.readline())
    until(lambda: Path(f"/proc/{pid}/comm").read_text().strip() == "bpftrace")
    us.kill()
    us.wait()
    until(lambda: start_time(pid) is None, within=5.0)


def test_readings_may_be_far_apart(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = begin(ANSWERS)
    readings(probe, 2)
    # nothing was asked for meanwhile, so nothing is missing: --interval may be a minute
    monkeypatch.setattr(module, "SILENCE_TIMEOUT_S", 0.1)
    time.sleep(0.3)
    assert probe.problem() == ""
    monkeypatch.setattr(module, "ANSWER_S", 0.0)
    probe.take()
    assert probe.problem() == "", "an answer that is a little late is none that is missing"


def test_the_matrix_of_many_cpus_has_room() -> None:
    assert map_keys_for(4, True) == map_keys_for(256, False) == 8192
    assert map_keys_for(200, True) == 40_000 and map_keys_for(1024, True) == 65_536
