from __future__ import annotations

import fcntl
import math
import os
import struct
import termios
from datetime import datetime, timedelta, timezone
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui import format as units
from iopstui.text import safe_text

positive = st.floats(0, 1e14)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (0.0, "0"), (7, "7"), (3.4, "3.40"), (0.004, "0.00"), (12.34, "12.3"),
     (7.0, "7.00"), (812.4, "812"), (999.4, "999"), (999.5, "1.00k"), (1234, "1.23k"),
     (45_600, "45.6k"), (99_950, "100k"), (999_499, "999k"), (999_500, "1.00M"),
     (1_020_000, "1.02M"), (2.5e9, "2.50G")],
)  # fmt: skip
def test_numbers(value: float | None, text: str) -> None:
    assert units.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 ns"), (812, "812 ns"), (999.6, "1.00 µs"), (45_300, "45.3 µs"),
     (1_290_000, "1.29 ms"), (999_499, "999 µs"), (999_500, "1.00 ms"), (2_100_000_000, "2.10 s"),
     (17_112_760_320, "17.1 s"), (1e12, "1000 s")],
)  # fmt: skip
def test_latencies(value: float | None, text: str) -> None:
    assert units.latency(value) == text


def test_milliseconds_are_latencies() -> None:
    assert units.milliseconds(0.45) == "450 µs"
    assert units.milliseconds(None) == "–"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (512, "512 B"), (4096, "4 KiB"), (1536, "1.5 KiB"),
     (256 << 30, "256 GiB"), (100 << 20, "100 MiB"), (1000, "0.98 KiB"), (5 << 60, "5 EiB")],
)  # fmt: skip
def test_sizes(value: float | None, text: str) -> None:
    assert units.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (125_829, "0.12"), (48.1 * 2**20, "48.1"), (482.1 * 2**20, "482"),
     (12_345 * 2**20, "12345"), (999.96 * 2**20, "1000"), (1, "0.00")],
)  # fmt: skip
def test_mib(value: float | None, text: str) -> None:
    assert units.mib(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (0.42, "0.4"), (9.94, "9.9"), (9.96, "10"), (99.6, "100")],
)
def test_percent(value: float | None, text: str) -> None:
    assert units.percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0:00"),
        (0.998, "0:01"),
        (59.6, "1:00"),
        (61, "1:01"),
        (3599.4, "59:59"),
        (3599.6, "1:00:00"),
        (6000, "1:40:00"),
    ],
)
def test_clock(value: float, text: str) -> None:
    assert units.clock(value) == text


@given(positive)
def test_texts_fit_their_columns(value: float) -> None:
    assert len(units.number(value)) <= 5
    assert len(units.latency(min(value, 9e13))) <= 7
    assert len(units.size(value)) <= 8
    assert len(units.mib(min(value, 1e11))) <= 5
    assert len(units.percent(min(value, 100))) <= 4


@given(st.floats(1, 1e14))
def test_numbers_are_rounded_to_half_a_digit(value: float) -> None:
    text = units.number(value)
    factor = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1], 1.0)
    rounded = float(text.rstrip("kMGT")) * factor
    assert math.isclose(rounded, value, rel_tol=0.0051)


@given(st.floats(1, 1e12))
def test_latencies_are_rounded_to_half_a_digit(value: float) -> None:
    number, unit = units.latency(value).split()
    factor = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert math.isclose(float(number) * factor, value, rel_tol=0.0051, abs_tol=0.51)


def test_narrow_columns_have_no_space_before_the_unit() -> None:
    assert units.latency(12_300, "") == "12.3µs" and units.latency(127, "") == "127ns"
    assert units.milliseconds(1.29, "") == "1.29ms"


def test_axis_labels_have_no_trailing_zeros() -> None:
    assert units.axis_latency(500_000) == "500 µs" and units.axis_number(2_500_000) == "2.5M"
    assert units.axis_number(50_000) == "50k" and units.axis_number(0) == "0"


@given(st.sets(st.integers(0, 300)))
def test_ranges_contain_exactly_the_numbers(numbers: set[int]) -> None:
    back: set[int] = set()
    for part in filter(None, units.ranges(numbers).split(",")):
        first, _, last = part.partition("-")
        back.update(range(int(first), int(last or first) + 1))
    assert back == numbers


def test_long_text_is_cut() -> None:
    assert units.cut("abcdef", 6) == "abcdef"
    assert units.cut("abcdefg", 6) == "abcde…"


