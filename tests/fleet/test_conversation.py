"""The agent's part of the conversation: orders, answers to pings, and silence."""

from __future__ import annotations

import json
import os
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from iopstui.features.fleet.hosts import conversation
from iopstui.features.fleet.hosts.conversation import Conversation, parse_order
from iopstui.features.fleet.hosts.host_disks import disk_conflicts, duplicate_machines

WITHIN_S = 30.0


class Heard:
    def __init__(self) -> None:
        self.said: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.gone: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.read, self.write = os.pipe()
        self.talk = Conversation(self.read, self.said.put, self.orders.put, self.gone.put)
        self.talk.start()

    def tell(self, *orders: Any) -> None:
        os.write(self.write, b"".join(json.dumps(order).encode() + b"\n" for order in orders))


@contextmanager
def talking() -> Iterator[Heard]:
    heard = Heard()
    try:
        yield heard
    finally:
        heard.talk.abort()
        os.close(heard.write)


def test_a_ping_is_answered_with_both_clocks_and_orders_are_passed_on() -> None:
    with talking() as heard:
        heard.tell({"op": "ping", "id": 7}, {"op": "go", "at_ns": 5})
        pong = heard.said.get(timeout=WITHIN_S)
        assert pong["event"] == "pong" and pong["id"] == 7
        assert pong["mono_ns"] > 0 and pong["wall_ms"] > 1e12
        assert heard.orders.get(timeout=WITHIN_S) == {"op": "go", "at_ns": 5}


def test_silence_after_a_beat_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "HEARTBEAT_TIMEOUT_S", 0.0)
    with talking() as heard:
        heard.tell({"op": "ping"})
        assert "no heartbeat" in heard.gone.get(timeout=WITHIN_S)


def test_a_beat_alone_is_one_and_is_not_answered() -> None:
    with talking() as heard:
        heard.tell({"op": "beat"}, {"op": "stop"})
        assert heard.orders.get(timeout=WITHIN_S) == {"op": "stop"}
        assert heard.talk._last_heartbeat_s is not None and heard.said.empty()


def test_the_session_is_told_that_the_agent_runs_until_the_end() -> None:
    alive: queue.SimpleQueue[None] = queue.SimpleQueue()
    read, write = os.pipe()
    nobody: queue.SimpleQueue[Any] = queue.SimpleQueue()
    talk = Conversation(read, nobody.put, nobody.put, nobody.put, lambda: alive.put(None))
    talk.start()
    for _ in range(2):
        alive.get(timeout=WITHIN_S)
    os.close(write)


def test_silence_before_the_first_beat_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "HEARTBEAT_TIMEOUT_S", 0.0)
    monkeypatch.setattr(conversation, "POLL_S", 0.001)
    with talking() as heard:
        heard.tell({"op": "stop"})
        assert heard.orders.get(timeout=WITHIN_S) == {"op": "stop"}
        with pytest.raises(queue.Empty):
            heard.gone.get(timeout=0.05)


def test_the_end_of_the_input_is_the_end_and_told_once() -> None:
    heard = Heard()
    os.close(heard.write)
    assert heard.gone.get(timeout=WITHIN_S) == "standard input has ended"
    heard.talk.abort("again")
    assert heard.gone.empty()


@pytest.mark.parametrize("line", ["x", "[1]", "{}", '{"op": 1}', "[" * 100_000])
def test_what_is_no_order_ends_it(line: str) -> None:
    assert parse_order(line.encode()) is None
    with talking() as heard:
        os.write(heard.write, line.encode()[:60000] + b"\n")
        assert "not a valid order" in heard.gone.get(timeout=WITHIN_S)


def disk(wwid: str | None, writes: str | None = None, *uses: str) -> dict[str, Any]:
    return {"name": "sda", "wwid": wwid, "writes": writes, "uses": [*uses]}


def test_a_disk_that_another_host_uses_or_writes_is_nobody_s() -> None:
    writer = [disk("naa.1", "/dev/sda"), disk("naa.9")]
    assert not list(
        disk_conflicts({"a": writer, "b": [disk("naa.1")], "c": [disk(None, None, "x")]})
    )
    found = list(
        disk_conflicts({"a": writer, "b": [disk("naa.1", None, "sda is mounted at /srv")]})
    )
    assert len(found) == 1 and "on b the same disk is in use: sda is mounted at /srv" in found[0]
    both = list(disk_conflicts({"a": writer, "b": [disk("naa.1", "/dev/sdq")]}))
    assert len(both) == 2 and all("it is the same disk" in words for words in both)
    # a host's own use of the disk is refused by the host itself
    assert not list(disk_conflicts({"a": [disk("naa.1", "/dev/sda"), disk("naa.1", None, "swap")]}))


def test_one_machine_under_several_names_is_said() -> None:
    assert not list(duplicate_machines({"a": "1", "b": "2", "c": "", "d": ""}))
    (one,) = duplicate_machines({"a": "1", "b": "2", "c": "1"})
    assert one.startswith("a, c are one machine under 2 names, so ")
    (many,) = duplicate_machines(dict.fromkeys("abcde", "1"))
    assert many.startswith("a, b, c and 2 more are one machine under 5 names, so ")
