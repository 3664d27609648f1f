"""What a comparison's runs show, sentence by sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iopstui.format import MISSING
from iopstui.model.experiment.comparison import METRICS, CpuShift, FigureComparison
from iopstui.model.experiment.comparison_text import (
    cpu_shift_lines,
    difference_text,
    verdict,
)
from iopstui.model.experiment.plan import Plan, parse_variant
from iopstui.model.metrics.statistics import Difference
from iopstui.output.experiment.compare import shown_text

PLAN = Plan(("j",), {}, variants=tuple(map(parse_variant, ("bs=4k", "bs=8k"))), repeats=5)
SHOWN, HIDDEN = 0.04, 0.06
AGAINST = "B (bs=8k) against A (bs=4k): "


def figure(
    name: str, mean: float, low: float, high: float, p: float = SHOWN, relative: bool = True
) -> FigureComparison:
    metric = next(one for one in METRICS if one.name == name)
    found = Difference(mean, low, high, p, 5, relative)
    return FigureComparison(metric, 0.5, 0.75, found, p, name == "IOPS")


def unknown(name: str) -> FigureComparison:
    metric = next(one for one in METRICS if one.name == name)
    return FigureComparison(metric, 0.0, 0.0, None, 1.0, name == "IOPS")


def test_each_figure_has_a_name_a_unit_and_a_better_way() -> None:
    found = [(m.name, m.unit, m.better, m.relative) for m in METRICS]
    assert found == [
        ("IOPS", "1/s", "higher", True), ("mean latency", "ns", "lower", True),
        ("p50", "ns", "lower", True), ("p99", "ns", "lower", True),
        ("p99.9", "ns", "lower", True), ("CPU per I/O", "us", "lower", True),
        ("I/Os per joule", "1/J", "higher", True),
        ("busiest CPU's completions", "share", "neither", False),
    ]  # fmt: skip


MORE, LESS = ("IOPS", 0.123, 0.08, 0.168), ("p99", 0.2, 0.1, 0.3)
NONE = "no difference in IOPS that 5 runs of each can detect"
TELLING = "IOPS +12.3 % (+8.0 to +16.8)"


@pytest.mark.parametrize(
    ("found", "went", "says"),
    [
        ([figure(*MORE)], False, f"better: {TELLING}"),
        ([figure(*LESS)], False,
         f"{NONE}; secondary, worse: p99 +20.0 % (+10.0 to +30.0)"),
        ([figure(*MORE), figure(*LESS)], False,
         f"mixed: {TELLING}; secondary: p99 +20.0 % (+10.0 to +30.0)"),
        ([figure(*MORE), figure("p50", 0.1, -0.1, 0.2, HIDDEN), unknown("p99")], False,
         f"better: {TELLING}; no difference shown in p50, p99"),
        ([figure("busiest CPU's completions", 0.25, 0.2, 0.3, SHOWN, False)], True,
         f"{NONE}; secondary, busiest CPU's completions 50 → 75 %, +25.0 points (+20.0 to +30.0)"),
        ([figure("IOPS", 0.01, -0.02, 0.03, HIDDEN)], False,
         "no difference that 5 runs of each can detect; in IOPS it lies between -2.0 and "
         "+3.0 % (95 % confidence)"),
        ([figure("IOPS", 0.02, 0.01, 0.03, HIDDEN), unknown("p99")], False,
         "no difference that 5 runs of each can detect; IOPS would differ by +1.0 to +3.0 % "
         "(95 % confidence) if this were the only variant; with several, one may differ by chance. "
         "More repeats can decide"),
        ([unknown("IOPS")], True,
         "completions run elsewhere, but no difference in IOPS, latency or CPU time that 5 "
         "runs of each can detect"),
    ],
)  # fmt: skip
def test_the_verdict(found: list[FigureComparison], went: bool, says: str) -> None:
    assert verdict(PLAN, 1, found, 5, went) == AGAINST + says


def test_a_difference_of_disturbed_runs_is_called_uncertain() -> None:
    why = "3 of 10 runs, others did 12 to 66 % of the I/O"
    found = [replace(figure(*MORE), disturbed=why)]
    text = verdict(PLAN, 1, found, 5)
    assert text == (
        f"{AGAINST.removesuffix(': ')}, disturbed ({why}): {TELLING}; the disturbance may be the "
        "reason for a difference"
    )
    assert found[0].shown and found[0].better is None and shown_text(found[0]) == "yes?"
    assert shown_text(figure(*MORE)) == "yes"


@pytest.mark.parametrize(
    ("mean", "text"),
    [(0.9994, "+99.9"), (0.9995, "+100"), (-0.9995, "-100"), (99.994, "+9999"),
     (100.0, "+10.0k"), (-100.0, "-10.0k"), (0.0, "+0.0")],
)  # fmt: skip
def test_large_differences_have_few_digits(mean: float, text: str) -> None:
    one = figure("IOPS", mean, mean, mean)
    assert difference_text(one) == f"{text} % ({text} to {text})"
    assert difference_text(unknown("IOPS")) == MISSING


def shift(
    cpu: int, load: tuple[float, float], done: tuple[float, float] = (0.0, 0.0),
    shown: bool = True, went: bool = False,
) -> CpuShift:  # fmt: skip
    return CpuShift(cpu, load, done, shown, went)


def test_who_pays_and_who_is_relieved() -> None:
    shifts = [
        shift(0, (10.0, 50.0)), shift(1, (10.0, 40.0)), shift(2, (10.0, 30.0)),
        shift(3, (10.0, 20.0)), shift(4, (50.0, 10.0)), shift(5, (10.0, 10.9)),
        shift(6, (10.0, 90.0), shown=False), shift(7, (10.0, 11.0)),
    ]  # fmt: skip
    assert list(cpu_shift_lines(shifts, "A", "B")) == [
        "CPU 0 does more with B: its load goes from 10 to 50 %",
        "CPU 1 does more with B: its load goes from 10 to 40 %",
        "3 more (CPU 2, 3, 7) do more, too with B, by less",
        "CPU 4 does less with B: its load goes from 50 to 10 %",
    ]
    relieved = [shift(cpu, (50.0, 10.0)) for cpu in range(3)]
    assert (
        list(cpu_shift_lines(relieved, "A", "C"))[-1]
        == "1 more (CPU 2) do less, too with C, by less"
    )
    assert list(cpu_shift_lines(shifts[:2], "A", "B"))[1:] == [
        "CPU 1 does more with B: its load goes from 10 to 40 %"
    ]
