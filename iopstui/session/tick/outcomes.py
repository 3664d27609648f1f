"""Judge a session's runs: expectations met, and steady state reached."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iopstui.events import (
    Event,
    ExpectationChecked,
    ExperimentFinished,
    ExperimentStarted,
    FrameReady,
    Notice,
    SteadyState,
    StepFinished,
    StepStarted,
)
from iopstui.format import clock, latency, milliseconds, number
from iopstui.model.metrics.frame import HANDOVER
from iopstui.model.metrics.load_series import LoadSeries, overall
from iopstui.model.metrics.statistics import RANGE_LIMIT, ROUND_S, ROUNDS, SLOPE_LIMIT, Steadiness
from iopstui.model.metrics.summary import SecondRates, is_final, whole_rate
from iopstui.model.samples import DIRECTIONS
from iopstui.model.sizes import MIB
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.model.experiment.expectation import Expectation, ExpectationChecker, Outcome


PASS, FAIL, UNKNOWN, UNJUDGED = "PASS", "FAIL", "NOT MEASURED", "NOT JUDGED"
VERDICTS = FAIL, UNKNOWN, UNJUDGED, PASS
"""Verdicts, the gravest first."""


class OutcomeTracker:
    """Follows a session's events. A run with figures ends with an ``ExpectationChecked`` event for
    every expectation, and a ``SteadyState``; the points of an experiment are judged by its runner.

    ``outcomes`` are those of the last run. ``steady_stop`` detects when a run has become steady, if
    it should end then."""

    def __init__(
        self, expectations: Sequence[Expectation], steady_stop: SteadyStop | None = None
    ) -> None:
        self._expectations = tuple(expectations)
        self._steady_stop = steady_stop
        self.outcomes: list[Outcome] = []
        self.in_experiment = False
        self._begin()

    def _begin(self) -> None:
        self._checker = self._new_checker()
        self._series = LoadSeries()
        self._rates = SecondRates()
        self._shared_seconds = False
        if self._steady_stop is not None:
            self._steady_stop.begin()

    def _new_checker(self) -> ExpectationChecker | None:
        """A new checker of expectations. ``None`` if nothing is expected; then the code that judges
        is not imported."""
        if not self._expectations:
            return None
        from iopstui.model.experiment.expectation import ExpectationChecker

        return ExpectationChecker(self._expectations)

    @property
    def passed(self) -> bool | None:
        """Whether the last run met all expectations; ``None`` if nothing was judged yet, or
        something could not be judged."""
        verdicts = [outcome.passed for outcome in self.outcomes]
        if False in verdicts:
            return False
        return None if not verdicts or None in verdicts else True

    @property
    def steady(self) -> bool:
        """True if the run has been ended, or will be ended, because it is steady."""
        return self._steady_stop is not None and self._steady_stop.steadiness is not None

    def feed(self, event: Event) -> Iterator[ExpectationChecked | SteadyState | Notice]:
        """Process one event; return the events that follow from it."""
        match event:
            case ExperimentStarted() | ExperimentFinished():
                self.in_experiment = isinstance(event, ExperimentStarted)
            case _ if self.in_experiment:
                return
            case StepStarted():
                self._begin()
            case FrameReady():
                if self._checker is not None:
                    self._checker.add(event.frame)
                self._series.add(event.frame)
                self._rates.add(event.frame)
                self._shared_seconds |= HANDOVER in event.frame.flags
                if self._steady_stop is not None and (why := self._steady_stop.check(self._series)):
                    yield Notice(event.t, "info", why)
            case StepFinished() if event.summary:
                judge = self._checker
                final = final_rates(event.summary, self._shared_seconds)
                if not self._shared_seconds and is_final(event.summary):
                    for rate in self._rates.contradicted(event.summary):
                        final = without_direction(final, rate.direction)
                        yield Notice(event.t, "warning", rate.why)
                self.outcomes = [] if judge is None else judge.outcomes(final)
                for outcome in self.outcomes:
                    yield outcome_event(event.t, event.step, outcome)
                steadiness = self._steady_stop.steadiness if self._steady_stop is not None else None
                stages = [steadiness] if steadiness is not None else self._series.stages()
                yield steady_event(event.t, event.step, stages)


def final_rates(
    summary: Mapping[str, Any], shared_seconds: bool = False
) -> dict[tuple[str, ...], float]:
    """fio's own final IOPS and bandwidth by field path, for the whole run and for each job. The
    rates of the whole run are missing if stages of a job followed one another (there is then no
    such rate), or if another run worked in some of its seconds (``shared_seconds``). Empty if fio
    was killed (its I/Os are then counted later than its run time)."""
    if not is_final(summary):
        return {}
    from iopstui.model.experiment.job_figures import job_figures
    from iopstui.model.figures.figure import TOTAL

    rates: dict[tuple[str, ...], float] = {}
    for name in () if shared_seconds else DIRECTIONS:
        part = summary["total"].get(name)
        for figure, key in (("iops", "iops"), ("bw", "bw_bytes")):
            if part is not None and part[key] is not None:
                rates["fio", name, figure] = part[key]
    for figure, key in (("iops", "iops"), ("bw", "bw_bytes")) if rates else ():
        rate = whole_rate(summary, key)
        if rate is not None:
            rates["fio", TOTAL, figure] = rate
    return rates | job_figures(summary)


def without_direction(
    rates: Mapping[tuple[str, ...], float], direction: str
) -> dict[tuple[str, ...], float]:
    """``rates`` without those of one direction and the totals that contain it."""
    return {
        path: value
        for path, value in rates.items()
        if path[-1] not in ("iops", "bw") or path[-2] not in (direction, "total")
    }


def outcome_event(t: float, step: int, outcome: Outcome) -> ExpectationChecked:
    expectation = outcome.expectation
    base = expectation.base
    return ExpectationChecked(
        t, step, expectation.text, ".".join(expectation.path), expectation.unit,
        expectation.op, expectation.required, expectation.limit,
        outcome.measured, outcome.passed, outcome.share,
        base.value if base else None, base.name if base else "", outcome.low, outcome.high,
        base is not None and base.spread is not None, outcome.why,
    )  # fmt: skip


def outcome_text(outcome: Outcome) -> str:
    """Return one line: PASS or FAIL, required, measured, and how much of the time met it."""
    return outcome_event_text(outcome_event(0.0, 0, outcome))


def verdict_of(judged: ExpectationChecked) -> str:
    """The verdict on an outcome: PASS, FAIL, UNKNOWN or UNJUDGED."""
    if judged.passed is not None:
        return PASS if judged.passed else FAIL
    return UNKNOWN if judged.measured is None else UNJUDGED


def outcome_event_text(judged: ExpectationChecked) -> str:
    name, op, unit = judged.expectation.partition(judged.op)[0].strip(), judged.op, judged.unit
    required = f"{printable(name)} {op} {value_text(judged.required, unit)}"
    if judged.base is not None:
        required += f" ({100 * judged.required / (judged.base or 1):.4g} % of the baseline's "
        required += f"{value_text(judged.base, unit)})"
    if judged.limit != judged.required:
        percent = 100 * abs(judged.limit / judged.required - 1) if judged.required else 0.0
        required += f" ({value_text(judged.limit, unit)} with {percent:.4g} % tolerance)"
    if judged.measured is None:
        return f"{UNKNOWN}  {required}" + (f": {judged.why}" if judged.why else "")
    text = f"{verdict_of(judged)}  {required}: measured {value_text(judged.measured, unit)}"
    if judged.base is not None:
        text += against_baseline(judged)
    if judged.share is not None:
        text += f"; met in {share_text(judged.share)} of the seconds"
    return f"{text}; {judged.why}" if judged.why and judged.base is None else text


def against_baseline(judged: ExpectationChecked) -> str:
    """The ratio to the baseline with its interval, and how certain it is."""
    ratio = (judged.measured or 0.0) / judged.base if judged.base else 0.0
    if judged.why:
        return f", {100 * ratio:.1f} % of it; {judged.why}"
    if judged.low is None or judged.high is None:
        return f", {100 * ratio:.1f} % of it (no confidence interval)"
    low, high = f"{100 * judged.low:.1f}", f"{100 * judged.high:.1f}"
    text = f", {100 * ratio:.1f} % of it ({low} to {high} % with 95 % confidence)"
    part = judged.limit / judged.base if judged.base else 0.0
    if judged.passed and judged.low < part < judged.high:
        text += "; the limit lies within the interval, so this is not certain"
    if not judged.base_spread:
        text += "; the baseline has no interval and is assumed to vary as much as this run"
    return text


def worst_outcome(judged: Sequence[ExpectationChecked]) -> tuple[str, str]:
    """The worst verdict on a run's outcomes (``verdict_of``), and a line that begins with it; if
    there are several outcomes, they are counted and the first of the worst is named."""
    verdicts = [verdict_of(check) for check in judged]
    worst = next(verdict for verdict in VERDICTS if verdict in verdicts)
    text = outcome_event_text(judged[verdicts.index(worst)])
    if len(judged) == 1:
        return worst, text
    return (
        worst,
        f"{worst}  {verdicts.count(worst)} of {len(judged)}: {text.removeprefix(worst).strip()}",
    )


def share_text(share: float) -> str:
    """A share in whole percent; 100 % and 0 % only if it is exactly that."""
    percent = round(100 * share)
    if share < 1 and percent == 100:
        percent = 99
    if share > 0 and percent == 0:
        percent = 1
    return f"{percent} %"


def value_text(value: float, unit: str) -> str:
    """A figure with enough digits to show whether it is above or below a limit."""
    if unit == "ns":
        return latency(value)
    if unit == "ms":
        return milliseconds(value)
    if unit == "B/s":
        return f"{value / MIB:.1f} MiB/s"
    digits = 1 if abs(value) < 1000 and not math.isclose(value, round(value)) else 0
    suffix = {"1/s": "", "": ""}.get(unit, f" {unit}")
    return f"{value:.{digits}f}{suffix}"


# Detect the steady state of a run, and end the run there if asked.


NEVER_STEADY = (
    "The run was never steady by SNIA's rule. Give it more time (--set runtime=1h), or shorter "
    "rounds (--until-steady 10s) if slow changes don't matter."
)


class SteadyStop:
    """Looks at a run's series after each frame. SNIA's rule is applied at the end of each round of
    ``round_s`` seconds, as specified: if applied every second, it would be met by chance sooner or
    later."""

    def __init__(self, round_s: float) -> None:
        self._round_s = round_s
        self.begin()

    def begin(self) -> None:
        self._rounds_checked = 0
        self.steadiness: Steadiness | None = None

    def check(self, series: LoadSeries) -> str:
        """Return why the run can end now, once; else ""."""
        if self.steadiness is not None:
            return ""
        seconds = series.seconds
        # a frame may end slightly before its second
        rounds = int((seconds + 0.05) / self._round_s)
        if rounds < max(ROUNDS, self._rounds_checked + 1):
            return ""
        self._rounds_checked = rounds
        steadiness = series.steadiness(min(self._round_s, seconds / ROUNDS))
        if not steadiness.steady:
            return ""
        self.steadiness = steadiness
        return (
            f"steady after {clock(seconds)}: the last {ROUNDS} rounds of {self._round_s:g} s "
            f"averaged {number(steadiness.mean)} IOPS (range {100 * steadiness.range:.1f} %, trend "
            f"{100 * steadiness.slope:.1f} %). Stopping (--until-steady); fio's final figures also "
            "cover the time before"
        )


def steady_event(t: float, step: int, stages: Sequence[Steadiness]) -> SteadyState:
    """The event on a run's steadiness, with its text. Its figures are those of the least steady
    stage."""
    worst = overall(stages)
    text = steady_text(worst) if len(stages) == 1 else _stages_text(stages)
    return SteadyState(t, step, worst.steady, worst.range, worst.slope, worst.round_s, text)


def steady_text(steadiness: Steadiness) -> str:
    """The result of the SNIA rule for the run, or for a stage of it, with its meaning."""
    if steadiness.changing:
        return (
            f"Steady state: not judged, because {steadiness.changing}= changes the load by itself"
        )
    if steadiness.steady is None:
        return f"Steady state: unknown, the run has fewer than {ROUNDS} whole intervals with I/O"
    where = f" while {_names(steadiness)} ran" if steadiness.sections else ""
    text = f"Steady state (SNIA rule){where}: {'yes' if steadiness.steady else 'NO'}. "
    text += _variation(steadiness)
    if not steadiness.steady:
        text += "; results depend on when and how long you measure"
    return text + _round_text(steadiness.round_s)


def _stages_text(stages: Sequence[Steadiness]) -> str:
    unsteady = sum(not stage.steady for stage in stages)
    verdict = f"NO in {unsteady} of {len(stages)} stages" if unsteady else "yes in each stage"
    parts = [f"{_names(stage)}: {_variation(stage)}" for stage in stages]
    text = f"Steady state (SNIA rule): {verdict}. {'; '.join(parts)}"
    return text + _round_text(min(stage.round_s for stage in stages))


def _names(stage: Steadiness) -> str:
    """The names of the job sections at work."""
    return ", ".join(map(printable, stage.sections[:3])) + (" ..." * (len(stage.sections) > 3))


def _variation(stage: Steadiness) -> str:
    return (
        f"Over the last {ROUNDS} rounds of {stage.round_s:.3g} s IOPS vary by "
        f"{100 * stage.range:.1f} % of their mean (limit {100 * RANGE_LIMIT:.0f} %), with a trend "
        f"of {100 * stage.slope:.1f} % (limit {100 * SLOPE_LIMIT:.0f} %)"
    )


def _round_text(round_s: float) -> str:
    if round_s >= ROUND_S - 1e-9:
        return ""
    return f"; the rule assumes rounds of {ROUND_S:.0f} s, so slower changes are not detected"


def short_steady_text(steady: SteadyState) -> str:
    """The result in ``steady_text`` in half a line."""
    if steady.steady is None:
        return steady.text.partition(",")[0]
    return (
        f"Steady state: {'yes' if steady.steady else 'NO'}, by SNIA's rule over rounds of "
        f"{steady.round_s:.3g} s (IOPS range over {100 * steady.range:.1f} % of their mean)"
    )
