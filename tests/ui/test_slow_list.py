"""The list of the slowest requests, and one of them as a timeline."""

from __future__ import annotations

from dataclasses import replace

import pytest
import ui_fakes as fakes
from rich.cells import cell_len
from slow_requests import exemplar
from test_app import do, make, running, screen_text, settle, wait_until
from textual.widgets import DataTable

from iopstui.model.metrics.probe import LATENCY, ProbeInterval
from iopstui.model.samples import Exemplar
from iopstui.ui.core.modal import KeyLine
from iopstui.ui.dashboard.pages.slow_view import timeline
from iopstui.ui.dialogs.slow_list import LiveRows, SlowList
from iopstui.ui.draw.style import ASCII, UTF8, Charset

READ_NS = 10**12


def kept(second: int = 0) -> tuple[Exemplar, ...]:
    """Ten slow reads of a backup, ten random ones of others, and a flush."""
    slow = [
        exemplar((30 - n) * 10**6, READ_NS - 25 * n * 10**6, comm="backup", pid=900 + second,
                 hctx=n % 2, sector=8 * n)
        for n in range(10)
    ]  # fmt: skip
    random = [
        exemplar(200_000 + n, READ_NS - 25 * n * 10**6, slow=False, sampled=True, pid=n)
        for n in range(10)
    ]
    flush = exemplar(25 * 10**6, READ_NS, kind="flush", flags="FF", sector=None, offset=None,
                     size=0, comm="sync", pid=5)  # fmt: skip
    return (*slow, *random, flush)


def probe(*exemplars: Exemplar) -> ProbeInterval:
    return ProbeInterval(
        1.0, 0.0, (LATENCY,), {}, {}, (), None, None, 0, 0, 0, None, None, exemplars, READ_NS,
    )  # fmt: skip


def tick(fake: fakes.FakeController, interval: ProbeInterval) -> None:
    fake.second += 1
    fake_frame = fakes.frame(fake.second, fakes.interval(fake.second, 60, True, True), frozenset(),
                             fake.target.tree, fake.cpus)  # fmt: skip
    fake.push(replace(fake_frame, step=max(1, fake.step), probe=interval))


def column(page: SlowList, title: str) -> list[str]:
    table = page.query_one(DataTable)
    return [str(table.get_cell_at((row, place))) for row in range(table.row_count)
            for place, key in enumerate(table.columns) if key.value == title]  # fmt: skip


async def test_the_slowest_requests_of_a_second_are_listed_sorted_and_opened() -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot, 3)
        tick(fake, probe(*kept()))
        await settle(pilot)
        await do(pilot, "users", 3)
        await settle(pilot)
        page = app.screen
        assert isinstance(page, SlowList)
        text = screen_text(app)
        assert "Slowest at 0:04" in text and "backup (900)" in text
        assert "10 of the 10 slowest reads were sent by backup (900)" in text
        assert column(page, "TOTAL")[:3] == ["30.0 ms", "29.0 ms", "28.0 ms"]
        assert column(page, "TIME")[0] == "0:04.000" and len(column(page, "TIME")) == 11
        # sorted by another column, and in reverse order
        await pilot.press("less_than_sign", *["greater_than_sign"] * 4)
        await settle(pilot)
        assert "sorted by PLUGGED" in screen_text(app)
        await pilot.press(*"/flush")
        await settle(pilot)
        assert column(page, "WHAT") == ["flush"] and column(page, "SECTOR") == ["–"]
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, LiveRows) and "flags FF" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen is page


async def test_the_dashes_of_a_column_with_values_are_explained() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 3)
        first, *others = kept()
        sent_back = replace(first, requeued_ns=(first.allocated_ns or 0) + 1000)
        tick(fake, probe(sent_back, *others))
        await settle(pilot)
        await do(pilot, "users", 3)
        await settle(pilot)
        assert "TRIED" in screen_text(app)
        assert "– in TRIED: never sent back by the driver." in screen_text(app)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_the_keys_stay_below_a_list_that_fills_the_screen(size: tuple[int, int]) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        fake = await running(app, pilot, 3)
        tick(fake, probe(*kept(1), *kept(2), *kept(3)))
        await settle(pilot)
        await do(pilot, "users", 3)
        await settle(pilot)
        keys = app.screen.query_one(KeyLine)
        box = app.screen.query_one(".modal-box")
        assert keys.region.bottom == box.content_region.bottom, "inside the box"
        assert "Slowest at 0:04" in screen_text(app) and "Esc Close" in screen_text(app)


