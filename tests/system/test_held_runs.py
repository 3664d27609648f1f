"""`run --hold` and the agent: they prepare first, start when ordered to, and stop without an
order."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from program import UNHURRIED, WITHIN_S, command, environment, survivors, wait_for_fio_io

LONG = ("--set", "runtime=120", "--size", "4m", *UNHURRIED)


def start_with_pipes(place: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*arguments), cwd=place, env=environment(place.parent), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for_event(process: subprocess.Popen[bytes], kind: str) -> dict[str, Any]:
    assert process.stdout is not None
    for line in process.stdout:
        row: dict[str, Any] = json.loads(line)
        if row["event"] == kind:
            return row
    raise AssertionError(f"no {kind}")


def send_order(process: subprocess.Popen[bytes], **order: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(order).encode() + b"\n")
    process.stdin.flush()


@contextmanager
def heartbeats(agent: subprocess.Popen[bytes]) -> Iterator[None]:
    """Send pings, so that the agent does not stop on a slow machine."""
    enough = threading.Event()

    def beat() -> None:
        for number in itertools.count():
            send_order(agent, op="ping", id=number)
            if enough.wait(0.5):
                return

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield
    finally:
        enough.set()
        beating.join()


def test_a_held_run_starts_when_a_line_is_read(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with start_with_pipes(place, "run", ".", "--job", "randread-4k", "--hold", "--format", "jsonl",
                          "--set", "runtime=1", "--size", "4m", *UNHURRIED) as run:  # fmt: skip
        wait_for_event(run, "armed")
        before_ns = time.monotonic_ns()
        assert run.stdin is not None
        run.stdin.write(b"go\n")
        run.stdin.flush()
        executed = wait_for_event(run, "executed")
        assert before_ns < executed["monotonic_ns"] < time.monotonic_ns()
        assert executed["offset_ms"] is None and executed["late_ms"] >= 0
        assert wait_for_event(run, "step_finished")["summary"]["rows"]
        run.communicate(timeout=WITHIN_S)
        assert run.returncode == 0
    assert list(place.iterdir()) == []


def test_a_held_run_starts_nothing_at_the_end_of_its_input(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with start_with_pipes(place, "run", ".", "--job", "randread-4k", "--hold", "--format", "jsonl",
                          "--size", "4m") as run:  # fmt: skip
        wait_for_event(run, "armed")
        out, err = run.communicate(timeout=WITHIN_S)
        assert run.returncode == 130
        assert b"nothing started" in err and b'"executed"' not in out
    assert list(place.iterdir()) == []


def test_the_agent_stops_fio_when_the_coordinator_is_silent(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with start_with_pipes(place, "agent") as agent:
        with heartbeats(agent):
            send_order(
                agent, op="begin", host="n1", job="randread-4k", arguments=[str(place), *LONG]
            )
            assert wait_for_event(agent, "armed")["host"] == "n1"
            at_ns = time.monotonic_ns() + 50_000_000
            send_order(agent, op="go", at_ns=at_ns, offset_ms=1.5, error_ms=0.25)
            executed = wait_for_event(agent, "executed")
            assert executed["monotonic_ns"] >= at_ns
            assert (executed["offset_ms"], executed["error_ms"]) == (1.5, 0.25)
            fio = wait_for_fio_io(agent.pid)
        # no more pings while the pipe stays open, as if the link was cut
        assert wait_for_event(agent, "step_finished")["interrupted"]
        assert survivors(fio) == []
        agent.wait(timeout=WITHIN_S)
    assert list(place.iterdir()) == []


def test_fio_is_stopped_on_a_host_whose_agent_is_stopped(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with start_with_pipes(place, "agent") as agent:
        with heartbeats(agent):
            send_order(
                agent, op="begin", host="n1", job="randread-4k", arguments=[str(place), *LONG]
            )
            wait_for_event(agent, "armed")
            send_order(agent, op="go", at_ns=time.monotonic_ns())
            wait_for_event(agent, "executed")
            fio = wait_for_fio_io(agent.pid)
            os.kill(agent.pid, signal.SIGSTOP)
            try:
                assert survivors(fio) == []
            finally:
                os.kill(agent.pid, signal.SIGCONT)
            assert "was stopped or hung for 4 s" in wait_for_event(agent, "step_finished")["error"]
        agent.wait(timeout=WITHIN_S)
    assert list(place.iterdir()) == []


def test_the_agent_refuses_what_the_command_refuses(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "mine").write_bytes(b"x" * (1 << 20))
    with start_with_pipes(place, "agent") as agent:
        send_order(
            agent, op="begin", host="n1", job="randwrite-4k", arguments=[str(place / "mine")]
        )
        finished = wait_for_event(agent, "step_finished")
        assert finished["exit_code"] == 3 and "--destroy-data" in finished["hint"]
        agent.communicate(timeout=WITHIN_S)
        assert agent.returncode == 3


def test_the_agent_lays_out_no_file_before_the_order(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for answer in ("lay_out", "stop"):
        with start_with_pipes(place, "agent") as agent:
            send_order(agent, op="begin", host="n1", job="randread-4k", plan=True,
                       arguments=[str(place), *LONG])  # fmt: skip
            (need,) = wait_for_event(agent, "planned")["needs"]
            # 4 MiB for all its jobs together; nothing has been laid out yet
            assert need["bytes"] == 4 << 20 and need["room"] > need["bytes"]
            (scratch,) = place.iterdir()
            assert need["mark"] == scratch.name
            send_order(agent, op="look", names=[scratch.name, ".iopstui-00000000", "../place"])
            assert wait_for_event(agent, "seen")["names"] == [scratch.name]
            assert [path for path in place.rglob("*") if path.is_file()] == []
            send_order(agent, op=answer)
            if answer == "stop":
                assert wait_for_event(agent, "step_finished")["interrupted"]
            else:
                wait_for_event(agent, "armed")
            agent.communicate(timeout=WITHIN_S)
            assert agent.returncode == 130
        assert list(place.iterdir()) == []
