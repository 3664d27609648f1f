"""The bar in the device panel and the page that show where the I/Os in flight wait."""

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
from iopstui.model.network import Connection
from iopstui.ui.dashboard.pages import waits_view
from iopstui.ui.dashboard.panels import waits_bar
from iopstui.ui.draw.rows import Row
from iopstui.ui.draw.style import ASCII, DEVICE, P99, UTF8, WARNING, Charset
from iopstui.ui.state.live import LiveState

LIMITED = Waits(32.0, 0.1, 30.9, {"dm-0": 0.0, "vda": 1.0}, None, None, 0.0)


def text(row: Row | None) -> str:
    assert row is not None
    return "".join(part for part, _ in row)


def render(waits: Waits | None, width: int = 120, charset: Charset = UTF8) -> str:
    state = LiveState(devices=("vda",))
    history = []
    for frame in whole_frames("3.42-p-both")[:4]:
        with_waits = replace(frame, waits=waits)
        history.append(with_waits)
        state.apply(FrameReady(with_waits.t, with_waits))
    lines = [text(row) for row in waits_view.rows(state, history, width, charset)]
    assert {cell_len(line) for line in lines} == {width}
    return "\n".join(line.rstrip() for line in lines)


def test_the_bar_names_every_layer_with_its_number() -> None:
    bar = text(waits_bar.line(LIMITED, 120, UTF8))
    assert bar.startswith("In flight 32.0  █")
    assert bar.rstrip().endswith("CPU  0.1 · above 30.9 · dm-0  0.0 · vda  1.0")


def test_cells_of_the_bar_are_proportional() -> None:
    row = waits_bar.line(LIMITED, 120, UTF8)
    assert row is not None
    cells = [(part, style) for part, style in row if set(part) <= {"█", "▒"}]
    # two layers also differ in their characters
    assert cells == [("█" * 29, P99), ("▒", DEVICE)]


@given(
    st.integers(40, 250),
    st.sampled_from([UTF8, ASCII]),
    st.floats(0.0, 5000.0),
    st.floats(0.0, 5000.0),
    st.lists(st.floats(0.0, 5000.0), min_size=1, max_size=6),
)
def test_the_bar_fits_every_width(
    width: int, charset: Charset, cpu: float, above: float, layers: list[float]
) -> None:
    layer_ios = {f"dm-{number}": value for number, value in enumerate(layers)}
    waits = Waits(cpu + above + sum(layers), cpu, above, layer_ios, None, None, 0.0)
    row = waits_bar.line(waits, width, charset)
    if waits.ios < 0.05:
        assert row is None
    else:
        assert cell_len(text(row)) == width
        signs = {charset.full, "=" if charset is ASCII else "▒"}
        sizes = [len(part) for part, _ in row or () if set(part) <= signs]
        bar_width = next((size for least, size in waits_bar.BARS if width >= least), 0)
        assert sum(sizes) == bar_width


def test_the_largest_layer_is_never_dropped_from_a_narrow_row() -> None:
    layer_ios = {f"mapper-{number}": float(number) for number in range(12)}
    row = waits_bar.line(Waits(66.0, 0.0, 0.0, layer_ios, None, None, 0.0), 44, UTF8)
    assert "mapper-11 11.0" in text(row) and "mapper-1 " not in text(row)


def test_no_row_is_shown_without_ios_in_flight() -> None:
    assert waits_bar.line(None, 120, UTF8) is None
    assert waits_bar.line(replace(LIMITED, ios=0.0), 120, UTF8) is None
    assert waits_view.NO_IO in render(None)


def test_unexplained_ios_are_shown_as_unknown() -> None:
    waits = Waits(8.0, 0.5, None, {}, None, None, 7.5)
    bar = text(waits_bar.line(waits, 120, UTF8))
    assert "CPU  0.5 · unknown  7.5" in bar and "above" not in bar, "no dash without a reason"
    assert "no counter shows where" in render(waits)


