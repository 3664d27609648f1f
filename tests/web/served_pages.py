"""`iopstui serve`, started as a user does, and the pages that connect to it."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import psutil

SIZE = "?width=120&height=40"
WITHIN_S = 60.0
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Served:
    """A running server. ``addresses`` are the printed ones; the viewers' is the last."""

    def __init__(self, process: subprocess.Popen[str], pages: int) -> None:
        self.process = process
        self.addresses: list[str] = []
        assert process.stderr is not None
        self.printed = ""
        while len(self.addresses) < pages:
            line = process.stderr.readline()
            assert line, f"it has ended: {self.printed}"
            self.printed += line
            self.addresses += re.findall(r"http://\S+", line)

    @property
    def viewers(self) -> str:
        return self.addresses[-1]

    @property
    def origin(self) -> str:
        return self.viewers.rsplit("/", 2)[0]

    def child_processes(self) -> list[psutil.Process]:
        """All processes that the server has started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def fio_processes(self) -> list[psutil.Process]:
        """The fio processes among them, without those that have just ended."""
        found = []
        for process in self.child_processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() == "fio":
                    found.append(process)
        return found

    def end(self) -> tuple[int, str]:
        self.process.terminate()
        _, err = self.process.communicate(timeout=WITHIN_S)
        return self.process.returncode, err


Start = Callable[..., Served]


class Terminal:
    """The terminal of a page; ``text`` is its output without escape sequences."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.text = ""

    async def wait_for_text(self, text: str) -> None:
        """Read until the text is painted. Fails after WITHIN_S, even if other text keeps coming."""
        searched = max(0, len(self.text) - len(text))
        deadline = time.monotonic() + WITHIN_S
        while text not in self.text[searched:]:
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"{text!r} was not painted: {self.text[-500:]}"
            message = await self.socket.receive(timeout=left_s)
            assert message.type == aiohttp.WSMsgType.BINARY, (message, self.text[-500:])
            self.text += ESCAPES.sub("", message.data.decode())

    async def wait_until_closed(self) -> None:
        """Read until the server closes the page."""
        ends = (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE)
        while (await self.socket.receive(timeout=WITHIN_S)).type not in ends:
            pass

    async def press(self, keys: str) -> None:
        await self.socket.send_str(json.dumps(["stdin", keys]))

    async def send(self, *message: Any) -> None:
        await self.socket.send_str(json.dumps(message))


@contextlib.asynccontextmanager
async def open_page(address: str, size: str = SIZE, **headers: str) -> AsyncIterator[Terminal]:
    """Open the page's WebSocket as its script does."""
    origin = headers.pop("Origin", address.rsplit("/", 2)[0])
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            f"{address}ws{size}", headers={"Origin": origin, **headers}, max_msg_size=0
        ) as socket,
    ):
        yield Terminal(socket)


async def status(address: str, **more: Any) -> tuple[int, str, Any]:
    """Status, text and headers of the answer to a GET request."""
    async with aiohttp.ClientSession() as session, session.get(address, **more) as answer:
        return answer.status, await answer.text("utf-8", "replace"), answer.headers
