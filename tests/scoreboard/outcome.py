"""The outcome of a scenario, and the table of all outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from judge import BROKEN, MISSED, OUT, RIGHT, WRONG, ReportedFinding, Verdict

COLUMNS = ("scenario", "place", "expected", "said", "verdict")


@dataclass(frozen=True)
class Outcome:
    """``expected`` and ``said`` are rules and findings; ``figures`` has fio's and the disk's
    counts. ``answer`` is the answer beside the job that decided, ``answered`` the verdict on it (""
    without a run)."""

    name: str
    place: str
    what: str
    expected: tuple[str, ...]
    said: tuple[ReportedFinding, ...]
    verdict: Verdict
    figures: str = ""
    seconds: float = 0.0
    answer: str = ""
    answered: str = ""

    @property
    def rules(self) -> str:
        """The rules of the findings, each once."""
        return _words(dict.fromkeys(finding.rule for finding in self.said))

    @property
    def row(self) -> tuple[str, ...]:
        rules = "" if self.verdict.word == OUT else self.rules
        return self.name, self.place, _words(self.expected), rules, self.verdict.word


def _words(rules: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(rules) or "none"


def to_json(outcome: Outcome) -> dict[str, Any]:
    """Convert an outcome to plain data."""
    return asdict(outcome)


def from_json(data: Mapping[str, Any]) -> Outcome:
    """Make an outcome of ``to_json``'s data."""
    verdict = data["verdict"]
    return Outcome(**{
        **data, "expected": tuple(data["expected"]),
        "said": tuple(ReportedFinding(**finding) for finding in data["said"]),
        "verdict": Verdict(verdict["word"], tuple(verdict["why"])),
    })  # fmt: skip


def lines(outcome: Outcome, verbose: bool) -> Iterator[str]:
    """The lines to print for an outcome."""
    name, place, expected, rules, verdict = outcome.row
    yield f"{verdict:<8} {name:<24} {place:<12} expected {expected}; said {rules}"
    yield from (f"         {why}" for why in outcome.verdict.why)
    if outcome.answered and (verbose or outcome.answered != RIGHT):
        yield f"         answer {outcome.answered}: {outcome.answer}"
    if verbose or outcome.verdict.word not in (RIGHT, OUT):
        if outcome.figures:
            yield f"         {outcome.figures}"
        if verbose:
            yield from (f"         {finding.rule}: {finding.text}" for finding in outcome.said)


def counted(outcomes: Sequence[Outcome]) -> str:
    """The number of outcomes by verdict."""
    counts = Counter(outcome.verdict.word for outcome in outcomes)
    parts = [f"{counts[verdict]} {verdict}" for verdict in (RIGHT, MISSED, WRONG)]
    parts += [f"{counts[verdict]} {verdict}" for verdict in (BROKEN, OUT) if counts[verdict]]
    return f"{len(outcomes)} scenarios: {', '.join(parts)}{_delay(outcomes)}{_answered(outcomes)}"


def _answered(outcomes: Sequence[Outcome]) -> str:
    """The verdicts on the sentence beside the jobs, or ""."""
    counts = Counter(outcome.answered for outcome in outcomes)
    parts = [f"{counts[word]} {word}" for word in (RIGHT, MISSED, WRONG)]
    return f"; the answer beside the job: {', '.join(parts)}" if counts.keys() - {""} else ""


def _delay(outcomes: Sequence[Outcome]) -> str:
    """Median and longest delay of right findings, or ""."""
    delays = [
        finding.after
        for outcome in outcomes if outcome.verdict.word == RIGHT
        for rule in outcome.expected
        for finding in [next(f for f in outcome.said if f.rule == rule)]
        if finding.after is not None
    ]  # fmt: skip
    if not delays:
        return ""
    return (
        f"; the right finding after {median(delays):.1f} s (median), {max(delays):.1f} s (longest)"
    )


def left_out(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The number of scenarios left out, by reason."""
    reasons = Counter(o.verdict.why[0] for o in outcomes if o.verdict.word == OUT)
    yield from (f"{count} left out: {why}" for why, count in reasons.items())


def markdown(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The table as Markdown."""
    yield f"| {' | '.join(('situation', *COLUMNS[1:]))} |"
    yield "|" + "---|" * len(COLUMNS)
    for outcome in outcomes:
        _, place, *columns = outcome.row
        cells = (outcome.what, place, *columns)
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
    yield ""
    yield f"{counted(outcomes)}."
    yield from (f"{line}." for line in left_out(outcomes))
