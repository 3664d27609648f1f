"""`run --hold` and the agent: ready first, then started at a word, and gone without one."""

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

from program import UNHURRIED, WITHIN_S, command, environment, fio_at_work, gone

LONG = ("--set", "runtime=120", "--size", "4m", *UNHURRIED)


def started(place: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*arguments), cwd=place, env=environment(place.parent), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def until(process: subprocess.Popen[bytes], kind: str) -> dict[str, Any]:
    assert process.stdout is not None
    for line in process.stdout:
        row: dict[str, Any] = json.loads(line)
        if row["event"] == kind:
            return row
    raise AssertionError(f"no {kind}")


def tell(process: subprocess.Popen[bytes], **order: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(order).encode() + b"\n")
    process.stdin.flush()


@contextmanager
def heard(agent: subprocess.Popen[bytes]) -> Iterator[None]:
    """Somebody is there, however long the machine takes for what is asked meanwhile."""
    enough = threading.Event()

    def beat() -> None:
        for number in itertools.count():
            tell(agent, op="ping", id=number)
            if enough.wait(0.5):
                return

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield
    finally:
        enough.set()
        beating.join()


def test_a_held_run_starts_at_a_line(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with started(place, "run", ".", "--job", "randread-4k", "--hold", "--format", "jsonl",
                 "--set", "runtime=1", "--size", "4m", *UNHURRIED) as run:  # fmt: skip
        until(run, "armed")
        before_ns = time.monotonic_ns()
        assert run.stdin is not None
        run.stdin.write(b"go\n")
        run.stdin.flush()
        executed = until(run, "executed")
        assert before_ns < executed["monotonic_ns"] < time.monotonic_ns()
        assert executed["offset_ms"] is None and executed["late_ms"] >= 0
        assert until(run, "step_finished")["summary"]["rows"]
        run.communicate(timeout=WITHIN_S)
        assert run.returncode == 0
    assert list(place.iterdir()) == []


def test_a_held_run_without_a_line_starts_nothing(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with started(place, "run", ".", "--job", "randread-4k", "--hold", "--format", "jsonl",
                 "--size", "4m") as run:  # fmt: skip
        until(run, "armed")
        out, err = run.communicate(timeout=WITHIN_S)
        assert run.returncode == 130
        assert b"nothing started" in err and b'"executed"' not in out
    assert list(place.iterdir()) == []


def test_the_agent_stops_fio_when_nobody_is_there_any_more(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with started(place, "agent") as agent:
        with heard(agent):
            tell(agent, op="begin", host="n1", job="randread-4k", arguments=[str(place), *LONG])
            assert until(agent, "armed")["host"] == "n1"
            at_ns = time.monotonic_ns() + 50_000_000
            tell(agent, op="go", at_ns=at_ns, offset_ms=1.5, error_ms=0.25)
            executed = until(agent, "executed")
            assert executed["monotonic_ns"] >= at_ns
            assert (executed["offset_ms"], executed["error_ms"]) == (1.5, 0.25)
            fio = fio_at_work(agent.pid)
        # nothing is said any more, though the line is still open: a link that was cut
        assert until(agent, "step_finished")["interrupted"]
        assert gone(fio) == []
        agent.wait(timeout=WITHIN_S)
    assert list(place.iterdir()) == []


def test_fio_is_stopped_on_a_host_whose_agent_is_stopped(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with started(place, "agent") as agent:
        with heard(agent):
            tell(agent, op="begin", host="n1", job="randread-4k", arguments=[str(place), *LONG])
            until(agent, "armed")
            tell(agent, op="go", at_ns=time.monotonic_ns())
            until(agent, "executed")
            fio = fio_at_work(agent.pid)
            os.kill(agent.pid, signal.SIGSTOP)
            try:
                assert gone(fio) == []
            finally:
                os.kill(agent.pid, signal.SIGCONT)
            assert "was stopped or hung for 4 s" in until(agent, "step_finished")["error"]
        agent.wait(timeout=WITHIN_S)
    assert list(place.iterdir()) == []


def test_the_agent_refuses_as_the_command_would(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "mine").write_bytes(b"x" * (1 << 20))
    with started(place, "agent") as agent:
        tell(agent, op="begin", host="n1", job="randwrite-4k", arguments=[str(place / "mine")])
        found = until(agent, "step_finished")
        assert found["exit_code"] == 3 and "--destroy-data" in found["hint"]
        agent.communicate(timeout=WITHIN_S)
        assert agent.returncode == 3


def test_the_agent_lays_out_nothing_before_it_is_told(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for answer in ("lay_out", "stop"):
        with started(place, "agent") as agent:
            tell(agent, op="begin", host="n1", job="randread-4k", plan=True,
                 arguments=[str(place), *LONG])  # fmt: skip
            (need,) = until(agent, "planned")["needs"]
            # 4 MiB for each of its jobs together; none is there yet
            assert need["bytes"] == 4 << 20 and need["room"] > need["bytes"]
            (scratch,) = place.iterdir()
            assert need["mark"] == scratch.name
            tell(agent, op="look", names=[scratch.name, ".iopstui-00000000", "../place"])
            assert until(agent, "seen")["names"] == [scratch.name]
            assert [path for path in place.rglob("*") if path.is_file()] == []
            tell(agent, op=answer)
            if answer == "stop":
                assert until(agent, "step_finished")["interrupted"]
            else:
                until(agent, "armed")
            agent.communicate(timeout=WITHIN_S)
            assert agent.returncode == 130
        assert list(place.iterdir()) == []
