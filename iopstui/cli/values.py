"""From a text on the command line to a value, or argparse's complaint."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from iopstui.errors import UsageError

if TYPE_CHECKING:
    from iopstui.model.block.tunable import TunableRequest


def seconds(text: str, low: float, high: float) -> float:
    """A time from ``low`` to ``high``."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not low <= found <= high:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from {low:g} to {high:g}")
    return found


def settle(text: str) -> float:
    """The settle time of a run."""
    return seconds(text, 0, 3600)


def measure(text: str) -> float:
    """The measured time of a run."""
    return seconds(text, 1, 86400)


def refresh(text: str) -> float:
    """The time between two redraws."""
    return seconds(text, 0, 60)


def interval(text: str) -> float:
    """The time between two samples."""
    return seconds(text, 0.25, 60)


def speed(text: str) -> float:
    """The speed of a replay."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.1 <= found <= 1000:
        raise ArgumentTypeError(f"{text!r} is not a number from 0.1 to 1000")
    return found


def repeats(text: str) -> int:
    """The number of runs of each variant."""
    if not text.isdecimal() or not 2 <= int(text) <= 1000:
        raise ArgumentTypeError(
            f"{text!r} is not a number from 2 to 1000 (one run of each says nothing about chance)"
        )
    return int(text)


def nice(text: str) -> int:
    """A nice value that any user may set."""
    if text.isdecimal() and int(text) <= 19:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is not a number from 0 to 19")


def cpus(text: str) -> tuple[int, ...]:
    """CPU numbers; an empty set for "all"."""
    from iopstui.linux.sysattr import parse_cpu_list

    found = parse_cpu_list(text)
    if text != "all" and (not found or not set(text) <= set("0123456789,-")):
        raise ArgumentTypeError(f"{text!r} is not a list of CPUs such as 7 or 0-1,4")
    return found


def knob(text: str) -> TunableRequest:
    """A tunable, its new value, and when it is changed."""
    from iopstui.model.block.tunable import parse_tunable

    try:
        return parse_tunable(text)
    except UsageError as error:
        raise ArgumentTypeError(error.message) from error
