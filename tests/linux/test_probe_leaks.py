"""What the probe's maps keep of requests whose end was not seen, on maps of the real kernel."""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iopstui.linux.probe import bpf
from iopstui.linux.probe.process import LEAK_AGE_NS, TASKS, TIMES, drop_leaks
from iopstui.linux.probe.script import TIME_BITS

CREATE, UPDATE, HASH = 0, 2, 1
NOW = time.monotonic_ns()


def create(name: str, room: int = 64) -> int:
    """A hash map of this process; skipped where BPF is not allowed."""
    attr = struct.pack("7I16s", HASH, 8, 8, room, 0, 0, 0, name.encode())
    fd = bpf.call(CREATE, attr)
    if fd < 0:
        pytest.skip("no BPF maps here: not root, or not allowed")
    return fd


def put(fd: int, key: int, value: int) -> None:
    one, two = (ctypes.create_string_buffer(n.to_bytes(8, "little"), 8) for n in (key, value))
    attr = struct.pack("IxxxxQQQ", fd, ctypes.addressof(one), ctypes.addressof(two), 0)
    assert bpf.call(UPDATE, attr) == 0


@pytest.fixture
def times() -> Iterator[int]:
    fd = create(TIMES)
    yield fd
    os.close(fd)


@pytest.fixture
def tasks() -> Iterator[int]:
    fd = create(TASKS)
    yield fd
    os.close(fd)


def keys(fd: int) -> set[int]:
    return set(bpf.Map(fd, 64))


def test_only_what_is_old_is_dropped(times: int, tasks: int) -> None:
    cpu = 5 << TIME_BITS  # kept beside the time where the way or the matrix is counted
    put(times, 100, NOW - 2 * LEAK_AGE_NS)
    put(times, 200, NOW - 1_000_000)
    put(times, 300, cpu | (NOW - 2 * LEAK_AGE_NS) & ((1 << TIME_BITS) - 1))
    put(times, 400, cpu | NOW & ((1 << TIME_BITS) - 1))
    for key in (100, 200, 300, 400, 500):
        put(tasks, key, 1234)
    before = len(os.listdir("/proc/self/fd"))
    assert drop_leaks(os.getpid(), NOW) == 2
    assert keys(times) == keys(tasks) == {200, 400}
    assert len(os.listdir("/proc/self/fd")) == before
    assert drop_leaks(os.getpid(), NOW) == 0


def test_maps_of_others_are_left_alone(times: int) -> None:
    other = create("AT_d")
    put(other, 1, 1)
    put(times, 1, NOW - 2 * LEAK_AGE_NS)
    assert drop_leaks(os.getpid(), NOW) == 1
    assert keys(other) == {1}
    os.close(other)


def test_what_cannot_be_looked_at_is_no_failure(tmp_path: Path) -> None:
    place = tmp_path / "1" / "fdinfo"
    place.mkdir(parents=True)
    (place / "3").write_text("pos: 0\n")
    (place / "4").write_text("map_id: x\n")
    (place / "5").write_text("map_id: 4294967295\n")  # none has this number
    assert drop_leaks(1, NOW, tmp_path) == 0
    assert drop_leaks(2, NOW, tmp_path) == 0


def test_a_machine_whose_number_is_not_known_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bpf, "NUMBERS", {})
    assert bpf.open_map(1) == -1 and bpf.describe_map(3) is None
    assert drop_leaks(os.getpid(), NOW) == 0
