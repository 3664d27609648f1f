"""What came of one scenario, and the table of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from judge import BROKEN, MISSED, OUT, RIGHT, WRONG, Said, Verdict

COLUMNS = ("scenario", "place", "expected", "said", "verdict")


@dataclass(frozen=True)
class Outcome:
    """``expected`` and ``said`` are rules in words; ``figures`` what fio and the disk did."""

    name: str
    place: str
    what: str
    expected: tuple[str, ...]
    said: tuple[Said, ...]
    verdict: Verdict
    figures: str = ""
    seconds: float = 0.0

    @property
    def rules(self) -> str:
        """The rules that have spoken, each once."""
        return _words(dict.fromkeys(one.rule for one in self.said))

    @property
    def row(self) -> tuple[str, ...]:
        said = "" if self.verdict.word == OUT else self.rules
        return self.name, self.place, _words(self.expected), said, self.verdict.word


def _words(rules: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(rules) or "none"


def to_json(outcome: Outcome) -> dict[str, Any]:
    """As plain data."""
    return asdict(outcome)


def from_json(data: Mapping[str, Any]) -> Outcome:
    """The other way round."""
    verdict = data["verdict"]
    return Outcome(**{
        **data, "expected": tuple(data["expected"]),
        "said": tuple(Said(**one) for one in data["said"]),
        "verdict": Verdict(verdict["word"], tuple(verdict["why"])),
    })  # fmt: skip


def lines(outcome: Outcome, verbose: bool) -> Iterator[str]:
    """One line as soon as it is known, and what there is to say of it below."""
    name, place, expected, said, verdict = outcome.row
    yield f"{verdict:<8} {name:<24} {place:<12} expected {expected}; said {said}"
    yield from (f"         {why}" for why in outcome.verdict.why)
    if verbose or outcome.verdict.word not in (RIGHT, OUT):
        if outcome.figures:
            yield f"         {outcome.figures}"
        if verbose:
            yield from (f"         {one.rule}: {one.text}" for one in outcome.said)


def counted(outcomes: Sequence[Outcome]) -> str:
    """How many of each verdict."""
    found = Counter(outcome.verdict.word for outcome in outcomes)
    words = [f"{found[word]} {word}" for word in (RIGHT, MISSED, WRONG)]
    words += [f"{found[word]} {word}" for word in (BROKEN, OUT) if found[word]]
    return f"{len(outcomes)} scenarios: {', '.join(words)}{_delay(outcomes)}"


def _delay(outcomes: Sequence[Outcome]) -> str:
    """How long the right finding took, if there were any: the median and the longest."""
    each = [
        one.after
        for outcome in outcomes if outcome.verdict.word == RIGHT
        for rule in outcome.expected
        for one in [next(said for said in outcome.said if said.rule == rule)]
        if one.after is not None
    ]  # fmt: skip
    if not each:
        return ""
    return f"; the right finding after {median(each):.1f} s (median), {max(each):.1f} s (longest)"


def left_out(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """How many were left out, by reason."""
    reasons = Counter(o.verdict.why[0] for o in outcomes if o.verdict.word == OUT)
    yield from (f"{count} left out: {why}" for why, count in reasons.items())


def markdown(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A table for a document."""
    yield f"| {' | '.join(('situation', *COLUMNS[1:]))} |"
    yield "|" + "---|" * len(COLUMNS)
    for outcome in outcomes:
        _, place, *rest = outcome.row
        cells = (outcome.what, place, *rest)
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
    yield ""
    yield f"{counted(outcomes)}."
    yield from (f"{line}." for line in left_out(outcomes))
