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
    async with chromium() as one:
        yield one


@pytest.fixture
def live(serve: Start, tmp_path: Path) -> Served:
    place = tmp_path / "work"
    place.mkdir()
    return serve("live", ".", *JOB, cwd=place, pages=2)


async def shown(browser: Browser, address: str, size: tuple[int, int] = DESKTOP) -> Tab:
    tab = await browser.tab()
    await tab.open(address, size)
    await tab.until(b"IOPS", 40)
    return tab


def words(tab: Tab) -> str:
    text = tab.painted.decode("utf-8", "replace")
    return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text)


async def picture(tab: Tab, name: str) -> bytes:
    data = await tab.screenshot()
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"serve-{name}.png").write_bytes(data)
    return data


async def fio_runs(live: Served) -> None:
    """Wait until it does; one fio lays out the file, the next one measures."""
    for _ in range(300):
        if any(one.name() == "fio" for one in live.below()):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("fio does not run")


async def test_presenter_viewers_and_a_phone(live: Served, browser: Browser) -> None:
    presenter, viewers = live.addresses
    tab = await shown(browser, presenter)
    first = await shown(browser, viewers)
    second = await shown(browser, viewers)
    phone = await shown(browser, viewers, PHONE)
    for one in (tab, first, second, phone):
        assert await one.evaluate("document.body.className") == "-loaded -first-byte"
        # nothing comes from another host
        assert {request.split("/")[2] for request in one.requested} == {live.origin.split("/")[2]}

    # figures change: other seconds, and another picture
    before = await picture(first, "viewer")
    seconds = set(re.findall(r"FOLLOW (\d:\d\d)", words(first)))
    await asyncio.sleep(4)
    assert len(set(re.findall(r"FOLLOW (\d:\d\d)", words(first)))) > len(seconds)
    assert await picture(first, "viewer-later") != before

    # a viewer's keys change nothing: fio is the same process with the same job
    jobs = [one.pid for one in live.below() if one.name() == "fio"]
    assert jobs
    await first.focus()
    await first.press("r][}{bkcwmaRHSd")
    for _ in range(200):
        if "cannot run jobs or change anything" in words(first):
            break
        await asyncio.sleep(0.1)
    else:
        raise AssertionError("the keys were not refused")
    assert [one.pid for one in live.below() if one.name() == "fio"] == jobs

    # one viewer pauses, the other goes on
    await second.focus()
    await second.press(" ")
    await second.until(b"paused")
    assert "paused" not in words(phone)

    # 80 columns and more fit on a phone, and nothing has to be scrolled sideways
    columns = await phone.evaluate(
        "Math.floor(document.querySelector('.xterm-screen').clientWidth / "
        "(document.getElementById('terminal').dataset.fontSize * 0.6))"
    )
    assert columns >= 79
    assert await phone.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # it has no keyboard: buttons open panels
    assert (
        await phone.evaluate("getComputedStyle(document.getElementById('keys')).display") == "flex"
    )
    assert await tab.evaluate("getComputedStyle(document.getElementById('keys')).display") == "none"
    assert "p99.9" not in words(phone)
    await phone.evaluate("document.querySelectorAll('#keys button')[1].click()")
    await phone.until(b"p99.9")
    await picture(phone, "phone")
    await picture(tab, "presenter")

    # a second tab of the presenter takes over, the first one says so
    again = await shown(browser, presenter)
    await again.focus()
    await again.press("]")
    await again.until(b"iodepth")
    await tab.focus()
    await tab.press("x")
    for _ in range(100):
        if "-closed" in await tab.evaluate("document.body.className"):
            break
        await asyncio.sleep(0.1)
    assert (
        await tab.evaluate("getComputedStyle(document.querySelector('.ended')).display") == "block"
    )

    # the presenter quits: it ends for everybody
    below = live.below()
    await again.press("q")
    for one in (first, second, phone):
        for _ in range(200):
            if "-closed" in await one.evaluate("document.body.className"):
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError("a viewer's page was not closed")
    await picture(first, "ended")
    assert live.process.wait(30) == 0
    assert not psutil.wait_procs(below, timeout=20)[1]


async def test_a_page_that_is_not_allowed_connects_to_nothing(
    live: Served, browser: Browser
) -> None:
    """A page of another site in the same browser, as that of an attacker would be."""
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
    tab = await shown(browser, live.addresses[0])
    await fio_runs(live)
    tab.painted = b""
    await tab.call("Page.reload")
    await tab.until(b"IOPS")
    await picture(tab, "reloaded")
    await fio_runs(live)
