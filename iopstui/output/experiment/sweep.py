"""A sweep as a table, JSON lines or CSV: one row per point, then the curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TextIO

from iopstui import format as units
from iopstui.events import PointFailed, PointFinished
from iopstui.model.experiment.host_sweep import OF_HOSTS, HostPoint, curve_scaling
from iopstui.model.experiment.load_curve import (
    LoadCurve,
    conclusions,
    curves_along,
    failure_lines,
    interval_text,
    load_curves,
    measured_points,
)
from iopstui.model.experiment.plan import HOSTS, Plan, point_indexes
from iopstui.model.experiment.point import POINT
from iopstui.output.experiment.sink import (
    Cell,
    ExperimentRows,
    ExperimentTable,
    JsonLines,
    cells,
    disturbed_text,
    point_object,
)
from iopstui.output.jsonl import Object, event_object
from iopstui.session.tick.outcomes import outcome_event, outcome_text, value_text
from iopstui.tables import Column, head_line, line, row_line, texts
from iopstui.text import printable, wrapped

MAX_NAME = 14


@dataclass(frozen=True, slots=True)
class SweepResults:
    """Results of a sweep: sentences about its curves, and a table of the outcomes."""

    curves: Sequence[LoadCurve[PointFinished]]
    lines: Sequence[str]
    passes: Sequence[str]
    points: Sequence[PointFinished] = ()
    host_curves: Sequence[LoadCurve[PointFinished]] = ()

    def verdicts(self) -> Sequence[str]:
        return self.lines


def sweep_results(
    plan: Plan, runs: Sequence[PointFinished], failed: Sequence[PointFailed] = (),
    said: Sequence[str] = (),
) -> SweepResults:  # fmt: skip
    """The conclusions from the runs so far; ``said`` has the conclusions that the plan made
    itself."""
    curves, points = load_curves(plan, runs), measured_points(plan, runs)
    lines = [*(said or conclusions(points, curves)), *failure_lines(plan, failed)]
    hosts = next((axis for axis in plan.axes if axis.kind == HOSTS), None)
    host_curves = curves_along(plan, hosts, runs) if hosts is not None else ()
    return SweepResults(curves, lines, pass_table(plan, points), points, host_curves)


class SweepTable(ExperimentTable[SweepResults]):
    """A sweep as a table: one row per point."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        super().__init__(plan, out)
        self._labels = [*labels(plan)]
        own = [figure.column() for figure in plan.columns]
        # a column for the run's number needs room: leave one out to stay within 80 columns
        figures = own or [one for one in FIGURES if plan.repeats == 1 or one is not QUEUE]
        self._columns = [*self._labels, *figures]
        self._started = False

    def point(self, event: PointFinished) -> None:
        self._row(row_line(self._columns, event))
        self._sentences(f"disturbed: {text}" for text in event.point.disturbed)
        self._sentences(map(outcome_text, event.outcomes))

    def failed(self, event: PointFailed) -> None:
        """Write a run that failed; the reason is printed below the table."""
        self._row(line(self._columns, [*texts(self._labels, event), "failed"]))

    def _row(self, text: str) -> None:
        if not self._started:
            self._started = True
            self._print(head_line(self._columns))
        self._print(text)

    def end(self, results: SweepResults) -> None:
        if self._plan.repeats > 1:
            self._print("")
            for line in mean_rows(self._plan, results.points):
                self._print(line)
        if results.lines:
            self._print("\n" + "\n".join(wrapped(line, 0, 2) for line in results.lines))
        for line in results.passes:
            self._print(line)


QUEUE = POINT["aqu_sz"].column()
FIGURES = (
    *(POINT[name].column() for name in (
        "iops", "bw", "latency_ns", "p50_ns", "p99_ns", "p999_ns")), QUEUE, POINT["seen"].column(),
    Column("little", "of", 4, lambda law: units.or_dash(law.asked) + ("" if law.holds else "!")),
)  # fmt: skip
MEANS = (
    Column("point/runs", "runs", 4), FIGURES[0],
    Column("point/iops_within", "95 %", 13, lambda rows: interval_text(rows, units.number)),
    replace(FIGURES[2], title="latency", width=8),
    Column("point/latency_within", "95 %", 15, lambda rows: interval_text(rows, units.latency)),
    FIGURES[7],
)  # fmt: skip


def labels(plan: Plan) -> Iterator[Column]:
    """The columns that say which point and run it is; with one or two short axes, the whole table
    fits in 80 columns."""
    place = point_indexes(plan)
    yield Column("", "#", max(2, len(str(plan.points))),
                 read=lambda event: place[(event.job, tuple(event.settings))] + 1)  # fmt: skip
    if len(plan.jobs) > 1:
        yield Column("job", "job", min(MAX_NAME, max(map(len, plan.jobs))), _name)
    for axis in plan.axes:
        width = min(MAX_NAME, max(len(axis.name), *map(len, axis.values)))
        yield Column("", _name(axis.name), width, _name, read=_setting(axis.name))
    if plan.repeats > 1:
        yield Column("repeat", "run", max(3, len(str(plan.repeats))), lambda n: str(n + 1))


def _name(text: str) -> str:
    return units.cut(printable(text), MAX_NAME)


def _setting(name: str) -> Callable[[PointFinished | PointFailed], str]:
    return lambda event: dict(event.settings)[name]


def mean_rows(plan: Plan, points: Sequence[PointFinished]) -> Iterator[str]:
    """A table of the points: the mean of each point's runs, with its interval."""
    columns = [*[*labels(plan)][:-1], *MEANS]
    yield head_line(columns)
    yield from (row_line(columns, event) for event in points)


