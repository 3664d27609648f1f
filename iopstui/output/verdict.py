"""What came of the expectations, and whether the run was steady: judged beside any other sink."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from iopstui import units
from iopstui.fields import TOTAL
from iopstui.model.expectation import Expectation, Judge, Outcome
from iopstui.model.frame import RAMP, RESET, Frame
from iopstui.model.samples import DIRECTIONS, MIXED
from iopstui.model.statistics import (
    RANGE_LIMIT,
    ROUND_S,
    ROUNDS,
    SLOPE_LIMIT,
    Steadiness,
    steadiness,
)
from iopstui.output.sinks import EventSink
from iopstui.session.events import (
    Event,
    FrameReady,
    Judged,
    SteadyState,
    StepFinished,
    StepStarted,
)
from iopstui.text import printable


class VerdictSink:
    """Passes a session's events on and, at the end of each run that gave figures, adds a
    ``Judged`` for every expectation and a ``SteadyState``; ``words`` gets them in words.

    ``passed`` is ``None`` while nothing was judged, or where something could not be.
    """

    def __init__(
        self, inner: EventSink, words: TextIO, expectations: Sequence[Expectation]
    ) -> None:
        self._inner = inner
        self._words = words
        self._expectations = tuple(expectations)
        self._begin()
        self.outcomes: list[Outcome] = []

    def _begin(self) -> None:
        self._judge = Judge(self._expectations)
        self._series = Series()

    @property
    def passed(self) -> bool | None:
        """Whether all expectations of the last run were met."""
        verdicts = [outcome.passed for outcome in self.outcomes]
        if not verdicts or None in verdicts:
            return None
        return all(verdicts)

    def handle(self, event: Event) -> None:
        """Take one event."""
        self._inner.handle(event)
        if isinstance(event, StepStarted):
            self._begin()
        elif isinstance(event, FrameReady):
            self._judge.add(event.frame)
            self._series.add(event.frame)
        elif isinstance(event, StepFinished) and event.summary and self._expectations:
            self._finish(event)

    def close(self) -> None:
        """Nothing more will come."""
        self._inner.close()

    def _finish(self, event: StepFinished) -> None:
        self.outcomes = self._judge.outcomes(final_rates(event.summary))
        steady = steady_event(event.t, event.step, self._series.steadiness())
        for outcome in self.outcomes:
            self._inner.handle(judged_event(event.t, event.step, outcome))
        self._inner.handle(steady)
        what = "until the interruption" if event.interrupted else "of the whole run"
        lines = [f"expectations, by the figures {what}:"]
        lines += [wrapped(outcome_text(outcome), 2, 8) for outcome in self.outcomes]
        lines.append(wrapped(steady.text, 0, 2))
        self._words.write(units.fit("\n" + "\n".join(lines) + "\n", self._words.encoding))
        self._words.flush()


def wrapped(text: str, first: int, rest: int, width: int = 80) -> str:
    """``text`` in lines of at most ``width``, indented by ``first`` and then ``rest``."""
    # a figure stays with its unit
    kept = re.sub(r"(?<=\d) (?=\S)", "\N{NO-BREAK SPACE}", text)
    return textwrap.fill(
        kept, width, initial_indent=" " * first, subsequent_indent=" " * rest,
        break_long_words=False, break_on_hyphens=False,
    ).replace("\N{NO-BREAK SPACE}", " ")  # fmt: skip


class Series:
    """A run's completed I/Os over time, without fio's ramp."""

    def __init__(self) -> None:
        self._intervals: list[tuple[float, float]] = []

    def add(self, frame: Frame) -> None:
        """Count one frame."""
        fio = frame.fio
        if fio is None or RAMP in frame.flags or not fio.seconds:
            return
        if RESET in frame.flags:
            self._intervals.clear()
        self._intervals.append((fio.seconds, float(fio.total.ios)))

    def steadiness(self) -> Steadiness:
        """Whether it was steady."""
        return steadiness(self._intervals)


def final_rates(summary: Mapping[str, Any]) -> dict[tuple[str, ...], float]:
    """fio's own final IOPS and bandwidth by field path; none where stages of a job followed
    one another (there is then no rate of the whole)."""
    rates: dict[tuple[str, ...], float] = {}
    for name in DIRECTIONS:
        part = summary["total"].get(name)
        for ours, key in (("iops", "iops"), ("bw", "bw_bytes")):
            if part is not None and part[key] is not None:
                rates["fio", name, ours] = part[key]
    split = [name for name in DIRECTIONS if ("fio", name, "iops") in rates and name != MIXED]
    for key in ("iops", "bw"):
        parts = [rates["fio", name, key] for name in split or (MIXED,)
                 if ("fio", name, key) in rates]  # fmt: skip
        if parts:
            rates["fio", TOTAL, key] = sum(parts)
    return rates


def judged_event(t: float, step: int, outcome: Outcome) -> Judged:
    """The event of one outcome."""
    one = outcome.expectation
    return Judged(t, step, one.text, ".".join(one.path), one.unit, one.op, one.required, one.limit,
                  outcome.measured, outcome.passed, outcome.share)  # fmt: skip


def steady_event(t: float, step: int, found: Steadiness) -> SteadyState:
    """The event of a run's steadiness, with the words."""
    return SteadyState(
        t, step, found.steady, found.range, found.slope, found.round_s, steady_text(found)
    )


