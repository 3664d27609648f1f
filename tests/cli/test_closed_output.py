"""The reader closes standard output: commands end quietly, but errors are still reported."""

from __future__ import annotations

import fcntl
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from iopstui.cli.runs.run_job import run_until_finished
from iopstui.cli.terminal import exit_on_closed_output
from iopstui.errors import EXIT_INTERRUPTED, Interrupted
from iopstui.events import Event, Notice, StepFinished
from iopstui.model.experiment.run_request import RunRequest
from iopstui.output.sinks import EventSink
from iopstui.safety import streams
from iopstui.safety.signals import STOP_SIGNALS
from iopstui.session.live import LiveSession


class Session:
    """A session whose only run has ended."""

    runs = 0

    def __init__(self) -> None:
        self.closed = 0
        self._tell: Callable[[Event], None] = lambda event: None

    def start(self, sink: Callable[[Event], None]) -> None:
        self._tell = sink

    def run_job(self, job: str, overrides: object) -> None:
        self._tell(StepFinished(1, 1, 0, "", False))

    def close(self) -> None:
        self.closed += 1
        if self.closed == 1:
            self._tell(Notice(1, "info", "all changed tunables restored"))
            self._tell(Notice(1, "error", "rq_affinity could not be put back"))


class ClosedSink:
    def handle(self, event: Event) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    def close(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.usefixtures("signals")
def test_failed_restores_are_reported_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    session = Session()
    with pytest.raises(BrokenPipeError):
        run_until_finished(
            cast(LiveSession, session), RunRequest("a"), cast(EventSink, ClosedSink())
        )
    assert session.closed
    assert capsys.readouterr().err == "iopstui: rq_affinity could not be put back\n"


def test_an_unchecked_expectation_is_no_success() -> None:
    with (
        pytest.raises(
            Interrupted, match="The reader of standard output closed it before --expect was checked"
        ) as caught,
        exit_on_closed_output(["x"]),
    ):
        raise BrokenPipeError
    assert caught.value.exit_code == EXIT_INTERRUPTED
    with pytest.raises(BrokenPipeError), exit_on_closed_output([]):
        raise BrokenPipeError


@pytest.fixture
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reads, writes = os.pipe2(os.O_NONBLOCK)
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    yield reads, writes
    os.close(reads)
    os.close(writes)


def test_a_pipe_whose_reader_is_stuck_is_dropped(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    os.write(writes, b"x" * 4096)
    with pytest.raises(BlockingIOError):
        os.write(writes, b"y")
    streams.drop_stuck([writes])
    os.write(writes, b"y")
    assert os.read(reads, 8192) == b"x" * 4096


def test_at_the_end_a_write_does_not_wait_for_a_reader_that_is_stuck(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, writes = pipe
    os.set_blocking(writes, True)
    monkeypatch.setattr(streams, "PATIENCE_S", 0.0)
    monkeypatch.setattr(streams, "_ending", False)
    stream = io.BufferedWriter(streams._Stdout(writes, "w", closefd=False))
    streams.end_soon()
    stream.write(b"x" * 9999)
    stream.flush()
    assert os.read(reads, 8192) == b"x" * 4096


def test_a_pipe_whose_reader_reads_is_kept(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    streams.drop_stuck([writes])
    os.write(writes, b"y")
    assert os.read(reads, 8192) == b"y"


def test_a_second_signal_does_not_wait_for_the_reader(
    signals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    actions: list[object] = []

    def drop_stuck(patience_s: float = streams.STUCK_S) -> None:
        actions.append(patience_s)

    class Session:
        runs = 0

        def start(self, callback: object) -> None:
            signal.raise_signal(signal.SIGTERM)
            assert actions == ["stop", streams.PATIENCE_S]
            signal.raise_signal(signal.SIGTERM)
            assert actions[2:] == [streams.STUCK_S, "kill"]

        def run_job(self, job: str, overrides: object) -> None:
            raise BrokenPipeError

        def stop_job(self) -> None:
            actions.append("stop")

        def kill_job(self) -> None:
            actions.append("kill")

        def close(self) -> None:
            """Releases nothing."""

    monkeypatch.setattr(streams, "drop_stuck", drop_stuck)
    monkeypatch.setattr("iopstui.safety.signals.SAME_SIGNAL_S", 0.0)
    with pytest.raises(BrokenPipeError):
        run_until_finished(
            cast(LiveSession, Session()), RunRequest("a"), cast(EventSink, ClosedSink())
        )


ENDS = """
import os, signal, sys, threading
from iopstui.cli import program
def command(words, writable):
    {body}
program._main = command
sys.exit(program.main())
"""
WAITS = """
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    try:
        print("x" * 1_000_000, flush=True)
    finally:
        print("y" * 1_000_000, flush=True)
"""
EXECUTES = """
    exec("os.kill(os.getpid(), signal.SIGTERM)\\nwhile True: pass", globals())
"""


@pytest.mark.parametrize("body", [WAITS, EXECUTES], ids=["waits for its reader", "executes text"])
def test_a_signal_interrupts_a_command_that(body: str, tmp_path: Path, root: Path) -> None:
    """The command's cleanup writes, too. Python's ``-m`` remembers interrupted exec() calls."""
    (tmp_path / "ends.py").write_text(ENDS.format(body=body.strip()))
    reads, writes = os.pipe()
    try:
        process = subprocess.run(
            [sys.executable, "-m", "ends"], cwd=tmp_path, stdout=writes, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(root)}, text=True, timeout=60,
        )  # fmt: skip
    finally:
        os.close(reads)
        os.close(writes)
    assert (process.returncode, process.stderr) == (EXIT_INTERRUPTED, "iopstui: interrupted.\n")
