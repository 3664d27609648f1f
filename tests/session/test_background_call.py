"""Calls on a file system whose server may be gone."""

from __future__ import annotations

import threading
import time

import pytest

from iopstui.session.fio import fio_run
from iopstui.session.fio.fio_run import BackgroundCall


def test_each_call_has_its_own_answer() -> None:
    answers = iter(range(9))
    call = BackgroundCall(lambda: next(answers), -1)
    assert [call(), call(), call()] == [0, 1, 2]


def test_one_that_hangs_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fio_run, "WAIT_S", 60.0)
    back, asked = threading.Event(), []

    def ask() -> int:
        asked.append(len(asked))
        if len(asked) == 2:
            back.wait(60)
        return len(asked)

    call = BackgroundCall(ask, 0)
    assert call() == 1
    monkeypatch.setattr(fio_run, "WAIT_S", 0.05)
    began = time.monotonic()
    assert [call() for _ in range(200)] == [1] * 200
    assert time.monotonic() - began < 9 and len(asked) == 2
    back.set()
    for _ in range(3000):
        if call() >= 3:
            return
        time.sleep(0.02)
    raise AssertionError(asked)


def test_an_error_leaves_the_last_answer() -> None:
    def refused() -> int:
        raise PermissionError

    assert BackgroundCall(refused, 7)() == 7
