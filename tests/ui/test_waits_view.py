"""The bar in the device panel and the page that say where the I/Os in flight are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from session_frames import whole_frames
from test_app import WIDE, make, running, settle, shows

from iopstui.events import FrameReady
from iopstui.model.metrics.waits import Waits
from iopstui.model.network.connections import Connection
from iopstui.ui.dashboard.pages import connections_view, waits_view
from iopstui.ui.dashboard.panels import waits_bar
from iopstui.ui.draw.rows import Row
from iopstui.ui.draw.style import ASCII, DEVICE, P99, UTF8, WARNING, Charset
from iopstui.ui.state.live import LiveState

LIMITED = Waits(32.0, 0.1, 30.9, {"dm-0": 0.0, "vda": 1.0}, None, None, 0.0)


def text(row: Row | None) -> str:
    assert row is not None
    return "".join(piece for piece, _ in row)


def shown(waits: Waits | None, width: int = 120, charset: Charset = UTF8) -> str:
    state = LiveState(devices=("vda",))
    history = []
    for frame in whole_frames("3.42-p-both")[:4]:
        one = replace(frame, waits=waits)
        history.append(one)
        state.apply(FrameReady(one.t, one))
    found = [text(row) for row in waits_view.rows(state, history, width, charset)]
    assert {cell_len(line) for line in found} == {width}
    return "\n".join(line.rstrip() for line in found)


def test_the_bar_names_every_place_with_its_number() -> None:
    words = text(waits_bar.line(LIMITED, 120, UTF8))
    assert words.startswith("In flight 32.0  █")
    assert words.rstrip().endswith("CPU  0.1 · above 30.9 · dm-0  0.0 · vda  1.0")


def test_cells_of_the_bar_are_shares() -> None:
    row = waits_bar.line(LIMITED, 120, UTF8)
    assert row is not None
    cells = [(piece, style) for piece, style in row if set(piece) <= {"█", "▒"}]
    # two places are told apart by their signs, too
    assert cells == [("█" * 29, P99), ("▒", DEVICE)]


@given(
    st.integers(40, 250),
    st.sampled_from([UTF8, ASCII]),
    st.floats(0.0, 5000.0),
    st.floats(0.0, 5000.0),
    st.lists(st.floats(0.0, 5000.0), min_size=1, max_size=6),
)
def test_it_fits_every_width(
    width: int, charset: Charset, cpu: float, above: float, layers: list[float]
) -> None:
    held = {f"dm-{number}": value for number, value in enumerate(layers)}
    waits = Waits(cpu + above + sum(layers), cpu, above, held, None, None, 0.0)
    row = waits_bar.line(waits, width, charset)
    if waits.ios < 0.05:
        assert row is None
    else:
        assert cell_len(text(row)) == width
        signs = {charset.full, "=" if charset is ASCII else "▒"}
        sizes = [len(piece) for piece, _ in row or () if set(piece) <= signs]
        wanted = next((size for least, size in waits_bar.BARS if width >= least), 0)
        assert sum(sizes) == wanted


def test_the_largest_place_is_never_left_out_of_a_narrow_row() -> None:
    held = {f"mapper-{number}": float(number) for number in range(12)}
    row = waits_bar.line(Waits(66.0, 0.0, 0.0, held, None, None, 0.0), 44, UTF8)
    assert "mapper-11 11.0" in text(row) and "mapper-1 " not in text(row)


def test_nothing_in_flight_or_nothing_known_is_no_row() -> None:
    assert waits_bar.line(None, 120, UTF8) is None
    assert waits_bar.line(replace(LIMITED, ios=0.0), 120, UTF8) is None
    assert waits_view.NO_IO in shown(None)


def test_what_no_counter_explains_is_shown_as_unknown() -> None:
    waits = Waits(8.0, 0.5, None, {}, None, None, 7.5)
    assert "above    – · unknown  7.5" in text(waits_bar.line(waits, 120, UTF8))
    assert "no counter shows where" in shown(waits)


def test_a_stalled_device_is_called_so() -> None:
    waits = Waits(16.0, None, None, {"vda": 16.0}, None, None, 0.0, stalled=True)
    assert "stalled" in text(waits_bar.line(waits, 120, UTF8))


@pytest.mark.parametrize("width", [60, 80, 120, 250])
@pytest.mark.parametrize("charset", [UTF8, ASCII])
def test_the_page_has_now_share_and_mean_of_each_place(width: int, charset: Charset) -> None:
    words = shown(LIMITED, width, charset)
    table = words.partition("PLACE")[2].splitlines()
    rows = {line.split()[0]: line.split()[1:5] for line in reversed(table) if line.split()}
    assert rows["above"][:2] == ["30.9", "97"] and rows["above"][3] == "30.9"
    assert rows["total"][:2] == ["32.0", "100"] and rows["total"][3] == "32.0"


def test_the_probe_divides_the_lowest_device() -> None:
    words = shown(replace(LIMITED, queue=0.3, device=0.7))
    assert "In the lowest device" in words and "queue" in words and "0.7" in words
    assert "In the lowest device" not in shown(LIMITED)


async def test_a_key_opens_the_page_over_the_dashboard() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        assert shows(app, "In flight")
        await pilot.press("W")
        await settle(pilot)
        assert shows(app, "Where the I/Os wait") and shows(app, "Little's law")
        await pilot.press("W")
        await settle(pilot)
        assert not shows(app, "Little's law")


def test_connections_stand_below_the_places() -> None:
    one = Connection("10.9.0.2:2049", 871, "NFS", 1.0, 0.25, 0.04, 0.2, 3, 200, 5e6, 1e3, 90_000, 7,
                     50, 4, 10, 75.0, 25.0, 0.0)  # fmt: skip
    found = connections_view.rows((one,) * 20, 120, UTF8)
    text = ["".join(piece for piece, _ in row).rstrip() for row in found]
    assert text[2].split() == ["server,", "local", "port", "RTT", "min", "retrans", "sent", "MB/s",
                               "recv", "MB/s", "queue", "cwnd", "window"]  # fmt: skip
    assert text[3].split() == ["10.9.0.2:2049", "NFS", ":871", "250µs", "200µs", "3", "4.77",
                               "0.00", "87.9", "KiB", "10", "25", "%"]  # fmt: skip
    assert "and 4 more" in "".join(text)
    assert [piece.strip() for piece, style in found[3] if style == WARNING] == ["3"]
    assert connections_view.rows((), 80, UTF8) == [] == connections_view.rows(None, 80, UTF8)
    for width in (60, 80, 100):
        rows = connections_view.rows((one,), width, UTF8)
        assert {sum(map(len, (piece for piece, _ in row))) for row in rows} == {width}