@pytest.mark.parametrize("width", [80, 120, 160])
async def test_a_request_is_listed_with_its_disk_where_there_are_several(width: int) -> None:
    app = make()
    async with app.run_test(size=(width, 36)) as pilot:
        fake = await running(app, pilot, 3)
        below = [replace(one, disk="vda", level=1) for one in kept()[:3]]
        tick(fake, probe(*(replace(one, disk="loop0") for one in kept()), *below))
        await settle(pilot)
        await do(pilot, "users", 3)
        await settle(pilot)
        page = app.screen
        assert isinstance(page, SlowList)
        assert column(page, "DISK")[:2] == ["loop0", "vda"], "the same request on both"
        assert "TOTAL" in screen_text(app) and "DEVICE" in screen_text(app)
        words = " ".join(screen_text(app).replace("│", " ").split())
        assert "An I/O that loop0 passes on to vda has a request on each" in words
        await pilot.press(*"/flush", "enter")
        await settle(pilot)
        assert "flush of loop0, flags FF" in screen_text(app)


@pytest.mark.parametrize("width", [80, 120, 160])
async def test_no_column_is_cut(width: int) -> None:
    app = make()
    async with app.run_test(size=(width, 36)) as pilot:
        fake = await running(app, pilot, 3)
        tick(fake, probe(*kept()))
        await settle(pilot)
        await do(pilot, "users", 3)
        await settle(pilot)
        table = app.screen.query_one(DataTable)
        assert 4 < len(table.columns) <= 15
        assert table.virtual_size.width <= table.size.width


async def test_the_list_stays_unchanged_and_goes_back_in_time_with_the_screen() -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot, 3)
        for second in range(3):
            tick(fake, probe(*kept(second)))
        await settle(pilot)
        await pilot.press("left")
        await do(pilot, "users", 3)
        await settle(pilot)
        assert isinstance(app.screen, SlowList) and "backup (901)" in screen_text(app)
        tick(fake, probe(*kept(7)))
        await settle(pilot)
        assert "backup (901)" in screen_text(app) and "backup (907)" not in screen_text(app)


async def test_a_second_without_requests_shows_the_last_second_with_some() -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot, 3)
        for interval in (probe(*kept(1)), probe(*kept(2)), probe()):
            tick(fake, interval)
        await settle(pilot)
        await do(pilot, "users", 3)
        await settle(pilot)
        text = screen_text(app)
        assert "Slowest at 0:05" in text and "backup (902)" in text


async def test_a_user_who_may_not_probe_is_not_told_to_press_p() -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot, 3)
        fake.no_probe = "The kernel refuses the programs."
        await do(pilot, "users", 3)
        await settle(pilot)
        text = screen_text(app)
        assert (
            "without the probe: The kernel refuses the programs." in text
            and "P switches" not in text
        )


async def test_an_empty_list_is_explained() -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot, 3)
        for interval, message in (
            (None, "P switches on the probe"),
            (probe(), "No request was completed"),
        ):
            if interval is not None:
                tick(fake, interval)
            await settle(pilot)
            await do(pilot, "users", 3)
            await settle(pilot)
            assert message in screen_text(app) and not isinstance(app.screen, SlowList)
            await pilot.press("escape")
            await wait_until(pilot, lambda: app.screen is app.dashboard)


def timeline_rows(request: Exemplar, width: int, charset: Charset = UTF8) -> list[str]:
    rows = timeline(request, kept(), "0:04.000", width, charset)
    texts = ["".join(text for text, _ in row) for row in rows]
    assert {cell_len(text) for text in texts} == {width}
    return [text.rstrip() for text in texts]


@pytest.mark.parametrize("width", [60, 80, 120, 250])
@pytest.mark.parametrize("charset", [UTF8, ASCII])
def test_a_timeline_fits_every_width(width: int, charset: Charset) -> None:
    text = "\n".join(timeline_rows(kept()[0], width, charset))
    assert "backup, process 900" in text and "median of 10 random" in text
    assert "flush sync" in text


def test_bars_match_the_times_of_the_request() -> None:
    request = exemplar(20 * 10**6, READ_NS, inserted_ns=READ_NS - 15 * 10**6,
                       issued_ns=READ_NS - 5 * 10**6)  # fmt: skip
    lines = timeline_rows(request, 102)
    bar = next(line for line in lines if line.startswith(" ░"))
    assert (bar.count("░"), bar.count("▒"), bar.count("█")) == (25, 50, 25)
    # a flush that began before the lane of 20 ms fills the whole lane
    lane = next(line for line in lines if line.startswith("flush sync"))
    assert lane[36:].strip("█░▒") == "" and len(lane) >= 100
    # the other random reads ended at least 25 ms earlier, so they are not shown beside it
    assert sum(line.startswith("read fio") for line in lines) == 1


def test_a_single_request_is_explained() -> None:
    request = exemplar(1000, allocated_ns=None, inserted_ns=None, error=10, group="", comm="")
    text = " ".join(
        "".join(part for part, _ in row) for row in timeline(request, [request], "0:01", 80, UTF8)
    )
    assert "No random requests" in text and "No other kept request" in text
    assert "it failed: status 10" in text and "sent by –" in text
