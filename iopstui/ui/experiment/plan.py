"""From what was typed into the form of a sweep or a comparison to a plan. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from iopstui.errors import UsageError
from iopstui.model.experiment.plan import (
    Plan,
    check_axes,
    check_variants,
    parse_axis,
    parse_variant,
)
from iopstui.model.fio.jobfile import checked_override, names_of
from iopstui.ui.experiment.state import SWEEP

AXES = ("axis", "axis2")
VARIANTS = ("a", "b", "c")
DEFAULT_AXIS = "iodepth=1,2,4..64"
SETTLE, MEASURE, REPEATS = "2", "8", "5"


def plan_of(kind: str, typed: Mapping[str, str]) -> Plan:
    """UsageError, in the command line's words, for what is no plan."""
    job = typed["job"].strip()
    if not job:
        raise UsageError("There is no job.", "`iopstui jobs` lists the shipped ones.")
    options = options_of(typed["options"])
    settle = _number("settle", typed["settle"], 0, 3600)
    measure = _number("measure", typed["measure"], 1, 86400)
    if kind == SWEEP:
        axes = tuple(parse_axis(typed[name]) for name in AXES if typed[name].strip())
        check_axes(axes, options)
        if not axes:
            raise UsageError("A sweep needs something to vary.", f"For example: {DEFAULT_AXIS}")
        return Plan((job,), options, axes, settle=settle, measure=measure)
    variants = tuple(parse_variant(typed[name]) for name in VARIANTS if typed[name].strip())
    check_variants(variants, options)
    repeats = _whole("repeats", typed["repeats"], 2, 1000)
    return Plan((job,), options, variants=variants, repeats=repeats, settle=settle, measure=measure)


def options_of(text: str) -> dict[str, str]:
    """ "bs=8k rw=randread" as fio options. UsageError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"The options have a quote that is not closed: {text!r}.") from error
    return dict(checked_override(word) for word in words)


def options_text(options: Mapping[str, str], without: str) -> str:
    """The options as they are typed, but for those that an axis or variant (``without``) sets."""
    taken = {name for part in without.split() for name in names_of(part.partition("=")[0])}
    return " ".join(
        shlex.quote(f"{name}={value}")
        for name, value in options.items()
        if not names_of(name) & taken and name not in ("runtime", "timeout", "time_based")
    )


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not low <= seconds <= high:
        raise UsageError(f"{name}: {text!r} is not a number of seconds from {low:g} to {high:g}.")
    return seconds


def _whole(name: str, text: str, low: int, high: int) -> int:
    number = int(text) if text.strip().isdecimal() else -1
    if not low <= number <= high:
        raise UsageError(f"{name}: {text!r} is not a number from {low} to {high}.")
    return number
