"""The report of a sweep or a comparison: points, conclusions, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from iopstui import format as units
from iopstui.events import Event, ExperimentFinished, PointFailed, PointFinished, PointStarted
from iopstui.model.experiment.comparison_text import ComparisonResults, method_text
from iopstui.model.experiment.expectation import Expectation
from iopstui.model.experiment.load_curve import (
    LoadCurve,
    conclusions,
    curves_along,
    failure_lines,
    horizontal_axis,
    load_curves,
    measured_points,
)
from iopstui.model.experiment.plan import Axis, Plan, variant_letter
from iopstui.model.experiment.point import POINT
from iopstui.output.experiment.compare import COLUMNS as COMPARED
from iopstui.output.experiment.compare import (
    comparison_results,
    cpu_columns,
    difference_columns,
    difference_object,
)
from iopstui.output.experiment.sweep import (
    FIGURES,
    MEANS,
    curve_object,
    labels,
    mean_object,
    pass_table,
)
from iopstui.session.tick.outcomes import FAIL, PASS, outcome_text
from iopstui.tables import Column, Table
from iopstui.text import printable


def _most_waits(most: tuple[str, float] | None) -> str:
    return f"{printable(most[0])} {most[1]:.1f}" if most else units.MISSING


_WAITS = Column("point/most_waits", "waits most in", form=_most_waits)
_INTERVALS = (
    MEANS[0], replace(MEANS[2], title="IOPS, 95 %"), replace(MEANS[4], title="mean, 95 %")
)  # fmt: skip
MAX_CPUS = 16
NAMED_CPUS = 4


def _busiest_text(percent: Mapping[int, float]) -> str:
    """The busiest CPUs: "CPU 3 81 %, CPU 0 19 %"."""
    most = sorted(percent.items(), key=lambda cpu: (-cpu[1], cpu[0]))
    cpus = [f"CPU {cpu} {value:.0f} %" for cpu, value in most[:NAMED_CPUS] if value >= 0.5]
    return ", ".join(cpus) or units.MISSING


CPU_COLUMNS = (
    Column("index", "#", form=lambda index: str(index + 1)),
    Column("label", "settings", form=printable),
    POINT["cpu_us"].column(),
    Column("point/completions", "completions ran on",
           form=lambda shares: _busiest_text({cpu: 100 * n for cpu, n in shares.items()})),
    Column("point/busy", "busiest", form=_busiest_text),
)  # fmt: skip


@dataclass
class Experiment:
    """An experiment in a recording: ``points`` by their index in the plan, ``steps`` with that
    index by the run's number. ``finished`` is ``None`` if the recording ends before the
    experiment."""

    plan: Plan
    t: float = 0.0
    name: str = ""
    """The name of a plan that is neither a simple sweep nor a simple comparison."""
    points: dict[int, PointFinished] = field(default_factory=dict)
    failed: dict[int, PointFailed] = field(default_factory=dict)
    steps: dict[int, int] = field(default_factory=dict)
    finished: ExperimentFinished | None = None
    _now: PointStarted | None = None

    def add_event(self, event: Event) -> None:
        match event:
            case PointStarted():
                self._now = event
            case PointFinished():
                self.points[event.index] = event
            case PointFailed():
                self.failed[event.index] = event
            case ExperimentFinished():
                self.finished, self._now = event, None

    def label_of_run(self, step: int) -> str:
        """Note that fio run ``step`` belongs to the point that has begun. Returns the point's
        label, or "" if no point has begun."""
        if self._now is None:
            return ""
        self.steps[step] = self._now.index
        return self._now.label

    @property
    def title(self) -> str:
        """The varied settings, after the plan's name if there is one."""
        return printable(f"{self.name}: {self._settings}" if self.name else self._settings)

    @property
    def _settings(self) -> str:
        if self.plan.variants:
            names = [
                f"{variant_letter(n)}: {variant.label}"
                for n, variant in enumerate(self.plan.variants)
            ]
            return f"Comparison of {', '.join(names)}"
        names = [axis.name for axis in self.plan.axes] or ["the job"]
        return f"Sweep over {' and '.join(names)}"

    @property
    def axis(self) -> Axis:
        """The axis that the curves use as horizontal axis."""
        return horizontal_axis(self.plan)

    @property
    def ordered(self) -> list[PointFinished]:
        """The runs in the order of the plan."""
        return [self.points[index] for index in sorted(self.points)]

    @property
    def measured(self) -> list[PointFinished]:
        """A sweep's points in the order of the plan, each the mean of its runs."""
        return measured_points(self.plan, self.ordered)

    @property
    def curves(self) -> list[LoadCurve[PointFinished]]:
        """The curves along ``axis``, one for each combination of the other settings."""
        return curves_along(self.plan, self.axis, self.ordered)

    @property
    def expectations(self) -> list[Expectation]:
        """The expectations of the first point that has any."""
        outcomes = next((point.outcomes for point in self.ordered if point.outcomes), ())
        return [outcome.expectation for outcome in outcomes]

    def results(self) -> ComparisonResults:
        return comparison_results(self.plan, self.ordered)


def ending(experiment: Experiment) -> str:
    """Why some points are missing; "" if none is."""
    finished, total = experiment.finished, experiment.plan.points
    unit = f"{experiment.plan.unit}s"
    if finished is None:
        return f"the recording ends early: {len(experiment.points)} of {total} {unit}"
    if finished.error:
        return (
            f"failed after {len(experiment.points)} of {total} {unit}: {printable(finished.error)}"
        )
    if finished.interrupted or (
        len(experiment.points) + finished.failed < total and not finished.enough
    ):
        return f"interrupted: {len(experiment.points)} of {total} {unit} measured"
    return ""