@given(st.text(), st.sampled_from(["utf-8", "ascii", "latin-1", "no-such-encoding", None]))
def test_fitted_text_can_be_printed_and_keeps_its_width(text: str, encoding: str | None) -> None:
    text = safe_text(text)  # "\r\n" becomes one line end
    fitted = units.replace_unprintable(text, encoding)
    # in ASCII an arrow becomes two characters
    arrows = text.count("→") + text.count("←") if fitted != text else 0
    assert len(fitted) == len(text) + arrows
    if encoding is not None:
        fitted.encode("ascii" if encoding == "no-such-encoding" else encoding)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.001, "1 ms"), (0.9994, "999 ms"), (0.9996, "1 s"), (27.4, "27 s"),
        (59.6, "1 min"), (245, "4 min 5 s"),
        (3599.4, "59 min 59 s"), (3599.6, "1 h"), (3723, "1 h 2 min 3 s"), (-1, "0 s"),
    ],
)  # fmt: skip
def test_a_time_in_a_sentence_has_its_unit(seconds: float, text: str) -> None:
    assert units.duration(seconds) == text


def test_counts_have_singular_and_plural() -> None:
    assert [units.counted(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
    assert units.counted(2, "process", "processes") == "2 processes"


def test_an_arrow_in_ascii_has_a_shaft() -> None:
    assert units.replace_unprintable("IOPS 1 → 2", "ascii") == "IOPS 1 -> 2"
    assert units.replace_unprintable("IOPS 1 → 2", "utf-8") == "IOPS 1 → 2"


def test_every_sign_of_the_program_has_an_ascii_replacement(root: Path) -> None:
    source = "".join(path.read_text() for path in (root / "iopstui").rglob("*.py"))
    # blocks of bars and dots of charts are drawn only if the terminal has UTF-8
    drawn = {chr(code) for code in (*range(0x2580, 0x2590), *range(0x2800, 0x2900))}
    signs = {sign for sign in source if not sign.isascii() and not sign.isalpha()} - drawn
    assert (
        len(signs) > 20 and [s for s in signs if "?" in units.replace_unprintable(s, "ascii")] == []
    )


def test_signs_are_replaced_in_ascii() -> None:
    assert units.replace_unprintable("45.3 µs – 2 × 4… ä", "ascii") == "45.3 us - 2 x 4~ ?"
    assert units.replace_unprintable("45.3 µs –", "utf-8") == "45.3 µs –"


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_utc_times_can_be_parsed(ms: int) -> None:
    text = units.utc(float(ms))
    assert text is not None and len(text) == len("2026-03-01T12:00:00.250Z") and text[-1] == "Z"
    parsed = datetime.fromisoformat(text[:-1]).replace(tzinfo=timezone.utc)
    began = datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert parsed == units.utc_datetime(ms) == began + timedelta(milliseconds=ms)


def test_known_utc_times() -> None:
    assert units.utc(0.0) == "1970-01-01T00:00:00.000Z"
    assert units.utc(1772366400250.4) == "2026-03-01T12:00:00.250Z"


@pytest.mark.parametrize(
    "wall_ms", [nan, inf, -inf, 1e30, -1e30, -62_135_596_800_001.0, 253_402_300_800_000.0]
)
def test_impossible_times_have_no_utc_text(wall_ms: float) -> None:
    assert units.utc(wall_ms) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_difference_has_its_sign_and_eight_characters(percent: float) -> None:
    text = units.change(percent)
    assert len(text) <= 8 and text.endswith("%")
    if abs(percent) < 99999:
        assert float(text.removesuffix(" %")) == pytest.approx(percent, abs=0.51)
        assert text[0] in "+-"


def test_differences_are_rounded() -> None:
    assert [units.change(x) for x in (None, 0.0, -0.04, 12.34, -4.0, 1250.4)] == [
        "–", "+0.0 %", "+0.0 %", "+12.3 %", "-4.0 %", "+1250 %",
    ]  # fmt: skip


@pytest.mark.parametrize("text", [
    "  not seen: " + "percentiles of single requests; " * 4,
    # users copy names from the terminal
    "  " + "word " * 12 + "/dev/mapper/vg-data",
])  # fmt: skip
def test_a_sentence_is_broken_between_words_only_on_a_terminal(text: str, tmp_path: Path) -> None:
    main, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with open(terminal, "w", encoding="utf-8") as stream:
        units.print_sentence(text, stream)
        rows = os.read(main, 4096).decode().splitlines()
    os.close(main)
    assert len(rows) == 2 and max(map(len, rows)) <= 80 and rows[1].startswith("    ")
    assert " ".join(" ".join(rows).split()) == text.strip()
    with open(tmp_path / "file", "w+", encoding="utf-8") as stream:
        units.print_sentence(text, stream)
        assert stream.seek(0) == 0 and stream.read() == text + "\n"


def test_wide_characters_take_two_columns() -> None:
    assert [units.cells(text) for text in ("ab", "é", "数据", "e\u0301", "数a")] == [2, 1, 4, 1, 3]
    assert units.cut("数据库", 6) == "数据库" and units.cut("数据库", 5) == "数据…"
    assert units.cut("数据库", 4) == "数…" and units.cut("abc", 2) == "a…"
    assert units.left("数据", 6) == "数据  " and units.left("数据", 3) == "数据"
