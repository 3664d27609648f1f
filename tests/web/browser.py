"""A real headless Chromium, controlled through its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0", "--hide-scrollbars",
)  # fmt: skip
DESKTOP, PHONE = (1280, 800), (390, 844)


class Tab:
    """A page of the browser. ``painted`` is all text that was sent to its terminal."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.painted = b""
        self.requested: list[str] = []
        self.closed_sockets = 0

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        return await self._browser.call(method, self._session, **parameters)

    async def open(self, address: str, size: tuple[int, int] = DESKTOP) -> None:
        for domain in ("Network", "Page", "Runtime"):
            await self.call(f"{domain}.enable")
        width, height = size
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                        deviceScaleFactor=1, mobile=size == PHONE)  # fmt: skip
        await self.call("Emulation.setTouchEmulationEnabled", enabled=size == PHONE)
        await self.call("Page.navigate", url=address)

    def event(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Network.webSocketFrameReceived":
            frame = parameters["response"]
            if frame["opcode"] == 2:
                self.painted += base64.b64decode(frame["payloadData"])
        elif method == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        elif method == "Network.webSocketClosed":
            self.closed_sockets += 1

    async def evaluate(self, expression: str) -> Any:
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    async def press(self, text: str) -> None:
        """Type characters, as a keyboard does."""
        for character in text:
            for kind in ("keyDown", "keyUp"):
                await self.call("Input.dispatchKeyEvent", type=kind, key=character,
                                text=character if kind == "keyDown" else "")  # fmt: skip

    async def focus(self) -> None:
        await self.evaluate("document.querySelector('.xterm-helper-textarea').focus()")

    async def screenshot(self) -> bytes:
        # a page in the background is not painted
        await self.call("Page.bringToFront")
        return base64.b64decode((await self.call("Page.captureScreenshot"))["data"])

    async def wait_for_text(self, text: bytes, seconds: float = 20.0) -> None:
        """Wait until the text was sent to the terminal."""
        for _ in range(int(seconds / 0.1)):
            if text in self.painted:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"{text!r} was not painted: {self.painted[-2000:]!r}")


class Browser:
    """The browser's process and the connection to it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tabs: dict[str, Tab] = {}

    async def call(
        self, method: str, session: str | None = None, **parameters: object
    ) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        message: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        await self._socket.send_json(message)
        return await asyncio.wait_for(answer, 30)

    async def read(self) -> None:
        async for message in self._socket:
            data = message.json()
            if "id" in data:
                waiting = self._waiting.pop(data["id"])
                if "error" in data:
                    waiting.set_exception(RuntimeError(data["error"]["message"]))
                else:
                    waiting.set_result(data["result"])
            elif data.get("sessionId") in self._tabs:
                self._tabs[data["sessionId"]].event(data["method"], data["params"])

    async def tab(self) -> Tab:
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call("Target.attachToTarget", targetId=target["targetId"],
                                   flatten=True)  # fmt: skip
        tab = self._tabs[attached["sessionId"]] = Tab(self, attached["sessionId"])
        return tab


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program is not None, "no Chromium: apt-get install chromium"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        process = await asyncio.create_subprocess_exec(
            program, *FLAGS, f"--user-data-dir={directory}", "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port_file = Path(directory) / "DevToolsActivePort"
            while not port_file.exists() or len(port_file.read_text().split()) < 2:
                assert process.returncode is None, "Chromium has ended"
                await asyncio.sleep(0.05)
            port, path = port_file.read_text().split()
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(f"ws://127.0.0.1:{port}{path}", max_msg_size=0) as socket,
            ):
                browser = Browser(socket)
                reading = asyncio.create_task(browser.read())
                yield browser
                reading.cancel()
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
