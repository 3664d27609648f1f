from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from iopstui.safety.signals import STOP_SIGNALS, handle_stop_signals


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def handler(number: int, frame: object) -> None:
    raise AssertionError("no signal is sent here")


def test_what_nohup_ignores_stays_ignored_but_not_an_interrupt() -> None:
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    before = handle_stop_signals(handler)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN and signal.SIGHUP not in before
    assert signal.getsignal(signal.SIGINT) is handler
    assert before[signal.SIGINT] is signal.SIG_IGN


def test_what_there_was_before_is_given_back() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    before = handle_stop_signals(handler)
    assert before[signal.SIGTERM] is signal.SIG_DFL
    handle_stop_signals(signal.SIG_DFL)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
