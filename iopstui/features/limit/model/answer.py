"""The result of a search, in words that say no more than was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.features.limit.model.estimate import Estimate
from iopstui.features.limit.model.search import Search
from iopstui.format import duration

FOUND, NEVER, NO_LIMIT, UNSURE = "found", "never", "no-limit", "unsure"
WIDE = 0.25
"""If half of the interval, as a share of its middle, is more than this, it says too little."""
ENOUGH = 0.07
"""If half of the interval is less than this, it is narrow enough to need no comment."""
MEASURED_SHARE = 0.7
"""The share of a search's time that is measured; the rest is needed for starts and settling."""
MORE = 1.3
STEP_S = 60
MAX_CHANGES = 1
CAUSES = "the end of a burst, a cache that filled, throttling"
MAX_SPOILED = 4
"""How many runs in a row: the rate, the same rate again, and two lower ones."""
INTERRUPTED = "interrupted"
DISTURBED = "too many runs were disturbed. Next: end what disturbed them, and start it again"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a search. ``kind`` is a constant of this module; the limit lies between ``low``
    and ``high`` with 95 % confidence, as far as they are known; ``text`` says so, and ``notes`` say
    what else happened."""

    kind: str
    low: float | None
    high: float | None
    best: float | None
    text: str
    notes: tuple[str, ...] = ()


def conclude(
    search: Search, bound: str, spoiled: Sequence[str], ended: str = "", spoiled_runs: int = 0
) -> Answer:
    """The answer of a search. ``bound`` is as the user wrote it; ``spoiled`` says why
    ``spoiled_runs`` do not count; ``ended`` says why no more could be measured ("" if the search
    found its answer or ran out of time)."""
    found = search.estimate()
    notes = [f"The disk changed: {change} ({CAUSES}). The limit is that of afterwards."
             for change in search.changes]  # fmt: skip
    notes += dict.fromkeys(spoiled)
    if found is None:
        why = ended or (DISTURBED if spoiled else "the time was over before a rate was measured")
        return Answer(UNSURE, None, None, None, f"can't tell: {why}", tuple(notes))
    kind, text = _result(search, found, bound, ended, spoiled_runs)
    if kind == FOUND:
        measured_s = sum(len(run.seconds) for run in search.runs)
        notes.append(f"Measured for {duration(measured_s)} in all: what changes later, such as a "
                     "longer burst, is not in it.")  # fmt: skip
        if found.half_width > ENOUGH:
            more = max(MORE, (found.half_width / ENOUGH) ** 2)
            longer = measured_s / MEASURED_SHARE * more
            notes.append(f"The interval is ±{100 * found.half_width:.0f} % wide: slow I/Os come "
                         f"in groups. For about ±{100 * ENOUGH:.0f} %: --time "
                         f"{STEP_S * math.ceil(longer / STEP_S)}.")  # fmt: skip
    return Answer(kind, found.low, found.high, found.best, text, tuple(notes))


def _result(
    search: Search, found: Estimate, bound: str, ended: str, spoiled: int
) -> tuple[str, str]:
    runs = search.runs
    if len(search.changes) > MAX_CHANGES:
        return UNSURE, "can't tell: what the disk can do changed while it was measured"
    if found.half_width > WIDE and (search.disturbed or spoiled >= MAX_SPOILED):
        kept = [run.asked for run in runs if run.keeps]
        least = f"{max(kept):,.0f}/s keeps it even so; " if kept else ""
        return UNSURE, f"can't tell: {least}{DISTURBED}"
    if search.is_never_kept:
        lowest = min(run.asked for run in runs)
        return NEVER, f"{bound} is not kept at any rate: not even at {lowest:,.0f}/s"
    if found.high is None and all(run.share <= run.allowed for run in runs):
        highest = max(run.asked for run in runs)
        why = ended or "the time was over before a rate was too high"
        return NO_LIMIT, f"no limit found up to {highest:,.0f}/s: {why}"
    if found.low is None or found.high is None or found.half_width > WIDE:
        why = ended if ended == INTERRUPTED else "too unsteady to say"
        return UNSURE, f"can't tell: {why} ({range_text(found)} in the time there was)"
    return FOUND, f"{_rates(found.low, found.high)} (95 %)"


def _rates(low: float, high: float) -> str:
    """ "1,680 to 1,810/s": with no more digits than the interval has."""
    unit = 10 ** max(0, len(str(int(high - low))) - 2)
    return f"{unit * int(low / unit):,} to {unit * -int(-high // unit):,}/s"


def range_text(found: Estimate) -> str:
    """ "909 to 990/s at 95 %", "above 931/s": as far as it is known."""
    if found.low is not None and found.high is not None:
        return f"{_rates(found.low, found.high)} at 95 %"
    if found.high is not None:
        return f"below {found.high:,.0f}/s"
    return f"above {found.low:,.0f}/s" if found.low is not None else "at any of the rates"
