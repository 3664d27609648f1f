"""Describe the results of a comparison in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from iopstui import format as units
from iopstui.model.experiment.comparison import (
    MIN_REPEATS,
    TOO_FEW_REPEATS,
    CpuShift,
    FigureComparison,
    compare,
    cpu_shifts,
    differences_are_precise,
    final_sensitivity,
    paired_runs,
    primary_figure,
    why_stopped,
)
from iopstui.model.experiment.plan import BIND, Plan, variant_letter
from iopstui.model.experiment.point import Point
from iopstui.model.findings.finding import cpus_text
from iopstui.model.metrics.statistics import MIN_RUNS
from iopstui.text import printable

CPUS_SHOWN = 8
MAX_NAMED = 2
MOVED_SHARE = 0.05
UNCERTAIN_SHIFT = 0.2
CPU_PER_IO = "CPU per I/O"
_METHOD = (
    "runs of the same repeat are compared in pairs; intervals: 95 %, {test}; {mark} = significant "
    "at 5 %: {figure} by itself, the others corrected for multiple testing (Holm); columns: "
    "geometric means"
)


def method_text(plan: Plan, mark: str) -> str:
    """How the differences were found; ``mark`` is a table's sign for significant differences."""
    sequential = "t with a mixture of effects, valid whenever you stop (Lai, 1976)"
    test = "paired t" if plan.until is None else sequential
    return _METHOD.format(test=test, mark=mark, figure=plan.figure)


class ComparisonResults:
    """Results of a comparison from the runs so far."""

    def __init__(self, plan: Plan, runs: Sequence[Mapping[int, Point]]) -> None:
        self.plan = plan
        self.runs = runs
        self.complete = min(len(paired_runs(runs[0], variant)) for variant in runs[1:])
        sequential = plan.until is not None
        self.least = MIN_RUNS if sequential else 2
        self.tested = compare(runs, sequential, plan.figure)
        self.shifts = [cpu_shifts(runs[0], variant, sequential) for variant in runs[1:]]
        self.settled = plan.until is not None and differences_are_precise(
            runs, plan.until, plan.figure
        )

    def verdicts(self) -> Iterator[str]:
        """Return a sentence for each variant after the first, and a note on how far to trust it."""
        if self.complete < self.least:
            plural = "s" if self.complete > 1 else ""
            yield (
                f"not enough: {self.complete or 'no'} complete repeat{plural} of "
                f"{self.plan.repeats}; at least {max(MIN_REPEATS, self.least)} repeats are "
                "needed to claim a difference"
            )
            return
        for number, (tested, shifts) in enumerate(zip(self.tested, self.shifts, strict=True), 1):
            yield verdict(self.plan, number, tested, self.complete, bool(moved_cpus(shifts)))
            yield from cpu_shift_lines(shifts, variant_letter(0), variant_letter(number))
            payer = list(_unknown_cpu_cost(tested, shifts))
            yield from payer
            yield from _unsettled_completions(
                shifts, variant_letter(number), not payer and not _is_pinned(self.plan)
            )
        if self.plan.until is not None:
            yield why_stopped(self.plan, self.runs, self.complete, self.settled)
            return
        if self.complete >= MIN_REPEATS and not all(
            primary_result.shown
            for group in self.tested
            if (primary_result := primary_figure(group)) is not None
        ):
            yield from filter(None, [final_sensitivity(self.plan, self.runs, self.complete)])
        if self.complete < self.plan.repeats:
            yield (
                f"interrupted after {self.complete} of {self.plan.repeats} repeats, too few "
                "for a verdict. Treat this as a hint and run it again"
            )


def verdict(
    plan: Plan,
    number: int,
    tested: Sequence[FigureComparison],
    runs: int,
    completions_moved: bool = False,
) -> str:
    """Compare one variant with the first, in one sentence. ``completions_moved``: the runs show
    that completions run elsewhere, whether or not a figure differs."""
    name = f"{variant_letter(number)} ({plan.variants[number].label}) against "
    name += f"{variant_letter(0)} ({plan.variants[0].label})"
    disturbed = next((comparison.disturbed for comparison in tested), "")
    name += f", disturbed ({disturbed}): " if disturbed else ": "
    primary = primary_figure(tested)
    if runs < MIN_REPEATS:
        measured = ""
        if primary is not None and primary.difference is not None:
            measured = f"; measured: {primary.metric.name} {_change_text(primary)}"
        return printable(f"{name}{TOO_FEW_REPEATS}{measured}")
    significant = [comparison for comparison in tested if comparison.shown]
    none = f" that {runs} runs of each can detect"
    if not significant:
        prefix = "completions run elsewhere, but " if completions_moved else ""
        of = " in IOPS, latency or CPU time" if completions_moved else ""
        return printable(
            f"{name}{prefix}no difference{of}{none}{_largest_difference_text(plan, primary)}"
        )
    better = [comparison.better for comparison in significant if comparison.better is not None]
    judgement = ""
    if better:
        judgement = "better: " if all(better) else "worse: " if not any(better) else "mixed: "
    secondary = ", ".join(
        f"{comparison.metric.name} {_change_text(comparison)}"
        for comparison in significant
        if not comparison.primary
    )
    unproven = [
        comparison.metric.name
        for comparison in tested
        if not comparison.shown and not comparison.primary
    ]
    tail = f"; no difference shown in {', '.join(unproven)}" if unproven else ""
    tail += "; the disturbance may be the reason for a difference" if disturbed else ""
    if primary is not None and primary.shown:
        text = f"{judgement}{primary.metric.name} {_change_text(primary)}"
        text += f"; secondary: {secondary}" if secondary else ""
        return printable(f"{name}{text}{tail}")
    text = f"no difference in {plan.figure}{none}{_largest_difference_text(plan, primary)}"
    return printable(f"{name}{text}; secondary, {judgement}{secondary}{tail}")


