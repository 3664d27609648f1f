from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from iopstui import format as f
from iopstui.tables import Column
from iopstui.ui.draw import layout
from iopstui.ui.draw.rows import Line, Row, Table, capital, fit, part, rule, wrap
from iopstui.ui.draw.style import ASCII, CONSOLE, UTF8, charset_for


def plain(row: Row) -> str:
    return "".join(text for text, _ in row)


@given(st.text(max_size=40), st.integers(1, 30))
def test_text_is_fitted_to_cells_not_characters(text: str, width: int) -> None:
    clean = "".join(c for c in text if c.isprintable())
    assert cell_len(fit(clean, width)) == width


@given(st.lists(st.text(alphabet="ab µ漢", max_size=12), max_size=8), st.integers(1, 60))
def test_a_line_has_exactly_the_required_width(parts: list[str], width: int) -> None:
    line = Line(width, UTF8)
    for text in parts:
        line.add(text)
    assert cell_len(plain(line.build())) == width


@given(
    st.lists(st.text(alphabet="ab⠒漢", max_size=6), max_size=6),
    st.integers(0, 30),
    st.integers(1, 20),
)
def test_a_part_of_a_row_equals_textual_s_crop(texts: list[str], begin: int, width: int) -> None:
    row = tuple((text, None) for text in texts)
    strip = Strip([Segment(text) for text in texts]).extend_cell_length(begin + width)
    cut = strip.crop(begin, begin + width)
    assert "".join(text for text, _ in part(row, begin, begin + width)) == cut.text


@pytest.mark.parametrize("width", [10, 20, 40, 80, 200])
def test_tables_fit_and_columns_do_not_move(width: int) -> None:
    columns = [Column("", f"c{i}", 5, f.number, read=lambda v: v, rank=i) for i in range(8)]
    table: Table[int] = Table(columns, 5, width, UTF8)
    small, large = plain(table.row("a", 1)), plain(table.row("a", 999_000))
    assert len(small) == len(large) == len(plain(table.header())) == width
    ends = [i for i, (c, d) in enumerate(zip(small, small[1:] + " ", strict=True)) if c != " " == d]
    assert all(large[end] != " " for end in ends)
    assert "c0" in table.titles


def test_titles_keep_their_note_only_if_it_fits() -> None:
    assert "note" in plain(rule(40, UTF8, ("title", None), right=(("note", None),)))
    assert "note" not in plain(rule(12, UTF8, ("title", None), right=(("note", None),)))


def test_text_is_wrapped_between_words() -> None:
    assert [plain(row).strip() for row in wrap(12, UTF8, "one two three four")] == [
        "one two", "three four",
    ]  # fmt: skip


def test_the_locale_and_the_console_choose_the_characters() -> None:
    assert charset_for({"LANG": "de_DE.UTF-8"}) is UTF8
    assert charset_for({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}) is ASCII
    assert charset_for({"LC_ALL": "de_DE@euro"}) is ASCII
    assert charset_for({"LC_ALL": "C.utf8"}) is UTF8
    assert charset_for({"LC_ALL": "C.UTF-8", "TERM": "linux"}) is CONSOLE
    assert charset_for({}) is UTF8


@given(st.text(max_size=30))
def test_ascii_text_is_ascii_and_has_the_same_length(text: str) -> None:
    ascii_text = ASCII.text(text)
    assert ascii_text.isascii() and len(ascii_text) == len(text)


@example(118, 32, 4, 8, 0, {}, 0, False)
@example(118, 40, 4, 8, 0, {"a": 5, "b": 9}, 2, False)
@given(
    st.integers(layout.MIN_WIDTH, 300), st.integers(layout.MIN_HEIGHT, 100),
    st.integers(0, 12), st.integers(0, 300), st.integers(0, 5),
    st.dictionaries(st.sampled_from("ab"), st.integers(2, 12)), st.integers(0, 3), st.booleans(),
)  # fmt: skip
def test_regions_stay_on_the_screen_and_do_not_overlap(
    width: int,
    height: int,
    disks: int,
    cpus: int,
    tab: int,
    more: dict[str, int],
    strip: int,
    users: bool,
) -> None:
    strip = strip if height - strip >= layout.MIN_HEIGHT else 0
    plan = layout.plan(width, height, disks, cpus, tab, strip, more, users=users)
    regions = [getattr(plan, name) for name in plan.__slots__]
    boxes = [
        box for box in (*regions, *plan.extra.values())
        if isinstance(box, layout.Box) and box.width and box.height
    ]  # fmt: skip
    assert set(plan.extra) == set(more)
    cells: set[tuple[int, int, int]] = set()
    for box in boxes:
        assert box.x >= 0 and box.y >= 0 and box.height > 0
        assert box.x + box.width <= width and box.y + box.height <= height
        for y in range(box.y, box.y + box.height):
            for x in range(box.x, box.x + box.width):
                assert (x, y, 0) not in cells
                cells.add((x, y, 0))
    assert plan.header.height in (1, 2) and plan.footer.height == 1
    assert plan.finding.height >= 1 and plan.message.height == 1
    if not plan.tabbed:
        assert min(plan.iops.height, plan.latency.height) >= 8
        assert plan.cpus.height >= 3


def test_an_arrow_in_ascii_is_not_confused_with_greater_than() -> None:
    # where columns are, the length stays the same
    assert ASCII.text("hctx 0 → CPU 1") == "hctx 0 ->CPU 1"
    assert ASCII.text("← →") == "< >"
    assert ASCII.sentence("IOPS 1 → 2") == "IOPS 1 -> 2" and UTF8.sentence("1 → 2") == "1 → 2"
    [row] = wrap(40, ASCII, "depth 1 → 2")
    assert "".join(text for text, _ in row) == " depth 1 -> 2".ljust(40)


def test_titles_start_with_a_capital_letter_except_fio() -> None:
    titles = [capital(title) for title in ("latency", "by CPU", "fio latency", "")]
    assert titles == ["Latency", "By CPU", "fio latency", ""]


def test_words_are_added_whole_or_not_at_all() -> None:
    text = "20.1 of 32.0 I/Os wait"
    for room in range(6, 30):
        row = Line(room, UTF8).add_words(text).build()
        added = "".join(piece for piece, _ in row).rstrip()
        assert cell_len(added) <= room
        assert added == text or (added.endswith("…") and text.startswith(f"{added[:-1]} ")), room
