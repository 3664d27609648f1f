"""The last lines of /proc/interrupts, wherever its pieces are cut."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from iopstui.linux.counters import interrupts
from iopstui.linux.counters.interrupts import FunctionCallReader

TABLE = b"           CPU0       CPU1\n  1:          5          6   IO-APIC\n"
TABLE += b" 24:  1 2 x\n" * 40 + b"CAL:         70         80   Function call interrupts\n"


class File:
    def __init__(self, size: int) -> None:
        self.size = size
        self.error: OSError | None = None

    def chunks(self) -> Iterator[bytes]:
        if self.error is not None:
            raise self.error
        for at in range(0, len(TABLE), self.size):
            yield TABLE[at : at + self.size]


def reader(size: int, *times: int) -> tuple[FunctionCallReader, File]:
    file: Any = File(size)
    return FunctionCallReader(file, iter(times or range(0, 10_000, 100)).__next__), file


@pytest.mark.parametrize("size", [1, 7, 20, 64, 100_000])
@pytest.mark.parametrize("tail", [60, 80, 200])
def test_only_the_head_and_the_tail_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, size: int, tail: int
) -> None:
    monkeypatch.setattr(interrupts, "TAIL_BYTES", tail)
    one, _ = reader(size, 1000, 1301)
    found = one.read()
    assert (found.counts, found.at_ns, found.took_ns) == ({0: 70, 1: 80}, 1150, 301)


def test_no_more_than_the_tail_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "TAIL_BYTES", 100)
    one, _ = reader(10)
    head, tail = one._first_line_and_tail()
    assert head == TABLE.split(b"\n")[0]
    assert TABLE.endswith(tail) and 100 <= len(tail) < 110


def test_one_that_is_asked_for_is_taken_once() -> None:
    one, file = reader(64)
    assert one.take() is None and not one.busy
    one.ask()
    assert one.busy
    while (found := one.take()) is None:
        pass
    assert found.counts == {0: 70, 1: 80} and not one.busy and one.take() is None
    file.error = OSError(5, "Input/output error")
    one.ask()
    with pytest.raises(OSError, match="Input/output"):
        while one.take() is None:
            pass
    one.ask()
    one.close()
    assert not one.busy and one.take() is None


def test_a_used_up_limit_of_threads_only_delays_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    one, _ = reader(64)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        one.ask()
    assert not one.busy and one.take() is None
    one.ask()
    assert one.busy
