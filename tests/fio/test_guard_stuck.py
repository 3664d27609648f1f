"""A process is reported as hanging only if it hangs."""

from __future__ import annotations

import time

import pytest

from iopstui.fio import guard as fio_guard
from iopstui.fio.guard import SLOW_AFTER_S, STUCK_AFTER_S, Guard
from iopstui.session.fio import fio_run


class Machine:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.states: dict[int, bytes] = {}
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(fio_guard, "state", lambda pid: self.states.get(pid, b""))
        self.guard = Guard(1, [])
        self.guard.kill_at = self.now

    def stuck(self, after: float, **states: bytes) -> list[int]:
        self.now = 100.0 + after
        self.states = {int(name[1:]): one for name, one in states.items()}
        return sorted(self.guard.stuck(list(self.states)))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_a_short_wait_in_the_kernel_is_no_hang(machine: Machine) -> None:
    assert machine.stuck(0.4, p7=b"D", p8=b"R") == []
    assert machine.stuck(0.8, p7=b"R", p8=b"D") == []
    assert machine.stuck(STUCK_AFTER_S + 0.4, p7=b"D", p8=b"R") == []


def test_a_long_one_is(machine: Machine) -> None:
    assert machine.stuck(0.1, p7=b"D", p8=b"R") == []
    assert machine.stuck(STUCK_AFTER_S + 0.1, p7=b"D", p8=b"R") == [7]


def test_one_that_does_not_die_otherwise_is_told_later(machine: Machine) -> None:
    assert machine.stuck(SLOW_AFTER_S - 0.1, p7=b"R", p8=b"Z") == []
    assert machine.stuck(SLOW_AFTER_S + 0.1, p7=b"R", p8=b"Z") == [7]


def test_what_is_known_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    states = {7: "D", 8: "R"}
    monkeypatch.setattr(fio_run, "state", lambda pid: states.get(pid, ""))
    assert "process 7 hangs in the kernel" in fio_run.hanging_text([7])
    assert "hangs in the kernel" not in fio_run.hanging_text([7, 8])
    assert "7, 8 was killed but has not ended yet (state D, R)" in fio_run.hanging_text([7, 8])
