"""`iopstui serve`: what pages can and cannot do."""

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
from served_pages import SIZE, Served, Start, open_page, status

from iopstui.recording.reader import Recording

NOT_HERE = "Not available in the browser"
ESC = "\x1b"
PACED_JOB = ("--job", "randread-4k", "--size", "1m", "--set", "thinktime=100ms",
             "--set", "thinktime_blocks=50")  # fmt: skip


@pytest.fixture(scope="module")
def replayed(serve: Start) -> Served:
    return serve("replay", "demo")


@pytest.fixture
def idle_dir(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


def have_ended(processes: list[psutil.Process]) -> bool:
    """Whether all processes end within some seconds."""
    return not psutil.wait_procs(processes, timeout=60)[1]


def sockets(pid: int) -> set[str]:
    links = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    return {link for link in links if link.startswith("socket")}


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


async def test_pages_load_nothing_from_other_hosts(replayed: Served) -> None:
    for name in ("", "serve.js", "serve.css", "xterm.css"):
        code, text, _ = await status(replayed.viewers + name)
        assert code == 200 and not re.findall(r"(?:src|href|url)\W+https?:", text)
    for name in ("textual.js", "font.ttf"):
        assert (await status(replayed.viewers + name))[0] == 200


@pytest.mark.parametrize("origin", ["", "http://evil", "null"])
async def test_a_page_of_another_site_gets_no_screen(replayed: Served, origin: str) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with open_page(replayed.viewers, Origin=origin):
            pass
    assert refused.value.status == 403


async def test_malformed_requests_are_refused_and_leave_no_file(
    serve: Start, tmp_path: Path
) -> None:
    served = serve("--viewers", "1", "replay", "demo", cwd=tmp_path)
    host, _, port = served.origin.removeprefix("http://").partition(":")
    for data in (b"GET / HTTP/9.9", b"\x16\x03\x01\x02", b"GET /\xff HTTP/1.1", b"GET / HTTP/1.1"):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(data + b"\r\n\r\n")
        assert b" 400 " in await asyncio.wait_for(reader.readline(), 30)
        writer.close()
    for origin in ("http://[", "http://[::1", "http://\u2100", "//[x]"):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with open_page(served.viewers, Origin=origin):
                pass
        assert refused.value.status in (400, 403)
    assert (await status(f"{served.viewers}ws{SIZE}", headers={"Origin": served.origin}))[0] == 400
    # none of the refused connections took the only viewer's place
    async with open_page(served.viewers) as page:
        await page.wait_for_text("REPLAY 0:")
        code, text, _ = await status(served.viewers)
        assert code == 503 and "As many viewers as allowed" in text
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with open_page(served.viewers):
                pass
        assert refused.value.status == 503
    for _ in range(600):
        if (await status(served.viewers))[0] == 200:
            break
        await asyncio.sleep(0.1)
    async with open_page(served.viewers) as page:
        await page.wait_for_text("REPLAY 0:")
    code, stderr = served.end()
    assert code == 0 and all(line.startswith("iopstui: ") for line in stderr.splitlines())
    assert "up to 1 viewers" in stderr and "internal error" not in stderr
    assert not list(Path(os.environ["XDG_STATE_HOME"]).rglob("crash-*"))


async def test_keys_do_not_change_the_size_of_a_page(replayed: Served) -> None:
    async with open_page(replayed.viewers) as page:
        await page.wait_for_text("REPLAY 0:")
        below = served_memory(replayed)
        await page.press(f"{ESC}[48;20000;20000;1;1t{ESC}[48;400;1000;1;1t")
        await page.press(" ")
        await page.wait_for_text("paused")
        assert served_memory(replayed) < below + (40 << 20)


def served_memory(served: Served) -> int:
    """The memory of the server's largest process."""
    return max(process.memory_info().rss for process in served.child_processes())


@pytest.mark.parametrize("size", ["", "?width=x&height=3", "?width=80"])
async def test_a_page_without_a_size_gets_no_screen(replayed: Served, size: str) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with open_page(replayed.viewers, size):
            pass
    assert refused.value.status == 400


# -- viewers


async def test_a_viewer_has_no_rights(replayed: Served) -> None:
    async with open_page(replayed.viewers) as page:
        await page.wait_for_text("REPLAY 0:")
        (host,) = psutil.Process(replayed.process.pid).children()
        # a viewer that was closed a moment ago may still be ending
        viewer = max(host.children(), key=lambda child: child.create_time())
        process_status = Path(f"/proc/{viewer.pid}/status").read_text()
        assert "NoNewPrivs:\t1" in process_status
        if os.geteuid() == 0:
            assert 0 not in (*viewer.uids(), *viewer.gids())
            # no capability, except that it may read Python's files if only root can
            assert re.search("CapEff:\t000000000000000[04]\n", process_status)
        assert viewer.nice() == 19 and len(viewer.cpu_affinity()) == 1
        limits = Path(f"/proc/{viewer.pid}/limits").read_text()
        assert re.search(r"Max file size +0 +0 ", limits)
        # the viewer has none of the server's connections
        assert not sockets(viewer.pid) & sockets(replayed.process.pid)
    assert have_ended([viewer])


async def test_two_viewers_look_at_different_seconds(replayed: Served) -> None:
    async with (
        open_page(replayed.viewers) as paused,
        open_page(replayed.viewers, "?width=80&height=24") as two,
    ):
        await paused.wait_for_text("REPLAY 0:")
        await two.wait_for_text("REPLAY 0:")
        await paused.press(" ")
        await paused.wait_for_text("paused")
        await two.press(f"{ESC}[F")
        await two.wait_for_text("again")
        assert "paused" not in two.text and "again" not in paused.text.split("paused")[-1]


async def test_no_key_of_a_viewer_writes_a_file(replayed: Served) -> None:
    directory = Path(psutil.Process(replayed.process.pid).cwd())
    async with open_page(replayed.viewers) as page:
        await page.wait_for_text("REPLAY 0:")
        for key in "SHR":
            await page.press(key)
        await page.wait_for_text(NOT_HERE)
        for key in (*string.printable.replace("q", ""), f"{ESC}[A", f"{ESC}[B", f"{ESC}OP", "\x10"):
            await page.press(key)
            await page.press(ESC)
            await asyncio.sleep(0.02)
        await page.send("resize", {"width": 90, "height": 30})
        await page.press(ESC)
        # the page still works
        await page.press("q")
        await page.wait_until_closed()
    # keys that write files were refused, and only the last key ended the page
    assert "Screen saved" not in page.text and "Report" not in page.text
    assert list(directory.iterdir()) == []


async def test_a_viewer_that_ends_does_not_disturb_the_others(replayed: Served) -> None:
    async with open_page(replayed.viewers) as staying, open_page(replayed.viewers) as two:
        await staying.wait_for_text("REPLAY 0:")
        await two.wait_for_text("REPLAY 0:")
        await staying.press("q")
        await staying.wait_until_closed()
        await two.press(" ")
        await two.wait_for_text("paused")


async def test_an_unknown_message_closes_the_page(replayed: Served) -> None:
    async with open_page(replayed.viewers) as page:
        await page.wait_for_text("REPLAY 0:")
        await page.send("deliver_chunk_request", {"key": "x", "size": 1 << 30})
        await page.wait_until_closed()


# -- live


async def test_viewers_follow_the_presenter_and_change_nothing(
    serve: Start, tmp_path: Path, idle_dir: Path
) -> None:
    recording = tmp_path / "kept.iops"
    served = serve("live", ".", "--record", str(recording), cwd=idle_dir, pages=2)
    presenter, viewers = served.addresses
    assert "presenter (only on this machine)" in served.printed
    async with open_page(presenter) as presenter_page:
        await presenter_page.wait_for_text("iodepth")
        for _ in range(600):
            if 'class="textual-terminal"' in (await status(viewers))[1]:
                break
            await asyncio.sleep(0.1)
        async with open_page(viewers) as page:
            await page.wait_for_text("FOLLOW 0:")
            for key in "rkwcmap[]":
                await page.press(key)
                await page.press(ESC)
            await page.wait_for_text("cannot run jobs or change anything")
            assert not served.fio_processes()
            # the presenter's keys for writing files are refused, and not offered
            assert "record" not in presenter_page.text
            await presenter_page.press("S")
            await presenter_page.wait_for_text(NOT_HERE)
            # the presenter's page is opened again: the newest page has the screen
            async with open_page(presenter, "?width=100&height=30") as new_page:
                await new_page.wait_for_text("iodepth")
                # keys of the older page no longer act
                with contextlib.suppress(ConnectionError):
                    await presenter_page.press("q")
                await page.wait_for_text("FOLLOW 0:")
                await new_page.press("q")
                await new_page.wait_until_closed()
            await page.wait_until_closed()
    assert served.process.wait(60) == 0
    with Recording(recording) as recorded:
        assert recorded.index().has_end_marker and recorded.index().samples >= 2
    assert list(idle_dir.iterdir()) == []


async def test_a_signal_ends_all_pages_though_one_does_not_read(
    serve: Start, idle_dir: Path
) -> None:
    served = serve("live", ".", *PACED_JOB, cwd=idle_dir, pages=2)
    async with open_page(served.addresses[0]) as page:
        await page.wait_for_text("randread-4k")
        async with open_page(served.viewers) as viewer:
            await viewer.wait_for_text("FOLLOW 0:")
            transport = page.socket._response.connection.transport  # type: ignore[union-attr]
            transport.pause_reading()
            for width in range(100, 300):
                await page.send("resize", {"width": width, "height": 120})
            below = served.child_processes()
            assert len(below) >= 2
            served.process.send_signal(signal.SIGINT)
            await viewer.wait_until_closed()
        assert await asyncio.to_thread(served.process.wait, 60) == 130
        assert have_ended(below) and list(idle_dir.iterdir()) == []


async def test_a_killed_server_leaves_nothing_running(serve: Start, idle_dir: Path) -> None:
    served = serve("live", ".", *PACED_JOB, cwd=idle_dir, pages=2)
    async with open_page(served.addresses[0]) as page:
        await page.wait_for_text("randread-4k")
        for _ in range(600):
            if served.fio_processes():
                break
            await asyncio.sleep(0.1)
        below = served.child_processes()
        served.process.kill()
        assert have_ended(below)
    # the presenter's screen has removed the scratch file
    for _ in range(600):
        if not list(idle_dir.iterdir()):
            break
        time.sleep(0.1)
    assert list(idle_dir.iterdir()) == []


def test_a_missing_target_ends_the_server(serve: Start, idle_dir: Path) -> None:
    served = serve("live", "/dev/nosuchdisk", cwd=idle_dir, pages=2)
    assert served.process.stderr is not None
    stderr = served.process.stderr.read()
    assert served.process.wait(60) == 2 and "/dev/nosuchdisk does not exist" in stderr