class SweepJson(ExperimentRows[SweepResults]):
    """JSON lines: the session, the sweep, a line for each point with its outcomes, and a line for
    each curve."""

    def __init__(self, plan: Plan, lines: JsonLines) -> None:
        self._lines, self._plan = lines, plan
        axes = {axis.name: list(axis.values) for axis in plan.axes}
        lines.write("sweep", {"plan": plan.name or None, "jobs": list(plan.jobs), "axes": axes,
                              "settle": plan.settle, "measure": plan.measure, "points": plan.points,
                              "repeats": plan.repeats, "seed": plan.seed})  # fmt: skip

    def point(self, event: PointFinished) -> None:
        row = point_object(event)
        row["point"] |= own_figures(event)
        self._lines.write(row.pop("event"), row)
        for outcome in event.outcomes:
            judged = event_object(outcome_event(event.t, event.index, outcome))
            del judged["step"]
            self._lines.write(judged.pop("event"), {"index": event.index, **judged})

    def failed(self, event: PointFailed) -> None:
        failure = {**event_object(event), "settings": dict(event.settings)}
        self._lines.write(failure.pop("event"), failure)

    def end(self, results: SweepResults) -> None:
        if self._plan.repeats > 1:
            for point in results.points:
                self._lines.write("point_mean", mean_object(point))
        for curve in results.curves:
            self._lines.write("curve", curve_object(curve))
        for curve in results.host_curves:
            self._lines.write("scaling", scaling_object(curve))
        self._lines.write("sweep_finished", {"words": list(results.lines)})


def own_figures(event: PointFinished) -> Object:
    """The figures that are computed from other figures of the point."""
    of_hosts = OF_HOSTS.values() if isinstance(event.point, HostPoint) else ()
    return {"in_flight": event.point.in_flight} | {one.name: one.value(event) for one in of_hosts}


def mean_object(event: PointFinished) -> Object:
    """A point of several runs, for JSON; its ``place`` is its number in the plan, from 0."""
    return {
        "place": event.index, "job": event.job, "settings": dict(event.settings),
        "point": {**asdict(event.point), **own_figures(event)},
        "little": asdict(event.little),
    }  # fmt: skip


def scaling_object(curve: LoadCurve[PointFinished]) -> Object:
    """The scaling law fitted to a curve over numbers of hosts, for JSON."""
    found = curve_scaling(curve)
    law = found.law
    return {
        "fixed": dict(curve.fixed),
        "points": [[hosts, iops] for hosts, iops in found.points],
        "rate": law.rate if law else None,
        "contention": law.contention if law else None,
        "coherency": law.coherency if law else None,
        "residuals": law.residuals(found.points) if law else None,
        "knee": found.knee, "knee_within": list(found.knees) if found.knees else None,
        "beyond": found.knee_is_beyond, "doubt": found.doubt or None,
        "words": found.sentences(),
    }  # fmt: skip


def curve_object(curve: LoadCurve[PointFinished]) -> Object:
    """A curve and its knee, for JSON; points are given by their index in the plan."""
    knee, within = curve.knee, curve.knee_within
    return {
        "axis": curve.axis.name,
        "fixed": dict(curve.fixed),
        "points": [event.index for event in curve.points],
        "knee": curve.points[knee.index].index if knee else None,
        "edge": knee.edge if knee else None,
        "knee_within": [curve.points[n].index for n in within] if knee and within else None,
        "doubt": curve.doubt or None,
    }


def sweep_cells(plan: Plan) -> list[Cell]:
    """The columns of CSV: one row per run."""
    settings = [(printable(axis.name), _setting(axis.name)) for axis in plan.axes]
    return [
        ("index", "index"),
        ("job", lambda event: printable(event.job)),
        *((name, lambda event, value=value: printable(value(event))) for name, value in settings),
        *cells("seconds ios iops bw read_iops write_iops latency_ns latency_of p50_ns p99_ns "
               "p999_ns device_iops aqu_sz util cpu_us in_flight steady device_p50_ns "
               "device_p99_ns stayed watts ios_per_joule"),
        *((figure.name, figure.value) for figure in plan.columns if figure.name in OF_HOSTS),
        ("asked", "little/asked"),
        ("repeat", "repeat"),
        ("error", lambda event: getattr(event, "error", None) and printable(event.error)),
        ("others", "point/others"),
        ("disturbed", disturbed_text),
    ]  # fmt: skip


def pass_table(plan: Plan, points: Sequence[PointFinished]) -> list[str]:
    """The outcomes of several jobs at a glance: a row for each job, a column for each setting."""
    labels = list(dict.fromkeys(_without_job(event) for event in points))
    judged = [event for event in points if event.outcomes]
    if len(plan.jobs) < 2 or not judged or len(labels) > 4:
        return []
    width = max(len(printable(job)) for job in plan.jobs)

    def row(name: str, cells: Sequence[str]) -> str:
        aligned = (
            cell.rjust(max(len(label), 4)) for cell, label in zip(cells, labels, strict=True)
        )
        return f"{name:{width}}  {'  '.join(aligned)}".rstrip()

    lines = []
    for number, first in enumerate(judged[0].outcomes):
        wanted = first.expectation
        required = value_text(wanted.required, wanted.unit)
        lines += ["", f"{printable(wanted.name)} {wanted.op} {required}", row("", labels)]
        for job in plan.jobs:
            verdicts = {_without_job(e): _verdict_word(e, number) for e in judged if e.job == job}
            lines.append(row(printable(job), [verdicts.get(label, "") for label in labels]))
    return lines


def _without_job(event: PointFinished) -> str:
    return printable(" ".join(f"{n}={v}" for n, v in event.settings if n != "job"))


def _verdict_word(event: PointFinished, number: int) -> str:
    passed = event.outcomes[number].passed
    return units.MISSING if passed is None else "PASS" if passed else "FAIL"
