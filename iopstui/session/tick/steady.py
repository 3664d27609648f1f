"""Detect the steady state of a run, and end the run there if asked."""

from __future__ import annotations

from iopstui.events import SteadyState
from iopstui.format import clock, number
from iopstui.model.metrics.frame import RAMP, RESET, Frame
from iopstui.model.metrics.statistics.steadiness import (
    RANGE_LIMIT,
    ROUND_S,
    ROUNDS,
    SLOPE_LIMIT,
    Steadiness,
    steadiness,
)

NEVER_STEADY = (
    "The run was never steady by SNIA's rule. Give it more time (--set runtime=1h), or shorter "
    "rounds (--until-steady 10s) if slow changes don't matter."
)


class IoSeries:
    """A run's completed I/Os over time, without fio's ramp."""

    def __init__(self) -> None:
        self._intervals: list[tuple[float, float]] = []

    def add(self, frame: Frame) -> None:
        """Count one frame."""
        fio = frame.fio
        if fio is None or RAMP in frame.flags or not fio.seconds or fio.total.iops is None:
            return
        if RESET in frame.flags:
            self._intervals.clear()
        self.add_interval(fio.seconds, float(fio.total.ios))

    def add_interval(self, seconds: float, ios: float) -> None:
        """Count so many I/Os in so many seconds."""
        self._intervals.append((seconds, ios))

    @property
    def seconds(self) -> float:
        """Total length of the intervals."""
        return sum(seconds for seconds, _ in self._intervals)

    def steadiness(self, round_s: float | None = None) -> Steadiness:
        """Whether the run was steady, by rounds of ``round_s`` seconds (``None``: as the rule
        chooses)."""
        return steadiness(self._intervals, round_s)


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

    def check(self, series: IoSeries) -> str:
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


def steady_event(t: float, step: int, steadiness: Steadiness) -> SteadyState:
    """The event of a run's steadiness, with the words."""
    return SteadyState(
        t,
        step,
        steadiness.steady,
        steadiness.range,
        steadiness.slope,
        steadiness.round_s,
        steady_text(steadiness),
    )


def steady_text(steadiness: Steadiness) -> str:
    """Result of the SNIA rule for the run, with its meaning."""
    if steadiness.steady is None:
        return f"Steady state: unknown, the run has fewer than {ROUNDS} whole intervals with I/O"
    text = (
        f"Steady state (SNIA rule): {'yes' if steadiness.steady else 'NO'}. Over the last {ROUNDS} "
        f"rounds of {steadiness.round_s:.3g} s IOPS vary by {100 * steadiness.range:.1f} % of "
        f"their mean (limit {100 * RANGE_LIMIT:.0f} %), with a trend of "
        f"{100 * steadiness.slope:.1f} % (limit {100 * SLOPE_LIMIT:.0f} %)"
    )
    if not steadiness.steady:
        text += "; results depend on when and how long you measure"
    if steadiness.round_s < ROUND_S - 1e-9:
        text += f"; the rule assumes rounds of {ROUND_S:.0f} s, so slower changes are not detected"
    return text


def short_steady_text(steady: SteadyState) -> str:
    """Return the text of ``steady_text`` in half a line."""
    if steady.steady is None:
        return "Steady state: unknown, the run was too short"
    return (
        f"Steady state: {'yes' if steady.steady else 'NO'}, by SNIA's rule over rounds of "
        f"{steady.round_s:.3g} s (IOPS range over {100 * steady.range:.1f} % of their mean)"
    )
