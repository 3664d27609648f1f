"""Detect the steady state of a run, and end the run there if asked."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.events import SteadyState
from iopstui.format import clock, number
from iopstui.model.metrics.load_series import LoadSeries, overall
from iopstui.model.metrics.statistics import RANGE_LIMIT, ROUND_S, ROUNDS, SLOPE_LIMIT, Steadiness
from iopstui.text import printable

NEVER_STEADY = (
    "The run was never steady by SNIA's rule. Give it more time (--set runtime=1h), or shorter "
    "rounds (--until-steady 10s) if slow changes don't matter."
)


class SteadyStop:
    """Looks at a run's series after each frame. SNIA's rule is asked at the end of each round of
    ``round_s`` seconds, as the specification has it: asked every second it would be met by chance
    sooner or later."""

    def __init__(self, round_s: float) -> None:
        self._round_s = round_s
        self.begin()

    def begin(self) -> None:
        """Another run begins."""
        self._rounds_checked = 0
        self.steadiness: Steadiness | None = None

    def check(self, series: LoadSeries) -> str:
        """Why the run can end now, once, "" otherwise."""
        if self.steadiness is not None:
            return ""
        seconds = series.seconds
        # a frame may end a hair before its second
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
    """The event of a run's steadiness, with the words. Its figures are those of the least steady
    stage."""
    worst = overall(stages)
    text = steady_text(worst) if len(stages) == 1 else _stages_text(stages)
    return SteadyState(t, step, worst.steady, worst.range, worst.slope, worst.round_s, text)


def steady_text(steadiness: Steadiness) -> str:
    """Result of the SNIA rule for the run or its only stage, with its meaning."""
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
    """The sections at work."""
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
    """Return the text of ``steady_text`` in half a line."""
    if steady.steady is None:
        return steady.text.partition(",")[0]
    return (
        f"Steady state: {'yes' if steady.steady else 'NO'}, by SNIA's rule over rounds of "
        f"{steady.round_s:.3g} s (IOPS range over {100 * steady.range:.1f} % of their mean)"
    )
