"""Messages between a page and its screen process."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import termios

import pytest

from iopstui.features.serve.viewer_host import MAX_INPUT, READY, ScreenProcess

SIZE = (80, 24)


class FakePage:
    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.dropped = False

    def send(self, data: bytes) -> None:
        self.sent.append(data)

    def drop(self) -> None:
        self.dropped = True


def packet(kind: bytes, payload: bytes) -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


class ScreenProcessHarness:
    """A screen process whose pipes the test reads and writes."""

    def __init__(self) -> None:
        self.output, self.paints = os.pipe()
        self.keys, keys = os.pipe()
        self.killed = 0
        self.screen = ScreenProcess(self.output, keys, self._kill)
        self.running = asyncio.create_task(self.screen.run())

    def _kill(self) -> None:
        self.killed += 1

    async def paint(self, *packets: bytes) -> None:
        os.write(self.paints, b"".join(packets))
        for _ in range(500):
            await asyncio.sleep(0.01)
            if not int.from_bytes(fcntl.ioctl(self.output, termios.FIONREAD, b"\0" * 4), "little"):
                break
        await asyncio.sleep(0.04)

    def read(self) -> list[tuple[bytes, bytes]]:
        data, packets = os.read(self.keys, 1 << 16), []
        while data:
            end = 5 + int.from_bytes(data[1:5], "big")
            packets.append((data[:1], data[5:end]))
            data = data[end:]
        return packets

    async def close(self) -> None:
        os.close(self.paints)
        await self.running
        os.close(self.keys)


async def test_only_painted_output_reaches_the_page() -> None:
    harness, page = ScreenProcessHarness(), FakePage()
    harness.screen.attach(page, SIZE)
    start = json.dumps({"type": "deliver_file_start", "key": "k", "path": "/etc/shadow"}).encode()
    url = json.dumps({"type": "open_url", "url": "http://evil", "new_tab": True}).encode()
    await harness.paint(b"a warning\n", READY, packet(b"D", b"one"), packet(b"M", start))
    await harness.paint(packet(b"P", b"secret"), packet(b"M", url), packet(b"D", b"two"))
    assert page.sent == [b"one", b"two"]
    await harness.paint(packet(b"M", b'{"type": "exit"}'), b"words for a terminal")
    assert harness.screen.ended.is_set() and page.sent == [b"one", b"two"]
    await harness.close()


async def test_the_screen_goes_on_without_a_page_and_paints_the_newest() -> None:
    harness, first, second = ScreenProcessHarness(), FakePage(), FakePage()
    await harness.paint(READY, packet(b"D", b"unseen"))
    harness.screen.attach(first, SIZE)
    harness.screen.attach(second, (90, 30))
    assert harness.screen.shows(second) and not harness.screen.shows(first)
    assert first.dropped and not second.dropped
    harness.screen.detach(first)
    await harness.paint(packet(b"D", b"seen"))
    assert (first.sent, second.sent) == ([], [b"seen"])
    messages = [json.loads(payload) for kind, payload in harness.read() if kind == b"M"]
    assert messages == [
        {"type": "resize", "width": 80, "height": 24}, {"type": "attach"},
        {"type": "resize", "width": 90, "height": 30}, {"type": "attach"},
    ]  # fmt: skip
    await harness.close()


async def test_messages_of_a_page() -> None:
    harness = ScreenProcessHarness()
    await harness.paint(READY)
    take = harness.screen.handle_message
    assert take('["stdin", "q\\u00e9"]') and take('["ping", "1"]') and take('["focus"]')
    assert take('["resize", {"width": 1e6, "height": 40}]')
    assert take(json.dumps(["stdin", "x" * (MAX_INPUT + 1)]))
    await asyncio.sleep(0.05)
    assert harness.read() == [
        (b"D", "qé".encode()), (b"M", b'{"type": "focus"}'),
        (b"M", b'{"type": "resize", "width": 300, "height": 40}'),
    ]  # fmt: skip
    await harness.close()


@pytest.mark.parametrize("text", [
    "", "{", "[]", "{}", "7", "null", '["stdin"]', '["stdin", 5]', '["resize", {"width": 5}]',
    '["resize", null]', '["deliver_chunk_request", {"key": "a", "size": 9}]', '["quit"]',
    '["attach"]', '["exit"]', '[["stdin"], "x"]', "[" * 9999,
])  # fmt: skip
async def test_unknown_messages_close_the_page_and_are_dropped(text: str) -> None:
    harness = ScreenProcessHarness()
    await harness.paint(READY)
    assert not harness.screen.handle_message(text)
    os.set_blocking(harness.keys, False)
    with pytest.raises(BlockingIOError):
        os.read(harness.keys, 1)
    await harness.close()


async def test_a_screen_that_does_not_read_gets_no_more_keys() -> None:
    harness = ScreenProcessHarness()
    await harness.paint(READY)
    for _ in range(1000):
        harness.screen.handle_message(json.dumps(["stdin", "x" * MAX_INPUT]))
    writer = harness.screen._writer
    assert writer is not None and writer.transport.get_write_buffer_size() < 1 << 17
    await harness.close()


async def test_a_screen_that_does_not_end_is_killed() -> None:
    harness = ScreenProcessHarness()
    await harness.paint(READY)
    await harness.screen.end(0.05)
    assert harness.killed == 1 and harness.read() == [(b"M", b'{"type": "quit"}')]
    await harness.close()
    await harness.screen.end(5)
    assert harness.killed == 1
