"""What passes between a page and the process behind it."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from iopstui.cli.web.screen_process import MAX_INPUT, READY, ScreenProcess

SIZE = (80, 24)


class FakePage:
    def __init__(self, fails: bool = False) -> None:
        self.sent: list[bytes] = []
        self._fails = fails

    async def send_bytes(self, data: bytes) -> None:
        if self._fails:
            raise ConnectionResetError
        self.sent.append(data)


def packet(kind: bytes, payload: bytes) -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


class Behind:
    """A screen process with this test at its other ends."""

    def __init__(self) -> None:
        output, self.paints = os.pipe()
        self.keys, keys = os.pipe()
        self.killed = 0
        self.screen = ScreenProcess(output, keys, self._kill)
        self.running = asyncio.create_task(self.screen.run())

    def _kill(self) -> None:
        self.killed += 1

    async def says(self, *packets: bytes) -> None:
        os.write(self.paints, b"".join(packets))
        await asyncio.sleep(0.05)

    def read(self) -> list[tuple[bytes, bytes]]:
        data, found = os.read(self.keys, 1 << 16), []
        while data:
            end = 5 + int.from_bytes(data[1:5], "big")
            found.append((data[:1], data[5:end]))
            data = data[end:]
        return found

    async def close(self) -> None:
        os.close(self.paints)
        await self.running
        os.close(self.keys)


async def test_only_what_is_painted_reaches_the_page() -> None:
    behind, page = Behind(), FakePage()
    behind.screen.attach(page, SIZE)
    start = json.dumps({"type": "deliver_file_start", "key": "k", "path": "/etc/shadow"}).encode()
    url = json.dumps({"type": "open_url", "url": "http://evil", "new_tab": True}).encode()
    await behind.says(b"a warning\n", READY, packet(b"D", b"one"), packet(b"M", start))
    await behind.says(packet(b"P", b"secret"), packet(b"M", url), packet(b"D", b"two"))
    assert page.sent == [b"one", b"two"]
    await behind.says(packet(b"M", b'{"type": "exit"}'), b"words for a terminal")
    assert behind.screen.ended.is_set() and page.sent == [b"one", b"two"]
    await behind.close()


async def test_without_a_page_it_goes_on_and_the_newest_page_has_it() -> None:
    behind, first, second = Behind(), FakePage(), FakePage()
    await behind.says(READY, packet(b"D", b"unseen"))
    behind.screen.attach(first, SIZE)
    behind.screen.attach(second, (90, 30))
    assert behind.screen.shows(second) and not behind.screen.shows(first)
    behind.screen.detach(first)
    await behind.says(packet(b"D", b"seen"))
    assert (first.sent, second.sent) == ([], [b"seen"])
    told = [json.loads(payload) for kind, payload in behind.read() if kind == b"M"]
    assert told == [
        {"type": "resize", "width": 80, "height": 24}, {"type": "attach"},
        {"type": "resize", "width": 90, "height": 30}, {"type": "attach"},
    ]  # fmt: skip
    await behind.close()


async def test_a_page_that_is_gone_stops_nothing() -> None:
    behind = Behind()
    behind.screen.attach(FakePage(fails=True), SIZE)
    await behind.says(READY, packet(b"D", b"x"), packet(b"D", b"y"))
    assert not behind.screen.ended.is_set()
    await behind.close()


async def test_messages_of_a_page() -> None:
    behind = Behind()
    await behind.says(READY)
    take = behind.screen.handle_message
    assert take('["stdin", "q\\u00e9"]') and take('["ping", "1"]') and take('["focus"]')
    assert take('["resize", {"width": 1e6, "height": 40}]')
    assert take(json.dumps(["stdin", "x" * (MAX_INPUT + 1)]))
    await asyncio.sleep(0.05)
    assert behind.read() == [
        (b"D", "qé".encode()), (b"M", b'{"type": "focus"}'),
        (b"M", b'{"type": "resize", "width": 300, "height": 40}'),
    ]  # fmt: skip
    await behind.close()


@pytest.mark.parametrize("text", [
    "", "{", "[]", "{}", "7", "null", '["stdin"]', '["stdin", 5]', '["resize", {"width": 5}]',
    '["resize", null]', '["deliver_chunk_request", {"key": "a", "size": 9}]', '["quit"]',
    '["attach"]', '["exit"]', '[["stdin"], "x"]', "[" * 9999,
])  # fmt: skip
async def test_other_messages_close_the_page_and_reach_nothing(text: str) -> None:
    behind = Behind()
    await behind.says(READY)
    assert not behind.screen.handle_message(text)
    os.set_blocking(behind.keys, False)
    with pytest.raises(BlockingIOError):
        os.read(behind.keys, 1)
    await behind.close()


async def test_a_screen_that_does_not_read_gets_no_more_keys() -> None:
    behind = Behind()
    await behind.says(READY)
    for _ in range(1000):
        behind.screen.handle_message(json.dumps(["stdin", "x" * MAX_INPUT]))
    writer = behind.screen._writer
    assert writer is not None and writer.transport.get_write_buffer_size() < 1 << 17
    await behind.close()


async def test_a_screen_that_does_not_end_is_ended() -> None:
    behind = Behind()
    await behind.says(READY)
    await behind.screen.end(0.05)
    assert behind.killed == 1 and behind.read() == [(b"M", b'{"type": "quit"}')]
    await behind.close()
    await behind.screen.end(5)
    assert behind.killed == 1
