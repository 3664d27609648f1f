"""The thread that reads keys sleeps until there is one."""

from __future__ import annotations

import os
import select
import signal
import threading
from typing import Any

import pytest
import ui_fakes as fakes
from test_app import make

from iopstui.ui.core.terminal import driver as driven
from iopstui.ui.core.terminal.driver import INPUT_POLL_S, NonBlockingDriver

SIGNALS = (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)


async def test_the_input_thread_wakes_for_keys_incomplete_sequences_and_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    reads, writes = os.pipe()
    patience: list[float | None] = []
    arrived: list[Any] = []
    waits, really = threading.Semaphore(0), select.select

    def waiting(*arguments: Any) -> Any:
        patience.append(arguments[3])
        waits.release()
        return really(*arguments)

    try:
        driver = NonBlockingDriver(make(fakes.FakeController()))
        driver.fileno, driver._wake_fd = reads, os.eventfd(0)
        monkeypatch.setattr(driven.select, "select", waiting)
        monkeypatch.setattr(driver, "process_message", arrived.append)
        monkeypatch.setattr(driver, "write", lambda data: None)
        driver._key_thread = threading.Thread(target=driver.run_input_thread, daemon=True)
        driver._key_thread.start()
        assert waits.acquire(timeout=60)
        # an Escape may be the beginning of another key
        os.write(writes, b"\x1b")
        while len(patience) < 3 or patience[-1] is not None:
            assert waits.acquire(timeout=60)
        assert patience[:2] == [None, INPUT_POLL_S]
        assert [event.key for event in arrived] == ["escape"]
        driver.disable_input()
        assert not driver._key_thread.is_alive()
        driver.close()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reads)
        os.close(writes)
