"""Format numbers and texts for people, within a fixed width.

The screen, tables, reports and sentences use the same formats. All give at most three significant
digits (exact figures are in JSON lines). An unknown value is a dash. ``replace_unprintable`` makes
a finished line printable if the locale is not UTF-8."""

from __future__ import annotations

import contextlib
import os
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from iopstui.text import safe_text, wrapped

if TYPE_CHECKING:
    from datetime import datetime

MISSING = "–"
_YEAR_1_S, _YEAR_10000_S = -62_135_596_800, 253_402_300_800

ASCII = {
    "µ": "u", "μ": "u", "×": "x", "→": ">", "←": "<", "·": ".", "…": "~", "─": "-", "│": "|",
    "█": "#", "░": ":", "▒": "%", "▓": "%", "━": "-", "┄": "-", "▾": "v", "–": "-", "—": "-",
    "≥": ">", "≤": "<", "●": "*", "“": '"', "”": '"', "’": "'", "‘": "'", "½": "/", "•": "*",
    "└": "`", "√": "V", "±": "~", "°": "'", "\xa0": " ", "┃": "!", "╌": "-", "⌀": "~", "▏": "_",
    "┌": "+", "┐": "+", "┘": "+", "╭": "+", "╮": "+", "╯": "+", "╰": "+", "■": "#", "▲": "!",
    "↑": "^", "↓": "v", "┈": ".", "›": ">", "▸": ">",
}  # fmt: skip
"""The replacements for our signs in a terminal that can't show them; each is one cell wide."""
_ASCII = str.maketrans(ASCII)


def number(value: float | None) -> str:
    """A count or a rate: 7 -> "7", 7.0 -> "7.00", 1234 -> "1.23k", 1020000 -> "1.02M"
    (factors of 1000)."""
    if value is None:
        return MISSING
    if value == 0 or (isinstance(value, int) and abs(value) < 1000):
        return str(int(value))
    text, unit = _scaled(value, 1000, ("", "k", "M", "G", "T", "P"))
    return text + unit


def or_dash(value: float | None, form: str = "{}") -> str:
    """A figure formatted by ``form``, or a dash if it is missing."""
    return MISSING if value is None else form.format(value)


def latency(ns: float | None, space: str = " ") -> str:
    """A time in nanoseconds: "812 ns", "45.3 µs", "1.29 ms", "2.10 s". ``space`` is put before the
    unit; it is "" in narrow columns."""
    if ns is None:
        return MISSING
    if abs(ns) < 999.5:
        return f"{ns:.0f}{space}ns"
    text, unit = _scaled(ns / 1000, 1000, ("µs", "ms", "s"))
    return f"{text}{space}{unit}"


def milliseconds(ms: float | None, space: str = " ") -> str:
    """A mean of times that the kernel counts in whole milliseconds; "<1 ms" if their sum is 0
    ms."""
    return f"<1{space}ms" if ms == 0 else latency(None if ms is None else ms * 1e6, space)


def axis_number(value: float) -> str:
    """A round number beside an axis: "0", "50k", "2.5M"."""
    return _without_zeros(number(value))


def axis_latency(ns: float) -> str:
    """A round time beside an axis: "500 µs", "2 ms"."""
    return _without_zeros(latency(ns))


def _without_zeros(text: str) -> str:
    """Remove zeros at the end of the fraction."""
    digits = text.rstrip("nµmskMGTP ")
    if "." not in digits:
        return text
    return digits.rstrip("0").rstrip(".") + text[len(digits) :]


def size(count: float | None) -> str:
    """Bytes: "512 B", "4 KiB", "1.5 GiB" (factors of 1024)."""
    if count is None:
        return MISSING
    if abs(count) < 999.5:
        return f"{count:.0f} B"
    text, unit = _scaled(count / 1024, 1024, ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text} {unit}"


def mib(bytes_s: float | None) -> str:
    """Bytes (a second) in MiB without the unit: "0", "0.12", "48.1", "482", "12345"."""
    if bytes_s is None:
        return MISSING
    value = bytes_s / (1 << 20)
    return _three_digits(value) if value else "0"


def percent(value: float | None) -> str:
    """Percent without the sign: "0", "0.4", "12", "100"."""
    if value is None:
        return MISSING
    if value == 0:
        return "0"
    return f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"


def change(percent: float | None) -> str:
    """A difference in percent, with its sign: "+12.3 %", "-4.0 %", "+1250 %", in 8 characters."""
    if percent is None:
        return MISSING
    if abs(percent) >= 99999.5:
        return "> 99999%" if percent > 0 else "<-99999%"
    # rounded first, so that slightly less than 0 is not "-0.0 %"
    return f"{round(percent, 1) + 0.0:+.1f} %" if abs(percent) < 999.95 else f"{percent:+.0f} %"


def clock(seconds: float | None) -> str:
    """Seconds as "0:12", "12:34", "1:02:03", rounded."""
    if seconds is None:
        return MISSING
    minutes, remainder = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remainder:02}" if hours else f"{minutes}:{remainder:02}"


