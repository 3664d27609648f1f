"""Convert the fields of the form of a sweep or a comparison to a plan. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from iopstui.errors import UsageError
from iopstui.model.experiment.comparison import Comparison
from iopstui.model.experiment.host_sweep import HostPlan, check_host_axes, usual_counts
from iopstui.model.experiment.plan import (
    SWEEP,
    Axis,
    Plan,
    check_axes,
    check_variants,
    parse_axis,
    parse_variant,
)
from iopstui.model.fio.jobfile import option_names, parse_override
from iopstui.model.metrics.statistics import MIN_RUNS

AXES = ("axis", "axis2")
VARIANTS = ("a", "b", "c")
DEFAULT_AXIS = "iodepth=1,2,4..64"
SETTLE, MEASURE, REPEATS = "2", "8", "5"
SEQUENTIAL, RANDOM = "sequential", "random"
_SEED = re.compile(r"[0-9]{0,9}")
REPEATS_RANGE = (1, 1000)
SECONDS_RANGES = {"settle": (0, 3600), "measure": (1, 86400)}
MAX_REPEATS = 30
"""Default limit of a comparison that ends by itself."""


def parse_plan(kind: str, values: Mapping[str, str], hosts: int = 0) -> Plan:
    """Parse the values of the fields. Raises UsageError, worded as on the command line. ``hosts``:
    how many a fleet has."""
    job = values["job"].strip()
    if not job:
        raise UsageError("There is no job.", "`iopstui jobs` lists the shipped ones.")
    options = parse_fio_options(values["options"])
    if hosts:
        return _host_plan(job, options, values, hosts)
    settle = _parse_seconds("settle", values["settle"], *SECONDS_RANGES["settle"])
    measure = _parse_seconds("measure", values["measure"], *SECONDS_RANGES["measure"])
    if kind == SWEEP:
        axes = _parse_axes(values, DEFAULT_AXIS)
        check_axes(axes, options)
        rounds = _parse_count("repeats", values["rounds"], *REPEATS_RANGE)
        shuffle, seed = _parse_order(values["order"])
        return Plan((job,), options, axes, repeats=rounds, settle=settle, measure=measure,
                    seed=seed, shuffle=shuffle)  # fmt: skip
    variants = tuple(parse_variant(values[name]) for name in VARIANTS if values[name].strip())
    check_variants(variants, options)
    repeats, precision = _parse_repeats(values["repeats"])
    return Comparison((job,), options, variants=variants, repeats=repeats, settle=settle,
                      measure=measure, until=precision)  # fmt: skip


def _parse_axes(values: Mapping[str, str], example: str) -> tuple[Axis, ...]:
    axes = tuple(parse_axis(values[name]) for name in AXES if values[name].strip())
    if not axes:
        raise UsageError("A sweep needs something to vary.", f"For example: {example}")
    return axes


def _host_plan(
    job: str, options: dict[str, str], values: Mapping[str, str], hosts: int
) -> HostPlan:
    measure = 0.0
    if "measure" in values:
        measure = _parse_seconds("seconds", values["measure"], *SECONDS_RANGES["measure"])
        options = {**options, "runtime": f"{round(1000 * measure)}ms"}
    axes = _parse_axes(values, f"hosts={usual_counts(hosts)}")
    check_host_axes(axes, options, hosts)
    rounds = _parse_count("repeats", values["rounds"], *REPEATS_RANGE)
    return HostPlan((job,), options, axes, repeats=rounds, settle=0.0, measure=measure)


def check_field(name: str, text: str) -> None:
    """Raise UsageError if ``text`` is invalid in the field ``name``, whatever is in the other
    fields."""
    if name == "job" and not text.strip():
        raise UsageError("There is no job.")
    if name == "options":
        parse_fio_options(text)
    elif name in AXES and text.strip():
        parse_axis(text)
    elif name in VARIANTS and text.strip():
        parse_variant(text)
    elif name in ("settle", "measure"):
        _parse_seconds(name, text, *SECONDS_RANGES[name])
    elif name == "rounds":
        _parse_count("repeats", text, *REPEATS_RANGE)
    elif name == "repeats":
        _parse_repeats(text)


def _parse_order(text: str) -> tuple[bool, int | None]:
    """Whether the order is random, and its seed."""
    order = " ".join(text.split()).lower()
    if order in ("", SEQUENTIAL):
        return False, None
    seed = order.removeprefix(RANDOM).strip()
    if not order.startswith(RANDOM) or not _SEED.fullmatch(seed):
        raise UsageError(f"order: {text!r} is neither {SEQUENTIAL} nor {RANDOM}.",
                         f"With a seed: {RANDOM} 42")  # fmt: skip
    return True, int(seed) if seed else None


def _parse_repeats(text: str) -> tuple[int, float | None]:
    """Runs of each variant, and the precision of their difference: "5", "±2%", "±2% 12"."""
    first, _, limit = text.strip().partition(" ")
    if "%" not in first:
        return _parse_count("repeats", text, 2, 1000), None
    try:
        precision = float(first.lstrip("±+-/").removesuffix("%")) / 100
    except ValueError:
        precision = 0.0
    if not 0 < precision <= 1:
        raise UsageError(f"repeats: {first!r} is not a percentage above 0 and at most 100.",
                         "For example: ±2%, or ±2% 12 for 12 repeats at most")  # fmt: skip
    return _parse_count("repeats", limit or str(MAX_REPEATS), MIN_RUNS, 1000), precision


def parse_fio_options(text: str) -> dict[str, str]:
    """ "bs=8k rw=randread" as fio options. UsageError."""
    try:
        args = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"The options have a quote that is not closed: {text!r}.") from error
    return dict(parse_override(arg) for arg in args)


def options_text(options: Mapping[str, str], without: str) -> str:
    """The options as one types them, except those that an axis or variant (``without``) sets."""
    varied = {name for part in without.split() for name in option_names(part.partition("=")[0])}
    return " ".join(
        shlex.quote(f"{name}={value}")
        for name, value in options.items()
        if not option_names(name) & varied and name not in ("runtime", "timeout", "time_based")
    )


def _parse_seconds(name: str, text: str, low: float, high: float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not low <= seconds <= high:
        raise UsageError(f"{name}: {text!r} is not a number of seconds from {low:g} to {high:g}.")
    return seconds


def _parse_count(name: str, text: str, low: int, high: int) -> int:
    number = int(text) if text.strip().isdecimal() else -1
    if not low <= number <= high:
        raise UsageError(f"{name}: {text!r} is not a number from {low} to {high}.")
    return number