def outcome_text(outcome: Outcome) -> str:
    """One line: PASS or FAIL, required, measured, and how much of the time met it."""
    one = outcome.expectation
    word = {True: "PASS", False: "FAIL", None: "NOT MEASURED"}[outcome.passed]
    required = f"{printable(one.name)} {one.op} {value_text(one.required, one.unit)}"
    if one.tolerance:
        required += f" ({value_text(one.limit, one.unit)} with {one.tolerance * 100:g} % tolerance)"
    if outcome.measured is None:
        return f"{word}  {required}"
    text = f"{word}  {required}: measured {value_text(outcome.measured, one.unit)}"
    if outcome.share is not None:
        text += f"; met in {share_text(outcome.share)} of the seconds"
    return text


def share_text(share: float) -> str:
    """A share in whole percent; 100 % and 0 % only if it is all or nothing."""
    percent = round(100 * share)
    if share < 1 and percent == 100:
        percent = 99
    if share > 0 and percent == 0:
        percent = 1
    return f"{percent} %"


def value_text(value: float, unit: str) -> str:
    """A figure with enough digits to see which side of a limit it is on."""
    if unit == "ns":
        return units.latency(value)
    if unit == "ms":
        return units.milliseconds(value)
    if unit == "B/s":
        return f"{value / 1e6:.1f} MB/s"
    digits = 1 if abs(value) < 1000 and not math.isclose(value, round(value)) else 0
    named = {"1/s": "", "": ""}.get(unit, f" {unit}")
    return f"{value:.{digits}f}{named}"


def steady_text(found: Steadiness) -> str:
    """What the SNIA rule says of the run, and what that means."""
    if found.steady is None:
        return (
            f"steady state: can't be judged, the run has fewer than {ROUNDS} whole intervals "
            "with I/O"
        )
    text = (
        f"steady state (SNIA's rule): {'yes' if found.steady else 'NO'}; IOPS of the last {ROUNDS} "
        f"rounds of {found.round_s:.3g} s range over {100 * found.range:.1f} % of their mean "
        f"({100 * RANGE_LIMIT:.0f} % allowed), their trend over {100 * found.slope:.1f} % "
        f"({100 * SLOPE_LIMIT:.0f} %)"
    )
    if not found.steady:
        text += ": the figures above depend on when and how long one measures"
    if found.round_s < ROUND_S - 1e-9:
        text += f"; the rule means rounds of {ROUND_S:.0f} s: slower changes are not seen"
    return text
