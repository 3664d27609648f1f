from __future__ import annotations

import importlib.util
import threading

import pytest

from iopstui.linux.counters.signal_flag import interrupt, shielded


def test_it_breaks_off_what_is_not_shielded() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_what_is_shielded_is_made_whole() -> None:
    made = []
    with pytest.raises(KeyboardInterrupt), shielded():
        with shielded():
            interrupt()
        made.append(1)
    assert made == [1]
    with pytest.raises(KeyboardInterrupt), shielded():
        interrupt()
        made.append(2)
    assert made == [1, 2]
    with shielded():
        made.append(3)
    assert made == [1, 2, 3]


def test_another_thread_s_shield_is_its_own() -> None:
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with shielded():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    leave.set()
    thread.join()


def test_at_first_nobody_has_asked() -> None:
    spec = importlib.util.find_spec("iopstui.linux.counters.signal_flag")
    assert spec is not None and spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    with fresh.shielded():
        made = True
    assert made
