"""The fio options that have keys of their own, and how the keys change them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

BLOCK_SIZES = ("512", "4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m", "4m")
MAX_IODEPTH, MAX_NUMJOBS = 4096, 512
NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class OptionKey:
    """A fio option that a key changes. ``pattern`` finds its value in a run's title; ``mark_name``
    is its name in a mark on the charts."""

    option: str
    name: str
    pattern: str
    default: str
    max_value: int
    mark_name: str


IODEPTH = OptionKey("iodepth", "iodepth", r"\bQD (\d+)", "1", MAX_IODEPTH, "QD")
NUMJOBS = OptionKey("numjobs", "numjobs", r"× (\d+) jobs?\b", "1", MAX_NUMJOBS, "jobs")
BLOCK_SIZE = OptionKey("bs", "block size", r"\b(\d+[kKmM]?)(?:i?B)?\s+QD\b", "4k", 0, "bs")


BY_OPTION = {knob.option: knob for knob in (IODEPTH, NUMJOBS, BLOCK_SIZE)}


def title_value(knob: OptionKey, title: str) -> str | None:
    """The option's value in a run's title; ``None`` if the title does not have it."""
    match = re.search(knob.pattern, title)
    return match[1].lower() if match else None


def mark_text(option: str, change: str, title: str = "", options: Mapping[str, str] = NONE) -> str:
    """Text of a mark for a changed option: changed by a key ("block size 8k"), typed ("bs=8k"), or
    reset ("bs as the job has it"). ``title`` and ``options`` are those of the previous run, and may
    contain the old value."""
    knob = BY_OPTION.get(option)
    before = options.get(option) or (title_value(knob, title) if knob is not None else None)
    for begin in (f"{option}=", f"{knob.name} " if knob is not None else "="):
        value = change.removeprefix(begin)
        if value != change and " " not in value:
            name = knob.mark_name if knob is not None else option
            if before is not None and before != value:
                return f"{name} {before} → {value}"
            return f"{name} {value}" if knob is not None else change
    return change


def current_value(knob: OptionKey, overrides: Mapping[str, str], title: str, text: str = "") -> str:
    """The option's current value: an override, else the one in the run's title, else (before the
    first run) the one in the job's ``text``."""
    if knob.option in overrides:
        return overrides[knob.option]
    if not title:
        match = re.search(rf"^[ \t]*{knob.option}[ \t]*=[ \t]*(\w+)", text, re.MULTILINE)
        return match[1].lower() if match else knob.default
    return title_value(knob, title) or knob.default


def double_or_halve(knob: OptionKey, value: str, up: bool) -> str | None:
    """Twice or half of ``value``; ``None`` at the end of the range."""
    try:
        number = int(value)
    except ValueError:
        number = int(knob.default)
    if up:
        return str(min(knob.max_value, number * 2)) if number < knob.max_value else None
    return str(number // 2) if number > 1 else None
