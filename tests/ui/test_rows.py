from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from iopstui.ui import format as f
from iopstui.ui import layout
from iopstui.ui.rows import Column, Line, Row, Table, fit, rule, wrap
from iopstui.ui.style import ASCII, CONSOLE, UTF8, charset_for


def plain(row: Row) -> str:
    return "".join(text for text, _ in row)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (None, "·"), (3.21, "3.2"), (9.96, "10"), (812.4, "812"), (999.6, "1.00k"),
     (45_612, "45.6k"), (999_600, "1.00M"), (1_020_000, "1.02M")],
)  # fmt: skip
def test_counts(value: float | None, text: str) -> None:
    assert f.count(value) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [(None, "·"), (0, "0"), (127, "127ns"), (812_000, "812µs"), (999_600, "1.00ms"),
     (1_290_000, "1.29ms"), (12_300, "12.3µs"), (17_112_760_320, "17.1s"), (1.5e12, "1500s")],
)  # fmt: skip
def test_latencies(ns: float | None, text: str) -> None:
    assert f.latency(ns) == text


@given(st.floats(0, 1e15))
def test_numbers_never_outgrow_their_columns(value: float) -> None:
    assert len(f.count(value)) <= 5
    assert len(f.mebibytes(value)) <= 5
    assert len(f.latency(min(value, 9e12))) <= 6


@given(st.floats(1e-3, 9.9e14), st.floats(1, 10))
def test_larger_counts_never_read_smaller(value: float, factor: float) -> None:
    def number(text: str) -> float:
        unit = text[-1] if text[-1] in "kMGT" else " "
        return float(text.rstrip("kMGT").replace(">1", "1e9")) * 1000 ** " kMGT".index(unit)

    assert number(f.count(value * factor)) >= number(f.count(value)) * 0.999


def test_sizes_clocks_and_cpus() -> None:
    assert f.size(256 << 30) == "256 GiB" and f.size(1536) == "1.5 KiB"
    assert f.clock(12) == "00:12" and f.clock(3723) == "1:02:03"
    assert f.cpu_list((0, 1, 2, 5)) == "0-2,5"
    assert f.axis_latency(500_000) == "500 µs" and f.axis_count(2_500_000) == "2.5M"


@given(st.text(max_size=40), st.integers(1, 30))
def test_text_is_fitted_to_cells_not_characters(text: str, width: int) -> None:
    clean = "".join(c for c in text if c.isprintable())
    assert cell_len(fit(clean, width)) == width


@given(st.lists(st.text(alphabet="ab µ漢", max_size=12), max_size=8), st.integers(1, 60))
def test_a_line_is_exactly_as_wide_as_it_must_be(parts: list[str], width: int) -> None:
    line = Line(width, UTF8)
    for part in parts:
        line.add(part)
    assert cell_len(plain(line.done())) == width


@pytest.mark.parametrize("width", [10, 20, 40, 80, 200])
def test_tables_fit_and_no_number_moves_another(width: int) -> None:
    columns = [Column(f"c{i}", 6, lambda v: f.count(v), drop=i) for i in range(8)]
    table = Table(columns, 5, width, UTF8)
    small, large = plain(table.row("a", 1)), plain(table.row("a", 999_000))
    assert len(small) == len(large) == len(plain(table.header())) == width
    ends = [i for i, (c, d) in enumerate(zip(small, small[1:] + " ", strict=True)) if c != " " == d]
    assert all(large[end] != " " for end in ends)
    assert "c0" in table.titles


def test_titles_keep_their_note_only_where_it_fits() -> None:
    assert "note" in plain(rule(40, UTF8, ("title", None), right=(("note", None),)))
    assert "note" not in plain(rule(12, UTF8, ("title", None), right=(("note", None),)))


def test_words_are_broken_between_words() -> None:
    assert [plain(row).strip() for row in wrap(12, UTF8, "one two three four")] == [
        "one two", "three four",
    ]  # fmt: skip


def test_the_locale_and_the_console_decide_the_characters() -> None:
    assert charset_for({"LANG": "de_DE.UTF-8"}) is UTF8
    assert charset_for({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}) is ASCII
    assert charset_for({"LC_ALL": "de_DE@euro"}) is ASCII
    assert charset_for({"LC_ALL": "C.utf8"}) is UTF8
    assert charset_for({"LC_ALL": "C.UTF-8", "TERM": "linux"}) is CONSOLE
    assert charset_for({}) is UTF8


@given(st.text(max_size=30))
def test_ascii_is_ascii_and_as_long(text: str) -> None:
    found = ASCII.text(text)
    assert found.isascii() and len(found) == len(text)


@example(118, 32, 4, 8, 0)
@given(
    st.integers(layout.MIN_WIDTH, 300), st.integers(layout.MIN_HEIGHT, 100),
    st.integers(0, 12), st.integers(0, 300), st.integers(0, 3),
)  # fmt: skip
def test_regions_stay_on_the_screen_and_do_not_overlap(
    width: int, height: int, disks: int, cpus: int, tab: int
) -> None:
    plan = layout.plan(width, height, disks, cpus, tab)
    boxes = [
        box for name in plan.__slots__ if isinstance(box := getattr(plan, name), layout.Box)
        if box.width and box.height
    ]  # fmt: skip
    taken: set[tuple[int, int, int]] = set()
    for box in boxes:
        assert box.x >= 0 and box.y >= 0 and box.height > 0
        assert box.x + box.width <= width and box.y + box.height <= height
        for y in range(box.y, box.y + box.height):
            for x in range(box.x, box.x + box.width):
                assert (x, y, 0) not in taken
                taken.add((x, y, 0))
    assert plan.header.height == 2 and plan.footer.height == 1
    if not plan.tabbed:
        assert min(plan.iops.height, plan.latency.height) >= 8
        assert plan.cpus.height >= 3