def points_table(experiment: Experiment) -> Table:
    """A row for each point, with means and intervals if it has several runs; for a comparison, a
    row for each run. With expectations, the last column has their outcomes."""
    plan = experiment.plan
    if plan.variants:
        names = [printable(variant.label) for variant in plan.variants]
        columns = [
            Column("", "run", read=lambda event: event.index + 1),
            Column("", "", read=lambda event: variant_letter(event.variant)),
            Column("", "settings", read=lambda event: names[event.variant]),
            *COMPARED, _WAITS, *_disturbed_column(experiment.ordered),
        ]  # fmt: skip
        return Table.from_rows(columns, experiment.ordered, left_columns=3)
    columns = [*labels(replace(plan, repeats=1)), *FIGURES, _WAITS]
    columns += _INTERVALS if plan.repeats > 1 else ()
    columns += _disturbed_column(experiment.measured)
    columns += [Column("", "outcome", read=_verdict)] if experiment.expectations else ()
    return Table.from_rows(columns, experiment.measured)


def _disturbed_column(events: Sequence[PointFinished]) -> list[Column]:
    """The column that says what disturbed the runs; nothing if no run was disturbed."""
    disturbed = any(event.point.disturbed for event in events)
    return [Column("point/disturbed", "disturbed", form=_sentences)] if disturbed else []


def _sentences(texts: Sequence[str]) -> str:
    return printable("; ".join(texts))


def _verdict(event: PointFinished) -> str:
    if any(outcome.passed is None for outcome in event.outcomes):
        return units.MISSING
    return PASS if all(outcome.passed for outcome in event.outcomes) else FAIL


def result_sentences(experiment: Experiment) -> list[str]:
    """The conclusions from all points, in sentences."""
    failed = failure_lines(experiment.plan, list(experiment.failed.values()))
    if not experiment.points:
        return failed
    if experiment.plan.variants:
        return list(experiment.results().verdicts())
    said = experiment.finished.said if experiment.finished is not None else ()
    curves = load_curves(experiment.plan, experiment.ordered)
    lines = [*(said or conclusions(experiment.measured, curves))]
    return [*(line.strip() for line in lines), *map(printable, failed)]


def outcome_lines(experiment: Experiment) -> list[str]:
    return [
        f"#{event.index + 1} {printable(event.label)}: {outcome_text(outcome)}"
        for event in experiment.ordered
        for outcome in event.outcomes
    ]


def verdict_grid(experiment: Experiment) -> str:
    """The outcomes of several jobs at a glance, as text in columns; "" if there is no such
    table."""
    if experiment.plan.variants:
        return ""
    return "\n".join(pass_table(experiment.plan, experiment.measured)).strip("\n")


def compared_tables(experiment: Experiment) -> Iterator[Table]:
    """For each variant after the first: every figure of both variants, and the difference; then the
    CPUs whose load changed most."""
    results = experiment.results()
    if results.complete < results.least:
        return
    for number, tested in enumerate(results.tested, 1):
        yield Table.from_rows(difference_columns(number), tested)
    for number, shifts in enumerate(results.shifts, 1):
        if shifts:
            rows = sorted(shifts[:MAX_CPUS], key=lambda shift: shift.cpu)
            yield Table.from_rows(cpu_columns(number), rows)


def point_cpus(experiment: Experiment) -> Table:
    """The CPU time that a sweep's points took; no rows if no point has such a figure."""
    measured = [
        event for event in experiment.measured if event.point.completions or event.point.busy
    ]
    return Table.from_rows(CPU_COLUMNS, measured, left_columns=2)


def method(experiment: Experiment) -> str:
    """Describe the statistical method."""
    results = experiment.results() if experiment.plan.variants else None
    if results is None or results.complete < results.least:
        return ""
    text = method_text(experiment.plan, "shown")
    return f"{text[0].upper()}{text[1:]}."


def as_data(experiment: Experiment) -> dict[str, Any]:
    """The experiment for JSON."""
    plan = experiment.plan
    data: dict[str, Any] = {
        "kind": plan.kind, "plan": experiment.name or None, "t": experiment.t,
        "jobs": list(plan.jobs), "settle": plan.settle, "measure": plan.measure,
        "total": plan.points, "incomplete": ending(experiment) or None,
        "points": [_point(event) for event in experiment.ordered],
        "words": result_sentences(experiment),
    }  # fmt: skip
    if not plan.variants:
        data["repeats"], data["seed"] = plan.repeats, plan.seed
        data["failed"] = [asdict(event) for event in experiment.failed.values()]
        if plan.repeats > 1:
            data["means"] = [mean_object(event) for event in experiment.measured]
        data["axes"] = {axis.name: list(axis.values) for axis in plan.axes}
        data["curves"] = [curve_object(curve) for curve in load_curves(plan, experiment.ordered)]
        return data
    data["variants"] = [variant.label for variant in plan.variants]
    data["repeats"], data["until"], data["figure"] = plan.repeats, plan.until, plan.figure
    if experiment.points:
        results = experiment.results()
        data["differences"] = [
            difference_object(number, figure)
            for number, tested in enumerate(results.tested, 1)
            for figure in tested
        ]
        data["cpus"] = [[asdict(shift) for shift in shifts] for shifts in results.shifts]
    return data


def _point(event: PointFinished) -> Mapping[str, Any]:
    point = asdict(event)
    point["settings"] = dict(event.settings)
    point["point"]["in_flight"] = event.point.in_flight
    for outcome, original in zip(point["outcomes"], event.outcomes, strict=True):
        outcome["passed"] = original.passed
    return point