def _change_text(comparison: FigureComparison) -> str:
    """A change in words; for a share both values come first, because percentage points alone are
    hard to judge."""
    if comparison.difference is None or comparison.difference.relative:
        return difference_text(comparison)
    shares = f"{100 * comparison.first:.0f} → {100 * comparison.second:.0f} %"
    return f"{shares}, {difference_text(comparison)}"


def _largest_difference_text(plan: Plan, primary: FigureComparison | None) -> str:
    """How large the difference in the primary figure may still be, by its confidence interval."""
    difference = primary.difference if primary is not None else None
    if difference is None:
        return ""
    interval = f"{100 * difference.low:+.1f} {{}} {100 * difference.high:+.1f} % (95 % confidence)"
    if difference.shown:
        return (
            f"; {plan.figure} would differ by {interval.format('to')} if this were the only "
            "variant; with several, one may differ by chance. More repeats can decide"
        )
    return f"; in {plan.figure} it lies between {interval.format('and')}"


def difference_text(comparison: FigureComparison) -> str:
    """A difference with its interval: "+12.3 % (+8.0 to +16.8)"; for shares in percentage
    points."""
    difference = comparison.difference
    if difference is None:
        return units.MISSING
    unit = "%" if difference.relative else "points"
    values = [100 * value for value in (difference.mean, difference.low, difference.high)]
    return (
        f"{_signed_text(values[0])} {unit} ({_signed_text(values[1])} to {_signed_text(values[2])})"
    )


def _signed_text(value: float) -> str:
    if abs(value) >= 9999.5:
        return f"{'-' if value < 0 else '+'}{units.number(abs(value))}"
    return f"{value:+.1f}" if abs(value) < 99.95 else f"{value:+.0f}"


def cpu_shift_lines(shifts: Sequence[CpuShift], first: str, second: str) -> Iterator[str]:
    """Describe on which CPUs the load changes and where completions move; only significant and
    relevant changes."""
    differing = [s for s in shifts if s.shown and abs(s.load[1] - s.load[0]) >= 1]
    for verb, verb_for_others, more in (
        ("does more", "do more, too", True),
        ("does less", "do less, too", False),
    ):
        changed = [shift for shift in differing if (shift.load[1] > shift.load[0]) is more]
        for shift in changed[:MAX_NAMED]:
            yield (
                f"CPU {shift.cpu} {verb} with {second}: its load goes from {shift.load[0]:.0f} "
                f"to {shift.load[1]:.0f} %"
            )
        if len(changed) > MAX_NAMED:
            others = changed[MAX_NAMED:]
            cpus = cpus_text(sorted(shift.cpu for shift in others))
            yield f"{len(others)} more ({cpus}) {verb_for_others} with {second}, by less"
    moved = moved_cpus(shifts)
    if moved:
        yield f"completions move from {first} to {second}: {_completion_shares_text(moved)}"


def moved_cpus(shifts: Sequence[CpuShift]) -> list[CpuShift]:
    """CPUs whose share of the completions differs, significantly and by a relevant amount."""
    return [shift for shift in shifts if shift.moved and shift.moved_by >= MOVED_SHARE]


def _completion_shares_text(shifts: Sequence[CpuShift]) -> str:
    most = sorted(shifts, key=lambda s: (-s.moved_by, s.cpu))[:CPUS_SHOWN]
    return ", ".join(
        f"CPU {s.cpu} {100 * s.completions[0]:.0f} → {100 * s.completions[1]:.0f} %"
        for s in sorted(most, key=lambda s: s.cpu)
    )


def _unsettled_completions(shifts: Sequence[CpuShift], second: str, advise: bool) -> Iterator[str]:
    """Completions that ran on other CPUs on average, but not significantly: they move from run to
    run."""
    candidates = [shift for shift in shifts if shift.moved_by >= UNCERTAIN_SHIFT]
    if not candidates or moved_cpus(shifts):
        return
    advice = "; cpus_allowed in the job keeps it on the same CPUs" if advise else ""
    yield (
        f"with {second} completions ran elsewhere on average "
        f"({_completion_shares_text(candidates)}), but these runs can't tell that "
        f"from where the jobs happened to run{advice}"
    )


def _is_pinned(plan: Plan) -> bool:
    """Whether the plan sets the CPUs on which the jobs run."""
    settings = (setting.name for variant in plan.variants for setting in variant.settings)
    return not {"cpus_allowed", BIND}.isdisjoint((*plan.options, *settings))


def _unknown_cpu_cost(
    tested: Sequence[FigureComparison], shifts: Sequence[CpuShift]
) -> Iterator[str]:
    """Describe that an I/O costs more or less CPU time though no single CPU can be named."""
    cost = any(comparison.shown and comparison.metric.name == CPU_PER_IO for comparison in tested)
    if not cost or not shifts or any(shift.shown for shift in shifts):
        return
    loads = ", ".join(
        f"CPU {s.cpu} {s.load[0]:.0f} → {s.load[1]:.0f} %" for s in shifts[:CPUS_SHOWN]
    )
    yield (
        "cannot tell which CPU does more work: no load differs by more than its noise from run to "
        f"run ({loads}); cpus_allowed in the job keeps it on the same CPUs"
    )
