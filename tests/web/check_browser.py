"""`iopstui serve` in a real browser (make web; needs chromium). Not part of `make test`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from browser import DESKTOP, PHONE, Browser, Tab, chromium
from served_pages import Served, Start

pytestmark = pytest.mark.asyncio
PICTURES = Path(__file__).resolve().parents[2] / "build"
JOB = ("--job", "randread-4k", "--size", "64m", "--set", "runtime=60")


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as chromium_browser:
        yield chromium_browser


@pytest.fixture
def live(serve: Start, tmp_path: Path) -> Served:
    place = tmp_path / "work"
    place.mkdir()
    return serve("live", ".", *JOB, cwd=place, pages=2)


async def open_page(browser: Browser, address: str, size: tuple[int, int] = DESKTOP) -> Tab:
    tab = await browser.tab()
    await tab.open(address, size)
    await tab.wait_for_text(b"IOPS", 40)
    return tab


def page_text(tab: Tab) -> str:
    text = tab.painted.decode("utf-8", "replace")
    return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text)


async def picture(tab: Tab, name: str) -> bytes:
    data = await tab.screenshot()
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"serve-{name}.png").write_bytes(data)
    return data


async def wait_for_fio(live: Served) -> None:
    """Wait until fio runs; the first one lays out the file, the next one measures."""
    for _ in range(300):
        if live.fio_processes():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("fio does not run")


async def test_presenter_viewers_and_a_phone(live: Served, browser: Browser) -> None:
    presenter, viewers = live.addresses
    tab = await open_page(browser, presenter)
    first = await open_page(browser, viewers)
    second = await open_page(browser, viewers)
    phone = await open_page(browser, viewers, PHONE)
    for page in (tab, first, second, phone):
        assert await page.evaluate("document.body.className") == "-loaded -first-byte"
        # all requests go to this server
        assert {request.split("/")[2] for request in page.requested} == {live.origin.split("/")[2]}

    # figures change: other seconds, and another picture
    before = await picture(first, "viewer")
    seconds = set(re.findall(r"FOLLOW (\d:\d\d)", page_text(first)))
    await asyncio.sleep(4)
    assert len(set(re.findall(r"FOLLOW (\d:\d\d)", page_text(first)))) > len(seconds)
    assert await picture(first, "viewer-later") != before

    # a viewer's keys change nothing: the same fio process keeps running
    jobs = [process.pid for process in live.fio_processes()]
    assert jobs
    await first.focus()
    await first.press("r][}{bkcwmaRHSd")
    for _ in range(200):
        if "cannot run jobs or change anything" in page_text(first):
            break
        await asyncio.sleep(0.1)
    else:
        raise AssertionError("the keys were not refused")
    assert [process.pid for process in live.fio_processes()] == jobs

    # one viewer pauses, the other goes on
    await second.focus()
    await second.press(" ")
    await second.wait_for_text(b"paused")
    assert "paused" not in page_text(phone)

    # a phone shows at least 80 columns, without horizontal scrolling
    columns = await phone.evaluate(
        "Math.floor(document.querySelector('.xterm-screen').clientWidth / "
        "(document.getElementById('terminal').dataset.fontSize * 0.6))"
    )
    assert columns >= 79
    assert await phone.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # a phone has no keyboard, so buttons open panels
    assert (
        await phone.evaluate("getComputedStyle(document.getElementById('keys')).display") == "flex"
    )
    assert await tab.evaluate("getComputedStyle(document.getElementById('keys')).display") == "none"
    assert "p99.9" not in page_text(phone)
    await phone.evaluate("document.querySelectorAll('#keys button')[1].click()")
    await phone.wait_for_text(b"p99.9")
    await picture(phone, "phone")
    await picture(tab, "presenter")

    # a second tab of the presenter takes over, and the first one reports it
    second_tab = await open_page(browser, presenter)
    await second_tab.focus()
    await second_tab.press("]")
    await second_tab.wait_for_text(b"iodepth")
    await tab.focus()
    await tab.press("x")
    for _ in range(100):
        if "-closed" in await tab.evaluate("document.body.className"):
            break
        await asyncio.sleep(0.1)
    assert (
        await tab.evaluate("getComputedStyle(document.querySelector('.ended')).display") == "block"
    )

    # the presenter quits: all pages close
    below = live.child_processes()
    await second_tab.press("q")
    for page in (first, second, phone):
        for _ in range(200):
            if "-closed" in await page.evaluate("document.body.className"):
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError("a viewer's page was not closed")
    await picture(first, "ended")
    assert live.process.wait(30) == 0
    assert not psutil.wait_procs(below, timeout=20)[1]


async def test_a_page_of_another_site_cannot_connect(live: Served, browser: Browser) -> None:
    """A page of another site in the same browser, as an attacker would use."""
    tab = await browser.tab()
    await tab.open("data:text/html,<title>evil</title>")
    address = live.addresses[0].replace("http:", "ws:") + "ws?width=80&height=24"
    await tab.evaluate(f"window.s = new WebSocket({address!r}); s.onclose = () => s.gone = 1")
    for _ in range(100):
        if await tab.evaluate("window.s.gone") == 1:
            break
        await asyncio.sleep(0.1)
    assert await tab.evaluate("[s.gone, s.readyState].join()") == "1,3" and not tab.painted


async def test_a_page_can_be_reloaded(live: Served, browser: Browser) -> None:
    tab = await open_page(browser, live.addresses[0])
    await wait_for_fio(live)
    tab.painted = b""
    await tab.call("Page.reload")
    await tab.wait_for_text(b"IOPS")
    await picture(tab, "reloaded")
    await wait_for_fio(live)