def test_a_stalled_device_is_called_so() -> None:
    waits = Waits(16.0, None, None, {"vda": 16.0}, None, None, 0.0, stalled=True)
    assert "stalled" in text(waits_bar.line(waits, 120, UTF8))


@pytest.mark.parametrize("width", [60, 80, 120, 250])
@pytest.mark.parametrize("charset", [UTF8, ASCII])
def test_the_page_has_now_share_and_mean_of_each_layer(width: int, charset: Charset) -> None:
    page = render(LIMITED, width, charset)
    table = page.partition("PLACE")[2].splitlines()
    rows = {line.split()[0]: line.split()[1:5] for line in reversed(table) if line.split()}
    assert rows["above"][:2] == ["30.9", "97"] and rows["above"][3] == "30.9"
    assert rows["total"][:2] == ["32.0", "100"] and rows["total"][3] == "32.0"


def test_the_probe_divides_the_lowest_device() -> None:
    page = render(replace(LIMITED, queue=0.3, device=0.7))
    assert "In the lowest device" in page and "queue" in page and "0.7" in page
    assert "In the lowest device" not in render(LIMITED)


def test_a_part_unknown_in_some_seconds_has_a_mean_over_the_others() -> None:
    first, *others = whole_frames("3.42-p-both")[:4]
    unknown = replace(LIMITED, cpu=None, above=31.0)
    history = [replace(first, waits=unknown), *(replace(one, waits=LIMITED) for one in others)]
    state = LiveState()
    state.apply(FrameReady(history[-1].t, history[-1]))
    page = [text(row) for row in waits_view.rows(state, history, 120, UTF8)]
    head, cpu = (next(row for row in page if row.startswith(start)) for start in ("PLACE", "CPU"))
    assert "2s mean   last 3 s" in head and cpu.split()[1:5] == ["0.1", "0", "%", "0.1"]


def test_the_probe_s_parts_have_means_and_curves() -> None:
    page = render(replace(LIMITED, queue=0.3, device=0.7)).partition("In the lowest device")[2]
    row = next(line for line in page.splitlines() if line.startswith("device"))
    assert row.split()[:5] == ["device", "0.7", "2", "%", "0.7"] and len(row.split()) > 5


async def test_a_key_opens_the_page_over_the_dashboard() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        assert shows(app, "In flight")
        await pilot.press("o")
        await settle(pilot)
        assert shows(app, "[Waits]") and shows(app, "Little's law")
        await pilot.press("o")
        await settle(pilot)
        assert not shows(app, "Little's law")


def test_connections_are_listed_below_the_layers() -> None:
    connection = Connection("10.9.0.2:2049", 871, "NFS", 1.0, 0.25, 0.04, 0.2, 3, 200, 5e6, 1e3,
                            90_000, 7, 50, 4, 10, 75.0, 25.0, 0.0)  # fmt: skip
    table = waits_view.connection_rows((connection,) * 20, 120, UTF8)
    text = ["".join(part for part, _ in row).rstrip() for row in table]
    assert text[2].split() == ["server,", "local", "port", "RTT", "min", "retrans", "sent", "MB/s",
                               "recv", "MB/s", "queue", "cwnd", "window"]  # fmt: skip
    assert text[3].split() == ["10.9.0.2:2049", "NFS", ":871", "250µs", "200µs", "3", "4.77",
                               "0.00", "87.9", "KiB", "10", "25", "%"]  # fmt: skip
    assert "and 4 more" in "".join(text)
    assert [part.strip() for part, style in table[3] if style == WARNING] == ["3"]
    for connections in ((), None):
        assert waits_view.connection_rows(connections, 80, UTF8) == []
    for width in (60, 80, 100):
        rows = waits_view.connection_rows((connection,), width, UTF8)
        assert {sum(map(len, (part for part, _ in row))) for row in rows} == {width}
