"""Convert command-line texts to values; raise argparse's error for invalid ones."""

from __future__ import annotations

from argparse import ArgumentTypeError
from functools import partial
from typing import TYPE_CHECKING

from iopstui.errors import UsageError

if TYPE_CHECKING:
    from iopstui.model.block.target import TargetPart
    from iopstui.model.block.tunable import TunableRequest

EXPERIMENT_FORMATS = ("table", "jsonl", "csv")
"""Formats of an experiment's data on standard output; the first is the default."""
MAX_LEAD_TIME_S = 600.0
FORMATS = (*EXPERIMENT_FORMATS, "influx")
"""Formats of all other data; "influx" is InfluxDB's line protocol."""
THEMES = ("dark", "light", "colourblind", "terminal")
"""The screen's themes (ui/draw/theme.py)."""
MORE_THEMES = (
    "ansi-dark", "ansi-light", "atom-one-dark", "atom-one-light", "catppuccin-frappe",
    "catppuccin-latte", "catppuccin-macchiato", "catppuccin-mocha", "dracula", "flexoki",
    "gruvbox", "monokai", "nord", "rose-pine", "rose-pine-dawn", "rose-pine-moon",
    "solarized-dark", "solarized-light", "textual-dark", "textual-light", "tokyo-night",
)  # fmt: skip
"""Themes of Textual, which the configuration may name as well."""


def seconds(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not low <= value <= high:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from {low:g} to {high:g}")
    return value


def whole_number(text: str, low: int, high: int, meaning: str = "") -> int:
    """A whole number from ``low`` to ``high``. An error says that the text is not ``meaning``
    (default: the range)."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and low <= int(text) <= high):
        raise ArgumentTypeError(f"{text!r} is not {meaning or f'a number from {low} to {high}'}")
    return int(text)


settle = partial(seconds, low=0, high=3600)
measure = partial(seconds, low=1, high=86400)
refresh = partial(seconds, low=0, high=60)
plain_every = partial(seconds, low=1, high=3600)
interval = partial(seconds, low=0.25, high=60)
sweep_repeats = partial(whole_number, low=1, high=1000)
seed = partial(whole_number, low=0, high=999_999_999,
               meaning="a whole number of at most nine digits")  # fmt: skip
rotation = partial(whole_number, low=1, high=99_999, meaning="a number of hosts, such as 1")
nice_value = partial(whole_number, low=0, high=19)
port = partial(whole_number, low=0, high=65535, meaning="a port number from 0 to 65535")
"""0 means any free port."""


def speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 1000:
        raise ArgumentTypeError(f"{text!r} is not a number from 0.1 to 1000")
    return value


def repeats(text: str) -> int:
    """The number of runs of each variant."""
    meaning = "a number from 2 to 1000 (with one run of each, a difference may be chance)"
    return whole_number(text, 2, 1000, meaning)


def percentage(text: str) -> float:
    """A percentage, as a share (0 to 1)."""
    try:
        value = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise ArgumentTypeError(f"{text!r} is not a percentage such as 2%, above 0 and at most 100")
    return value


def precision(text: str) -> float:
    """A precision in percent, with or without the sign."""
    return percentage(text.strip().removeprefix("±").removeprefix("+/-").removeprefix("+-"))


def target_part(text: str) -> TargetPart:
    from iopstui.model.block.target import TargetPart

    number, _, count = text.partition("/")
    if not all(
        digits.isascii() and digits.isdecimal() and len(digits) <= 5 for digits in (number, count)
    ):
        raise ArgumentTypeError(f"{text!r} is not a part such as 2/4")
    if not 1 <= int(number) <= int(count):
        raise ArgumentTypeError(
            f"{text!r} is not one of parts 1/{int(count)} to {int(count)}/{int(count)}"
        )
    return TargetPart(int(number), int(count))


def budget(text: str) -> int:
    from iopstui.model.sizes import size_bytes

    size = size_bytes(text)
    if not size:
        raise ArgumentTypeError(f"{text!r} is not a size such as 512m or 200g")
    return size


def duration(text: str) -> float:
    from iopstui.model.watch.trigger import parse_duration

    length_s = parse_duration(text)
    if length_s is None:
        raise ArgumentTypeError(f"{text!r} is not a time such as 30s, 10m, 8h or 2d")
    return length_s


def lead_time(text: str) -> float:
    """How many seconds before a trigger are kept in memory."""
    length_s = duration(text)
    if length_s > MAX_LEAD_TIME_S:
        raise ArgumentTypeError(
            f"{text!r} is more than {MAX_LEAD_TIME_S / 60:g}m, which is the most that is kept in "
            "memory"
        )
    return length_s


def cpus(text: str) -> tuple[int, ...]:
    """CPU numbers; an empty tuple for "all"."""
    from iopstui.linux.kernel_files import parse_cpu_list

    numbers = parse_cpu_list(text)
    if text != "all" and (not numbers or not set(text) <= set("0123456789,-")):
        raise ArgumentTypeError(f"{text!r} is not a list of CPUs such as 7 or 0-1,4")
    return numbers


def new_file(text: str) -> str:
    """The name of a file that will be written."""
    if text.endswith("/"):
        raise ArgumentTypeError(
            f"{text!r} names a directory, by the / at its end; name a file, such as "
            f"{text.rstrip('/') or '/tmp/run'!r}"
        )
    return responsive_path(text)


def file_or_directory(text: str) -> str:
    """The name of a file that will be written, or of a directory (it exists, or ends with /)."""
    from pathlib import Path

    path = responsive_path(text)
    return path if text.endswith("/") or Path(path).is_dir() else new_file(text)


def responsive_path(text: str) -> str:
    """The name of a file. Raises UsageError if its file system does not answer, because any access
    would hang."""
    # a name without a directory is in the current one, or no file at all ("demo")
    if "/" in text and "\0" not in text:
        from pathlib import Path

        from iopstui.linux.kernel_files import Roots
        from iopstui.linux.shares import require_answer

        require_answer(Path.cwd() / text, Roots())
    return text


def knob(text: str) -> TunableRequest:
    """A tunable, its new value, and the moment of the change."""
    from iopstui.model.block.tunable import parse_tunable

    try:
        return parse_tunable(text)
    except UsageError as error:
        raise ArgumentTypeError(error.message) from error