def utc_datetime(wall_ms: float) -> datetime:
    """Milliseconds since 1970 as a time, UTC. Raises OverflowError or ValueError if it is not a
    time."""
    from datetime import datetime, timedelta, timezone

    # fromtimestamp() accepts only times that the C library accepts
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=wall_ms)


def utc(wall_ms: float) -> str | None:
    """Milliseconds since 1970 as "2026-03-01T12:00:00.250Z"; ``None`` if they are not a time."""
    try:
        seconds, ms = divmod(round(wall_ms), 1000)
    except (OverflowError, ValueError):  # a damaged recording may have any number here
        return None
    if not _YEAR_1_S <= seconds < _YEAR_10000_S:
        return None
    year, month, day, hour, minute, second = time.gmtime(seconds)[:6]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"


def duration(seconds: float) -> str:
    """A time in a sentence: "101 ms", "27 s", "4 min 5 s", "5 h", "1 h 2 min 3 s"."""
    if 0 < seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    minutes, remainder = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{n} {unit}" for n, unit in ((hours, "h"), (minutes, "min"), (remainder, "s")) if n]
    return " ".join(parts) or "0 s"


def wall_clock(wall_ms: float) -> str:
    """Milliseconds since 1970 as the local time of day: "14:03:22"."""
    return time.strftime("%H:%M:%S", time.localtime(wall_ms / 1000))


def dense(ns: float | None) -> str:
    """``latency`` for narrow columns."""
    return latency(ns, "")


def dense_ms(ms: float | None) -> str:
    """``milliseconds`` for narrow columns."""
    return milliseconds(ms, "")


DENSE: dict[Callable[..., str], Callable[[float | None], str]] = {
    latency: dense,
    milliseconds: dense_ms,
}


def counted(count: int, singular: str, plural: str = "") -> str:
    """ "1 run", "2 runs"."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def first_of(texts: Sequence[str], most: int) -> str:
    """The first texts of several: "a, b and 3 more"."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return f"{', '.join(texts[:most])}{more}"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers of CPUs as the kernel writes them: "0-2,5"."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def cells(text: str) -> int:
    """The columns of a terminal that ``text`` takes: Chinese characters take two, for example."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if character < "\u0300":
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """``text`` in at most ``width`` columns, with a mark where it was cut."""
    if text.isascii():
        return text if len(text) <= width else text[: width - 1] + "…"
    end = used = 0
    for at, character in enumerate(text, 1):
        used += _cells_of(character)
        if used < width:
            end = at
        elif used > width:
            return text[:end] + "…"
    return text


def left(text: str, width: int) -> str:
    """``text`` with blanks up to ``width`` columns."""
    return text + " " * (width - cells(text))


def shorten(text: str, width: int) -> str:
    """Cut ``text`` to ``width`` characters, with a mark; keep the end of a path, also of one after
    the mark of what is open."""
    mark = "▸ " if text.startswith("▸ /") else ""
    end = width - len(mark)
    if len(text) > width and end > 1 and text[len(mark) :].startswith("/") and ", " not in text:
        return f"{mark}…{text[1 - end :]}"
    return cut(text, width)


def replace_unprintable(text: str, encoding: str | None) -> str:
    """``text`` with all characters replaced that ``encoding`` can't print. The width stays the
    same, except for arrows, which occur in sentences and not in columns. ``None`` (a stream in
    memory) prints everything except what no terminal should get (text.py)."""
    text = safe_text(text)
    if encoding is None:
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return _plain(text).encode(encoding, "replace").decode(encoding)
    except LookupError:
        return _plain(text).encode("ascii", "replace").decode("ascii")
    return text


def ascii_arrows(text: str) -> str:
    """``text`` with arrows that every terminal can show, and that nobody mistakes for "greater
    than"."""
    return text.replace("→", "->").replace("←", "<-")


def ascii_look_alike(character: str) -> str:
    """ASCII text that looks like a character that we use; "" if there is none."""
    plain = _plain(character)
    return plain if plain.isascii() else ""


def _plain(text: str) -> str:
    return ascii_arrows(text).translate(_ASCII)


def print_line(text: str, stream: TextIO) -> None:
    """Print a line at once; what ``stream`` cannot print is replaced."""
    stream.write(replace_unprintable(text, stream.encoding) + "\n")
    stream.flush()


def print_sentence(text: str, stream: TextIO) -> None:
    """A line, at once; on a terminal in rows of its width, broken between words."""
    with contextlib.suppress(OSError, ValueError):
        columns = os.get_terminal_size(stream.fileno()).columns
        lead = len(text) - len(text.lstrip())
        if lead + 2 < columns < len(text):
            text = wrapped(text.lstrip(), lead, lead + 2, columns)
    print_line(text, stream)


def _scaled(value: float, factor: int, units: Sequence[str]) -> tuple[str, str]:
    """The value in three significant digits, and the unit; rounding never gives four digits."""
    for unit in units[:-1]:
        if abs(value) < 999.5:
            return _three_digits(value), unit
        value /= factor
    return _three_digits(value), units[-1]


def _three_digits(value: float) -> str:
    if abs(value) < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if abs(value) < 99.95 else f"{value:.0f}"
