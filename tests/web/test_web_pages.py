"""`iopstui serve`: what pages can and can't do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import string
import time
from pathlib import Path

import aiohttp
import psutil
import pytest
from served_pages import Served, Start, opened, status

from iopstui.recording.reader import Recording

NOT_HERE = "Not available in the browser"
ESC = "\x1b"


@pytest.fixture(scope="module")
def replayed(serve: Start) -> Served:
    return serve("replay", "demo")


@pytest.fixture
def idle_dir(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


def gone(processes: list[psutil.Process]) -> bool:
    """Whether they have all ended, in some seconds."""
    return not psutil.wait_procs(processes, timeout=20)[1]


def sockets(pid: int) -> set[str]:
    found = [os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()]
    return {one for one in found if one.startswith("socket")}


# -- the server


async def test_a_page_needs_its_token(replayed: Served) -> None:
    code, page, headers = await status(replayed.viewers)
    assert code == 200 and 'class="textual-terminal"' in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    token = replayed.viewers.rsplit("/", 2)[1]
    for path in (
        "/",
        "",
        f"/{token[:-1]}/",
        f"/{token}x/",
        f"/{'a' * 32}/",
        "/static/",
        f"/{token}",
        f"/{token}/serve.html/",
        f"/{token}/../../etc/passwd",
        f"/{token}/%2e%2e%2fetc",
        f"/{token}/download/x",
        f"/{token}/viewer.py",
        f"/{token}/images",
        "/ws",
    ):
        assert (await status(replayed.origin + path))[0] == 404, path


async def test_garbage_is_answered_and_leaves_no_traceback(serve: Start) -> None:
    served = serve("replay", "demo")
    host, _, port = served.origin.removeprefix("http://").partition(":")
    for data in (b"GET / HTTP/9.9", b"\x16\x03\x01\x02", b"GET /\xff HTTP/1.1", b"GET / HTTP/1.1"):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(data + b"\r\n\r\n")
        assert b" 400 " in await asyncio.wait_for(reader.readline(), 30)
        writer.close()
    assert (await status(served.viewers))[0] == 200
    code, told = served.end()
    assert code == 0 and all(line.startswith("iopstui: ") for line in told.splitlines())


async def test_pages_load_nothing_from_other_hosts(replayed: Served) -> None:
    for name in ("", "serve.js", "serve.css", "xterm.css"):
        code, text, _ = await status(replayed.viewers + name)
        assert code == 200 and not re.findall(r"(?:src|href|url)\W+https?:", text)
    for name in ("textual.js", "font.ttf"):
        assert (await status(replayed.viewers + name))[0] == 200


@pytest.mark.parametrize("origin", ["", "http://evil", "null"])
async def test_a_page_of_another_site_gets_no_screen(replayed: Served, origin: str) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with opened(replayed.viewers, Origin=origin):
            pass
    assert refused.value.status == 403


@pytest.mark.parametrize("size", ["", "?width=x&height=3", "?width=80"])
async def test_a_page_without_a_size_gets_no_screen(replayed: Served, size: str) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with opened(replayed.viewers, size):
            pass
    assert refused.value.status == 400


# -- viewers


async def test_a_viewer_has_no_rights(replayed: Served) -> None:
    async with opened(replayed.viewers) as page:
        await page.until("REPLAY 0:0")
        (host,) = psutil.Process(replayed.process.pid).children()
        (viewer,) = host.children()
        told = Path(f"/proc/{viewer.pid}/status").read_text()
        assert "NoNewPrivs:\t1" in told
        if os.geteuid() == 0:
            assert 0 not in (*viewer.uids(), *viewer.gids())
            # at most to read Python's files, if those are only root's
            assert re.search("CapEff:\t000000000000000[04]\n", told)
        assert viewer.nice() == 19 and len(viewer.cpu_affinity()) == 1
        limits = Path(f"/proc/{viewer.pid}/limits").read_text()
        assert re.search(r"Max file size +0 +0 ", limits)
        # none of the server's connections
        assert not sockets(viewer.pid) & sockets(replayed.process.pid)
    assert gone([viewer])


async def test_two_viewers_look_at_different_moments(replayed: Served) -> None:
    async with (
        opened(replayed.viewers) as one,
        opened(replayed.viewers, "?width=80&height=24") as two,
    ):
        await one.until("REPLAY 0:0")
        await two.until("REPLAY 0:0")
        await one.press(" ")
        await one.until("paused")
        await two.press(f"{ESC}[F")
        await two.until("again")
        assert "paused" not in two.text and "again" not in one.text.split("paused")[-1]


async def test_no_key_of_a_viewer_writes_a_file(serve: Start, idle_dir: Path) -> None:
    served = serve("replay", "demo", cwd=idle_dir)
    async with opened(served.viewers) as page:
        await page.until("REPLAY 0:0")
        for key in "SHR":
            await page.press(key)
        await page.until(NOT_HERE)
        for key in (*string.printable.replace("q", ""), f"{ESC}[A", f"{ESC}[B", f"{ESC}OP", "\x10"):
            await page.press(key)
            await page.press(ESC)
            await asyncio.sleep(0.02)
        await page.send("resize", {"width": 90, "height": 30})
        await page.press(ESC)
        # it is still there
        await page.press("q")
        await page.closed()
    # keys that would write were refused, and nothing has ended it before its last key
    assert "Screen saved" not in page.text and "Report" not in page.text
    assert list(idle_dir.iterdir()) == []


async def test_more_viewers_than_allowed(serve: Start) -> None:
    served = serve("--viewers", "1", "replay", "demo")
    async with opened(served.viewers) as page:
        await page.until("REPLAY 0:0")
        code, text, _ = await status(served.viewers)
        assert code == 503 and "As many viewers as allowed" in text
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with opened(served.viewers):
                pass
        assert refused.value.status == 503
    for _ in range(100):
        if (await status(served.viewers))[0] == 200:
            break
        await asyncio.sleep(0.1)
    async with opened(served.viewers) as page:
        await page.until("REPLAY 0:0")
    code, told = served.end()
    assert code == 0 and "up to 1 viewers" in told


async def test_a_viewer_that_ends_leaves_the_others(replayed: Served) -> None:
    async with opened(replayed.viewers) as one, opened(replayed.viewers) as two:
        await one.until("REPLAY 0:0")
        await two.until("REPLAY 0:0")
        await one.press("q")
        await one.closed()
        await two.press(" ")
        await two.until("paused")


async def test_a_message_that_no_page_sends_closes_it(replayed: Served) -> None:
    async with opened(replayed.viewers) as page:
        await page.until("REPLAY 0:0")
        await page.send("deliver_chunk_request", {"key": "x", "size": 1 << 30})
        await page.closed()


# -- live


async def test_viewers_follow_the_presenter_and_change_nothing(
    serve: Start, tmp_path: Path, idle_dir: Path
) -> None:
    recording = tmp_path / "kept.iops"
    served = serve("live", ".", "--record", str(recording), cwd=idle_dir, pages=2)
    presenter, viewers = served.addresses
    assert "presenter (only on this machine)" in served.printed
    async with opened(presenter) as shown:
        await shown.until("iodepth")
        for _ in range(100):
            if 'class="textual-terminal"' in (await status(viewers))[1]:
                break
            await asyncio.sleep(0.1)
        async with opened(viewers) as page:
            await page.until("FOLLOW 0:0")
            for key in "rkwcmap[]":
                await page.press(key)
                await page.press(ESC)
            await page.until("cannot run jobs or change anything")
            assert not [one for one in served.below() if one.name() == "fio"]
            # a presenter's keys that would write files are refused, and not offered
            assert "record" not in shown.text
            await shown.press("R")
            await shown.until(NOT_HERE)
            await shown.press("d")
            await shown.until("viewers follow this target")
            # the presenter's page is opened again: the newest one has the screen
            async with opened(presenter, "?width=100&height=30") as again:
                await again.until("iodepth")
                # the older one's keys are not the presenter's any more
                with contextlib.suppress(ConnectionError):
                    await shown.press("q")
                await page.until("FOLLOW 0:0")
                await again.press("q")
                await again.closed()
            await page.closed()
    assert served.process.wait(20) == 0
    with Recording(recording) as recorded:
        assert recorded.index().has_end_marker and recorded.index().samples >= 2
    assert list(idle_dir.iterdir()) == []


async def test_a_signal_ends_it_for_everybody(serve: Start, idle_dir: Path) -> None:
    served = serve("live", ".", "--job", "randread-4k", "--size", "1m", cwd=idle_dir, pages=2)
    async with opened(served.addresses[0]) as shown:
        await shown.until("randread-4k")
        below = served.below()
        assert len(below) >= 2
        served.process.send_signal(signal.SIGINT)
        await shown.closed()
    assert served.process.wait(30) == 130
    assert gone(below) and list(idle_dir.iterdir()) == []


async def test_a_killed_server_leaves_nothing_running(serve: Start, idle_dir: Path) -> None:
    served = serve("live", ".", "--job", "randread-4k", "--size", "1m", cwd=idle_dir, pages=2)
    async with opened(served.addresses[0]) as shown:
        await shown.until("randread-4k")
        for _ in range(100):
            if any(one.name() == "fio" for one in served.below()):
                break
            await asyncio.sleep(0.1)
        below = served.below()
        served.process.kill()
        assert gone(below)
    # the presenter's screen has removed the scratch file
    for _ in range(100):
        if not list(idle_dir.iterdir()):
            break
        time.sleep(0.1)
    assert list(idle_dir.iterdir()) == []


def test_a_target_that_is_not_there_ends_it(serve: Start, idle_dir: Path) -> None:
    served = serve("live", "/dev/nosuchdisk", cwd=idle_dir, pages=2)
    assert served.process.stderr is not None
    told = served.process.stderr.read()
    assert served.process.wait(20) == 2 and "/dev/nosuchdisk does not exist" in told
